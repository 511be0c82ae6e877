"""A limit on lost quality: formats beyond it are no choices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import NoPlanError, RequestError, Targets, compare, load_model, plan
from planner.specs.ask.defaults import make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.files.listing import list_files
from planner.specs.files.places import Kind
from tests import requests
from tests.requests import MODEL, WORKLOAD, torus

LOSSY = replace(MODEL, quality_losses={"bf16": 0.0, "int8": 0.012}, kv_formats=("bf16", "int8"))


def solve(limit, model=LOSSY, **choices):
    filled = {"batches": (1, 8, 64), "prefill_batches": (1, 4)} | choices
    targets = Targets(quality_loss_fraction=limit)
    return plan(model, torus(1, 2, 2), workload=WORKLOAD, targets=targets, **filled)


def refused(limit, model=LOSSY, **choices):
    with pytest.raises(RequestError) as caught:
        solve(limit, model, **choices)
    return caught.value.problems


def test_a_format_beyond_the_limit_is_no_choice():
    """int8 is the cheaper one, and loses 1.2 %."""
    assert solve(0.012).deployment.weights_format == "int8"
    assert solve(0.0119).deployment.weights_format == "bf16"
    assert solve(0.0119).request.weights_formats == ("bf16",)


def test_a_looser_limit_never_costs_more():
    costs = [solve(limit).deployment.usd_per_token for limit in (0.0, 0.01, 0.012, 0.5, None)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]


def test_a_format_of_which_nothing_is_known_is_forbidden():
    unknown = replace(MODEL, quality_losses={"bf16": 0.0})
    assert solve(0.5, unknown).request.weights_formats == ("bf16",)
    (problem,) = refused(0.5, unknown, weights_formats=["int8"])
    assert (problem.where, problem.value) == ("--weights", "int8")
    assert "no known loss" in problem.fact


def test_a_limit_that_leaves_no_format_says_what_each_loses():
    lossy = replace(MODEL, quality_losses={"int8": 0.012})
    (problem,) = refused(0.01, lossy)
    assert problem.where == "--max-quality-loss"
    assert "int8 loses 1.2%" in problem.fact
    assert "nothing is known of bf16" in problem.fact
    assert problem.remedy == "write `--max-quality-loss 1.2%` or more"


def test_the_usual_cache_loses_nothing_and_another_what_its_file_says():
    assert solve(0.0).deployment.kv_format == "bf16"
    (problem,) = refused(0.01, kv_formats=["int8"])
    assert (problem.where, problem.remedy) == ("--kv", "write `bf16`")
    known = replace(LOSSY, kv_quality_losses={"int8": 0.005})
    assert solve(0.01, known, kv_formats=["int8"]).deployment.kv_format == "int8"


def test_the_command_of_a_conflict_keeps_the_limit_and_offers_no_forbidden_format():
    """Only int8 fits two devices of 3.9 GB, and it is forbidden."""
    small = requests.with_memory(torus(1, 1, 2), 3.9e9)
    with pytest.raises(NoPlanError) as caught:
        plan(LOSSY, small, workload=WORKLOAD, targets=Targets(quality_loss_fraction=0.01))
    assert "int8" not in caught.value.conflict.command


def test_each_weights_format_of_a_comparison_is_allowed_or_says_why_not():
    targets = Targets(quality_loss_fraction=0.01)
    found = compare([LOSSY], [torus(1, 1, 2)], by="weights", targets=targets, workload=WORKLOAD)
    plans = {row.case.weights: row for row in found.rows}
    assert plans["bf16"].plan is not None
    assert "loses 1.2%" in plans["int8"].reason


@pytest.mark.parametrize("listing", list_files(Kind.MODEL), ids=lambda listing: listing.name)
def test_shipped_models_say_what_every_format_loses(listing):
    model = load_model(listing.name)
    assert set(model.quality_losses) == set(model.weights_formats)
    assert min(model.quality_losses.values()) == 0
    assert set(model.kv_quality_losses) == set(model.kv_formats) - {model.kv_format}
    asked = {"workload": WORKLOAD, "batches": None, "prefill_batches": None, "prefill": None}
    asked |= {"weights_formats": None, "objective": "cost", "options": requests.SolverOptions()}
    strict = make_request(
        model, torus(1, 1, 1), PlanOptions(targets=Targets(quality_loss_fraction=0.0), **asked)
    )
    assert all(model.quality_losses[name] == 0 for name in strict.weights_formats)
