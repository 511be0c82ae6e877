"""`plan pareto` and `plan compare`: what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from planner.commands.cli import main
from planner.report.answer_kinds import kind_named
from tests.cli.files import MODEL
from tests.cli.test_bad_inputs import assert_is_a_message
from tests.report.schema import Schema, answer_schema

SMALL = "--model mini.toml --topology tpu-v4-1x1x2 --batch 1:32 --prefill-batch 1,8"


def schema(name: str) -> Schema:
    return answer_schema(kind_named(name))


@pytest.fixture
def mini(plan, folder):
    """`plan` beside a small model."""
    (folder / "mini.toml").write_text(MODEL, encoding="utf-8")
    return plan


class TestPareto:
    def test_prints_a_table_on_stdout_alone(self, mini):
        ran = mini(f"pareto {SMALL}")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("mini on tpu-v4-1x1x2: cost per token against speed per user")
        assert "optimal: no point is missing" in ran.out

    def test_all_shows_every_point(self, mini):
        few, every = mini(f"pareto {SMALL}"), mini(f"pareto {SMALL} --all")
        assert "`--all` shows every one" in few.out
        assert "--all" not in every.out
        assert every.out.count("\n") > few.out.count("\n")

    def test_quiet_is_the_preferred_plan(self, mini):
        ran = mini(f"pareto {SMALL} --quiet")
        assert ran.out.count("\n") == 1
        assert "TPOT" in ran.out

    def test_json_is_valid_by_its_schema(self, mini):
        record = json.loads(mini(f"pareto {SMALL} --json").out)
        assert record["kind"] == "frontiers"
        jsonschema.Draft202012Validator(schema("frontiers")).validate(record)
        assert len(record["answer"]["curves"][0]["frontier"]["points"]) > 10

    def test_csv_on_stdout_is_nothing_but_csv(self, mini):
        rows = list(csv.DictReader(io.StringIO(mini(f"pareto {SMALL} --csv -").out)))
        assert len(rows) > 10
        times = [float(row["tpot_s"]) for row in rows]
        costs = [float(row["usd_per_token"]) for row in rows]
        assert times == sorted(times, reverse=True)
        assert costs == sorted(costs)

    def test_files_are_written_and_named_on_stderr(self, mini, folder):
        ran = mini(f"pareto {SMALL} --csv points.csv --html page.html --latency-target 4ms")
        assert ran.code == 0
        assert ran.err == "wrote points.csv\nwrote page.html\n"
        page = (folder / "page.html").read_text(encoding="utf-8")
        ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
        assert "TPOT ≤ 4 ms" in page
        assert (folder / "points.csv").read_bytes().count(b"\r") == 0

    def test_the_same_request_draws_the_same_page_but_for_what_provers_took(self, mini, folder):
        pages = []
        for _ in range(2):
            mini(f"pareto {SMALL} --html page.html --quiet")
            page = (folder / "page.html").read_text(encoding="utf-8")
            pages.append(re.sub(r"<dt>(?:proved by|time)</dt><dd>.*?</dd>", "", page))
        assert pages[0] == pages[1]

    def test_other_axes_can_be_asked(self, mini):
        ran = mini(f"pareto {SMALL} --x ttft --y throughput --alpha 1")
        assert "throughput against time to first token" in ran.out
        assert "(1/TTFT)^1" in ran.out

    def test_models_pools_and_formats_are_curves(self, mini):
        line = f"pareto {SMALL} --by weights --json".replace("1x1x2", "1x1x2,tpu-v4-1x1x1")
        curves = json.loads(mini(line).out)["answer"]["curves"]
        cases = [(curve["case"]["topology"], curve["case"]["weights"]) for curve in curves]
        assert cases == [
            ("tpu-v4-1x1x2", "bf16"),
            ("tpu-v4-1x1x2", "int8"),
            ("tpu-v4-1x1x1", "bf16"),
            ("tpu-v4-1x1x1", "int8"),
        ]

    def test_a_case_without_a_plan_does_not_hide_the_others(self, mini):
        line = f"pareto {SMALL} --quiet".replace("mini.toml", "mini.toml,palm-540b")
        ran = mini(line)
        assert ran.code == 0
        assert "palm-540b: no plan: HBM" in ran.out

    def test_where_no_case_has_a_plan_the_exit_code_says_so(self, mini):
        ran = mini("pareto --model palm-540b,llama-3.1-405b --topology tpu-v4-1x1x1 --batch 1,2")
        assert ran.code == 1
        assert ran.out.startswith("no frontier")
        alone = mini("pareto --model palm-540b --topology tpu-v4-1x1x1 --batch 1,2")
        assert alone.code == 1
        assert alone.err.startswith("error: no plan fits `palm-540b`")

    def test_formats_that_are_allowed_are_decisions_of_one_curve(self, mini):
        line = f"pareto {SMALL} --allow-formats bf16,int8 --json"
        (curve,) = json.loads(mini(line).out)["answer"]["curves"]
        assert curve["frontier"]["request"]["weights_formats"] == ["bf16", "int8"]
        points = curve["frontier"]["points"]
        assert "int8" in {point["deployment"]["weights_format"] for point in points}

    def test_by_formats_each_pair_is_a_curve(self, plan):
        line = "pareto --engine roofline --model llama-3-8b --topology h100-nvl8-x1 --batch 1,8"
        curves = json.loads(
            plan(f"{line} --max-devices 1 --allow-formats bf16,fp8 --by formats --json").out
        )
        curves = curves["answer"]["curves"]
        cases = [(curve["case"]["weights"], curve["case"]["kv"]) for curve in curves]
        assert cases == [("bf16", "bf16"), ("bf16", "fp8"), ("fp8", "bf16"), ("fp8", "fp8")]

    def test_a_draft_may_be_used_at_every_point(self, plan):
        line = "pareto --engine roofline --model llama-3-70b --topology h100-nvl8-x1 --batch 1,8"
        (curve,) = json.loads(plan(f"{line} --weights fp8 --draft llama-3-8b --json").out)[
            "answer"
        ]["curves"]
        points = curve["frontier"]["points"]
        assert points[-1]["deployment"]["draft"]["model"] == "llama-3-8b"
        alone = json.loads(plan(f"{line} --weights fp8 --json").out)["answer"]["curves"][0][
            "frontier"
        ]["points"]
        assert points[-1]["x"] < alone[-1]["x"]


class TestEconomics:
    LINE = "--engine erdil2025 --model llama-3-70b --batch 1,8,64"

    def test_a_frontier_says_whose_cost_model_it_is_and_proves_it(self, plan):
        ran = plan(f"pareto {self.LINE} --topology h100-nvl8-x1 --latency-target 12ms")
        assert ran.code == 0
        assert "of Erdil 2025" in ran.out
        assert "optimal: no point is missing" in ran.out
        assert "TTFT" not in ran.out

    def test_json_is_valid_by_its_schema(self, plan):
        record = json.loads(plan(f"pareto {self.LINE} --topology h100-nvl8-x1 --json").out)
        jsonschema.Draft202012Validator(schema("frontiers")).validate(record)
        assert record["answer"]["curves"][0]["frontier"]["cost_model"]["name"] == "erdil2025"
        line = f"compare {self.LINE} --topology h100-nvl8-x1,tpu-v4-1x1x2 --json"
        record = json.loads(plan(line).out)
        jsonschema.Draft202012Validator(schema("comparison")).validate(record)
        assert "is not made of nodes" in record["answer"]["rows"][1]["reason"]

    def test_the_papers_rule_of_memory_lets_more_fit(self, plan):
        line = f"{self.LINE} --topology h100-nvl8-x1 --weights bf16 --json --objective devices"
        needed = [
            json.loads(plan(f"{line}{rule}").out)["answer"]["deployment"]["n_devices"]
            for rule in ("", " --memory one-microbatch")
        ]
        assert needed[1] <= needed[0]

    def test_allowed_formats_are_of_weights_and_the_cache_stays(self, plan):
        ran = plan(f"{self.LINE} --topology h100-nvl8-x1 --allow-formats fp8,int4 --quiet")
        assert ran.code == 0
        assert "fp8 weights" in ran.out or "int4 weights" in ran.out


class TestAudit:
    LINE = "audit --engine roofline --model llama-3-8b --topology h100-nvl8-x1 --weights bf16"

    def test_json_is_valid_by_its_schema(self, plan):
        record = json.loads(plan(f"{self.LINE} --devices 1 --speed 40tok/s --batch 4 --json").out)
        jsonschema.Draft202012Validator(schema("audit")).validate(record)
        assert record["answer"]["changes"][0]["command"].startswith("plan --model llama-3-8b")

    def test_commands_name_files_as_the_request_did(self, mini):
        line = "audit --model mini.toml --topology tpu-v4-1x1x2 --speed 50tok/s --batch 2 --json"
        changes = json.loads(mini(line).out)["answer"]["changes"]
        assert changes
        assert all(" --model mini.toml " in change["command"] for change in changes)

    def test_a_page_is_written_and_named_on_stderr(self, plan, folder):
        ran = plan(f"{self.LINE} --devices 1 --speed 40tok/s --batch 4 --html audit.html --quiet")
        assert (ran.code, ran.err) == (0, "wrote audit.html\n")
        assert "what runs" in (folder / "audit.html").read_text(encoding="utf-8")


class TestCompare:
    def test_sets_cases_side_by_side(self, mini):
        ran = mini(f"compare {SMALL} --by weights --latency-target 4ms")
        assert (ran.code, ran.err) == (0, "")
        assert "best" in ran.out
        assert "certificates" in ran.out

    def test_quiet_is_the_best_of_all(self, mini):
        ran = mini(f"compare {SMALL} --by weights --quiet")
        assert ran.out.count("\n") == 1
        assert ran.out.startswith("int8: ")

    def test_json_is_valid_by_its_schema(self, mini):
        record = json.loads(mini(f"compare {SMALL} --by weights --json").out)
        jsonschema.Draft202012Validator(schema("comparison")).validate(record)
        losses = [row["loss_fraction"] for row in record["answer"]["rows"]]
        assert losses[record["answer"]["best"]] == 0.0
        assert min(losses) == 0.0

    def test_a_format_that_one_model_lacks_is_a_reason_not_an_error(self, mini):
        line = f"compare {SMALL} --by weights --weights int8,fp8 --json"
        rows = json.loads(mini(line).out)["answer"]["rows"]
        fact = "`fp8`: `mini` is not served in this format, nor does `tpu-v4` multiply it"
        assert [row["reason"] for row in rows] == ["", fact]

    def test_without_any_plan_the_exit_code_says_so(self, mini):
        ran = mini(f"compare {SMALL} --by weights --latency-target 1us")
        assert ran.code == 1
        assert "TPOT ≤ 1 us is out of reach" in ran.out


BAD = [
    ("pareto --x cost", ["`--x cost`", "no such axis", "latency or ttft"]),
    ("pareto --y latency", ["`--y latency`", "no such axis"]),
    ("pareto --alpha fast", ["`--alpha fast`", "does not begin with a number"]),
    ("pareto --alpha -1", ["`--alpha -1`", "is negative"]),
    ("pareto --alpha 1e9", ["`--alpha 1e9`", "beyond anything real"]),
    ("pareto --by model", ["`--by model`", "no such way to divide"]),
    ("pareto --engine guess", ["`--engine guess`", "no such engine"]),
    ("pareto --memory in-flight", ["`--memory in-flight`", "`--engine erdil2025` only"]),
    ("--engine erdil2025 --memory half", ["`--memory half`", "no such rule"]),
    ("pareto --engine erdil2025 --prefill cost", ["`--prefill cost`", "knows decode only"]),
    ("pareto --allow-formats bf16 --weights int8", ["`--weights int8`", "`--allow-formats`"]),
    (
        "audit --speed 9tok/s --batch 1 --memory in-flight",
        ["`--memory in-flight`", "means nothing to an audit"],
    ),
    (
        "audit --speed 9tok/s --batch 1 --html nowhere/a.html",
        ["`--html nowhere/a.html`", "folder does not exist"],
    ),
    ("pareto --objective rent", ["`--objective rent`", "`--y rent`"]),
    ("pareto --gap 1%", ["`--gap 1%`", "is proved without a gap"]),
    ("pareto --csv - --json", ["`--json`", "cannot go with `--csv -`"]),
    ("pareto --csv", ["`--csv`", "has no value"]),
    ("pareto --html nowhere/page.html", ["`--html nowhere/page.html`", "folder does not exist"]),
    ("pareto --html .", ["`--html .`", "is a folder"]),
    ("pareto --html -", ["`--html -`", "is no file"]),
    ("pareto --htlm page.html", ["`--htlm page.html`", "did you mean `--html`?"]),
    ("pareto --frobnicate", ["`--frobnicate`", "`plan pareto --help`"]),
    ("pareto palm-540b", ["`palm-540b`", "belongs to no option"]),
    ("pareto --model palm-62b,palm-54b", ["palm-54b", "no such model", "`palm-540b`"]),
    ("pareto --model palm-62b,", ["`--model`", "is empty"]),
    ("pareto --weights fp3", ["`--weights fp3`", "no such number format"]),
    ("pareto --latency-target 30 --alpha x --topology nope", ["for 3 reasons"]),
    ("compare --alpha 3", ["`--alpha 3`", "is an option of `plan pareto`"]),
    ("compare --weights fp6 --model palm-62b,palm-8b", ["`--weights fp6`"]),
    ("compare --batch 0", ["`--batch 0`"]),
    ("paretto", ["`paretto`", "no such command", "`plan pareto`"]),
    ("--csv points.csv", ["`--csv points.csv`", "is an option of `plan pareto`"]),
]


@pytest.mark.parametrize(("line", "words"), BAD, ids=[line for line, _ in BAD])
def test_what_cannot_be_read_is_named(plan, line, words):
    assert_is_a_message(plan(line), *words)


def test_a_file_that_cannot_be_written_in_the_end_is_named(mini, monkeypatch):
    """The disk fills up while the frontier is traced."""

    def full(descriptor):
        raise OSError(28, "No space left on device")

    Path("page.html").write_text("the old page", encoding="utf-8")
    monkeypatch.setattr("os.fsync", full)
    ran = mini(f"pareto {SMALL} --quiet --html page.html --csv points.csv")
    assert ran.code == 3
    assert ran.out.startswith("2 devices")  # what was found is not lost
    for name in ("page.html", "points.csv"):
        assert f"`{name}` was not written, and is as it was: no space left on device" in ran.err
    assert Path("page.html").read_text(encoding="utf-8") == "the old page"
    assert {path.name for path in Path().iterdir()} == {"mini.toml", "page.html"}


@pytest.mark.parametrize("command", ["pareto", "compare"])
def test_help_of_a_command_is_its_own(plan, command):
    ran = plan(f"{command} --help")
    assert ran.code == 0
    assert "--by" in ran.out
    assert ("--alpha" in ran.out) is (command == "pareto")
    assert ("--objective" in ran.out) is (command == "compare")
    assert max(map(len, ran.out.splitlines())) <= 100


def test_the_progress_line_of_a_terminal_names_the_case(mini, monkeypatch):
    """After half a second of patience, which is none here."""
    import sys

    from planner.report import progress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.0005)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(f"pareto {SMALL} --quiet".split()) == 0
    assert "searching mini tpu-v4-1x1x2" in screen.getvalue()
    assert screen.getvalue().endswith("\r")
