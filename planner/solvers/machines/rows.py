"""Rows of stages of the highest rate: bisection, what carries each row, where machines stand."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise

from planner.errors import SolverError
from planner.programs.machines import Classes, Held, Placement, Pool, violations
from planner.programs.patterns import Patterns, patterns
from planner.programs.replay import replayed_rate
from planner.solvers.machines.seats import seated
from planner.solvers.machines.stages import Refused, stage_row

NOTHING = 1e-6
"""Share of the first bound below which a rate is none."""

SAME_RATE = 1e-6
"""Relative difference that rounding of flows may make."""

COARSE = 2e-3
"""Relative step of the bisection there: each rate takes many programs."""

MOST_ROWS = 30
"""Rows that are tried at a rate where it depends on the machines what links carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """How hard to try.

    Args:
        gap: relative distance of rate and bound at which to stop.
        time_limit_s: wall time; None for as long as it takes.
        n_visits: times that the way through the layers may come back to a region.
    """

    gap: float = 1e-4
    time_limit_s: float | None = None
    n_visits: int = 2
    seed: int = 0


@dataclass(slots=True, kw_only=True)
class Found:
    """The best placement so far, and how it was found."""

    placement: Placement | None = None
    rate: float = 0.0
    n_stages: int = 0
    n_patterns: int = 0
    n_rates: int = 0


def best_row(
    pool: Pool,
    alike: Classes,
    between: tuple[float, float],
    tries: Tries,
    *,
    deadline_s: float,
    quick: bool = False,
    best: Found | None = None,
    hopes: bool = False,
) -> Found:
    """Bisect the rate; each row of stages that is found raises the lower end to its own rate.

    Args:
        between: a rate that is reached, and one that is a bound.
        quick: stop within a tenth: the bound comes down before the rest is worth its while.
        best: what is known already.
        hopes: links are those of the best machines, which are then to be found.
    """
    found = best or Found()
    low, high = between
    trying = high  # the bound itself first: where it is reached, that is all
    nothing = high * NOTHING
    while time.perf_counter() < deadline_s and trying > nothing:
        row = _tried(pool, alike, trying, tries, hopes=hopes)
        n_rates = found.n_rates + 1
        if row is not None and row.rate > found.rate:
            found = row
        if row is None or row.rate < trying * (1.0 - SAME_RATE):
            high = trying
        low = max(low, found.rate)
        found = replace(found, n_rates=n_rates)
        if high - low <= (0.1 if quick else max(tries.gap / 2, hopes * COARSE)) * high:
            break
        trying = (low + high) / 2
    return found


def _tried(pool: Pool, alike: Classes, rate: float, tries: Tries, *, hopes: bool) -> Found | None:
    """A row of stages that reaches a rate, replayed; None if none was found.

    With hopes the best of a few rows, which may be below the rate.
    """
    some = patterns(alike, rate)
    refused, best = Refused(), None
    for _ in range(MOST_ROWS if hopes else 1):
        row = stage_row(alike, some, n_visits=tries.n_visits, seed=tries.seed, refused=refused)
        if row.stages is None:
            break
        seats = seated(pool, alike, some, row.stages) if hopes else None
        placement = seats.placement if seats else _placed(alike, some, row.stages)
        if placement is not None:
            rate_there = replayed(pool, placement)
            n_stages, n_patterns = len(row.stages), len(some)
            if best is None or rate_there > best.rate:
                best = Found(
                    placement=placement, rate=rate_there, n_stages=n_stages, n_patterns=n_patterns
                )
            if rate_there >= rate * (1.0 - SAME_RATE):
                break
            if not hopes:
                raise SolverError(f"stages of {rate} tokens/s replay at {rate_there}")
        if not _refuse(pool, alike, some, row.stages, refused):
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


def replayed(pool: Pool, placement: Placement) -> float:
    """The rate of a placement, verified.

    Raises:
        SolverError: it is none.
    """
    broken = violations(pool, placement)
    if broken:
        raise SolverError(f"a placement breaks {broken}")
    return replayed_rate(pool, placement)


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
