"""`--solver-report` and `--keep-program`, from the command line: all commands that solve."""

from __future__ import annotations

import json
import re
from math import isclose
from pathlib import Path

import highspy
import jsonschema
import numpy as np
import pytest

from planner.commands.options.commands import COMMANDS, options_of
from planner.report.answer_kinds import document_of
from planner.report.documents.as_text import text_of
from planner.results.listings import SolverReport
from planner.solvers.certify import in_si
from tests.report.rendering import tree

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "solver-report.schema.json"
EXAMPLES = Path(__file__).parents[2] / "examples"
LLAMA = "--model llama-3.1-8b --topology h100-nvl8-x1 --batch 8"
PLACED = (
    "place --engine roofline --model llama-3.1-70b --topology h100-nvl8-x2 --weights bf16 "
    "--latency-target 50ms --ttft-target 1s"
)
LINES = {
    "plan": LLAMA,
    "pareto": f"pareto {LLAMA} --engine roofline",
    "compare": "compare --model llama-3.1-8b --topology h100-nvl8-x1,h200-nvl8-x1 --batch 8",
    "audit": "audit --model llama-3.1-8b --topology h100-nvl8-x1 --engine roofline --devices 8 "
    "--batch 8 --speed 50tok/s",
    "place": PLACED,
    "repair": f"repair {EXAMPLES / 'placement.json'} --state {EXAMPLES / 'state-later.toml'} "
    "--loss 5%",
    "stages": "stages --model llama-3.1-8b --groups h100-sxm:tp1x1,a100-80gb:tp1x2 --batch 16",
    "layers": f"layers {EXAMPLES / 'machines' / 'quality-10.toml'}",
    "experts": "experts --experts 8 --zipf 0.8 --ranks 4 --slots 3 --nodes 2 --groups 4",
    "fleet": "fleet --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --rate 8req/s "
    "--input 500 --output 100 --ttft-p95 1s --tpot-p95 40ms",
}
WITHOUT_A_PROGRAM = {"layers"}
"""What the planner's own arithmetic proves here, so that no rows are stated."""


def reported(plan, line, name="solved.json"):
    ran = plan(f"{line} --solver-report {name}")
    assert f"wrote {name}" in ran.err
    return ran, json.loads(Path(name).read_text(encoding="utf-8"))


def test_every_command_that_solves_has_both_options():
    having = {name for name in COMMANDS if "--solver-report" in options_of(name)}
    assert having == set(LINES)
    assert having == {name for name in COMMANDS if "--keep-program" in options_of(name)}


@pytest.mark.parametrize("command", LINES)
def test_a_report_of_every_command(plan, command):
    ran, report = reported(plan, LINES[command])
    assert ran.code == 0
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(report)) == []
    answer = report["answer"]
    assert answer["command"].startswith("plan ")
    assert bool(answer["programs"]) == (command not in WITHOUT_A_PROGRAM)
    assert bool(answer["certificates"] or answer["frontiers"]) == (command != "audit")
    for proof in (*answer["certificates"], *answer["frontiers"]):
        screened = sum(screen["n_candidates"] for screen in proof["screens"])
        assert proof["n_candidates"] - screened == proof["n_solved"] or command not in (
            *("plan", "pareto", "compare"),
        )
    for program in answer["programs"]:
        assert program["proofs"]
        assert {one["prover"] for one in program["proofs"]} >= set(program["vouched_by"])
        if program["size"]:
            assert sum(program["rows"].values()) == program["size"]["n_rows"]


@pytest.mark.parametrize("command", ["plan", "pareto", "place", "stages"])
def test_an_answer_is_the_same_with_a_report_and_without(plan, command):
    ran, _ = reported(plan, f"{LINES[command]} --json")
    with_report, without = json.loads(ran.out), json.loads(plan(f"{LINES[command]} --json").out)
    assert with_report["digest"] == without["digest"]


