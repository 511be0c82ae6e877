"""Placements from patterns: whole patterns and counts of the columns a linear program came to.

CP-SAT chooses, in integers, how often each pattern is used and how many copies each expert has:

    Σ_p y_p ≤ G,   Σ_n λ_en = 1  ∀ e,
    of every class and those above it, slots of patterns ≥ items           ∀ class

Loads are rounded up, so what it finds is within T. That it finds nothing proves nothing, since
other patterns may do: bounds are `patterns`' own.
"""

import math
import time
from collections import Counter

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.mixed import MixedBuilder
from planner.solvers.mixed import cpsat
from planner.solvers.solution import Effort
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
    return _slots(program.pool, (n_ranks, n_slots), seed=seed, until_s=until_s)


def _slots(pool: Pool, shape: tuple[int, int], *, seed: int, until_s: float) -> Slots | None:
    """Whole numbers of the pool's columns, as slots."""
    items, n_ranks = pool.items, shape[0]
    hints = {"cp_model_presolve": True, "max_deterministic_time": EFFORT}
    posed = MixedBuilder(hints={"cpsat": hints})
    used = {p: posed.column(f"y{p}", n_ranks, is_whole=True) for p in pool.patterns}
    taken = {c: posed.column(f"l{c}", 1.0, is_whole=True) for c in pool.choices}
    for e in range(len(items.counts)):
        mine = {j: 1.0 for c, j in taken.items() if c[0] == e}
        posed.row(f"count({e})", mine, 1.0, 1.0)
    posed.row("ranks", dict.fromkeys(used.values(), 1.0), -math.inf, n_ranks)
    slots: dict[int, list[int]] = {}
    for pattern, j in used.items():
        for k in pattern:
            slots.setdefault(k, []).append(j)
    wanted: dict[int, list[tuple[int, int]]] = {}
    for (e, column), j in taken.items():
        at = int(items.place[e, column])
        wanted.setdefault(at, []).append((j, int(items.counts[e, column])))
    spare: dict[int, float] = {}
    for k in range(items.n_classes - 1, -1, -1):  # what larger classes leave serves smaller ones
        left = posed.column(f"spare{k}", shape[0] * shape[1], is_whole=True)
        terms = Counter(slots.get(k, []))
        needs = {j: -float(count) for j, count in wanted.get(k, [])}
        posed.row(f"class({k})", {**spare, **terms, **needs, left: -1.0}, 0.0, 0.0)
        spare = {left: 1.0}
    limit_s = None if until_s == math.inf else max(0.0, until_s - time.perf_counter())
    word = cpsat.solve(posed.program("patterns"), Effort(seed=seed, time_limit_s=limit_s))
    if word.stopped_by == "interrupt":
        raise KeyboardInterrupt
    if word.answer is None:
        return None
    ranks = [p for p, j in used.items() for _ in range(round(word.answer[j]))]
    columns = [c for c, j in taken.items() if word.answer[j] > 0.5]
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
