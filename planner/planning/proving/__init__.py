"""Answers searched for again, to judge what only a search can say: that nothing is better.

The request of an answer is answered once more. Nothing may be better than the bound that is
claimed, candidates have to be as many, and looser limits have to gain what is said. Where there is
another search than the one that found it, it is done too: parts of the request, from another seed,
none of which may beat the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from planner.planning.proving.comparing import Again
from planner.planning.proving.fleets import fleet_again, staircase_again
from planner.planning.proving.plans import plan_again
from planner.planning.proving.sites import (
    experts_again,
    layers_again,
    placement_again,
    repair_again,
    stages_again,
)
from planner.planning.proving.surveys import (
    audit_again,
    comparison_again,
    curves_again,
    engine_audit_again,
)
from planner.results.layout_predictions import LayoutPrediction
from planner.results.predictions import Prediction
from planner.results.repairs import Repair
from planner.specs.engines.files import memory_as_in
from planner.specs.kernels import EngineSpec


def proved(answer: Any) -> Again:  # noqa: ANN401 an answer of any kind
    """Search again, with the request of an answer.

    Raises:
        OutOfTimeError: the time limit of the request ended before a first answer.
    """
    asked = answer.request.wanted if isinstance(answer, Repair) else answer
    with memory_as_in(_engines(asked)):
        return _PROVERS[type(answer).__name__](answer)


def _engines(answer: object) -> list[EngineSpec]:
    """Engines in an answer, as its requests have them."""
    found: list[EngineSpec] = []
    seen: set[int] = set()
    waiting = [answer]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            if isinstance(one, EngineSpec):
                found.append(one)
            elif isinstance(one, tuple | list):
                waiting += one
            elif is_dataclass(one):
                waiting += [getattr(one, field.name) for field in fields(one)]
    return found


def _layouts_again(says: LayoutPrediction) -> Again:
    """Of what was left open the fastest is chosen, as a plan is."""
    again = plan_again(says.plan)
    return replace(again, findings=tuple(one.below(("plan",)) for one in again.findings))


def _prediction_again(says: Prediction) -> Again:
    return Again(findings=(), proofs=("nothing to search for: the deployment was given",))


_PROVERS: Mapping[str, Callable[[Any], Again]] = {
    "Plan": plan_again,
    "Placement": placement_again,
    "FleetPlan": fleet_again,
    "FleetStaircase": staircase_again,
    "Repair": repair_again,
    "ExpertPlan": experts_again,
    "StagePlan": stages_again,
    "LayerPlacement": layers_again,
    "Curves": curves_again,
    "Comparison": comparison_again,
    "Audit": audit_again,
    "EngineAudit": engine_audit_again,
    "Prediction": _prediction_again,
    "LayoutPrediction": _layouts_again,
}
