"""Placements from patterns: whole patterns and counts of the columns a linear program came to.

CP-SAT chooses, in integers, how often each pattern is used and how many copies each expert has:

    Σ_p y_p ≤ G,   Σ_n λ_en = 1  ∀ e,
    of every class and those above it, slots of patterns ≥ items           ∀ class

Loads are rounded up, so what it finds is within T. That it finds nothing proves nothing, since
other patterns may do: bounds are `patterns`' own.
"""

from __future__ import annotations

import math
import time

import numpy as np
from ortools.sat.python import cp_model

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.solvers.mixed.cpsat import run_cpsat
from planner.tools.experts.solvers.patterns import (
    USUAL_STEPS,
    PatternProgram,
    Pool,
    Verdict,
    items_within,
)
from planner.tools.experts.solvers.slots import EMPTY, Slots

EFFORT = 3.0  # CP-SAT's own measure of work, about a second each; unlike time, it repeats


def placed_within(
    load: FloatArray,
    at_most: float,
    *,
    n_ranks: int,
    n_slots: int,
    seed: int = 0,
    until_s: float = math.inf,
) -> Slots | None:
    """A placement whose fullest rank is within a load, or None where none was found.

    Args:
        load: of each expert [E].
        at_most: T.
        n_ranks: G.
        n_slots: of one rank.
        seed: of CP-SAT.
        until_s: `time.perf_counter()` to stop at.

    Raises:
        SolverError: a solver failed.
    """
    n_all = n_ranks * n_slots
    items = items_within(load, at_most, n_slots=n_all, n_steps=USUAL_STEPS, up=True)
    if items is None:
        return None
    program = PatternProgram(items, n_ranks=n_ranks, n_slots=n_slots)
    if program.decide(until_s=until_s) is not Verdict.OPEN:
        return None
    return _chosen(program.pool, (n_ranks, n_slots), seed=seed, until_s=until_s)


def _chosen(pool: Pool, shape: tuple[int, int], *, seed: int, until_s: float) -> Slots | None:
    """Whole numbers of the pool's columns, as slots."""
    model = cp_model.CpModel()
    items, n_ranks = pool.items, shape[0]
    used = {p: model.new_int_var(0, n_ranks, f"y{p}") for p in pool.patterns}
    taken = {c: model.new_bool_var(f"l{c}") for c in pool.choices}
    for e in range(len(items.counts)):
        model.add_exactly_one([v for c, v in taken.items() if c[0] == e])
    model.add(cp_model.LinearExpr.sum(list(used.values())) <= n_ranks).with_name("ranks")
    slots: dict[int, list[cp_model.IntVar]] = {}
    for pattern, variable in used.items():
        for k in pattern:
            slots.setdefault(k, []).append(variable)
    wanted: dict[int, list[tuple[cp_model.IntVar, int]]] = {}
    for (e, column), variable in taken.items():
        at = int(items.place[e, column])
        wanted.setdefault(at, []).append((variable, int(items.counts[e, column])))
    spare: list[cp_model.IntVar] = []
    for k in range(items.n_classes - 1, -1, -1):  # what larger classes leave serves smaller ones
        left = model.new_int_var(0, shape[0] * shape[1], f"spare{k}")
        here, needs = slots.get(k, []), wanted.get(k, [])
        variables = [*spare, *here, *(variable for variable, _ in needs), left]
        weights = [1] * (len(spare) + len(here)) + [-count for _, count in needs] + [-1]
        model.add(cp_model.LinearExpr.weighted_sum(variables, weights) == 0)
        spare = [left]
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = EFFORT
    if until_s < math.inf:
        solver.parameters.max_time_in_seconds = max(0.0, until_s - time.perf_counter())
    status = run_cpsat(solver, model)
    if status == cp_model.MODEL_INVALID:
        raise SolverError(f"cpsat does not take the model: {model.validate()}")
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    ranks = [p for p, variable in used.items() for _ in range(solver.value(variable))]
    columns = [c for c, variable in taken.items() if solver.boolean_value(variable)]
    return _filled(pool, ranks, columns, shape)


def _filled(
    pool: Pool, ranks: list[tuple[int, ...]], columns: list[tuple[int, int]], shape: tuple[int, int]
) -> Slots:
    """Items into slots, the largest item into the largest slot."""
    items = pool.items
    counts = np.zeros(len(items.counts), dtype=np.int64)
    wanted: list[tuple[int, int]] = []
    for e, column in columns:
        counts[e] = items.counts[e, column]
        wanted += [(int(items.place[e, column]), e)] * int(counts[e])
    offered = sorted(((k, -g) for g, pattern in enumerate(ranks) for k in pattern), reverse=True)
    held = np.full(shape, EMPTY, dtype=np.int64)
    filled = [0] * shape[0]
    for (_, e), (_, minus_g) in zip(sorted(wanted, reverse=True), offered, strict=False):
        g = -minus_g
        held[g, filled[g]] = e
        filled[g] += 1
    return Slots(held=held, counts=counts)
