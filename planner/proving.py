"""Answers searched for again, to judge what only a search can say: that nothing is better.

The request of an answer is answered once more. Nothing may be better than the bound that is
claimed, candidates have to be as many, and looser limits have to gain what is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.certificates import Certificate
from planner.errors import NoPlanError
from planner.expert_results import ExpertPlan
from planner.placement_results import Placement
from planner.repair_results import Repair
from planner.results import Plan
from planner.units import show
from planner.verifier.findings import Finding, Path

CLOSE = 1e-7
"""Relative, of objectives: solvers and ties have tolerances of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What a new search says of an answer.

    Args:
        findings: what does not hold.
        proofs: what does, in words.
    """

    findings: tuple[Finding, ...]
    proofs: tuple[str, ...]


def proved(answer: Any) -> Again:  # noqa: ANN401 an answer of any kind
    """Search again, with the request of an answer.

    Raises:
        OutOfTimeError: the time limit of the request ended before a first answer.
    """
    prover: Callable[[Any], Again] = _PROVERS[type(answer).__name__]
    return prover(answer)


def _plan(says: Plan) -> Again:
    from planner.planning import plan

    asked = says.request
    try:
        found = plan(
            asked.model,
            asked.cluster,
            workload=asked.workload,
            targets=asked.targets,
            weights_formats=asked.weights_formats,
            kv_formats=asked.kv_formats,
            batches=asked.batches,
            prefill_batches=asked.prefill_batches,
            prefill=asked.prefill,
            objective=asked.objective,
            speculation=asked.speculation,
            variants=asked.variants,
            options=asked.options,
        )
    except NoPlanError:
        return _none(("certificate", "status"), says.certificate.status)
    findings = [
        *_bounds(says.certificate, found.certificate, ("certificate",)),
        *_counts(says.certificate, found.certificate, ("certificate",)),
        *_gains(says, found),
        *_runners_up(says, found),
    ]
    return _again(findings, found.certificate)


def _placement(says: Placement) -> Again:
    found = _placed_again(says)
    if found is None:
        return _none(("certificate", "status"), says.certificate.status)
    findings = [
        *_bounds(says.certificate, found.certificate, ("certificate",)),
        *_counts(says.certificate, found.certificate, ("certificate",)),
    ]
    return _again(findings, found.certificate)


def _placed_again(says: Placement) -> Placement | None:
    from planner.placing.inheriting import costs_of
    from planner.placing.planning import place

    asked = says.request
    try:
        return place(
            asked.site,
            asked.models,
            workload=asked.workload,
            targets=asked.targets,
            state=asked.state,
            objective=asked.objective,
            limits=asked.limits,
            batches=asked.batches,
            most_devices=asked.most_devices,
            aligned=asked.aligned,
            layout_first=asked.layout_first,
            group_costs=costs_of(asked),
            options=asked.options,
        )
    except NoPlanError:
        return None


def _repair(says: Repair) -> Again:
    from planner.placing.repairing import repair

    asked = says.request
    wanted = asked.wanted
    try:
        found = repair(
            asked.before,
            wanted.site,
            wanted.models,
            state=wanted.state,
            loss=asked.loss_fraction,
            workload=wanted.workload,
            targets=wanted.targets,
            objective=wanted.objective,
            limits=wanted.limits,
            batches=wanted.batches,
            most_devices=wanted.most_devices,
            aligned=wanted.aligned,
            most_points=asked.most_points,
            options=wanted.options,
        )
    except NoPlanError:
        return _none(("placement", "certificate", "status"), says.placement.certificate.status)
    path = ("placement", "certificate")
    mine, other = says.placement.certificate, found.placement.certificate
    findings = [
        *_counts(mine, other, path),
        *_same(mine.bound, other.bound, (*path, "bound")),
        *_same(mine.status, other.status, (*path, "status")),
        *_points(says, found),
    ]
    return _again(findings, other)


def _points(says: Repair, found: Repair) -> Iterator[Finding]:
    """The frontier between bytes and objective, point by point."""
    if len(says.frontier) != len(found.frontier):
        fact = f"has {len(says.frontier)} points, and there are {len(found.frontier)}"
        yield Finding(path=("frontier",), says=len(says.frontier), fact=fact)
        return
    for i, (one, other) in enumerate(zip(says.frontier, found.frontier, strict=True)):
        for name in ("moved_bytes", "objective"):
            here = ("frontier", str(i), name)
            yield from _same(getattr(one, name), getattr(other, name), here)
    yield from _same(says.is_whole, found.is_whole, ("is_whole",))


def _experts(says: ExpertPlan) -> Again:
    from planner.expert_placing import place_experts

    asked = says.request
    found = place_experts(
        asked.loads,
        n_ranks=asked.n_ranks,
        n_slots=asked.n_slots,
        n_nodes=asked.n_nodes,
        n_groups=asked.n_groups,
        split=asked.split,
        present=asked.present,
        move_price=asked.move_price,
        coactivation=asked.coactivation,
        slack=asked.slack,
        weights=asked.weights,
        gap=asked.gap,
        seed=asked.seed,
        time_limit_s=asked.time_limit_s,
        proof=asked.proof,
    )
    mine, other = says.certificate, found.certificate
    findings = [*_bounds(mine, other, ("certificate",))]
    if not findings and asked.time_limit_s is None:
        if mine.bound > other.bound * (1 + CLOSE):
            fact = f"is not proved: the search proves {other.bound!r}"
            findings.append(Finding(path=("certificate", "bound"), says=mine.bound, fact=fact))
        elif math.isclose(mine.bound, other.bound, rel_tol=CLOSE):
            findings += _same(says.proof, found.proof, ("proof",))
    return _again(findings, other)


_PROVERS: Mapping[str, Callable[[Any], Again]] = {
    "Plan": _plan,
    "Placement": _placement,
    "Repair": _repair,
    "ExpertPlan": _experts,
}


def _none(path: Path, says: object) -> Again:
    fact = "is of a request that has no answer"
    return Again(findings=(Finding(path=path, says=says, fact=fact),), proofs=())


def _again(findings: list[Finding], proof: Certificate) -> Again:
    name, value = proof.objective_name, show(proof.objective, proof.dimension)
    bound = show(proof.bound, proof.dimension)
    told = f"searched again: {proof.status}, {name} {value}, bound {bound}, by {proof.solver}"
    return Again(findings=tuple(findings), proofs=(told,))


def _is_better(value: float, than: float, *, is_rate: bool) -> bool:
    """Whether a value is better than another by more than tolerances."""
    gained = value - than if is_rate else than - value
    return gained > CLOSE * abs(than)


def _bounds(says: Certificate, found: Certificate, path: Path) -> Iterator[Finding]:
    """A bound that something is better than, or that no search proves; and what follows."""
    is_rate = found.objective_name in ("throughput", "share")
    if _is_better(found.objective, says.bound, is_rate=is_rate):
        fact = f"is no bound: {found.objective!r} is reached"
        yield Finding(path=(*path, "bound"), says=says.bound, fact=fact)
    elif _is_better(found.bound, says.bound, is_rate=is_rate) and says.status == "optimal":
        fact = f"is not proved: the search proves {found.bound!r}"
        yield Finding(path=(*path, "bound"), says=says.bound, fact=fact)
    best = found.objective
    allowed = abs(best) * (says.gap + CLOSE)
    if says.status == "optimal" and abs(says.objective - best) > allowed:
        fact = f"is not what {says.objective!r} is called where {best!r} can be had"
        yield Finding(path=(*path, "status"), says=says.status, fact=fact)


def _counts(says: Certificate, found: Certificate, path: Path) -> Iterator[Finding]:
    """Numbers of candidates and of what was screened, which the request decides."""
    for name in ("n_candidates", "n_contexts"):
        yield from _same(getattr(says, name), getattr(found, name), (*path, name))
    if says.status != "optimal" or found.status != "optimal":
        return  # what is screened depends on where the time ended
    yield from _same(says.n_solved, found.n_solved, (*path, "n_solved"))
    mine = {screen.name: screen.n_candidates for screen in says.screens}
    others = {screen.name: screen.n_candidates for screen in found.screens}
    if mine != others:
        fact = f"rejected {mine}, and there are {others}"
        yield Finding(path=(*path, "screens"), says=len(mine), fact=fact)


def _gains(says: Plan, found: Plan) -> Iterator[Finding]:
    """What looser limits gain, where both searches know it."""
    gains = {use.name: use.gain_fraction for use in found.limits}
    for i, use in enumerate(says.limits):
        other, here = gains.get(use.name), ("limits", str(i), "gain_fraction")
        if use.gain_fraction is not None and other is not None:
            if not math.isclose(use.gain_fraction, other, rel_tol=CLOSE, abs_tol=1e-6):
                yield Finding(path=here, says=use.gain_fraction, found=other)
        elif found.certificate.status == "optimal":
            yield from _same(use.gain_fraction, other, here)


def _runners_up(says: Plan, found: Plan) -> Iterator[Finding]:
    """The next best plans: as good as those that a search finds."""
    if says.certificate.status != "optimal" or found.certificate.status != "optimal":
        return
    if len(says.alternatives) != len(found.alternatives):
        fact = f"are {len(says.alternatives)}, and there are {len(found.alternatives)}"
        yield Finding(path=("alternatives",), says=len(says.alternatives), fact=fact)
        return
    for i, (one, other) in enumerate(zip(says.alternatives, found.alternatives, strict=True)):
        yield from _same(one.objective, other.objective, ("alternatives", str(i), "objective"))


def _same(says: object, found: object, path: Path) -> Iterator[Finding]:
    numbers = isinstance(says, float) and isinstance(found, float)
    if numbers and math.isclose(says, found, rel_tol=CLOSE, abs_tol=1e-12):  # type: ignore[arg-type]
        return
    if says != found:
        yield Finding(path=path, says=says, found=found)
