"""Why nothing can be placed: wishes that cannot hold together, and what each could be."""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from planner.errors import OutOfTimeError
from planner.placing.configurations import AnyConfiguration
from planner.placing.program import comes_to
from planner.placing.searching import Search, Task, mastered
from planner.placing.sites import SiteProgram
from planner.programs.handover import DEMAND, Handover
from planner.programs.placement import PlacementProgram, most_copies, total_served
from planner.quantities.table import QUANTITIES
from planner.results.conflicts import UNEXPLAINED
from planner.results.obstacles import Obstacle, PlacementConflict
from planner.solvers.certify import irreducible
from planner.solvers.placement import PlacementSolution
from planner.solvers.recording import solving_for
from planner.solvers.solution import Status
from planner.specs.records.roles import APART, TOGETHER

MOST_OFF = 1e-3
"""Share by which the most that is handed over is told too low."""


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
def conflict_of(task: Task, search: Search) -> PlacementConflict:
    """The irreducible set of wishes that no placement grants together, by a deletion filter."""
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
            names = _irreducible(task, search)
            obstacles = [_obstacle(task, search, name, names) for name in names]
    return PlacementConflict(
        pool=task.site.name,
        n_free=task.site.n_free,
        n_devices=task.site.n_devices,
        obstacles=tuple(obstacles),
        verified=(*who_finds_none(search.solution), *(() if obstacles else UNEXPLAINED)),
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
        name: min((comes_to(name, one) for one in configurations), default=math.inf)
        for name in limits
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


def settled(solution: PlacementSolution) -> PlacementSolution:
    """A solution that more time would not change.

    Raises:
        OutOfTimeError: time ended before it was settled.
        UnsettledError: the provers do not agree on it.
    """
    if not solution.status.is_final:
        raise solution.unsettled()
    return solution


def _solved(task: Task, program: PlacementProgram, network: Handover | None) -> PlacementSolution:
    """Solved to the proof.

    Raises:
        OutOfTimeError: time ended before it.
    """
    return settled(mastered(program, network, replace(task.options, gap=0.0))[0])


def _irreducible(task: Task, search: Search) -> list[str]:
    """Wishes none of which can be left out without making a placement possible."""

    def has_none(rest: Collection[str]) -> bool:
        without = [name for name in task.wishes if name not in rest]
        posed = search.offered.posed(task.aim(without=without))
        return _solved(task, posed.program, posed.network).status is Status.INFEASIBLE

    return irreducible(task.wishes, has_none)


def _obstacle(task: Task, search: Search, name: str, names: Sequence[str]) -> Obstacle:
    """What one wish could be, if the others of its conflict hold."""
    without = [*(wish for wish in task.wishes if wish not in names), name]
    what, _, model = name.partition(" ")
    limits = task.request.limits
    if what in limits:
        posed = search.offered.posed(task.aim(without=without, objective=what))
        solution = _solved(task, posed.program, posed.network)
        return Obstacle(
            name=name,
            asked=limits[what],
            reachable=math.inf
            if solution.answer is None
            else QUANTITIES[what].in_si(solution.objective),
            dimension=QUANTITIES[what].dimension,
            reason=f"the least {what} of what is asked for",
        )
    m = [one.model.name for one in task.wanted].index(model)
    wish, posed = task.wanted[m], search.offered.posed(task.aim(without=without))
    is_demand = what == DEMAND
    if posed.network is None:
        reachable = _most_of(task, posed.program, m, is_demand=is_demand)
    else:
        reachable = _most_handed(task, posed.program, posed.network, m)
    most = (wish.targets or task.request.targets).max_utilisation
    dimension, share = ("token/s", most) if is_demand else ("1", 1.0)
    return Obstacle(
        name=name,
        asked=float((wish.demand_tokens_per_s if is_demand else wish.replicas) or 0.0),
        reachable=reachable * share,
        dimension=dimension,
        reason="with the others kept",
    )


def _most_handed(task: Task, program: PlacementProgram, network: Handover, m: int) -> float:
    """The most tokens a second that a model could have where caches are handed over.

    By halves, each proved: what others ask for is kept, and a demand is met or it is not.
    """
    program = replace(program, ties=())
    low, high = 0.0, float(program.rate @ most_copies(program))
    least = MOST_OFF * high * MOST_OFF  # below which it is nothing, and no half of it is tried
    while high - low > max(MOST_OFF * high, least):
        middle = (low + high) / 2
        demand = network.demand.copy()
        demand[m] = middle
        solution = _solved(task, program, replace(network, demand=demand, aim=DEMAND))
        low, high = (low, middle) if solution.answer is None else (middle, high)
    return low * 1e3


def _most_of(task: Task, program: PlacementProgram, m: int, *, is_demand: bool) -> float:
    """The most that a model could have, of tokens a second or of replicas."""
    mine = program.column_model == m
    gain = program.rate if is_demand else np.ones(program.n_columns)
    alone = replace(program, objective=np.where(mine, -gain, 0.0), is_for_share=False, ties=())
    most = _solved(task, alone, None)
    if most.answer is None:
        return 0.0
    return float(total_served(program, most.answer)[m]) * 1e3 if is_demand else -most.objective
