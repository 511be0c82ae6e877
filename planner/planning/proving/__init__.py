"""Answers searched for again, to judge what only a search can say: that nothing is better.

The request of an answer is answered once more. Nothing may be better than the bound that is
claimed, candidates have to be as many, and looser limits have to gain what is said. Where there is
another search than the one that found it, it is done too: parts of the request, from another seed,
none of which may beat the bound.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from planner.errors import NoPlanError
from planner.planning.proving import comparing, plans, surveys
from planner.results.fleets import FleetPlan, FleetStaircase
from planner.results.repairs import Repair
from planner.specs.ask.fleet import FleetRequest
from planner.specs.files.engines import engines_as_in
from planner.specs.records.certificates import OPTIMAL
from planner.specs.records.kernels import EngineSpec, inner_records


def fleet_again(says: FleetPlan) -> comparing.Again:
    """The rates that its program rests on are found again too, and what it says besides."""
    from planner.placing.fleets.planning import fleet

    try:
        plan = fleet(says.request)
    except NoPlanError:
        return comparing.unanswered(("certificate", "status"), says.certificate.status)
    limit_s = comparing.limit_of(says.request.options.time_limit_s)
    findings = [
        *comparing.certificate_findings(says.certificate, plan.certificate, limit_s),
        *comparing.same_beliefs(says, plan, limit_s),
    ]
    is_whole = limit_s is None or says.certificate.status == plan.certificate.status == OPTIMAL
    mine, others = ([pool.name for pool in it.pools] for it in (says, plan))
    if is_whole and mine == others:
        findings += comparing.same_fields(says, plan, "rounds")
        findings += comparing.proved_fields(says, plan)
    names = []
    for name, request in _subsets(says) if is_whole else ():
        with suppress(NoPlanError):
            best = fleet(request).certificate.objective
            findings += comparing.subset_findings(says.certificate, best, None, name)
            names.append(name)
    parts = [f"and by parts: {'; '.join(names)}"] if names else []
    return comparing.again(findings, plan.certificate, *parts)


def _subsets(says: FleetPlan) -> Iterator[tuple[str, FleetRequest]]:
    """Parts of a request whose rates a simulation took down: rounds may have lost the best."""
    from planner.placing.fleets.offering import CHUNKS

    request = says.request
    if not any(one.refuted for one in says.rounds):
        return
    for chunk in request.chunks or CHUNKS:
        yield f"only chunks of {chunk}", replace(request, chunks=(chunk,))
    for engine in request.engines if len(request.engines) > 1 else ():
        yield f"only {engine}", replace(request, engines=(engine,))


def staircase_again(says: FleetStaircase) -> comparing.Again:
    """Every step, from the least traffic to the most."""
    from planner.placing.fleets.choosing.staircase import staircase

    if not says.steps:
        return comparing.Again()
    of = says.request.rate_per_s
    beyond = 1.0 if says.is_whole else 1.01
    again = staircase(
        says.request,
        lowest_per_s=says.steps[0].above_factor * of,
        highest_per_s=says.steps[-1].upto_factor * of * beyond,
    )
    findings = [*comparing.same_fields(says, again, "steps"), *comparing.proved_fields(says, again)]
    for i, pair in enumerate(zip(says.steps, again.steps, strict=False)):
        here = ("steps", str(i))
        findings += comparing.same_fields(*pair, "above_factor", "upto_factor", path=here)
    words = (
        f"climbed again: {len(again.steps)} steps, none further than {again.gap:.3g} of its rent"
    )
    return comparing.Again(findings=tuple(findings), proofs=(f"{words} from its bound",))


def proved(answer: Any) -> comparing.Again:  # noqa: ANN401 an answer of any kind
    """Search again, with the request of an answer.

    Raises:
        OutOfTimeError: the time limit of the request ended before a first answer.
    """
    placement = answer.request.wanted if isinstance(answer, Repair) else answer
    with engines_as_in([engine for _, engine in inner_records(placement, EngineSpec)]):
        return _PROVERS[type(answer).__name__](answer)


_GIVEN = comparing.Again(proofs=("nothing to search for: the deployment was given",))

_PROVERS: Mapping[str, Callable[[Any], comparing.Again]] = {
    "Plan": plans.plan_again,
    "Conflict": surveys.conflict_again,
    "Placement": plans.placement_again,
    "FleetPlan": fleet_again,
    "FleetStaircase": staircase_again,
    "Repair": plans.repair_again,
    "ExpertPlan": plans.experts_again,
    "StagePlan": plans.stages_again,
    "LayerPlacement": plans.layers_again,
    "Curves": surveys.curves_again,
    "Comparison": surveys.comparison_again,
    "Audit": surveys.audit_again,
    "EngineAudit": surveys.engine_audit_again,
    "Prediction": lambda says: _GIVEN,
    # of what was left open the fastest is chosen, as a plan is
    "LayoutPrediction": lambda says: plans.plan_again(says.plan).below("plan"),
}