def test_the_first_program_of_a_plan_is_what_its_certificate_says(plan):
    ran, report = reported(plan, f"{LINES['plan']} --json")
    certificate = json.loads(ran.out)["certificate"]
    assert report["answer"]["certificates"] == [certificate]
    first = report["answer"]["programs"][0]
    for value, name in ((first["objective"], "objective"), (first["bound"], "bound")):
        assert isclose(in_si("cost", value), certificate[name], rel_tol=1e-12)
    last = first["runs"][0]["events"][-1]
    assert isclose(in_si("cost", last["incumbent"]), certificate["objective"], rel_tol=1e-12)
    assert isclose(in_si("cost", last["bound"]), certificate["bound"], rel_tol=1e-12)
    proofs = {one["prover"]: one for one in first["proofs"]}
    for one in certificate["proofs"]:
        assert isclose(in_si("cost", proofs[one["prover"]]["bound"]), one["bound"], rel_tol=1e-12)
    assert {one.split()[0] for one in first["vouched_by"]} >= {"highs", "enumeration"}


def test_both_provers_of_a_placement_are_named(plan):
    _, report = reported(plan, LINES["repair"])
    lineages = [
        {run["proof"]["prover"].split()[0] for run in program["runs"]}
        for program in report["answer"]["programs"]
    ]
    assert any({"highs", "cpsat", "scip"} == each for each in lineages)
    assert all(len(each) > 1 for each in lineages)


def test_a_suffix_is_known_in_capitals_too(plan, folder):
    plan(f"{LLAMA} --solver-report A.HTML --keep-program K.LP")
    assert (folder / "A.HTML").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (folder / "K.LP").read_text(encoding="utf-8").startswith("\\ to be minimised")


@pytest.mark.parametrize("suffix", ["txt", "json", "html"])
def test_a_name_that_is_no_text_is_written_to_all_the_same(plan, folder, suffix):
    name = f"a\udcff.{suffix}"  # as the system hands on a byte that is not UTF-8
    ran = plan(f"{LLAMA} --quiet --solver-report={name}")
    assert ran.code == 0
    assert "a\\udcff" in (folder / name).read_text(encoding="utf-8")


def test_text_says_what_each_prover_has_and_is_not_wider_than_other_reports(plan, folder):
    plan(f"{LLAMA} --solver-report solved.txt")
    _, *lines = (folder / "solved.txt").read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 100
    text = " ".join(" ".join(lines).split())
    assert "least of each slot a bound – 1.59719507" in text
    assert "quick search an answer 1.59719507 –" in text
    assert "proved by HiGHS 1.13.1, enumeration of 4,608, enumeration of 8 " in text
    assert "stopped" not in text
    for engine in ("vllm", "sglang", "trtllm"):
        assert f" {engine} alone: best plan: layout" in text


def test_of_no_answer_nothing_is_said_to_be_proved():
    report = SolverReport(command="plan", certificates=(), frontiers=(), programs=())
    text = text_of(document_of(report), 100)
    assert "none was stated before the end" in text
    assert "certificate" not in text


def test_what_no_plan_keeps_is_reported_too(plan):
    line = "--model llama-3.1-70b --topology h100-nvl8-x1 --engine roofline --latency-target 1ms"
    ran, report = reported(plan, line)
    assert ran.code == 1
    purposes = {program["purpose"] for program in report["answer"]["programs"]}
    assert "conflict: whether anything keeps the limits" in purposes


