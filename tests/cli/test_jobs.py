"""Ten jobs of a user, each with at most two commands that stand in README, run as they stand there.

What README shows of an answer is what is printed, and its figures of accuracy are those of
docs/accuracy.md.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil

import pytest

from planner.commands.cli import main
from tests.cli.front_door import ROOT, command_lines
from tests.cli.test_documents import examples

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
INSTALLED = "$ python3.11 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/plan"
LINES = [
    line.text.replace(INSTALLED.removeprefix("$ "), "plan")
    for line in command_lines(README)
    if "pytest" not in line.text and len(line.text.split()) > 2  # `plan models` lists
]
JOBS = {
    "rate": "--rate 8req/s --ttft-target 1s",
    "mixed fleet": "fleet",
    "papers": "reproduce",
    "apart": "--roles apart",
    "page": "--html report.html",
    "tpu": "--emit jax tpu",
    "what if": "--what-if nvlink=2x,",
    "gains": "--what-if each",
    "audit": "audit",
    "import": "topologies import",
    "imported": "--topology mine.toml",
    "throughput": "--roles free",
    "why not": "--latency-target 5ms",
}
"""Words that a command of README has and no other."""


def line_of(words):
    (line,) = (line for line in LINES if words in line)
    return line


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What README shows of answers, by the command."""
    copy = tmp_path_factory.mktemp("shown") / "README.md"
    text = TEXT[: TEXT.index("## Test")].replace(INSTALLED, "$ plan")
    copy.write_text(text, encoding="utf-8")
    return {example.command: example for example in examples(copy)}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder with what README's commands name."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


@pytest.fixture
def job(clone, shown, monkeypatch, capsys):
    """Runs a command of README; what it prints, which is what README shows of it."""
    monkeypatch.chdir(clone)
    monkeypatch.setenv("COLUMNS", "100")

    def run(name, code=0):
        line = line_of(JOBS[name])
        assert main(shlex.split(line)[1:]) == code
        ran = capsys.readouterr()
        printed = ran.out + ran.err
        assert line not in shown or shown[line].agrees_with(printed), printed
        return " ".join(printed.split())

    return run


def test_every_command_of_readme_is_of_a_job(shown):
    assert sorted(map(line_of, JOBS.values())) == sorted(LINES)
    assert len(shown) >= 5
    assert set(shown) <= set(LINES)


def test_a_70b_at_eight_requests_a_second(job):
    said = job("rate")
    assert "3 replicas of 4 devices TP 4" in said
    assert "vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4" in said
    assert "optimal: no plan" in said


def test_a_mixed_fleet(job):
    answer = job("mixed fleet")
    assert "chat meets its targets; summaries meets its targets" in answer
    assert "h100-sxm" in answer


def test_tables_of_the_papers(job):
    said = job("papers")
    assert "12 rows: mean error" in said
    assert "$ plan predict --engine roofline --model palm-540b" in said


def test_phases_apart_with_a_router(job, clone):
    said = job("apart")
    assert "accepted by the" in said
    receipt = json.loads((clone / "r1/receipt.json").read_text(encoding="utf-8"))
    assert receipt["gpus"] == {"files": 32, "plan": 32}
    assert {pool["role"] for pool in receipt["pools"]} == {"prefill", "decode"}
    results = [check["result"] for check in receipt["checks"]]
    assert all(result == "read" or result.endswith("accepted") for result in results)
    start, router = ((clone / f"r1/{name}.sh").read_text("utf-8") for name in ("start", "router"))
    assert all(pool["name"] in start for pool in receipt["pools"])
    assert "context_servers" in router or "--prefill" in router


def test_a_report_to_forward(job, clone):
    assert "wrote report.html" in job("page")
    page = (clone / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "--rate=8req/s" in page or "--rate 8req/s" in page
    assert "vllm serve" in page
    assert not re.search(r'(src|href)="https?://', page)  # a page is read without a network


def test_tpus_and_the_program_of_the_layout(job, clone):
    assert "tpu/model.py" in job("tpu")
    program = (clone / "tpu/model.py").read_text(encoding="utf-8")
    ast.parse(program)
    assert "shard_map" in program
    assert "PartitionSpec" in program


def test_faster_links_and_memory(job):
    assert "scale-up bandwidth 2 times that of h100-sxm" in job("what if")
    gains = job("gains")
    assert "what more of the machine would gain" in gains
    assert all(name in gains for name in ("HBM bandwidth", "scale-up bandwidth", "FLOP/s"))


def test_an_audit_of_what_was_measured(job):
    assert re.search(r"slower than predicted; [\d.]+ times the cost", job("audit"))


def test_a_cluster_as_its_tools_say(job, clone):
    assert "wrote mine.toml" in job("import")
    assert "source" in (clone / "mine.toml").read_text(encoding="utf-8")
    assert "4 devices TP 4" in job("imported")


def test_the_most_requests_of_these_gpus_phases_free(job):
    said = job("throughput")
    assert re.search(r"replicas on 16 of 16 free devices: \d+ token/s", said)


def test_a_program_or_a_notebook(clone, monkeypatch, capsys):
    monkeypatch.chdir(clone)
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert capsys.readouterr().out.startswith("4 devices TP 4")
    for page in re.findall(r"\((examples/\S+?\.ipynb)\)", TEXT):
        assert (ROOT / page).exists()


def test_a_limit_that_nothing_holds_leads_to_a_command_that_has_a_plan(job):
    said = job("why not", code=1)
    (command,) = re.findall(r"this has a plan: `plan ([^`]+)`", said)
    assert main([*shlex.split(command), "--quiet"]) == 0


def test_readme_is_short_and_its_figures_are_those_of_accuracy():
    assert TEXT.count("\n") <= 125
    accuracy = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| (\d+) \| ([\d.]+ %) \| ([\d.]+ %) \|$", TEXT, re.M)
    assert len(rows) == 7
    for row in rows:
        shown = rf"^\| \*\*.*\| {row[0]} \|.* {re.escape(row[1])} \| {re.escape(row[2])} \|"
        assert re.search(shown, accuracy, re.M), row
