"""A model and its variants as one choice: the better of both, with one proof."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner.errors import NoPlanError, RequestError
from planner.estimates.candidates import machine_of, table_of
from planner.planning.plans import plan
from planner.programs.blocks import Objective, ProgramUnion, joined
from planner.programs.deployment import Posing
from planner.results.plans import Plan, served_by
from planner.solvers.search import search
from planner.specs.ask.defaults import make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.targets import DEFAULT_WORKLOAD, SolverOptions, Targets
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.variants import Variant

WIDTH, DEPTH = "llama-3.1-minitron-4b-width", "llama-3.1-minitron-4b-depth"
POOL = "h100-nvl8-x1"
SMALL = {"batches": (1, 16, 256), "prefill_batches": (1, 16)}

model, cluster = cache(load_model), cache(load_cluster)


def planned(*variants: str, **asked: object) -> Plan:
    found = [model(name) for name in variants]
    served = model("llama-3.1-8b")
    return plan(served, cluster(POOL), "roofline", variants=found, **SMALL, **asked)


@pytest.mark.parametrize("objective", ["cost", "latency", "ttft", "throughput"])
@pytest.mark.parametrize("solver", ["highs", "cpsat"])
def test_the_plan_is_the_best_of_the_plans_of_each(objective, solver):
    asked = {"objective": objective, "options": SolverOptions(solver=solver)}
    each = [
        plan(model(name), cluster(POOL), "roofline", **SMALL, **asked)
        for name in ("llama-3.1-8b", WIDTH, DEPTH)
    ]
    both = planned(WIDTH, DEPTH, **asked)
    best = max if objective == "throughput" else min
    values = [one.certificate.objective for one in each]
    assert both.certificate.objective == pytest.approx(best(values), rel=1e-9)
    assert both.certificate.n_candidates == sum(one.certificate.n_candidates for one in each)
    assert both.certificate.status == "optimal"
    served = each[values.index(best(values))].request.model.name
    assert served_by(both.request, both.deployment).model.name == served
    assert both.deployment.variant == ("" if served == "llama-3.1-8b" else served)
    assert both.request.model.name == "llama-3.1-8b"
    assert [one.name for one in both.variants] == [WIDTH, DEPTH]


def test_the_runners_up_are_of_any_model():
    names = {one.deployment.variant for one in planned(WIDTH, objective="latency").alternatives}
    assert names == {"", WIDTH}


@pytest.mark.parametrize(("limit", "served"), [(0.12, DEPTH), (0.08, WIDTH), (0.07, "")])
def test_no_more_quality_is_lost_than_allowed(limit, served):
    """10.1 % by depth, 7.35 % by width; fp8 loses 0.47 % of what is left."""
    found = planned(WIDTH, DEPTH, targets=Targets(quality_loss_fraction=limit))
    assert found.deployment.variant == served


def test_what_a_format_loses_comes_on_top():
    """1 - (1 - 7.35 %)(1 - 0.47 %) is 7.79 %: fp8 is out below, 16 bits are not."""
    served = [
        planned(
            WIDTH, weights_formats=("fp8",), targets=Targets(quality_loss_fraction=limit)
        ).deployment.variant
        for limit in (0.0778, 0.0779)
    ]
    assert served == ["", WIDTH]


def test_a_variant_of_which_nothing_is_known_is_out_under_a_limit():
    said = Variant(of="llama-3.1-8b", how="pruned", quality="nobody measured it")
    unknown = replace(model(WIDTH), name="unknown", variant=said)
    base = model("llama-3.1-8b")
    free = plan(base, cluster(POOL), "roofline", variants=[unknown], **SMALL)
    limited = plan(
        base,
        cluster(POOL),
        "roofline",
        variants=[unknown],
        targets=Targets(quality_loss_fraction=0.5),
        **SMALL,
    )
    assert (free.deployment.variant, limited.deployment.variant) == ("unknown", "")
    assert free.variants[0].quality_loss_fraction is None


def test_what_is_no_variant_is_refused():
    with pytest.raises(RequestError, match=r"is a variant of llama-3\.1-8b"):
        plan(model("llama-3-8b"), cluster(POOL), "roofline", variants=[model(WIDTH)])


def test_no_plan_of_the_model_names_the_variants_that_have_none_either():
    with pytest.raises(NoPlanError) as caught:
        planned(WIDTH, targets=Targets(tpot_s=1e-4))
    assert any(WIDTH in text for text in caught.value.conflict.verified)


def test_a_variant_may_have_a_plan_where_the_model_has_none():
    each = [
        plan(model(name), cluster(POOL), "roofline", **SMALL, objective="latency").deployment.tpot_s
        for name in ("llama-3.1-8b", DEPTH)
    ]
    between = Targets(tpot_s=(each[0] + each[1]) / 2)
    assert each[1] < each[0]
    assert planned(DEPTH, targets=between).deployment.variant == DEPTH


def test_programs_of_several_models_side_by_side_keep_every_assignment():
    """Solved as one program and as two: the same optimum, found in the part that it is of."""
    parts = []
    for number, name in enumerate(("llama-3.1-8b", WIDTH)):
        request = make_request(
            model(name),
            cluster(POOL),
            PlanOptions(
                workload=DEFAULT_WORKLOAD,
                targets=Targets(tpot_s=0.02),
                weights_formats=None,
                prefill=None,
                objective="cost",
                options=SolverOptions(),
                **SMALL,
            ),
        )
        table = table_of(request, machine_of(request.cluster, request.model))
        parts.append(Posing(table, request, Objective(objective="cost"), model=number))
    options = SolverOptions()
    alone = [search(part, options, n_alternatives=0) for part in parts]
    together = search(ProgramUnion(parts), options, n_alternatives=0)
    values = [found.solution.objective for found in alone]
    best = alone[int(np.argmin(values))]
    assert together.solution.objective == pytest.approx(min(values), rel=1e-9)
    assert together.assignment is not None
    assert best.assignment is not None
    assert best.posed.place_of(together.posed, together.assignment) == best.assignment
    assert together.posed.model[together.assignment.context] == np.argmin(values)
    assert together.reduced.n_columns == sum(found.reduced.n_columns for found in alone)
    first, second = (joined(list(part.blocks())) for part in parts)
    whole = joined([first, second])
    assert whole.model.tolist() == sorted(whole.model.tolist())
    with pytest.raises(LookupError, match="not in this program"):
        first.place_of(together.posed, together.assignment)
    with pytest.raises(ValueError, match="different rows"):
        joined([first, replace(second, program=replace(second.program, limits=()))])
