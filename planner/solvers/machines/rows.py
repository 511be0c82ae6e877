"""Rows of stages of the highest rate: bisection, what carries each row, where machines stand."""

from __future__ import annotations

import time
from itertools import pairwise

from planner.programs.machines import Classes, Held, Placement, Pool
from planner.programs.patterns import Patterns, patterns
from planner.solvers.machines.known import Known
from planner.solvers.machines.seats import seated
from planner.solvers.machines.stages import Refused, stage_row

NOTHING = 1e-6
"""Share of the first bound below which a rate is none."""

SAME_RATE = 1e-6
"""Relative difference that rounding of flows may make."""

QUICK, COARSE = 0.1, 2e-3
"""Relative step of the bisection: at first, before the bound comes down; and where each rate
takes many programs."""

MOST_ROWS = 30
"""Rows that are tried at a rate where it depends on the machines what links carry."""


def best_row(
    known: Known, alike: Classes, *, deadline_s: float, quick: bool = False, hopes: bool = False
) -> None:
    """Bisect the rate between what is reached and the bound; each row that is found is offered.

    That no row is found at a rate proves nothing, whoever says so: it ends this search only.

    Args:
        quick: stop within a tenth: the bound comes down before the rest is worth its while.
        hopes: links are those of the best machines, which are then to be found.

    Raises:
        SolverError: a solver failed.
    """
    low, high = known.rate, known.bound
    step = QUICK if quick else max(known.tries.gap / 2, hopes * COARSE)
    trying, nothing = (
        high,
        high * NOTHING,
    )  # the bound itself first: where it is reached, that is all
    while time.perf_counter() < deadline_s and trying > nothing:
        known.n_solves += 1
        if _tried(known, alike, trying, hopes=hopes) < trying * (1.0 - SAME_RATE):
            high = trying
        low = max(low, known.rate)
        if high - low <= step * high:
            break
        trying = (low + high) / 2


def _tried(known: Known, alike: Classes, rate: float, *, hopes: bool) -> float:
    """Look for a row of stages that reaches a rate; what the best that was found serves.

    With hopes the best of a few rows, which may be below the rate.
    """
    pool, tries = known.pool, known.tries
    some = patterns(alike, rate)
    refused, best = Refused(), 0.0
    for _ in range(MOST_ROWS if hopes else 1):
        row = stage_row(alike, some, n_visits=tries.n_visits, seed=tries.seed, refused=refused)
        if row is None:
            break
        placed = seated(pool, alike, some, row).placement if hopes else _placed(alike, some, row)
        best = max(best, known.offer(placed))
        if best >= rate * (1.0 - SAME_RATE) or known.is_late:
            break
        if not _refuse(pool, alike, some, row, refused):
            break
    return best


def _refuse(
    pool: Pool, alike: Classes, some: Patterns, stages: tuple[int, ...], refused: Refused
) -> bool:
    """Find what of a row carries too little by itself, or what to do without; whether any."""

    def carries(part: tuple[int, ...], ends: tuple[bool, bool]) -> bool:
        return seated(pool, alike, some, part, ends=ends).share >= 1.0 - SAME_RATE

    pairs = {
        pair
        for pair in pairwise(stages)
        if some.region[pair[0]] != some.region[pair[1]] and not carries(pair, (False, False))
    }
    first = set() if carries(stages[:1], (True, False)) else {stages[0]}
    last = set() if carries(stages[-1:], (False, True)) else {stages[-1]}
    if not (pairs or first or last):  # all parts carry it, but not together
        crossed = [p for p in pairwise(stages) if some.region[p[0]] != some.region[p[1]]]
        if carries(stages, (False, True)):
            first = {stages[0]}
        elif carries(stages, (True, False)):
            last = {stages[-1]}
        else:
            n_machines = some.counts.sum(axis=1)
            pairs = set(sorted(crossed, key=lambda p: (n_machines[p[0]] * n_machines[p[1]], p))[:1])
    refused.pairs.update(pairs)
    refused.first.update(first)
    refused.last.update(last)
    return bool(pairs or first or last)


def _placed(alike: Classes, some: Patterns, stages: tuple[int, ...]) -> Placement:
    """Machines, class by class in their order, to the stages; layers from the first on."""
    free = [list(members) for members in alike.members]
    placed: list[Held] = []
    first = 0
    for p in stages:
        n_layers = int(some.n_layers[p])
        for c, n in enumerate(some.counts[p].tolist()):
            taken, free[c] = free[c][:n], free[c][n:]
            placed += [Held(machine=m, first=first, n_layers=n_layers) for m in taken]
        first += n_layers
    return tuple(placed)
