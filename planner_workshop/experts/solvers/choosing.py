"""Placements within a load T, in whole numbers: from patterns, or of pairs.

CP-SAT chooses how often each pattern is used of those that the linear program came to, and how
many copies each expert has:

    Σ_p y_p ≤ G,   Σ_n λ_en = 1  ∀ e,
    of every class and those above it, slots of patterns ≥ items           ∀ class

Loads are rounded up, so what it finds is within T. That it finds nothing proves nothing, since
other patterns may do: bounds are `patterns`' own.

With two slots a rank the answer is exact, because pairing is. Copies can be paired within T if
and only if the heaviest with the lightest, the next with the next but lightest, and so on are
within T (an empty slot weighs nothing). Equivalently, for every load a above T/2: a rank with a
copy of a or more has no other above T - a, so

    2 #{copies ≥ a} + #{T - a < copies < a} ≤ 2 G        ∀ a,   and #{copies > T/2} ≤ G.

Counts are the only choice left: one binary for each expert and count, one row for each a that
a copy can weigh. Two counts of an expert with the same rows differ in slots only, so the larger
is left out. CP-SAT finds counts within T, or says that there are none, which others confirm.
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.programs.mixed import MixedBuilder, MixedProgram
from planner.solvers.mixed import cpsat, solver_of
from planner.solvers.proving import Proved, prove
from planner.solvers.recording import solving_for
from planner.solvers.solution import Effort, Word
from planner_workshop.experts.program import ExpertProgram, least_copies
from planner_workshop.experts.solvers.patterns import (
    PatternProgram,
    Pool,
    Verdict,
)
from planner_workshop.experts.solvers.slots import EMPTY, Limits, Slots

EFFORT = 3.0  # CP-SAT's own measure of work, about a second each; unlike time, it repeats


@solving_for("whether ranks hold less")
def placed_within(program: ExpertProgram, at_most: float, limits: Limits) -> Slots | None:
    """A placement whose fullest rank is within a load T, or None where none was found.

    Raises:
        SolverError: a solver failed.
    """
    patterns = PatternProgram.within(program, at_most, up=True)
    if patterns is None or patterns.decide(until_s=limits.until_s) is not Verdict.OPEN:
        return None
    return _slots(patterns.pool, (program.n_ranks, program.n_slots), limits)


def _slots(pool: Pool, shape: tuple[int, int], limits: Limits) -> Slots | None:
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
    word = cpsat.solve(posed.program("patterns"), _effort(limits))
    if word.stopped_by == "interrupt":
        raise KeyboardInterrupt
    if word.answer is None:
        return None
    ranks = [p for p, j in used.items() for _ in range(round(word.answer[j]))]
    columns = [c for c, j in taken.items() if word.answer[j] > 0.5]
    return _filled(pool, ranks, columns, shape)


def _effort(limits: Limits) -> Effort:
    left_s = limits.left_s
    return Effort(seed=limits.seed, time_limit_s=None if left_s == math.inf else left_s)


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


PAIRS_EFFORT = 8.0  # CP-SAT's own measure of work, about a second each; unlike time, it repeats
MOST_SECONDS = 20.0  # of those who confirm; they have no other measure of work
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairRows:
    """What pairs within a load are asked as.

    Args:
        rows: one binary for each expert and count, (J,).
        expert, count: of each binary (J,).
        n_experts: of the program.
    """

    rows: MixedProgram
    expert: IntArray
    count: IntArray
    n_experts: int


def pair_rows(load: FloatArray, at_most: float, *, n_ranks: int) -> PairRows | None:
    """The program of pairs within a load; None where the least counts need too many slots.

    Whether two copies fit is decided in favour of a placement, so that what is infeasible is so.

    Args:
        load: of each expert [E].
        at_most: T.
        n_ranks: G.
    """
    least = least_copies(load, at_most)
    spare = 2 * n_ranks - int(least.sum())
    if spare < 0:
        return None
    counts = least[:, None] + np.arange(spare + 1)
    size = load[:, None] / counts
    heavy = np.unique(size[size > at_most / 2.0])
    needed = _first_of_each_class(size, heavy, at_most)
    expert, count, size = np.nonzero(needed)[0], counts[needed], size[needed]
    slack, n = _ROUNDING * at_most, len(expert)
    weights = [count, count * (size > at_most / 2.0 + slack)]
    weights += [
        count * ((size >= a).astype(np.int64) + (size > at_most - a + slack))
        for a in heavy.tolist()
    ]
    table = np.array(weights)
    row, column = np.nonzero(table)
    n_experts, n_rows = len(load), len(load) + len(table)
    most = np.array([2.0 * n_ranks, float(n_ranks), *[2.0 * n_ranks] * len(heavy)])
    rows = MixedProgram(
        name="pairs",
        cost=np.zeros(n),
        row=np.concatenate([expert, n_experts + row]),
        column=np.concatenate([np.arange(n), column]),
        value=np.concatenate([np.ones(n), table[row, column].astype(float)]),
        low=np.concatenate([np.ones(n_experts), np.full(len(table), -np.inf)]),
        high=np.concatenate([np.ones(n_experts), most]),
        lower=np.zeros(n),
        upper=np.ones(n),
        is_whole=np.ones(n, dtype=np.bool_),
        columns=tuple(f"z({e},{k})" for e, k in zip(expert, count, strict=True)),
        rows=tuple(f"row({r})" for r in range(n_rows)),
        hints={"cpsat": {"linearization_level": 2, "max_deterministic_time": PAIRS_EFFORT}},
    )
    return PairRows(rows=rows, expert=expert, count=count, n_experts=n_experts)


def pairs_within(posed: PairRows, limits: Limits) -> Word[FloatArray]:
    """What CP-SAT says: counts within the load, or that there are none."""
    return cpsat.solve(posed.rows, _effort(limits))


def pairs_refuted(posed: PairRows, word: Word[FloatArray], limits: Limits) -> Proved[FloatArray]:
    """Whether others than CP-SAT, whose word it is, say so too: no pairs are within the load."""
    effort, wanted = Effort(time_limit_s=min(MOST_SECONDS, limits.left_s)), limits.wanted
    provers = [] if wanted == "one" else [
        partial(solver_of(name), posed.rows) for name in ("multipliers", "highs", "scip")
    ]  # fmt: skip
    return prove(provers, effort, wanted=wanted, known=(word,), rows=lambda: posed.rows)


def pair_slots(posed: PairRows, values: FloatArray, load: FloatArray, n_ranks: int) -> Slots:
    """The placement that the binaries say."""
    taken = values > 0.5
    chosen = np.zeros(posed.n_experts, dtype=np.int64)
    chosen[posed.expert[taken]] = posed.count[taken]
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
