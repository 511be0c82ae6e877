"""Why nothing can be placed: wishes that cannot hold together, and what each could be."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from planner.errors import NoPlanError, OutOfTimeError
from planner.placing.configurations import AnyConfiguration
from planner.placing.program import KTOKEN, comes_to as adds
from planner.placing.searching import Search, Task, mastered
from planner.placing.sites import SiteOffers, SiteProgram
from planner.placing.yielding import DEMAND, REPLICAS, comes_to, yielding
from planner.programs.handover import Handover
from planner.programs.placement import PlacementProgram, most_copies
from planner.programs.relaxing import ROUNDING
from planner.quantities.table import QUANTITIES
from planner.results.conflicts import (
    UNEXPLAINED,
    PlacementConflict,
    PlacementRelaxation,
    RelaxedLimit,
    share_of,
)
from planner.results.obstacles import Obstacle
from planner.results.placements import Placement
from planner.solvers.certify import irreducible
from planner.solvers.placement import PlacementSolution
from planner.solvers.recording import solving_for
from planner.solvers.solution import Status
from planner.specs.records.roles import APART, TOGETHER

MOST_RELAXATIONS = 3
"""Of which an answer says."""


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
    posed = search.offered.posed(task.aim(without=task.wishes))
    fits = most_copies(posed.program)[posed.columns.n_parts :] > 0
    fitting = [
        posed.columns.configurations[number] for number in np.unique(posed.columns.which[fits])
    ]
    able = {one.model for one in fitting if one.role == TOGETHER} | paired_models(posed)
    hopeless = [_hopeless(task, search, m) for m in range(len(task.wanted)) if m not in able]
    obstacles = [one for one in hopeless if one is not None]
    if not obstacles and search.solution.answer is not None:
        obstacles = narrow_limits(task.request.limits, fitting)
    if not obstacles:
        with suppress(OutOfTimeError):
            obstacles = [*_obstacles(task, search, _irreducible(task, search))]
    relaxed: list[PlacementRelaxation] = []
    if place is not None and len(obstacles) > len([*filter(None, hopeless)]):
        with suppress(OutOfTimeError):
            relaxed.extend(relaxations(task, search, place))
    return PlacementConflict(
        pool=task.site.name,
        n_free=task.site.n_free,
        n_devices=task.site.n_devices,
        obstacles=tuple(obstacles),
        verified=(*who_finds_none(search.solution), *(() if obstacles else UNEXPLAINED)),
        relaxations=tuple(relaxed),
    )


def narrow_limits(
    limits: Mapping[str, float], configurations: Sequence[AnyConfiguration]
) -> list[Obstacle]:
    """Limits that leave room for no replica at all, where nothing else forbids one.

    Args:
        limits: of all replicas together, SI.
        configurations: that fit what is free and meet the targets.
    """
    least = {
        name: min((adds(name, one) for one in configurations), default=math.inf) for name in limits
    }
    together = all(least[name] <= most for name, most in limits.items())
    return [
        Obstacle(
            name=name,
            asked=most,
            reachable=least[name],
            dimension=QUANTITIES[name].dimension,
            reason=f"the least {name} of one replica",
        )
        for name, most in limits.items()
        if together or least[name] > most
    ]


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


def _solved(
    task: Task, program: PlacementProgram, network: Handover | None
) -> tuple[PlacementSolution, tuple[float, ...]]:
    """Solved to the proof, with what pairs of columns hand over.

    Raises:
        OutOfTimeError: time ended before it was settled.
        UnsettledError: the provers do not agree on it.
    """
    solution, flows = mastered(program, network, replace(task.options, gap=0.0))
    if not solution.status.is_final:
        raise solution.unsettled()
    return solution, flows


def _irreducible(task: Task, search: Search) -> list[str]:
    """Wishes none of which can be left out without making a placement possible."""

    def has_none(rest: Collection[str]) -> bool:
        without = [name for name in task.wishes if name not in rest]
        posed = search.offered.posed(task.aim(without=without))
        return _solved(task, posed.program, posed.network)[0].status is Status.INFEASIBLE

    return irreducible(task.wishes, has_none)


def _obstacles(task: Task, search: Search, core: Sequence[str]) -> Iterator[Obstacle]:
    """What each wish of a conflict could be: the others kept, or where they too conflict, its own.

    Raises:
        OutOfTimeError: time ended before all were known.
    """
    asked, outside = _asked(task), [name for name in task.wishes if name not in core]
    for name in core:
        quantity = QUANTITIES[name.partition(" ")[0]]
        needed = _least_change(task, search.offered, [name], without=())
        reason = "with the others kept"
        if needed is None and outside:
            needed = _least_change(task, search.offered, [name], without=outside)
            kept = " and ".join(f"`{it}`" for it in core if it != name)
            reason = f"with only {kept} kept" if kept else "by itself"
        yield Obstacle(
            name=name,
            asked=asked[name],
            reachable=(0.0 if quantity.is_least else math.inf)
            if needed is None
            else needed.get(name, asked[name]),
            dimension=quantity.dimension,
            reason=reason,
        )


def _asked(task: Task) -> dict[str, float]:
    """What each wish asks for, SI."""
    asked = {f"{DEMAND} {it.model.name}": it.demand_tokens_per_s for it in task.wanted}
    asked |= {f"{REPLICAS} {it.model.name}": it.replicas for it in task.wanted}
    asked |= task.request.limits
    return {name: float(asked[name] or 0.0) for name in task.wishes}


def _least_change(
    task: Task, offers: SiteOffers, yields: Sequence[str], *, without: Sequence[str]
) -> dict[str, float] | None:
    """What wishes come to where they yield by the least, SI; None where that is not enough.

    Args:
        yields: wishes that may; others are kept.
        without: wishes that are left out.

    Raises:
        OutOfTimeError: time ended before it was proved.
    """
    unasked = [f"{DEMAND} {it.model.name}" for it in task.wanted]  # of which a share is served
    dropped = [*without, *(name for name in unasked if name not in task.wishes)]
    posed = offers.posed(task.aim(without=dropped, objective="devices"))
    network = posed.network
    if network is not None and not network.demand.any():  # one phase alone would do
        return None
    program, changed = yielding(posed.program, network, yields)
    solution, flows = _solved(task, program, changed)
    if solution.answer is None:
        return None
    totals = comes_to(posed.program, network, solution.answer, np.array(flows))
    asked, needed = _asked(task), {}
    for name in yields:
        quantity, value = QUANTITIES[name.partition(" ")[0]], totals[name]
        if name in task.request.limits:
            value = quantity.in_si(value)
        elif name in unasked:  # as `capacity_for` has it
            wish = task.wanted[unasked.index(name)]
            value *= (wish.targets or task.request.targets).max_utilisation / KTOKEN
        if not quantity.is_kept(value, asked[name], tolerance=ROUNDING):
            needed[name] = value
    return needed


def relaxations(
    task: Task, search: Search, place: Callable[[Task], Placement]
) -> Iterator[PlacementRelaxation]:
    """The cheapest changes of wishes that have a placement, the cheapest first.

    Of a set that is found one wish is kept next, each in turn: so none holds all of another.

    Args:
        place: the best placement of a task.

    Raises:
        OutOfTimeError: time ended before all were known.
    """
    asked, found = _asked(task), list[_Found]()
    seen, told = set[frozenset[str]](), list[Collection[str]]()

    def look(kept: frozenset[str]) -> None:
        if kept not in seen:
            seen.add(kept)
            rest = [name for name in task.wishes if name not in kept]
            needed = _least_change(task, search.offered, rest, without=())
            if needed:
                price = sum(share_of(asked[name], value) for name, value in needed.items())
                heappush(found, (price, sorted(kept), needed))

    look(frozenset())
    while found and len(told) < MOST_RELAXATIONS:
        price, kept, needed = heappop(found)
        if needed.keys() not in told:
            told.append(needed.keys())
            yield _relaxation(task, needed, price, place)
        for name in needed:
            look(frozenset([*kept, name]))


_Found = tuple[float, list[str], dict[str, float]]
"""The price of a change, what is kept of it, and what its wishes come to."""


def _relaxation(
    task: Task, needed: Mapping[str, float], price: float, place: Callable[[Task], Placement]
) -> PlacementRelaxation:
    """A change with the best placement that it allows: wishes in few digits, if that has one."""
    rounded = {name: QUANTITIES[name.partition(" ")[0]].relaxed(it) for name, it in needed.items()}
    try:
        placement, limits = place(_with(task, rounded)), rounded
    except NoPlanError:
        placement, limits = place(_with(task, needed)), dict(needed)
    asked = _asked(task)
    changes = (
        RelaxedLimit(name=name, requested=asked[name], needed=value, limit=limits[name])
        for name, value in needed.items()
    )
    return PlacementRelaxation(
        changes=tuple(changes),
        price_fraction=price,
        objective=placement.certificate.objective,
        n_replicas=len(placement.replicas),
        n_devices=placement.n_used,
        output_tokens_per_s=placement.output_tokens_per_s,
        usd_per_hour=sum(one.usd_per_hour for one in placement.served),
    )


def _with(task: Task, wished: Mapping[str, float]) -> Task:
    """A task with other wishes."""
    request, models = task.request, []
    for it in request.models:
        name = it.model.name
        demand = wished.get(f"{DEMAND} {name}", it.demand_tokens_per_s)
        n = wished.get(f"{REPLICAS} {name}", it.replicas)
        models.append(
            replace(it, demand_tokens_per_s=demand, replicas=None if n is None else round(n))
        )
    limits = {name: wished.get(name, limit) for name, limit in request.limits.items()}
    return replace(task, request=replace(request, models=tuple(models), limits=limits))
