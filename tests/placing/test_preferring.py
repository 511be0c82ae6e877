"""Of placements within the error of what is predicted the simplest, beside every choice."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from planner import Serve, SolverOptions, Targets, Workload, load_architecture, place, verify
from planner.errors import RequestError
from planner.placing import homogeneous
from planner.placing.asking import placement_request
from planner.placing.planning import task_of
from planner.placing.searching import searched
from planner.programs.placement import (
    Counts,
    n_sorts,
    placement_objective,
    total,
    violations,
)
from planner.specs.files.pools import load_site
from planner.specs.files.state import State
from planner.verifier.placing.placements import judge_placement
from tests.report.rendering import report_text


def asked(busy, model="llama-3.1-70b", engine="vllm", objective="throughput"):
    """What is asked of two servers of eight devices, of each of which others use some."""
    names = [f"node{i}/gpu{g}" for i, n in enumerate(busy) for g in range(8 - n, 8)]
    return {
        "engine": engine,
        "workload": Workload(n_input_tokens=1500, n_output_tokens=300),
        "targets": Targets(tpot_s=0.06, ttft_s=2.0),
        "state": State(busy=tuple(names)),
        "objective": objective,
        "batches": (1, 4, 16, 64, 256),
    }, Serve(model=load_architecture(model))


def simplest_by_hand(busy, **keywords):
    """Sorts, devices, stages and rows of the simplest choice of all within the error."""
    said, serve = asked(busy, **keywords)
    said |= {"limits": None, "most_devices": None, "options": SolverOptions()}
    request = placement_request(load_site("h100-nvl8-x2"), serve, **said)
    problem = task_of(request, None)
    search = searched(problem)
    program, columns, best = search.posed.program, search.posed.columns, search.solution.answer
    error = homogeneous._error(problem, columns, best)
    cuts = homogeneous._cuts(columns)
    most = [min(int(n), 8) for n in program.column_most]
    found = []
    for copies in itertools.product(*(range(n + 1) for n in most)):
        counts = Counts(copies=copies)
        value, least = (placement_objective(program, one) for one in (counts, best))
        is_spread = any(total(tie, counts) > total(tie, best) for tie in program.ties[:3])
        if value <= least * (1.0 - error) and not is_spread and not violations(program, counts):
            found.append((n_sorts(program, counts), *(total(cut, counts) for cut in cuts), value))
    return min(found)


@pytest.mark.parametrize(
    ("busy", "model"),
    [
        ((3, 8), "llama-3.1-70b"),
        ((3, 8), "qwen3-32b"),
        ((3, 8), "gpt-oss-120b"),
        ((0, 5), "llama-3.1-70b"),
        ((1, 2), "llama-3.1-70b"),
    ],
)
def test_the_simplest_is_that_of_all_choices_within_the_error(busy, model):
    said, serve = asked(busy, model)
    site = load_site("h100-nvl8-x2")
    best, simple = place(site, serve, **said), place(site, serve, prefer="simplest", **said)
    n_sorts, n_devices, *_, least = simplest_by_hand(busy, model=model)
    assert len(simple.recipes) == n_sorts
    assert simple.n_used == n_devices <= best.n_used
    assert simple.output_tokens_per_s == pytest.approx(-1e3 * least)
    assert simple.certificate.bound == pytest.approx(best.certificate.bound)
    lost = best.output_tokens_per_s - simple.output_tokens_per_s
    assert (simple.certificate.given_up_for != "") == (lost > 0)
    assert not judge_placement(simple)[1]
    if lost:
        forged = replace(simple, request=replace(simple.request, prefer="objective"))
        assert judge_placement(forged)[1]


def test_it_is_proved_again():
    said, serve = asked((3, 8), "qwen3-32b")
    found = place(load_site("h100-nvl8-x2"), serve, prefer="simplest", **said)
    assert "simpler replicas" in found.certificate.given_up_for
    again = verify(found, prove=True)
    assert again.is_true
    text = report_text(found, 100)
    assert "of the best, given up for simpler replicas within the error" in " ".join(text.split())


@pytest.mark.parametrize(
    ("objective", "engine", "roles", "words"),
    [
        ("rent", "vllm", None, "nothing of rent is predicted"),
        ("devices", "vllm", None, "nothing of devices is predicted"),
        ("throughput", "vllm", "free", "is of replicas that do both phases"),
        ("throughput", "roofline", None, "means nothing"),
    ],
)
def test_where_nothing_is_within_an_error_it_is_refused(objective, engine, roles, words):
    said, serve = asked((3, 8), engine=engine, objective=objective)
    serve = replace(serve, demand_tokens_per_s=100.0)
    with pytest.raises(RequestError, match="--prefer") as refused:
        place(load_site("h100-nvl8-x2"), serve, prefer="simplest", roles=roles, **said)
    assert words in str(refused.value)
