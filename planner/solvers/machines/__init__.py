"""Place layers on mixed machines: stages from patterns, a bound from covers, a replay of all.

The rate of a placement is searched by bisection: at each rate the patterns that reach it, and
whether rows of them hold all layers. Rows of stages are a restriction, so what they do not reach
is not refuted by that; the bound is of all placements, and comes from covers. What is open
between the two is closed by the program of arcs, where the pool is small.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from planner.errors import SolverError
from planner.programs.machines import (
    Classes,
    Held,
    Placement,
    Pool,
    classes,
    fixed_point_bound,
    rate_table,
    regions,
    violations,
)
from planner.programs.patterns import Patterns, patterns
from planner.programs.replay import replayed_rate
from planner.solvers.machines.arcs import MOST_ARCS, best_arcs, n_arcs
from planner.solvers.machines.covers import CoverSearch
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

FIXED_POINT, COVERS, ARCS = "fixed point", "layer covers", "flow over arcs"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSolution:
    """A verified placement; none if not one layer row was found.

    Args:
        rate: that a maximum flow through the placement has [tokens/s].
        bound: no placement has more, whatever the links [tokens/s].
        proof: `fixed point`, `layer covers` or `flow over arcs`, whichever is lowest.
        fixed_point: the first bound [tokens/s].
        n_regions: that links divide the machines into.
        n_stages: of the row.
        n_rates: rates tried; `n_patterns` of the last one found.
        n_rounds: of column generation.
    """

    placement: Placement | None
    rate: float
    bound: float
    proof: str
    fixed_point: float
    n_regions: int
    n_stages: int
    n_rates: int
    n_patterns: int
    n_rounds: int
    wall_s: float

    @property
    def gap(self) -> float:
        return (self.bound - self.rate) / self.rate if self.rate > 0 else math.inf


@dataclass(slots=True, kw_only=True)
class _Found:
    placement: Placement | None = None
    rate: float = 0.0
    n_stages: int = 0
    n_patterns: int = 0
    n_rates: int = 0


def place(pool: Pool, tries: Tries) -> PlacementSolution:
    """The placement of the highest rate that rows of stages reach, and a bound on all others.

    Raises:
        SolverError: a solver failed, or an answer fails verification.
    """
    began_s = time.perf_counter()
    limit = math.inf if tries.time_limit_s is None else tries.time_limit_s
    table = rate_table(pool)
    counts = np.bincount(pool.type_of, minlength=len(pool.types))
    through = min(float(pool.from_coordinator.sum()), float(pool.to_coordinator.sum()))
    fixed = fixed_point_bound(counts, table, pool.n_layers, at_most=through)
    region = regions(pool, fixed)
    alike = classes(pool, region)
    hoped = classes(pool, region, hopes=True)
    search = CoverSearch(
        n_machines=counts,
        rates=table,
        n_layers=pool.n_layers,
        deadline_s=began_s + limit,
    )
    half_s = began_s + limit / 2
    found = _rows(pool, alike, (0.0, fixed), tries, deadline_s=half_s, quick=True)
    bound, proof = fixed, FIXED_POINT
    if fixed > found.rate * (1.0 + tries.gap):
        bound = search.least_bound(found.rate, fixed, tolerance=tries.gap / 2)
        proof = COVERS if bound < fixed else FIXED_POINT
        found = _rows(
            pool, alike, (found.rate, bound), tries, deadline_s=began_s + limit, best=found
        )
    if bound > found.rate * (1.0 + tries.gap) and not _is_same(alike, hoped):
        between = (found.rate, bound)
        found = _rows(
            pool, hoped, between, tries, deadline_s=began_s + limit, best=found, hopes=True
        )
    if bound > found.rate * (1.0 + tries.gap) and alike.n_regions == 1:
        found, bound, proof = _polished(pool, alike, found, (bound, proof), tries, began_s + limit)
    if found.rate > bound * (1.0 + 1e-9):
        raise SolverError(f"a placement of {found.rate} tokens/s is above the bound of {bound}")
    return PlacementSolution(
        placement=found.placement,
        rate=found.rate,
        bound=max(bound, found.rate),
        proof=proof,
        fixed_point=fixed,
        n_regions=alike.n_regions,
        n_stages=found.n_stages,
        n_rates=found.n_rates,
        n_patterns=found.n_patterns,
        n_rounds=search.n_rounds,
        wall_s=time.perf_counter() - began_s,
    )


def _polished(
    pool: Pool,
    alike: Classes,
    found: _Found,
    known: tuple[float, str],
    tries: Tries,
    deadline_s: float,
) -> tuple[_Found, float, str]:
    """What rows of stages leave open, by the program of arcs, if the pool is small enough.

    Its bound is of machines that are entered at their first layer only.
    """
    bound, proof = known
    left_s = deadline_s - time.perf_counter()
    if n_arcs(alike) > MOST_ARCS or left_s <= 0:
        return found, bound, proof
    placement, proven = best_arcs(alike, bound, gap=0.0, time_limit_s=left_s, seed=tries.seed)
    if proven < bound and not pool.enters_within:
        bound, proof = proven, ARCS
    if placement is not None and not violations(pool, placement):
        rate = replayed_rate(pool, placement)
        if rate > found.rate:
            spans = {(held.first, held.n_layers) for held in placement}
            found = replace(found, placement=placement, rate=rate, n_stages=len(spans))
    return found, bound, proof


def _rows(
    pool: Pool,
    alike: Classes,
    between: tuple[float, float],
    tries: Tries,
    *,
    deadline_s: float,
    quick: bool = False,
    best: _Found | None = None,
    hopes: bool = False,
) -> _Found:
    """Bisect the rate; each row of stages that is found raises the lower end to its own rate.

    Args:
        between: a rate that is reached, and one that is a bound.
        quick: stop within a tenth: the bound comes down before the rest is worth its while.
        best: what is known already.
        hopes: links are those of the best machines, which are then to be found.
    """
    found = best or _Found()
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


def _is_same(alike: Classes, hoped: Classes) -> bool:
    """Whether it never matters which machine of a class stands where."""
    same = (np.array_equal(a, b) for a, b in (
        (alike.crossing, hoped.crossing), (alike.entry, hoped.entry),
        (alike.leaving, hoped.leaving),
    ))  # fmt: skip
    return all(same)


def _tried(pool: Pool, alike: Classes, rate: float, tries: Tries, *, hopes: bool) -> _Found | None:
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
            replayed = _replayed(pool, placement)
            n_stages, n_patterns = len(row.stages), len(some)
            if best is None or replayed > best.rate:
                best = _Found(
                    placement=placement, rate=replayed, n_stages=n_stages, n_patterns=n_patterns
                )
            if replayed >= rate * (1.0 - SAME_RATE):
                break
            if not hopes:
                raise SolverError(f"stages of {rate} tokens/s replay at {replayed}")
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


def _replayed(pool: Pool, placement: Placement) -> float:
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
