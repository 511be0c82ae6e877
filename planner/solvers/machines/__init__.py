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

import numpy as np

from planner.errors import SolverError
from planner.programs.machines import (
    Classes,
    Placement,
    Pool,
    classes,
    fixed_point_bound,
    rate_table,
    regions,
    violations,
)
from planner.programs.replay import replayed_rate
from planner.solvers.machines.arcs import MOST_ARCS, best_arcs, n_arcs
from planner.solvers.machines.covers import CoverSearch
from planner.solvers.machines.rows import Found, Tries, best_row

FIXED_POINT, COVERS, ARCS = "fixed point", "layer covers", "flow over arcs"


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
    found = best_row(pool, alike, (0.0, fixed), tries, deadline_s=half_s, quick=True)
    bound, proof = fixed, FIXED_POINT
    if fixed > found.rate * (1.0 + tries.gap):
        bound = search.least_bound(found.rate, fixed, tolerance=tries.gap / 2)
        proof = COVERS if bound < fixed else FIXED_POINT
        found = best_row(
            pool, alike, (found.rate, bound), tries, deadline_s=began_s + limit, best=found
        )
    if bound > found.rate * (1.0 + tries.gap) and not _is_same(alike, hoped):
        between = (found.rate, bound)
        found = best_row(
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
    found: Found,
    known: tuple[float, str],
    tries: Tries,
    deadline_s: float,
) -> tuple[Found, float, str]:
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


def _is_same(alike: Classes, hoped: Classes) -> bool:
    """Whether it never matters which machine of a class stands where."""
    same = (np.array_equal(a, b) for a, b in (
        (alike.crossing, hoped.crossing), (alike.entry, hoped.entry),
        (alike.leaving, hoped.leaving),
    ))  # fmt: skip
    return all(same)
