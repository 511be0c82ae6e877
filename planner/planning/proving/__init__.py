"""Answers searched for again, to judge what only a search can say: that nothing is better.

The request of an answer is answered once more. Nothing may be better than the bound that is
claimed, candidates have to be as many, and looser limits have to gain what is said. Where there is
another search than the one that found it, it is done too: parts of the request, from another seed,
none of which may beat the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from planner.results.predictions import Prediction


def proved(answer: Any) -> Again:  # noqa: ANN401 an answer of any kind
    """Search again, with the request of an answer.

    Raises:
        OutOfTimeError: the time limit of the request ended before a first answer.
    """
    return _PROVERS[type(answer).__name__](answer)


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
}
