"""`plan fleet`: what it asks for, and where the answer goes; who finds it is not asked here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from planner.commands.cli import main
from planner.commands.fleet import _name
from planner.report import answer_kinds, as_json
from planner.report.documents.blocks import Document, Note
from planner.results.fleets import Round, Step
from planner.specs.traffic.trace_files import TracePart

CLASS = ["--model", "llama-3.1-8b", "--rate", "8req/s", "--input", "1500", "--output", "300"]
BASE = [*CLASS, "--topology", "h100-nvl8-x1", "--engine", "vllm"]
FILE = """
[[class]]
name = "chat"
model = "llama-3.1-8b"
rate = "2 req/s"
input = 500
output = 100
"""
KIND = '[[kind]]\ndevice = "h100-sxm"\ncount = 8\n'


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Questions that reach the planner, each by its name; reports are their names."""
    found = []

    def fleet(request, *, on_round):
        found.append(("fleet", request))
        on_round(Round(usd_per_hour=2.95, n_devices=1, refuted=()))
        return "PLAN"

    def staircase(request, *, on_step, **said):
        found.append(("staircase", said))
        step = {"usd_per_hour": 2.95, "bound_usd_per_hour": 2.95, "n_devices": 1, "words": ""}
        on_step(Step(above_factor=0.0, upto_factor=2.0, **step))
        return "STEPS"

    def document_of(answer, *, staircase=None, floorplan=None):
        alone = staircase is None
        return Document(
            title=f"page of {answer} and {staircase}",
            line=f"line of {answer}" + ("" if alone else f"\nline of {staircase}"),
            head=(Note(f"text of {answer} and {staircase}"),),
            sections=(),
            data=lambda: ([f"csv of {answer if alone else staircase}"], []),
        )

    monkeypatch.setattr("planner.placing.fleets.planning.fleet", fleet)
    monkeypatch.setitem(
        sys.modules,
        "planner.placing.fleets.choosing.staircase",
        SimpleNamespace(staircase=staircase),
    )
    monkeypatch.setattr(answer_kinds, "document_of", document_of)
    monkeypatch.setattr(
        as_json,
        "answer_json",
        lambda one, told=as_json.answer_json: {"kind": one} if isinstance(one, str) else told(one),
    )
    monkeypatch.chdir(tmp_path)
    return found


def printed(capsys, *words):
    assert main(["fleet", *words]) == 0
    return capsys.readouterr().out


def test_a_fleet_is_said_as_it_is_asked_for(asked, capsys):
    assert printed(capsys, *BASE) == "text of PLAN and None\n"
    assert printed(capsys, *BASE, "--quiet") == "line of PLAN\n"
    assert printed(capsys, *BASE, "--json") == '{\n  "kind": "PLAN"\n}\n'
    assert printed(capsys, *BASE, "--csv", "-") == "csv of PLAN\n"
    printed(capsys, *BASE, "--csv", "pools.csv", "--html", "page.html")
    assert Path("pools.csv").read_text() == "csv of PLAN\n"
    assert "<h1>page of PLAN and None</h1>" in Path("page.html").read_text()
    assert [name for name, _ in asked] == ["fleet"] * 5


def test_a_staircase_stands_beside_the_fleet_or_alone_for_programs(asked, capsys):
    climb = [*BASE, "--staircase", "1:200req/s", "--workers", "3"]
    assert printed(capsys, *climb) == "text of PLAN and STEPS\n"
    said = {"lowest_per_s": 1.0, "highest_per_s": 200.0, "workers": 3}
    assert asked[0] == ("staircase", said)
    assert [name for name, _ in asked] == ["staircase", "fleet"]
    assert printed(capsys, *climb, "--quiet") == "line of PLAN\nline of STEPS\n"
    printed(capsys, *climb, "--csv", "steps.csv", "--html", "page.html")
    assert Path("steps.csv").read_text() == "csv of STEPS\n"
    assert "<h1>page of PLAN and STEPS</h1>" in Path("page.html").read_text()
    del asked[:]
    assert printed(capsys, *climb, "--json", "--csv", "steps.csv") == '{\n  "kind": "STEPS"\n}\n'
    assert printed(capsys, *climb, "--csv", "-") == "csv of STEPS\n"
    assert [name for name, _ in asked] == ["staircase", "staircase"]
    printed(capsys, *climb, "--json", "--html", "page.html")
    assert "<h1>page of PLAN and STEPS</h1>" in Path("page.html").read_text()


