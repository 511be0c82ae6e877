"""Layouts that a request names: nothing else is chosen, and of those the best."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from planner import NoPlanError, RequestError, Targets, frontier, plan
from planner.specs.ask.targets import Degrees, Layouts, PhaseLayout
from planner.specs.files.reading import load_architecture, load_cluster
from planner.verifier.plans import judge_plan
from tests.requests import MODEL, WORKLOAD, torus

CHOICES = {"workload": WORKLOAD, "batches": (1, 8, 64), "prefill_batches": (1, 16)}


def asking(prefill=(None, None), decode=(None, None), **targets):
    parts = ("name", "attention", "n_microbatches")
    both = (PhaseLayout(**dict(zip(parts, one, strict=False))) for one in (prefill, decode))
    layouts = Layouts(**dict(zip(("prefill", "decode"), both, strict=True)))
    return Targets(layouts=layouts, **targets)


def solve(targets, cluster=None, **choices):
    return plan(MODEL, cluster or torus(2, 2, 4), targets=targets, **(CHOICES | choices))


@pytest.mark.parametrize("solver_objective", ["cost", "latency"])
@pytest.mark.parametrize("name", ["WS 1D", "WS 2D", "WG X", "WG XY", "WG XYZ", "one device"])
def test_a_phase_has_the_layout_that_is_asked_for(name, solver_objective):
    """And no other plan with it is better: naming the rest of the optimum changes nothing."""
    free = solve(Targets(), objective=solver_objective)
    found = solve(asking(decode=(name, None)), objective=solver_objective)
    best = found.deployment
    assert best.decode.layout == name
    assert found.certificate.objective >= free.certificate.objective * (1 - 1e-12)
    exact = asking(
        (best.prefill.layout, best.prefill.attention), (best.decode.layout, best.decode.attention)
    )
    again = solve(exact, objective=solver_objective)
    assert again.deployment == best
    assert again.certificate.n_candidates < found.certificate.n_candidates


def test_the_best_of_all_layouts_is_the_best_of_those_named_one_by_one():
    """Every pair of layouts of both phases by itself: the least of all is the free optimum."""
    cluster = torus(1, 2, 2)
    names = ("WS 1D", "WS 2D", "WG X", "WG XY", "WG XYZ", "one device")
    found = []
    for before in names:
        for after in names:
            for cut in ("heads", "batch"):
                try:
                    targets = asking((before, None), (after, cut))
                    found.append(solve(targets, cluster).certificate.objective)
                except (NoPlanError, RequestError):
                    continue
    assert len(found) > 10
    assert min(found) == pytest.approx(solve(Targets(), cluster).certificate.objective, rel=1e-12)


def test_layouts_that_go_nowhere_together_are_said_to():
    """Of a pool that has no mesh for both: no limit stands in the way, and none is blamed."""
    with pytest.raises(NoPlanError) as caught:
        solve(asking(("WS 1D", None), ("WS 2D", "heads")), torus(1, 2, 2))
    conflict = caught.value.conflict
    assert (conflict.obstacles, conflict.cores, conflict.closest) == ((), (), None)
    assert "go together, whatever the limits" in " ".join(conflict.verified)


def test_a_phase_may_be_asked_how_it_cuts_attention_alone():
    for cut in ("heads", "batch"):
        best = solve(asking((None, cut), (None, cut)), objective="latency").deployment
        assert (best.prefill.attention, best.decode.attention) == (cut, cut)


def test_a_frontier_has_the_layout_at_every_point():
    found = frontier(MODEL, torus(1, 2, 2), targets=asking(decode=("WS 1D", None)), **CHOICES)
    assert {point.deployment.decode.layout for point in found.points} == {"WS 1D"}


@pytest.mark.parametrize(
    ("targets", "fact"),
    [
        (asking(decode=("WS 3D", None)), "is called so"),
        (asking(decode=("WG XYZ", "heads")), "no layout of this name cuts attention so"),
        (asking(prefill=(None, "tokens")), "unknown cut of attention"),
    ],
)
def test_a_layout_that_there_is_not_is_refused_by_name(targets, fact):
    with pytest.raises(RequestError) as caught:
        solve(targets)
    (problem,) = caught.value.problems
    assert problem.where == "--layout"
    assert fact in problem.fact


def test_a_plan_with_another_layout_than_asked_for_is_found_out():
    found = solve(asking(decode=("WS 1D", None)))
    asked = replace(found.request, targets=asking(decode=("WS 2D", None)))
    _, wrong = judge_plan(replace(found, request=asked))
    assert ("deployment", "decode", "layout") in {tuple(map(str, one.path)) for one in wrong}


def test_passes_of_a_pipeline_are_cut_into_the_parts_that_are_asked_for():
    cluster, degrees = load_cluster("h100-nvl8-x1"), Degrees(tensor=4, pipeline=2)
    found = [
        solve(asking((None, None, parts), (None, None, 1), degrees=degrees), cluster)
        for parts in (1, 2, 8)
    ]
    cut = [(one.deployment.prefill.n_microbatches, one.deployment.decode.n_microbatches)
           for one in found]  # fmt: skip
    assert cut == [(1, 1), (2, 1), (8, 1)]
    with pytest.raises(RequestError) as caught:
        solve(asking(decode=(None, None, 3), degrees=degrees), cluster)
    (problem,) = caught.value.problems
    assert problem.fact == "no pass of it is cut into 3 parts for a pipeline"
    assert problem.remedy == "1, 2, 4, 8 can be"
    asked = replace(found[1].request, targets=asking(prefill=(None, None, 4), degrees=degrees))
    _, wrong = judge_plan(replace(found[1], request=asked))
    assert ("deployment", "prefill", "layout") in {tuple(map(str, one.path)) for one in wrong}


def test_the_command_of_a_hint_keeps_the_layout():
    with pytest.raises(NoPlanError) as caught:
        solve(asking(decode=("WS 2D", "batch"), tpot_s=1e-5))
    assert "--layout decode=WS2D/batch" in caught.value.conflict.command


def test_an_engine_refuses_the_name_of_a_layout():
    model = load_architecture("llama-3.1-8b")
    with pytest.raises(RequestError) as caught:
        plan(model, load_cluster("h100-nvl8-x1"), "vllm", targets=asking(decode=("WS 1D", None)))
    assert [one.where for one in caught.value.problems] == ["--layout"]


def test_every_field_of_a_layout_is_free_unless_it_is_set():
    assert all(field.default is None for field in dataclasses.fields(PhaseLayout))
    assert Layouts().fixed() == {}
