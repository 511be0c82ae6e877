"""Frontiers counted anew: every point, their order, what is said of them; that none is missing
is proved."""

import math
from collections.abc import Iterator
from dataclasses import replace

from planner.results.erdil2025 import EconomicsDeployment
from planner.results.plans import AnyRequest
from planner.results.surveys import (
    X_AXES,
    Y_AXES,
    CostModel,
    Curve,
    Curves,
    Frontier,
    FrontierPoint,
    FrontierProof,
)
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.records.certificates import FEASIBLE, OPTIMAL
from planner.specs.records.economics import EconomicsRequest
from planner.verifier.certificates import OF_A_PLAN, too_few
from planner.verifier.comparisons import denied, misnamed
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path, with_differences
from planner.verifier.quantities import Measure, limits_of, measure_of
from planner.verifier.runtimes.counting import Countings, counting_of, disagreements

CLOSE = 1e-8
"""Absolute, of logarithms of worths that are equal, and of the gap of what is called optimal."""


def judge_curves(says: Curves) -> tuple[Curves, list[Finding]]:
    """The curves that are true of their points, and everything in these that is not so."""
    curves: list[Curve] = []
    wrong: list[Finding] = []
    for i, curve in enumerate(says.curves):
        here: Path = ("curves", str(i))
        if curve.frontier is None:  # that there is none is proved
            curves.append(curve)
            wrong += denied(curve.case, curve.reason, curve.requests, here)
            continue
        frontier, more = judged_frontier(curve.frontier)
        name = curve.frontier.cost_model.name
        wrong += [one.below((*here, "frontier")) for one in more]
        wrong += misnamed(curve.case, curve.frontier.request, name, (*here, "case"))
        curves.append(replace(curve, frontier=frontier, reason="", requests=()))
    truth = replace(says, curves=tuple(curves))
    return truth, with_differences(wrong, says, truth)


def judged_frontier(says: Frontier) -> tuple[Frontier, list[Finding]]:
    """The frontier that is true of its points, and everything in this one that is not so."""
    requests = (says.request, *says.other_requests)
    try:
        of_x, of_y = _axes(says)
        cost_model, counted = _counted_by(says, requests)
    except Invalid as refused:
        return says, [refused.at(())]
    names = (of_x.name, of_y.name)
    free = [replace(one, targets=one.targets.without(*names)) for one in counted]
    among = Countings.of(free)
    wrong = list(disagreements(requests, ("other_requests",)))
    points = []
    for i, point in enumerate(says.points):
        deployment, more = among.counted(point.deployment, ("points", str(i), "deployment"))
        wrong += more
        true = replace(point, deployment=deployment)
        points.append(_point(true, says.request, of_x, of_y))
    truth = replace(
        says,
        x_dimension=of_x.dimension,
        y_dimension=of_y.dimension,
        points=tuple(points),
        preferred=_preferred(says, points, of_y),
        proof=_proof(says.proof, among),
        provenance=counting_of(counted[0]).provenance(),
        cost_model=cost_model,
    )
    wrong += [*_out_of_order(says, points, of_y), *_beyond(says, points, of_y)]
    wrong += _unproved(says, points)
    return truth, with_differences(wrong, says, truth)


def _axes(says: Frontier) -> tuple[Measure, Measure]:
    """The two quantities.

    Raises:
        Refused: they are none of a frontier, or not those that were asked for, or no points.
    """
    for name, value, known in (("x_name", says.x_name, X_AXES), ("y_name", says.y_name, Y_AXES)):
        if value not in known:
            raise Invalid(f"is none of {', '.join(known)}", path=(name,), says=value)
    if says.y_name != says.request.objective:
        fact = f"is not {says.request.objective}, which was asked for"
        raise Invalid(fact, path=("y_name",), says=says.y_name)
    if not says.points:
        raise Invalid("has no point", path=("points",), says=0)
    return measure_of(says.x_name), measure_of(says.y_name)


def _counted_by(
    says: Frontier, requests: tuple[AnyRequest, ...]
) -> tuple[CostModel, tuple[AnyRequest, ...]]:
    """What counts seconds and dollars, and the requests that points are counted by.

    A request of layouts only says names where `erdil2025` counts, whose own request has none.
    """
    points = [one.deployment for one in says.points]
    for other in requests[1:]:
        by_own = all(isinstance(one, EconomicsDeployment) for one in points)
        if isinstance(other, EconomicsRequest) and by_own:
            name = counting_of(other).runtime
            return CostModel(name=name, memory=other.memory, left_out=other.notes), (other,)
    return CostModel(name=counting_of(requests[0]).runtime), requests