def refusals(capsys, *words):
    assert main(["fleet", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    return [line.split("`")[1] for line in lines if line.startswith("  `-")]  # remedies are deeper


def test_a_file_of_classes_excludes_options_of_one(asked, capsys):
    Path("traffic.toml").write_text(FILE)
    one = [*CLASS, "--cuts", "free", "--ttft-p99.9", "1s", "--goodput", "99% ttft<1s"]
    named = ["--model llama-3.1-8b", "--rate 8req/s", "--input 1500", "--output 300", "--cuts free"]
    named += ["--goodput 99% ttft<1s", "--ttft-p99.9 1s"]
    assert refusals(capsys, "traffic.toml", *one) == named
    printed(capsys, "traffic.toml", "--topology", "h100-nvl8-x1")
    assert asked[0][1].site.n_devices == 8


TRACE = (
    "time,class,model,input,output\n0,chat,llama-3.1-8b,100,9\n1,code,qwen3-8b,200,8\n"
    "2,chat,llama-3.1-8b,300,7\n4,chat,qwen3-8b,400,6\n"
)
ON = ["--topology", "h100-nvl8-x1", "--engine", "vllm", "--replica-devices", "1"]


def test_a_trace_of_several_classes_is_of_each_for_its_models(asked, capsys):
    Path("both.csv").write_text(TRACE)
    printed(capsys, "--trace", "both.csv", *ON)
    printed(capsys, "--trace", "both.csv", *ON, "--model", "llama-3.1-8b", "--rate", "10req/s")
    said = [
        [(one.name, [it.name for it in one.models], one.rate_per_s) for one in request.classes]
        for _, request in asked
    ]
    assert said[0] == [
        ("chat llama-3.1-8b", ["llama-3.1-8b"], 0.5),
        ("code", ["qwen3-8b"], 0.25),
        ("chat qwen3-8b", ["qwen3-8b"], 0.25),
    ]
    assert said[1] == [("chat", ["llama-3.1-8b"], 7.5), ("code", ["llama-3.1-8b"], 2.5)]
    assert {one.arrivals.trace.n_whole for _, request in asked for one in request.classes} == {4}


def test_a_model_that_a_trace_names_and_nobody_knows_is_told_by_line_and_column(asked, capsys):
    Path("both.csv").write_text(TRACE.replace("qwen3-8b,200", "qwen9,200"))
    assert main(["fleet", "--trace", "both.csv", *ON]) == 2
    assert "`both.csv:3: model: qwen9`  no such model" in capsys.readouterr().err


def test_a_file_of_kinds_excludes_what_says_devices(asked, capsys):
    Path("traffic.toml").write_text(FILE + KIND)
    Path("state.toml").write_text('busy = ["node0"]\n')
    named = ["--topology h100-nvl8-x1", "--state", "--count"]
    words = ["--topology", "h100-nvl8-x1", "--state", "state.toml", "--count", "h100-sxm=2"]
    found = refusals(capsys, "traffic.toml", *words)
    assert [one.split()[0] for one in found] == [one.split()[0] for one in named]
    printed(capsys, "traffic.toml", "--price", "h100-sxm=$9/h")
    assert asked[0][1].site.groups[0].cluster.usd_per_hour == 9.0


def test_what_is_missing_is_said_by_name(asked, capsys):
    assert refusals(capsys) == ["--model", "--rate", "--input", "--output"]
    assert refusals(capsys, *BASE, "--arrivals", "trace", "--workers", "2") == [
        "--workers 2",
        "--arrivals trace",
    ]
    assert refusals(capsys, *BASE, "--json", "--quiet") == ["--quiet"]
    assert refusals(capsys, *BASE, "--json", "--csv", "-") == ["--json"]
    assert refusals(capsys, *BASE, "--latency-target", "40ms") == ["--latency-target 40ms"]


@pytest.mark.parametrize(
    "text", ["1", "1:", "0:3req/s", "5:2req/s", "1:2", "1s:2req/s", "-1:2req/s"]
)
def test_a_range_that_is_none_is_refused(asked, capsys, text):
    assert refusals(capsys, *BASE, "--staircase", text) == [f"--staircase {text}"]


def test_help_says_what_percentiles_are_of(capsys):
    assert main(["fleet", "--help"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    for words in (
        "from its arrival to its first token; over all requests",
        "over all tokens of all",
    ):
        assert words in page


def test_a_class_of_two_models_is_called_by_its_model_too():
    parts = [TracePart(of_class="chat", model="a"), TracePart(of_class="chat", model="b")]
    alone = TracePart(of_class="batch", model="a")
    assert [_name(part, [*parts, alone]) for part in (*parts, alone)] == [
        "chat a",
        "chat b",
        "batch",
    ]
    assert _name(TracePart(), [TracePart()]) == "requests"
