"""Answers searched for again, to judge what only a search can say: that nothing is better.

The request of an answer is answered once more. Nothing may be better than the bound that is
claimed, candidates have to be as many, and looser limits have to gain what is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import NoPlanError
from planner.results import AnyPlan
from planner.results.audits import Audit
from planner.results.engines import EngineAudit
from planner.results.experts import ExpertPlan
from planner.results.fleets import FleetPlan, FleetStaircase
from planner.results.placements import Placement
from planner.results.predictions import Prediction
from planner.results.repairs import Repair
from planner.results.staging import LayerPlacement, StagePlan
from planner.results.surveys import Comparison, Curves, Frontier
from planner.running.deadlines import within
from planner.specs.certificates import OPTIMAL, Certificate, Proof
from planner.units import show
from planner.verifier.findings import Finding, Path
from planner.verifier.placements import RATES

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


def _plan(says: AnyPlan) -> Again:
    """Among all runtimes that were asked, in the order in which their rivals stand."""
    from planner.planning.asked_again import among_again, prefer_of
    from planner.planning.plans import decide

    requests = (says.request, *says.other_requests)
    asked_s = says.request.options.time_limit_s
    try:
        with within(asked_s):
            among = among_again(requests, [one.runtime for one in says.rivals])
            found = decide(among, prefer=prefer_of(requests))
    except NoPlanError:
        return _none(("certificate", "status"), says.certificate.status)
    findings = [
        *_certificate(says.certificate, found.certificate, asked_s),
        *_gains(says, found),
        *_runners_up(says, found),
        *_rivals(says, found),
        *(
            []
            if says.mix is None
            else [one.below(("mix",)) for one in _placement(says.mix).findings]
        ),
    ]
    if says.certificate.status == found.certificate.status == OPTIMAL:
        findings += _same(says.n_ties, found.n_ties, ("n_ties",))
        findings += _same(says.given_up_fraction, found.given_up_fraction, ("given_up_fraction",))
    return _again(findings, found.certificate)


def _rivals(says: AnyPlan, found: AnyPlan) -> Iterator[Finding]:
    """The best of each runtime: as good as a search finds, where both had the time to see."""
    again = {one.runtime: one.objective for one in found.rivals}
    for i, one in enumerate(says.rivals):
        here, best = ("rivals", str(i), "objective"), again.get(one.runtime)
        if says.request.options.time_limit_s is None or None not in (one.objective, best):
            yield from _same(one.objective, best, here)


def _placement(says: Placement) -> Again:
    found = _placed_again(says)
    if found is None:
        return _none(("certificate", "status"), says.certificate.status)
    limit_s = says.request.options.time_limit_s
    findings = [*_certificate(says.certificate, found.certificate, limit_s)]
    return _again(findings, found.certificate)


def _placed_again(says: Placement) -> Placement | None:
    from planner.placing.inheriting import costs_of
    from planner.placing.planning import place
    from planner.placing.roles import said_of

    asked = says.request
    try:
        return place(
            asked.site,
            asked.models,
            engine=asked.engines,
            workload=asked.workload,
            targets=asked.targets,
            state=asked.state,
            objective=asked.objective,
            limits=asked.limits,
            batches=asked.batches,
            most_devices=asked.most_devices,
            aligned=asked.aligned,
            deployments=asked.deployments,
            layout_first=asked.layout_first,
            group_costs=costs_of(asked),
            confidence=asked.confidence,
            **said_of(asked.roles),
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
    mine, other = says.placement.certificate, found.placement.certificate
    inside = [
        *_counts(mine, other),
        *_words(mine.proofs, other.proofs, ("certificate", "proofs")),
        *_same(mine.bound, other.bound, ("certificate", "bound")),
        *_same(mine.status, other.status, ("certificate", "status")),
    ]
    findings = [
        *(replace(one, path=("placement", *one.path)) for one in inside),
        *_words(says.moved_proofs, found.moved_proofs, ("moved_proofs",)),
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
    from planner.placing.expert_placing import place_experts

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
    findings = [*_certificate(mine, other, asked.time_limit_s)]
    if not findings and math.isclose(mine.bound, other.bound, rel_tol=CLOSE):
        findings += _same(says.proof, found.proof, ("proof",))
    return _again(findings, other)


def _stages(says: StagePlan) -> Again:
    from planner.placing.staging.cutting import cut_groups

    try:
        with within(says.request.time_limit_s):
            found = cut_groups(says.request)
    except NoPlanError:
        return _none(("certificate", "status"), says.certificate.status)
    findings = [*_certificate(says.certificate, found.certificate, says.request.time_limit_s)]
    return _again(findings, found.certificate)


def _layers(says: LayerPlacement) -> Again:
    from planner.placing.staging.placing import place_layers

    asked = says.request
    try:
        found = place_layers(
            asked.layers,
            gap=asked.gap,
            time_limit_s=asked.time_limit_s,
            seed=asked.seed,
            proof=asked.proof,
        )
    except NoPlanError:
        return _none(("certificate", "status"), says.certificate.status)
    findings = [*_certificate(says.certificate, found.certificate, asked.time_limit_s)]
    return _again(findings, found.certificate)


def _engine_audit(says: EngineAudit) -> Again:
    """Each deployment beside what runs is as good as the best in what it is best in."""
    from planner.planning.asked_again import audited_again

    best_in = {
        "same_devices": "planned_tpot_s",
        "equal_speed": "usd_per_token",
        "equal_cost": "planned_tpot_s",
    }
    findings: list[Finding] = []
    for name, again in audited_again(says).items():
        mine, of = getattr(says, name), best_in[name]
        one, other = (getattr(best, of) if best else None for best in (mine, again))
        findings += _same(one, other, (name, of))
    told = "searched again: the best on no more devices, at equal speed and at equal cost"
    return Again(findings=tuple(findings), proofs=(told,))


def _curves(says: Curves) -> Again:
    """Each frontier again, point by point."""
    from planner.planning.asked_again import traced_again
    from planner.planning.pareto import traced_out

    findings: list[Finding] = []
    told = []
    for i, curve in enumerate(says.curves):
        one = curve.frontier
        if one is None:  # whose request is not in the answer
            continue
        here: Path = ("curves", str(i), "frontier")
        try:
            with within(one.request.options.time_limit_s):
                again = traced_out(traced_again(one), x=one.x_name, alpha=one.alpha)
        except NoPlanError:
            findings += _none((*here, "proof", "status"), one.proof.status).findings
            continue
        findings += [it.below(here) for it in _frontier(one, again)]
        told.append(f"searched again: {again.proof.status}, {len(again.points)} points")
    return Again(findings=tuple(findings), proofs=tuple(told))


def _frontier(says: Frontier, found: Frontier) -> Iterator[Finding]:
    """All points, or as many as there was time for."""
    limit_s = says.request.options.time_limit_s
    if limit_s is not None and not says.proof.status == found.proof.status == OPTIMAL:
        return
    yield from _same(says.proof.status, found.proof.status, ("proof", "status"))
    if len(says.points) != len(found.points):
        fact = f"are {len(says.points)}, and there are {len(found.points)}"
        yield Finding(path=("points",), says=len(says.points), fact=fact)
        return
    for i, (one, other) in enumerate(zip(says.points, found.points, strict=True)):
        for name in ("x", "y", "bound"):
            here = ("points", str(i), name)
            yield from _same(getattr(one, name), getattr(other, name), here)
    for name in ("n_candidates", "n_contexts", "n_solved"):
        yield from _same(getattr(says.proof, name), getattr(found.proof, name), ("proof", name))


def _comparison(says: Comparison) -> Again:
    """Each plan again."""
    findings: list[Finding] = []
    told: list[str] = []
    for i, row in enumerate(says.rows):
        if row.answer is None:
            continue
        again, name = proved(row.answer), "plan" if row.placement is None else "placement"
        findings += [one.below(("rows", str(i), name)) for one in again.findings]
        told += again.proofs
    return Again(findings=tuple(findings), proofs=tuple(told))


def _audit(says: Audit) -> Again:
    """Each deployment beside what runs is as good as the best in what it is best in."""
    from planner.planning.audit import audited

    offered = (says.weights_formats, says.kv_formats)
    with within(says.request.options.time_limit_s):
        found = audited(says.request, says.observed, says.speculation, offered)
    findings: list[Finding] = []
    for name, of in (
        ("possible", "tpot_s"),
        ("equal_speed", "usd_per_decoded_token"),
        ("equal_cost", "tpot_s"),
    ):
        one, other = (
            getattr(best, of) if best else None
            for best in (getattr(says, name), getattr(found, name))
        )
        findings += _same(one, other, (name,))
    findings += _changes(says, found)
    told = "searched again: the fastest of its batch, the best at equal speed and cost, each change"
    return Again(findings=tuple(findings), proofs=(told,))


def _changes(says: Audit, found: Audit) -> Iterator[Finding]:
    """The same changes, each as good as a search finds."""
    mine, others = ({one.name: one for one in it.changes} for it in (says, found))
    if not says.untried and not found.untried and mine.keys() != others.keys():
        fact = f"are not {', '.join(others) or 'none'}, which keep the speed"
        yield Finding(path=("changes",), says=", ".join(mine), fact=fact)
    for i, one in enumerate(says.changes):
        if one.name in others:
            here = ("changes", str(i), "usd_per_token")
            yield from _same(one.usd_per_token, others[one.name].usd_per_token, here)


def _prediction(says: Prediction) -> Again:
    return Again(findings=(), proofs=("nothing to search for: the deployment was given",))


def _fleet(says: FleetPlan) -> Again:
    """The rates that its program rests on are found again too, and what it says besides."""
    from planner.placing.fleets.planning import fleet

    try:
        found = fleet(says.request)
    except NoPlanError:
        return _none(("certificate", "status"), says.certificate.status)
    limit_s = says.request.options.time_limit_s
    findings = [*_certificate(says.certificate, found.certificate, limit_s)]
    if limit_s is None:
        findings += _besides(says, found)
    return _again(findings, found.certificate)


def _staircase(says: FleetStaircase) -> Again:
    """Every step, from the least traffic to the most."""
    from planner.placing.fleets.staircase import staircase

    if not says.steps:
        return Again(findings=(), proofs=())
    of = says.request.rate_per_s
    beyond = 1.0 if says.is_whole else 1.01
    found = staircase(
        says.request,
        lowest_per_s=says.steps[0].above_factor * of,
        highest_per_s=says.steps[-1].upto_factor * of * beyond,
    )
    findings = [
        *_same(len(says.steps), len(found.steps), ("steps",)),
        *_same(says.is_whole, found.is_whole, ("is_whole",)),
    ]
    for i, (one, other) in enumerate(zip(says.steps, found.steps, strict=False)):
        for name in ("above_factor", "upto_factor", "usd_per_hour", "bound_usd_per_hour"):
            pair = getattr(one, name), getattr(other, name)
            findings += _same(*pair, ("steps", str(i), name))
    words = (
        f"climbed again: {len(found.steps)} steps, none further than {found.gap:.3g} of its rent"
    )
    return Again(findings=tuple(findings), proofs=(f"{words} from its bound",))


def _besides(says: FleetPlan, found: FleetPlan) -> Iterator[Finding]:
    """Bounds, alternatives and rounds of a fleet, and of the same pools what queues say."""
    for name in ("fluid_usd_per_hour", "most_factor"):
        yield from _same(getattr(says, name), getattr(found, name), (name,))
    for name in ("alternatives", "rounds"):
        ours, theirs = getattr(says, name), getattr(found, name)
        yield from _same(len(ours), len(theirs), (name,))
        for i, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            here = (name, str(i), "usd_per_hour")
            yield from _same(one.usd_per_hour, other.usd_per_hour, here)
    if [one.name for one in says.pools] != [one.name for one in found.pools]:
        return  # another fleet that is as good
    for i, (pool, again) in enumerate(zip(says.pools, found.pools, strict=True)):
        if says.recipes[pool.recipe].deployment == found.recipes[again.recipe].deployment:
            here = ("pools", str(i), "replica_rate_per_s")
            yield from _same(pool.replica_rate_per_s, again.replica_rate_per_s, here)


_PROVERS: Mapping[str, Callable[[Any], Again]] = {
    "Plan": _plan,
    "Placement": _placement,
    "FleetPlan": _fleet,
    "FleetStaircase": _staircase,
    "Repair": _repair,
    "ExpertPlan": _experts,
    "StagePlan": _stages,
    "LayerPlacement": _layers,
    "Curves": _curves,
    "Comparison": _comparison,
    "Audit": _audit,
    "EngineAudit": _engine_audit,
    "Prediction": _prediction,
}


def _none(path: Path, says: object) -> Again:
    fact = "is of a request that has no answer"
    return Again(findings=(Finding(path=path, says=says, fact=fact),), proofs=())


def _again(findings: list[Finding], proof: Certificate) -> Again:
    name, value = proof.objective_name, show(proof.objective, proof.dimension)
    bound = show(proof.bound, proof.dimension)
    by = ", ".join(proof.vouched_by) or f"{proof.solver} alone"
    told = f"searched again: {proof.status}, {name} {value}, bound {bound}, by {by}"
    return Again(findings=tuple(findings), proofs=(told,))


def _is_better(value: float, than: float, *, is_rate: bool) -> bool:
    """Whether a value is better than another by more than tolerances."""
    gained = value - than if is_rate else than - value
    return gained > CLOSE * abs(than)


def _certificate(says: Certificate, found: Certificate, limit_s: float | None) -> Iterator[Finding]:
    """All of a certificate that a search judges.

    Args:
        limit_s: of both searches; with one, the same search may prove less today.
    """
    is_rate, path = found.objective_name in RATES, ("certificate",)
    yield from _refuted(says, found.objective, is_rate=is_rate)
    if limit_s is not None and found.status != OPTIMAL:
        return
    if says.status == OPTIMAL and found.status != OPTIMAL:
        fact = f"is not what the search proves: {found.status}"
        yield Finding(path=(*path, "status"), says=says.status, fact=fact)
    elif _is_better(says.bound, found.bound, is_rate=not is_rate):
        fact = f"is not proved: the search proves {found.bound!r}"
        yield Finding(path=(*path, "bound"), says=says.bound, fact=fact)
    yield from _counts(says, found)
    yield from _words(says.proofs, found.proofs, (*path, "proofs"))


def _refuted(says: Certificate, best: float, *, is_rate: bool) -> Iterator[Finding]:
    """Bounds that an answer beats, and an answer that is not as good as its status says."""
    path: Path = ("certificate",)
    if _is_better(best, says.bound, is_rate=is_rate):
        fact = f"is no bound: {best!r} is reached"
        yield Finding(path=(*path, "bound"), says=says.bound, fact=fact)
    if says.status == OPTIMAL and abs(says.objective - best) > abs(best) * (says.gap + CLOSE):
        fact = f"is not what {says.objective!r} is called where {best!r} can be had"
        yield Finding(path=(*path, "status"), says=says.status, fact=fact)
    for i, proof in enumerate(says.proofs):
        is_of_all = proof.is_accepted and not proof.program
        if is_of_all and _is_better(best, proof.bound, is_rate=is_rate):
            fact = f"is no bound: {best!r} is reached"
            yield Finding(path=(*path, "proofs", str(i), "bound"), says=proof.bound, fact=fact)


def _counts(says: Certificate, found: Certificate) -> Iterator[Finding]:
    """Numbers of candidates and of what was screened, which the request decides."""
    path: Path = ("certificate",)
    for name in ("n_candidates", "n_contexts"):
        yield from _same(getattr(says, name), getattr(found, name), (*path, name))
    if says.status != OPTIMAL or found.status != OPTIMAL:
        return  # what is screened depends on where the time ended
    yield from _same(says.n_solved, found.n_solved, (*path, "n_solved"))
    mine = {screen.name: screen.n_candidates for screen in says.screens}
    others = {screen.name: screen.n_candidates for screen in found.screens}
    if mine != others:
        fact = f"rejected {mine}, and there are {others}"
        yield Finding(path=(*path, "screens"), says=len(mine), fact=fact)


def _words(says: Sequence[Proof], found: Sequence[Proof], path: Path) -> Iterator[Finding]:
    """What provers said that ended in both searches."""
    again = {(one.prover, one.program): one for one in found if one.outcome == "optimal"}
    for i, proof in enumerate(says):
        other = again.get((proof.prover, proof.program))
        if other is not None and proof.outcome == "optimal":
            for name in ("value", "bound"):
                here = (*path, str(i), name)
                yield from _same(getattr(proof, name), getattr(other, name), here)


def _gains(says: AnyPlan, found: AnyPlan) -> Iterator[Finding]:
    """What looser limits gain, where both searches know it."""
    gains = {use.name: use.gain_fraction for use in found.limits}
    for i, use in enumerate(says.limits):
        other, here = gains.get(use.name), ("limits", str(i), "gain_fraction")
        if use.gain_fraction is not None and other is not None:
            if not math.isclose(use.gain_fraction, other, rel_tol=CLOSE, abs_tol=1e-6):
                yield Finding(path=here, says=use.gain_fraction, found=other)
        elif found.certificate.status == "optimal":
            yield from _same(use.gain_fraction, other, here)


def _runners_up(says: AnyPlan, found: AnyPlan) -> Iterator[Finding]:
    """The next best plans: as good as those that a search finds."""
    if says.certificate.status != "optimal" or found.certificate.status != "optimal":
        return
    if len(says.alternatives) != len(found.alternatives):
        fact = f"are {len(says.alternatives)}, and there are {len(found.alternatives)}"
        yield Finding(path=("alternatives",), says=len(says.alternatives), fact=fact)
        return
    mine = [one.objective for one in says.alternatives]
    others = [one.objective for one in found.alternatives]
    for i, (one, other) in enumerate(zip(mine, others, strict=True)):
        yield from _same(one, other, ("alternatives", str(i), "objective"))


def _same(says: object, found: object, path: Path) -> Iterator[Finding]:
    numbers = isinstance(says, float) and isinstance(found, float)
    if numbers and math.isclose(says, found, rel_tol=CLOSE, abs_tol=1e-12):  # type: ignore[arg-type]
        return
    if says != found:
        yield Finding(path=path, says=says, found=found)
