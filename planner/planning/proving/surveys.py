"""Frontiers, comparisons and audits searched again, and what is said to have no answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from planner.errors import NoPlanError, OutOfTimeError
from planner.planning.engine_audit import set_beside
from planner.planning.pareto import traced_out
from planner.planning.plans import decide
from planner.planning.proving import comparing
from planner.planning.proving.plans import SLACK, placed_again, placement_again, plan_again
from planner.report.launch.telling import as_written
from planner.report.words import plural
from planner.results.audits import Audit
from planner.results.conflicts import UNEXPLAINED, Conflict
from planner.results.engines import EngineAudit
from planner.results.surveys import Comparison, Curve, Curves, Frontier, Row
from planner.running.deadlines import within
from planner.specs.ask.placement import PlacementRequest
from planner.specs.records.certificates import OPTIMAL
from planner.verifier.findings import Finding
from planner.verifier.quantities import measure_of


def curves_again(says: Curves) -> comparing.Again:
    """Each frontier again, point by point; and each case that has none."""
    parts = [
        _denied(curve, "frontier") if curve.frontier is None else _frontier_again(curve.frontier)
        for curve in says.curves
    ]
    return _joined(parts, "curves")


def comparison_again(says: Comparison) -> comparing.Again:
    """Each plan again; and each case that has none."""
    parts = []
    for row in says.rows:
        if row.plan is not None:
            parts.append(plan_again(row.plan).below("plan"))
        elif row.placement is not None:
            parts.append(placement_again(row.placement).below("placement"))
        else:
            parts.append(_denied(row, "plan"))
    return _joined(parts, "rows")


def _joined(parts: Sequence[comparing.Again], name: str) -> comparing.Again:
    """What was said of each entry of a list, as one."""
    return comparing.Again(
        findings=tuple(
            it for i, part in enumerate(parts) for it in part.below(name, str(i)).findings
        ),
        proofs=tuple(it for part in parts for it in part.proofs),
        taken=tuple(f"{name}/{i}: {it}" for i, part in enumerate(parts) for it in part.taken),
    )


def _denied(case: Row | Curve, field: str) -> comparing.Again:
    """A case without an answer: its request has to have none, for the reason that is told."""
    from planner.planning.comparing import reason_of

    if not case.requests:  # it could not be read, or time ended
        return comparing.Again(taken=(f"no answer, {case.reason}",))
    first = case.requests[0]
    try:
        if isinstance(first, PlacementRequest):
            objective: object = placed_again(first).certificate.objective
        else:
            requests = [one for one in case.requests if not isinstance(one, PlacementRequest)]
            objective = comparing.decided_again(requests).certificate.objective
    except OutOfTimeError as late:
        return comparing.Again(taken=(f"no answer, and none found: {late}",))
    except NoPlanError as error:
        is_whole = comparing.limit_of(first.options.time_limit_s) is None
        wrong = comparing.same(case.reason, reason_of(error), ("reason",)) if is_whole else ()
        return comparing.Again(findings=tuple(wrong), proofs=(f"searched again: {error}",))
    fact = f"is what its request has: an answer of {objective!r}"
    return comparing.Again(findings=(Finding(path=(field,), says=None, fact=fact),))


def conflict_again(says: Conflict) -> comparing.Again:
    """The same search, with the time that it had."""
    try:
        with within(says.request.options.time_limit_s):
            best = decide(comparing.named_again(says)).deployment
    except NoPlanError as error:
        conflict = _as_named(says, cast("Conflict", error.conflict))
    else:
        fact = f"is of a request that has a plan: {best.summary}"
        return comparing.Again(findings=(Finding(path=("cores",), says=str(says), fact=fact),))
    if UNEXPLAINED in (says.verified, conflict.verified):
        return comparing.Again(proofs=("searched again: no plan; time ended before why",))
    sets, changes = len(conflict.cores), len(conflict.relaxations)
    told = f"searched again: no plan, {plural(sets, 'set')} of limits that conflict, of which none"
    told += f" can be left out, {plural(changes, 'least change')} that have a plan"
    return comparing.Again(findings=tuple(_conflict_findings(says, conflict)), proofs=(told,))


def _as_named(says: Conflict, conflict: Conflict) -> Conflict:
    """With the files in its commands as they are named in the other."""
    pairs = zip(says.relaxations, conflict.relaxations, strict=False)
    relaxed = (replace(it, command=as_written(said.command, it.command)) for said, it in pairs)
    command = as_written(says.command, conflict.command)
    whole = (*relaxed, *conflict.relaxations[len(says.relaxations) :])
    return replace(conflict, command=command, relaxations=whole)


def _conflict_findings(says: Conflict, conflict: Conflict) -> Iterator[Finding]:
    yield from comparing.proved_fields(says, conflict)
    yield from comparing.same_fields(says, conflict, "obstacles", "relaxations")
    for i, pair in enumerate(zip(says.relaxations, conflict.relaxations, strict=False)):
        ours, again = ([change.name for change in it.changes] for it in pair)
        here = ("relaxations", str(i), "changes")
        yield from comparing.same(", ".join(ours), ", ".join(again), here)


def _frontier_again(says: Frontier) -> comparing.Again:
    limit_s = says.request.options.time_limit_s
    try:
        with within(limit_s):
            frontier = traced_out(comparing.named_again(says), x=says.x_name, alpha=says.alpha)
    except NoPlanError:
        return comparing.unanswered(("frontier", "proof", "status"), says.proof.status)
    findings = [*_points(says)]
    if comparing.limit_of(limit_s) is None or says.proof.status == frontier.proof.status == OPTIMAL:
        findings += comparing.same_fields(says.proof, frontier.proof, "status", path=("proof",))
        findings += comparing.same_fields(says, frontier, "points")
        for i, pair in enumerate(zip(says.points, frontier.points, strict=False)):
            findings += comparing.same_fields(*pair, "x", "y", path=("points", str(i)))
        findings += comparing.proved_fields(says, frontier)
    told = f"searched again: {frontier.proof.status}, {len(frontier.points)} points; and ends alone"
    return comparing.Again(findings=tuple(findings), proofs=(told,)).below("frontier")


def _points(says: Frontier) -> Iterator[Finding]:
    """The ends and the preferred point as plans within their x, none better than its bound."""
    of_x, of_y = measure_of(says.x_name), measure_of(says.y_name)
    among = comparing.named_again(says)
    prefer = comparing.prefer_of(among.requests)
    for i in dict.fromkeys((0, says.preferred, len(says.points) - 1)):
        point, here = says.points[i], ("points", str(i), "bound")
        x: dict[str, Any] = {of_x.target: point.x * (1 + SLACK)}
        targets = replace(among.request.targets.without(of_y.name), **x)
        try:
            with within(says.request.options.time_limit_s):
                plan = decide(among.with_targets(targets), prefer=prefer)
                best = plan.certificate.objective
        except NoPlanError:
            fact = "is of a point that a search within its x does not have"
            yield Finding(path=here, says=point.bound, fact=fact)
            continue
        if comparing.is_better(best, point.bound, is_rate=of_y.is_rate):
            fact = f"is no bound: {best!r} is reached"
            yield Finding(path=here, says=point.bound, fact=fact)


def audit_again(says: Audit) -> comparing.Again:
    """Each deployment beside what runs is as good as the best in what it is best in."""
    from planner.planning.audit import audited

    offered = (says.weights_formats, says.kv_formats)
    with within(says.request.options.time_limit_s):
        audit = audited(says.request, says.observed, says.speculation, offered)
    best_in = {"possible": "tpot_s", "equal_speed": "usd_per_decoded_token", "equal_cost": "tpot_s"}
    findings = [*_as_good(says, {name: getattr(audit, name) for name in best_in}, best_in)]
    findings += _changes(says, audit)
    if comparing.limit_of(says.request.options.time_limit_s) is None:
        findings += comparing.proved_fields(says, audit)
    told = "searched again: the fastest of its batch, the best at equal speed and cost, each change"
    return comparing.Again(findings=tuple(findings), proofs=(told,))


def _as_good(
    says: Audit | EngineAudit, found: Mapping[str, object], best_in: Mapping[str, str]
) -> Iterator[Finding]:
    """Deployments beside what runs, each as good as a search finds in what it is best in."""
    for name, of in best_in.items():
        mine, other = (
            getattr(best, of) if best else None for best in (getattr(says, name), found[name])
        )
        yield from comparing.same(mine, other, (name,))


def _changes(says: Audit, audit: Audit) -> Iterator[Finding]:
    """The same changes, each as good as a search finds."""
    mine, others = ({one.name: one for one in it.changes} for it in (says, audit))
    if not says.untried and not audit.untried and mine.keys() != others.keys():
        fact = f"are not {', '.join(others) or 'none'}, which keep the speed"
        yield Finding(path=("changes",), says=", ".join(mine), fact=fact)
    for i, change in enumerate(says.changes):
        if change.name in others:
            pair, here = (change, others[change.name]), ("changes", str(i))
            yield from comparing.same_fields(*pair, "usd_per_token", path=here)


def engine_audit_again(says: EngineAudit) -> comparing.Again:
    """Each deployment beside what runs is as good as the best in what it is best in."""
    best_in = {
        "same_devices": "planned_tpot_s",
        "equal_speed": "usd_per_token",
        "equal_cost": "planned_tpot_s",
    }
    (free,) = comparing.candidates_again(says.request)
    observed = says.observed_tpot_s, says.observed_usd_per_token
    findings = _as_good(says, set_beside(free, says.predicted, *observed), best_in)
    told = "searched again: the best on no more devices, at equal speed and at equal cost"
    return comparing.Again(findings=tuple(findings), proofs=(told,))
