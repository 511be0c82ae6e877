"""The cheapest changes of limits that have a plan, priced, and each solved again."""

from planner.planning.obstacles import POLICY, policy_obstacle
from planner.programs.blocks import Objective
from planner.programs.relaxing import ROUNDING, Change, Changes, least_changes
from planner.quantities.table import QUANTITIES
from planner.results.conflicts import Relaxation, RelaxedLimit
from planner.runtimes.candidates import CandidatePool
from planner.solvers.certify import in_si
from planner.solvers.search import SearchResult, search
from planner.solvers.solution import Status

MOST_RELAXATIONS = 3
"""Of which an answer says."""


def relaxations(among: CandidatePool, freed: CandidatePool | None) -> tuple[Relaxation, ...]:
    """The cheapest changes of limits that have a plan, the cheapest first.

    A set of limits is left out where some of them suffice for as little.

    Args:
        freed: the candidates without a policy, where one leaves any out: that it yields is no
            change of a limit.

    Raises:
        OutOfTimeError: time ended before they were known.
        UnsettledError: the provers do not agree on one.
    """
    targets = among.request.targets
    changes = least_changes(among.source, targets)
    if freed is not None:
        more = least_changes(freed.source, targets)
        changes |= {names | {POLICY}: change for names, change in more.items()}
    return tuple(
        _solved(freed if freed is not None and POLICY in names else among, names, change)
        for names, change in _undominated(changes)[:MOST_RELAXATIONS]
    )


def _undominated(changes: Changes) -> list[tuple[frozenset[str], Change]]:
    """Those that no part of them is as cheap as, the cheapest first."""
    ranked = sorted(changes.items(), key=lambda it: (it[1].price, len(it[0]), sorted(it[0])))
    kept: list[tuple[frozenset[str], Change]] = []
    for names, change in ranked:
        most = change.price + ROUNDING
        if not any(less <= names and cheaper.price <= most for less, cheaper in kept):
            kept.append((names, change))
    return kept


def _solved(among: CandidatePool, names: frozenset[str], change: Change) -> Relaxation:
    """A change with the best plan that it allows: its limits in few digits, if that has one."""
    request = among.request
    for limits in (change.rounded(), change.needed):
        relaxed = among.with_targets(request.targets.with_limits(limits))
        result = settled_search(relaxed, Objective(objective=request.objective))
        if result.assignment is not None:
            break
    assert result.assignment is not None
    best = relaxed.deployment(result.posed, result.assignment)
    written = {QUANTITIES[name].option: QUANTITIES[name].written(it) for name, it in limits.items()}
    changes = [
        RelaxedLimit(name=name, requested=most, needed=change.needed[name], limit=limits[name])
        for name, most in request.targets.limits().items()
        if name in limits
    ]
    if POLICY in names:
        batch = policy_obstacle(best).reachable
        changes.append(RelaxedLimit(name=POLICY, requested=1.0, needed=batch, limit=batch))
    return Relaxation(
        changes=tuple(changes),
        price_fraction=change.price,
        deployment=best,
        objective=in_si(request.objective, result.solution.objective),
        command=relaxed.of(result.posed, result.assignment).command(written),
    )


def settled_search(among: CandidatePool, aim: Objective) -> SearchResult:
    """The best of some candidates, or that there is none, proved.

    Raises:
        OutOfTimeError: time ended before either was known.
        UnsettledError: the provers do not agree on it.
    """
    result = search(among.source(aim), among.request.options, n_alternatives=0)
    if result.solution.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        raise result.solution.unsettled()
    return result