def _point(
    says: FrontierPoint, request: Request | EngineRequest, of_x: Measure, of_y: Measure
) -> FrontierPoint:
    """The point that is true of its deployment and of the bound that is said."""
    x, y = of_x.of(says.deployment), of_y.of(says.deployment)
    limits = limits_of(request.targets)
    return replace(
        says,
        x=x,
        y=y,
        gap=abs(y - says.bound) / abs(y) if y else 0.0,
        meets_targets=all(
            of.is_kept(value, limits[of.name], TOLERANCE)
            for of, value in ((of_x, x), (of_y, y))
            if of.name in limits
        ),
    )


def _price(point: FrontierPoint, of_y: Measure) -> float:
    """What is set against speed, less being better."""
    return 1 / point.y if of_y.is_rate else point.y


def _preferred(says: Frontier, points: list[FrontierPoint], of_y: Measure) -> int:
    """The point of the largest worth; of equal ones, the one that is said."""
    worths = [-says.alpha * math.log(one.x) - math.log(_price(one, of_y)) for one in points]
    most = max(worths)
    is_so = 0 <= says.preferred < len(worths) and worths[says.preferred] >= most - CLOSE
    return says.preferred if is_so else worths.index(most)


def _proof(says: FrontierProof, among: Countings) -> FrontierProof:
    reasons = OF_A_PLAN.reasons
    return replace(
        says,
        screens=tuple(
            replace(one, reason=reasons.get(one.name, one.reason)) for one in says.screens
        ),
        verified=among.first.checks,
    )


def _out_of_order(says: Frontier, points: list[FrontierPoint], of_y: Measure) -> Iterator[Finding]:
    """Points that another is as good as in both quantities, or that stand where others belong.

    The cheapest comes first; each of the others is faster than the one before it, and dearer.
    """
    for i in range(1, len(points)):
        before, point, here = points[i - 1], points[i], ("points", str(i))
        if point.x >= before.x:
            fact = f"is no shorter than that of the point before it, {before.x!r}"
            yield Finding(path=(*here, "x"), says=says.points[i].x, fact=fact)
        if _price(point, of_y) <= _price(before, of_y):
            fact = f"is no worse than that of the point before it, {before.y!r}"
            yield Finding(path=(*here, "y"), says=says.points[i].y, fact=fact)


def _beyond(says: Frontier, points: list[FrontierPoint], of_y: Measure) -> Iterator[Finding]:
    """Bounds that their own points beat."""
    for i, point in enumerate(points):
        over = point.y - point.bound if of_y.is_rate else point.bound - point.y
        if over > TOLERANCE * abs(point.y):
            fact = f"is beyond what the point has, {point.y!r}"
            path = ("points", str(i), "bound")
            yield Finding(path=path, says=says.points[i].bound, fact=fact)


def _unproved(says: Frontier, points: list[FrontierPoint]) -> Iterator[Finding]:
    """A status that the gaps or the provers do not bear out, and numbers that do not add up."""
    proof, path = says.proof, ("proof", "status")
    if proof.status not in (OPTIMAL, FEASIBLE):
        fact = f"is neither {OPTIMAL} nor {FEASIBLE}"
        yield Finding(path=path, says=proof.status, fact=fact)
    widest = max(one.gap for one in points)
    if proof.status == OPTIMAL and widest > CLOSE:
        fact = f"is not what a gap of {widest!r} is called"
        yield Finding(path=path, says=proof.status, fact=fact)
    yield from _unvouched(proof)
    yield from _miscounted(proof)


def _unvouched(proof: FrontierProof) -> Iterator[Finding]:
    """Provers that said nothing, and too few of them."""
    for i, name in enumerate(proof.vouched_by):
        said = [one for one in proof.proofs if one.prover == name and one.outcome != "refused"]
        if not said:
            here = ("proof", "vouched_by", str(i))
            yield Finding(path=here, says=name, fact="said nothing of it")
    words = [one for one in proof.proofs if one.prover in proof.vouched_by]
    if proof.status == OPTIMAL and too_few(words):
        fact = "are too few to call a frontier optimal"
        said_by = ", ".join(proof.vouched_by)
        yield Finding(path=("proof", "vouched_by"), says=said_by, fact=fact)


def _miscounted(proof: FrontierProof) -> Iterator[Finding]:
    """Numbers that do not add up, and screens that nobody knows."""
    added = sum(one.n_candidates for one in proof.screens) + proof.n_solved
    is_whole = added == proof.n_candidates
    if not is_whole and (proof.status == OPTIMAL or added > proof.n_candidates):  # or time ended
        fact = f"do not add up: {added} are screened and left"
        yield Finding(path=("proof", "n_candidates"), says=proof.n_candidates, fact=fact)
    for i, screen in enumerate(proof.screens):
        here = ("proof", "screens", str(i))
        if screen.name not in OF_A_PLAN.reasons:
            yield Finding(path=(*here, "name"), says=screen.name, fact="is no screen")
        if screen.n_candidates < 1:
            fact = "are no candidates"
            yield Finding(path=(*here, "n_candidates"), says=screen.n_candidates, fact=fact)
