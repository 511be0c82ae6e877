"""Two slots a rank: exact, because pairing is.

Copies can be paired within T if and only if the heaviest with the lightest, the next with the
next but lightest, and so on are within T (an empty slot weighs nothing). Equivalently, for every
load a above T/2: a rank with a copy of a or more has no other above T - a, so

    2 #{copies ≥ a} + #{T - a < copies < a} ≤ 2 G        ∀ a,   and #{copies > T/2} ≤ G.

Counts are the only choice left: one binary for each expert and count, one row for each a that
a copy can weigh. Two counts of an expert with the same rows differ in slots only, so the larger
is left out. CP-SAT finds counts within T or proves that there are none.
"""

from __future__ import annotations

import math
import time

import numpy as np
from ortools.sat.python import cp_model

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.programs.expert_bounds import least_copies
from planner.solvers.cpsat_run import run_cpsat
from planner.solvers.experts.slots import EMPTY, Slots

EFFORT = 8.0  # CP-SAT's own measure of work, about a second each; unlike time, it repeats
_ROUNDING = 1e-12


def pairs_within(
    load: FloatArray, at_most: float, *, n_ranks: int, seed: int = 0, until_s: float = math.inf
) -> Slots | bool:
    """A placement of two slots a rank within a load.

    Args:
        load: of each expert [E].
        at_most: T.
        n_ranks: G.
        seed: of CP-SAT.
        until_s: `time.perf_counter()` to stop at.

    Returns:
        the placement; False where there is none, proved; True where the effort ended first.
    """
    least = least_copies(load, at_most)
    spare = 2 * n_ranks - int(least.sum())
    if spare < 0:
        return False
    counts = least[:, None] + np.arange(spare + 1)
    size = load[:, None] / counts
    heavy = np.unique(size[size > at_most / 2.0])
    needed = _first_of_each_class(size, heavy, at_most)
    expert = np.nonzero(needed)[0]
    taken, is_refuted = _solve(
        expert, (counts[needed], size[needed]), (heavy, at_most, n_ranks), seed, until_s
    )
    if taken is None:
        return not is_refuted
    chosen = np.zeros(len(load), dtype=np.int64)
    chosen[expert[taken]] = counts[needed][taken]
    return paired(load, chosen, n_ranks)


def paired(load: FloatArray, counts: IntArray, n_ranks: int) -> Slots:
    """The best pairs of given copies: the heaviest with the lightest."""
    item = np.repeat(np.arange(len(load)), counts)
    item = item[np.argsort(-(load / counts)[item], kind="stable")]
    item = np.append(item, np.full(2 * n_ranks - len(item), EMPTY))
    return Slots(held=np.stack([item[:n_ranks], item[::-1][:n_ranks]], axis=1), counts=counts)


def _first_of_each_class(size: FloatArray, heavy: FloatArray, at_most: float) -> BoolArray:
    """The fewest copies [E, X] of those that all rows take alike."""
    slack = _ROUNDING * at_most
    above = np.searchsorted(heavy, size, side="right")
    beside = np.searchsorted(np.sort(at_most - heavy), size - slack, side="left")
    alike = (np.diff(above, axis=1) == 0) & (np.diff(beside, axis=1) == 0)
    alike &= (size[:, 1:] > at_most / 2.0 + slack) == (size[:, :-1] > at_most / 2.0 + slack)
    return np.concatenate([np.ones((len(size), 1), dtype=np.bool_), ~alike], axis=1)


def _solve(
    expert: IntArray,
    columns: tuple[IntArray, FloatArray],
    limits: tuple[FloatArray, float, int],
    seed: int,
    until_s: float,
) -> tuple[BoolArray | None, bool]:
    """Which columns are taken, or None; and whether that none can be is proved.

    Whether two copies fit is decided in favour of a placement, so that what is infeasible is so.
    """
    (counts, size), (heavy, at_most, n_ranks) = columns, limits
    slack = _ROUNDING * at_most
    model = cp_model.CpModel()
    variables = [model.new_bool_var(f"z{j}") for j in range(len(expert))]
    for e in range(int(expert.max(initial=-1)) + 1):
        model.add_exactly_one([variables[j] for j in np.flatnonzero(expert == e)])
    rows = [(counts, 2 * n_ranks), (counts * (size > at_most / 2.0 + slack), n_ranks)]
    for a in heavy.tolist():
        weight = (size >= a).astype(np.int64) + (size > at_most - a + slack)
        rows.append((counts * weight, 2 * n_ranks))
    for coefficients, at_most_ranks in rows:
        total = cp_model.LinearExpr.weighted_sum(variables, coefficients.tolist())
        model.add(total <= at_most_ranks)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = EFFORT
    if until_s < math.inf:
        solver.parameters.max_time_in_seconds = max(0.0, until_s - time.perf_counter())
    status = run_cpsat(solver, model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return np.array([solver.boolean_value(v) for v in variables]), False
    return None, bool(status == cp_model.INFEASIBLE)