def test_text_page_and_json_say_the_same_programs(plan, folder):
    plan(f"{PLACED} --solver-report solved.txt")
    text = (folder / "solved.txt").read_text(encoding="utf-8")
    plan(f"{PLACED} --solver-report solved.html")
    page = (folder / "solved.html").read_text(encoding="utf-8")
    words = " ".join(tree(page).itertext())
    _, report = reported(plan, PLACED)
    for program in report["answer"]["programs"]:
        rows = ", ".join(f"{n:,} {name}" for name, n in program["rows"].items())
        assert rows in text
        assert rows in words
    assert "proved by HiGHS" in " ".join(text.split())
    assert re.search(
        r"presolve\s+leaves\s+3\s+columns\s+\(3\s+whole\),\s+2\s+rows,\s+5\s+nonzeros", text
    )
    command, *lines = text.splitlines()
    assert command.startswith("plan place ")
    assert max(map(len, lines)) <= 100
    assert "solved.txt" in text
    assert "--solver-report=solved.html" in words


def test_a_dash_is_standard_output_behind_the_answer(plan):
    ran = plan(f"{LLAMA} --quiet --solver-report -")
    line, _, rest = ran.out.partition("\n")
    assert line == plan(f"{LLAMA} --quiet").out.rstrip("\n")
    assert rest.startswith("\n17 programs solved, ")
    assert "wrote" not in ran.err
    refused = plan(f"{LLAMA} --json --solver-report -")
    assert refused.code == 2
    assert "cannot go with `--solver-report -`" in refused.err


def test_processes_of_a_staircase_are_not_seen_and_that_is_said(plan):
    line = f"{LINES['fleet']} --staircase 7:8req/s"
    assert reported(plan, f"{line} --quiet")[0].code == 0
    refused = plan(f"{line} --workers 2 --solver-report solved.txt")
    assert refused.code == 2
    assert "does not see what other processes solve" in refused.err


@pytest.mark.parametrize("suffix", ["lp", "mps"])
@pytest.mark.parametrize("command", ["plan", "place", "stages", "fleet"])
def test_the_program_that_is_kept_has_the_optimum_of_the_report(plan, folder, command, suffix):
    _, report = reported(plan, f"{LINES[command]} --keep-program kept.{suffix}")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(folder / f"kept.{suffix}"))
    highs.run()
    lp = highs.getLp()
    stated = (program for program in report["answer"]["programs"] if program["size"])
    kept = next(
        program
        for program in stated
        if program["size"]["n_rows"] == lp.num_row_
        and program["size"]["n_nonzeros"] == len(lp.a_matrix_.value_)
    )
    if kept["objective"] is None:
        assert highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible
    else:
        value = highs.getInfo().objective_function_value
        assert isclose(value, kept["objective"], rel_tol=1e-6)


def test_multipliers_and_the_rows_that_are_kept_add_up_to_the_bound(plan, folder):
    """By names alone, with nothing of the planner: y b, and what columns come to at their best."""
    _, report = reported(plan, f"{LINES['stages']} --objective latency --keep-program kept.mps")
    (program,) = report["answer"]["programs"]
    (run,) = (run for run in program["runs"] if run["multipliers"])
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(folder / "kept.mps"))
    lp = highs.getLp()
    assert run["multipliers"].keys() <= set(lp.row_names_)
    y = np.array([run["multipliers"].get(name, 0.0) for name in lp.row_names_])
    sides = np.where(y > 0, lp.row_lower_, lp.row_upper_)
    starts, reduced = list(lp.a_matrix_.start_), np.array(lp.col_cost_)
    column = np.repeat(np.arange(lp.num_col_), np.diff(starts))
    np.subtract.at(reduced, column, np.array(lp.a_matrix_.value_) * y[lp.a_matrix_.index_])
    ends = np.where(reduced > 0, lp.col_lower_, lp.col_upper_)
    bound = lp.offset_ + y[y != 0] @ sides[y != 0] + reduced @ ends
    assert isclose(bound, run["proof"]["bound"], rel_tol=1e-8)
    assert bound <= program["objective"]


def test_no_program_is_kept_where_none_is_stated(plan, folder):
    ran = plan(f"{LINES['layers']} --quiet --keep-program kept.lp")
    assert ran.code == 0
    assert "no program was proved by solvers: none is kept" in ran.err
    assert not (folder / "kept.lp").exists()
