"""Exit codes, streams and failures of the command line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.metadata import version

import pytest

import planner.planning.comparing  # takes `plan` by its name, before any test has it replaced
import planner.planning.pareto
import planner.planning.plans
from planner.commands.cli import main
from planner.errors import NoPlanError, OutOfTimeError, SolverError
from tests.cli.files import LINKED
from tests.report.examples import CONFLICT, PLAN


@pytest.fixture
def answer(monkeypatch):
    """Let the library answer with a plan, or with an error."""

    def give(outcome):
        def fake(model, cluster, engine=None, **keywords):
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(planner.planning.plans, "plan", fake)

    return give


def test_a_plan_is_printed_on_stdout_alone(plan, answer):
    answer(PLAN)
    ran = plan("")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("32 devices 2×4×4")


def test_quiet_is_one_line_and_json_is_json(plan, answer):
    answer(PLAN)
    assert plan("--quiet").out.count("\n") == 1
    assert json.loads(plan("--json").out)["kind"] == "plan"


def test_every_option_reaches_the_library_in_si_units(plan, monkeypatch):
    asked = {}

    def fake(model, cluster, engine=None, **keywords):
        asked.update(keywords, model=model.name, cluster=cluster.name)
        return PLAN

    monkeypatch.setattr(planner.planning.plans, "plan", fake)
    plan("--model palm-8b --topology tpu-v4-2x2x2 --latency-target 30ms --max-cost '$2/Mtoken'")
    assert (asked["model"], asked["cluster"]) == ("palm-8b", "tpu-v4-2x2x2")
    assert asked["targets"].tpot_s == 0.030
    assert asked["targets"].usd_per_token == 2e-6
    assert "weights_formats" not in asked
    assert asked["on_progress"] is None  # stderr is no terminal


LOADING = ImportError("initialization failed")
"""What a library raises into whose loading a Ctrl-C falls."""
LOADING.__cause__ = KeyboardInterrupt()


def test_a_bound_that_is_no_objective_of_a_plan_says_its_unit(plan, answer):
    answer(OutOfTimeError(time_limit_s=2.0, bound=6530.0, dimension="token/s"))
    assert "No plan can be better than 6530 token/s." in plan("").err


@pytest.mark.parametrize(
    ("error", "code", "said", "kind"),
    [
        (NoPlanError(CONFLICT), 1, "error: no plan serves", "conflict"),
        (
            OutOfTimeError(time_limit_s=2.0, bound=4e-5),
            3,
            "error: no plan was found within 2 s",
            "error",
        ),
        (SolverError("0 is 1"), 4, "error: the answer failed", "error"),
        (ZeroDivisionError("by zero"), 4, "error: the planner failed", "error"),
        (MemoryError(), 3, "error: out of memory", "error"),
        (OSError(11, "Try again"), 3, "error: try again", "error"),
        (KeyboardInterrupt(), 130, "error: interrupted", "error"),
        (LOADING, 130, "error: interrupted", "error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
class TestFailures:
    def test_have_a_code_a_message_and_no_traceback(self, plan, answer, error, code, said, kind):
        answer(error)
        ran = plan("")
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith(said)
        assert "Traceback" not in ran.err

    def test_are_json_too_when_asked(self, plan, answer, error, code, said, kind):
        answer(error)
        ran = plan("--json")
        assert json.loads(ran.out)["kind"] == kind
        assert ran.err.startswith(said)

    def test_show_a_traceback_when_asked(self, plan, answer, monkeypatch, error, code, said, kind):
        answer(error)
        monkeypatch.setenv("PLANNER_TRACEBACK", "1")
        assert "Traceback (most recent call last)" in plan("").err


@pytest.mark.parametrize(
    ("line", "pool", "said", "told"),
    [
        ("", "mine", "plan --topology mine --weights int8", ""),
        ("--topology box.toml", "mine", "plan --topology mine --weights int8", "box.toml"),
        ("--topology box.toml", "tpu-v4-4x8x8", "plan --weights int8", "box.toml"),
        ("--topology box.toml", "mine", "plan --topology tpu-v4-4x8x8", ""),
        ("--topology box.toml", "mine", "", ""),
    ],
    ids=["a name", "a file", "a file named as the default", "another pool", "no command"],
)
def test_a_hint_names_a_file_by_its_path(plan, folder, answer, line, pool, said, told):
    """A name is looked up in other folders than a path: it would not find the file."""
    box = re.sub(r'name = "[^"]+"', f'name = "{pool}"', LINKED, count=1)
    (folder / "box.toml").write_text(box, encoding="utf-8")
    request = replace(CONFLICT.request, cluster=replace(CONFLICT.request.cluster, name=pool))
    answer(NoPlanError(replace(CONFLICT, request=request, command=said)))
    command = json.loads(plan(f"{line} --json").out)["answer"]["command"]
    if told:
        said = said.replace(" --topology mine", "").replace("plan", f"plan --topology {told}", 1)
    assert command == said


def test_out_of_time_repeats_the_request_with_more_time(plan, answer):
    answer(OutOfTimeError(time_limit_s=2.0, bound=0.02))
    err = plan("--time-limit 2s --objective latency --max-cost '$9/Mtoken'").err
    assert "hint: give it more time: `plan --objective=latency" in err
    assert "'--max-cost=$9/Mtoken' --time-limit=8s`" in err
    assert "No plan can be better than 20 ms." in err


def test_a_defect_tells_how_to_see_its_traceback(plan, answer):
    answer(RuntimeError("oops"))
    assert "`PLANNER_TRACEBACK=1 plan --batch 8`" in plan("--batch 8").err


@pytest.mark.parametrize("line", ["--help", "-h", "--batch 0 --help", "--frob --help"])
def test_help_names_every_group_and_command_even_beside_mistakes(plan, line):
    ran = plan(line)
    assert ran.code == 0
    for word in (
        "what to serve",
        "targets",
        "search",
        "solver",
        "output",
        "models",
        "topologies",
        "devices",
        "--latency-target TIME",
        "[palm-540b]",
    ):
        assert word in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_help_of_a_command_is_its_own(plan):
    assert "List topologies, or describe one." in plan("topologies --help").out


def test_version_is_that_of_the_package(plan):
    assert plan("--version").out.strip() == version("llm-serving-planner")


def test_completion_is_installed_for_the_shell_in_use(plan, folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("SHELL", "/bin/bash")
    ran = plan("--install-completion")
    assert ran.code == 0
    script = next(path for path in folder.rglob("*") if path.name == "plan")
    assert "--complete" in script.read_text(encoding="utf-8")
    assert str(script) in ran.out
    monkeypatch.setenv("SHELL", "/bin/zsh")
    assert "~/.zshrc" in plan("--install-completion").out


def test_a_reader_who_has_seen_enough_is_no_error(folder, monkeypatch):
    """`plan models | head -0`: the first write finds the pipe closed."""
    import os
    import sys

    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["models"]) == 0
