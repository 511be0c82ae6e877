"""Two slots a rank: exact, because pairing is.

Copies can be paired within T if and only if the heaviest with the lightest, the next with the
next but lightest, and so on are within T (an empty slot weighs nothing). Equivalently, for every
load a above T/2: a rank with a copy of a or more has no other above T - a, so

    2 #{copies ≥ a} + #{T - a < copies < a} ≤ 2 G        ∀ a,   and #{copies > T/2} ≤ G.

Counts are the only choice left: one binary for each expert and count, one row for each a that
a copy can weigh. Two counts of an expert with the same rows differ in slots only, so the larger
is left out. CP-SAT finds counts within T, or says that there are none, which others confirm.
"""

import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.programs.mixed import MixedProgram
from planner.solvers.mixed import cpsat, solver_of
from planner.solvers.proving import Proved, prove
from planner.solvers.solution import Effort, Word
from planner.specs.ask.targets import Provers
from planner.tools.experts.program import least_copies
from planner.tools.experts.solvers.slots import EMPTY, Slots

EFFORT = 8.0  # CP-SAT's own measure of work, about a second each; unlike time, it repeats
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
        hints={"cpsat": {"linearization_level": 2, "max_deterministic_time": EFFORT}},
    )
    return PairRows(rows=rows, expert=expert, count=count, n_experts=n_experts)


def pairs_within(posed: PairRows, *, seed: int = 0, until_s: float = math.inf) -> Word[FloatArray]:
    """What CP-SAT says: counts within the load, or that there are none.

    Args:
        seed: of CP-SAT.
        until_s: `time.perf_counter()` to stop at.
    """
    limit_s = None if until_s == math.inf else max(0.0, until_s - time.perf_counter())
    return cpsat.solve(posed.rows, Effort(seed=seed, time_limit_s=limit_s))


def pairs_refuted(
    posed: PairRows, word: Word[FloatArray], *, wanted: Provers, until_s: float = math.inf
) -> Proved[FloatArray]:
    """Whether others than CP-SAT say so too, that there are no pairs within the load.

    Args:
        word: CP-SAT's.
        wanted: how many have to vouch.
        until_s: `time.perf_counter()` to stop at.
    """
    left_s = min(MOST_SECONDS, max(0.0, until_s - time.perf_counter()))
    provers = [] if wanted == "one" else [
        partial(solver_of(name), posed.rows) for name in ("multipliers", "highs", "scip")
    ]  # fmt: skip
    return prove(
        provers, Effort(time_limit_s=left_s), wanted=wanted, known=(word,), rows=lambda: posed.rows
    )


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
