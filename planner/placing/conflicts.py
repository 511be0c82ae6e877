"""Why nothing can be placed: wishes that cannot hold together, and what each could be."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from planner.errors import NoPlanError, OutOfTimeError, UnsettledError
from planner.placing.searching import Search, Task
from planner.placing.sites import SiteOffers, SiteProgram
from planner.placing.yielding import REPLICAS, least_change, wishes_of
from planner.programs.handover import DEMAND
from planner.programs.placement import most_copies
from planner.quantities.table import QUANTITIES, Quantity
from planner.results.conflicts import (
    UNEXPLAINED,
    PlacementConflict,
    PlacementRelaxation,
    RelaxedLimit,
    share_of,
)
from planner.results.obstacles import Obstacle
from planner.results.placements import Placement
from planner.running.deadlines import share
from planner.solvers.certify import irreducible
from planner.solvers.placement import PlacementSolution
from planner.solvers.recording import solving_for
from planner.solvers.solution import Status
from planner.specs.records.roles import APART, TOGETHER

MOST_RELAXATIONS, CHANGES_SHARE = 3, 0.3
"""Of which an answer says, and of the time that is left, for them."""


def who_finds_none(solution: PlacementSolution) -> tuple[str, ...]:
    """Who finds no placement, in words; nothing where one was found."""
    by = solution.vouched.by
    if solution.status is not Status.INFEASIBLE:
        return ()
    if not by:
        alone = next(one.prover for one in solution.vouched.proofs if one.bound == math.inf)
        return (f"no placement, by {alone} alone: a second proof was not asked for",)
    return (f"no placement, by {' and '.join(by)}",)


@solving_for("conflict")
def conflict_of(
    task: Task, search: Search, place: Callable[[Task], Placement] | None = None
) -> PlacementConflict:
    """The irreducible set of wishes that no placement grants together, by a deletion filter.

    Args:
        place: the best placement of a task, for the changes that have one; None where none is told.
    """
    posed, relaxed = search.offered.posed(task.aim(without=task.wishes)), []
    fits = most_copies(posed.program)[posed.columns.n_parts :] > 0
    fitting = [
        posed.columns.configurations[number] for number in np.unique(posed.columns.which[fits])
    ]
    able = {it.model for it in fitting if it.role == TOGETHER} | paired_models(posed)
    hopeless = [_hopeless(task, search, m) for m in range(len(task.wanted)) if m not in able]
    obstacles = [*filter(None, hopeless)]
    if not obstacles:
        with suppress(OutOfTimeError):
            obstacles = [*_obstacles(task, search.offered)]
            # what is not settled, or not to be placed again, takes nothing from what is known
            with share(CHANGES_SHARE), suppress(UnsettledError, NoPlanError):
                for it in relaxations(task, search.offered, place) if place else ():
                    relaxed.append(it)
    return PlacementConflict(
        pool=task.site.name,
        n_free=task.site.n_free,
        n_devices=task.site.n_devices,
        obstacles=tuple(obstacles),
        verified=(*who_finds_none(search.solution), *(() if obstacles else UNEXPLAINED)),
        relaxations=tuple(relaxed),
    )


def _hopeless(task: Task, search: Search, m: int) -> Obstacle | None:
    """A model of which no replica fits what is free, within its targets and without limits.

    Where all wishes are granted by nothing at all, none of the models has one that fits.
    """
    wish = task.wanted[m]
    is_asked = bool(wish.replicas or wish.demand_tokens_per_s)
    if search.solution.answer is None and not is_asked:  # else nothing at all was placed
        return None
    is_apart = task.request.roles.name == APART
    late = "no replica of prefill hands a cache over to one of decode before the first token is due"
    return Obstacle(
        name=f"targets {wish.model.name}",
        asked=1.0,
        reachable=0.0,
        dimension="1",
        reason=f"{task.site.reach}, or {late}" if is_apart else task.site.reach,
    )


def paired_models(posed: SiteProgram) -> set[int]:
    """Models of which a replica may hand caches over to another."""
    network = posed.network
    return set() if network is None else {*posed.program.column_model[network.prefill].tolist()}


def _obstacles(task: Task, offers: SiteOffers) -> Iterator[Obstacle]:
    """What each wish of a conflict could be: the others kept, or where they too conflict, its own.

    Raises:
        OutOfTimeError: time ended before all were known.
    """

    def has_none(rest: Collection[str]) -> bool:
        without = [name for name in task.wishes if name not in rest]
        return least_change(task, offers, [], without=without) is None

    core, wished = irreducible(task.wishes, has_none), wishes_of(task)
    for name in core:
        quantity = _quantity(name)
        needed, reason = _reachable(task, offers, name, core)
        nothing = {name: 0.0 if quantity.is_least else math.inf}
        yield Obstacle(
            name=name,
            asked=wished[name],
            reachable=(nothing if needed is None else needed).get(name, wished[name]),
            dimension=quantity.dimension,
            reason=reason,
        )


def _reachable(
    task: Task, offers: SiteOffers, name: str, core: Sequence[str]
) -> tuple[Mapping[str, float] | None, str]:
    """What a wish comes to where it alone yields, and which others are kept, in words."""
    needed, outside = least_change(task, offers, [name]), {*task.wishes} - {*core}
    if needed is not None or not outside:
        return needed, "with the others kept"
    kept = " and ".join(f"`{it}`" for it in core if it != name)
    needed = least_change(task, offers, [name], without=outside)
    return needed, f"with only {kept} kept" if kept else "by itself"


def _quantity(name: str) -> Quantity:
    """What a wish limits."""
    return QUANTITIES[name.partition(" ")[0]]


def relaxations(
    task: Task, offers: SiteOffers, place: Callable[[Task], Placement]
) -> Iterator[PlacementRelaxation]:
    """The cheapest changes of wishes that have a placement, the cheapest first.

    Of a set that is known one wish is kept next, each in turn: so none holds all of another.

    Args:
        place: the best placement of a task.

    Raises:
        OutOfTimeError: time ended before all were known.
    """
    wished, known = wishes_of(task), list[tuple[float, list[str], Mapping[str, float]]]()
    seen, told = set[frozenset[str]](), list[Collection[str]]()

    def look(kept: frozenset[str]) -> None:
        if kept not in seen:
            seen.add(kept)
            needed = least_change(task, offers, [it for it in task.wishes if it not in kept])
            if needed:
                price = sum(share_of(wished[name], value) for name, value in needed.items())
                heappush(known, (price, sorted(kept), needed))

    look(frozenset())
    while known and len(told) < MOST_RELAXATIONS:
        price, kept, needed = heappop(known)
        if needed.keys() not in told:
            told.append(needed.keys())
            yield _relaxation(task, needed, price, place)
        for name in needed:
            look(frozenset([*kept, name]))


def _relaxation(
    task: Task, needed: Mapping[str, float], price: float, place: Callable[[Task], Placement]
) -> PlacementRelaxation:
    """A change with the best placement that it allows: wishes in few digits, if that has one."""
    limits = {name: _quantity(name).relaxed(value) for name, value in needed.items()}
    try:
        placement = place(_with(task, limits))
    except NoPlanError:
        placement, limits = place(_with(task, needed)), dict(needed)
    wished = wishes_of(task)
    changes = (
        RelaxedLimit(name=name, requested=wished[name], needed=value, limit=limits[name])
        for name, value in needed.items()
    )
    return PlacementRelaxation(
        changes=tuple(changes),
        price_fraction=price,
        objective=placement.certificate.objective,
        n_replicas=len(placement.replicas),
        n_devices=placement.n_used,
        output_tokens_per_s=placement.output_tokens_per_s,
        usd_per_hour=sum(it.usd_per_hour for it in placement.served),
    )


def _with(task: Task, wished: Mapping[str, float]) -> Task:
    """A task with other wishes."""
    request, models = task.request, []
    for it in request.models:
        demand = wished.get(f"{DEMAND} {it.model.name}", it.demand_tokens_per_s)
        n = wished.get(f"{REPLICAS} {it.model.name}", it.replicas)
        n_replicas = None if n is None else round(n)
        models.append(replace(it, demand_tokens_per_s=demand, replicas=n_replicas))
    limits = {name: wished.get(name, limit) for name, limit in request.limits.items()}
    return replace(task, request=replace(request, models=tuple(models), limits=limits))
