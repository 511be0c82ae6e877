"""The layer-cover program by column generation: HiGHS prices, a knapsack finds columns.

At a rate F every layer is held by machines through which F tokens/s pass. So each layer has a
*cover*: a multiset of (class, layers held) whose rates, none above F, add up to F. A machine that
holds k layers is in k covers. If not even fractions of covers reach all layers, no placement has
the rate: that is a bound, proven by the prices of a linear program and a knapsack.

A bound needs no optimum: with any prices `covered_layers_bound` holds, and it stops the
generation as soon as it is below the number of layers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import highspy  # type: ignore[import-untyped]
import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.solvers.highs_run import options_of, run_highs, set_options
from planner.solvers.solution import Effort
from planner_workshop.staging.machines.incumbents import LEAST_RATE

MOST_ROUNDS = 400
COLUMNS_A_ROUND = 12
TOLERANCE = 1e-9


@dataclass(slots=True, kw_only=True)
class CoverSearch:
    """Covers found so far; those of one rate begin the search at the next.

    Args:
        n_machines, rates, n_layers: see `cover_program`.
        deadline_s: by `time.perf_counter`, after which nothing more is proven.
    """

    n_machines: IntArray
    rates: FloatArray
    n_layers: int
    deadline_s: float = float("inf")
    found: list[IntArray] = field(default_factory=list)
    n_rounds: int = 0

    def refutes(self, rate: float) -> bool:
        """Whether it is proven that no placement has this rate."""
        program = cover_program(self.n_machines, self.rates, rate)
        if not len(program):
            return True
        # machines may hold their spans in fractions here, and in any places: whatever is placed is
        # a solution, so that too few layers in the relaxation are too few in truth
        master = _Master(program)
        for cover in self.found:
            if program.reaches(cover):
                master.add(cover)
        for _ in range(MOST_ROUNDS):
            if time.perf_counter() > self.deadline_s:
                return False
            self.n_rounds += 1
            layers, prices = master.solve()
            if layers >= self.n_layers * (1.0 - TOLERANCE):
                return False
            cheapest, covers = cheapest_covers(program, prices)
            # HiGHS's prices are a proposal: that they refute is counted by `covered_layers_bound`
            bound = covered_layers_bound(program, prices, cheapest)
            if bound < self.n_layers * (1.0 - TOLERANCE):
                return True
            worth = 1.0 - TOLERANCE if master.n_covers else float("inf")
            wanted = [cover for cover in covers if cover @ prices < worth]
            if not wanted:  # the relaxed optimum: covers of rounded rates reach all layers
                return False
            for cover in wanted[:COLUMNS_A_ROUND]:
                master.add(cover)
                self.found.append(cover)
        return False

    def least_bound(self, low: float, high: float, *, tolerance: float) -> float:
        """Bisect the rates between one that is reached and one that is a bound [tokens/s]."""
        while high - low > tolerance * high and high > LEAST_RATE:
            middle = (low + high) / 2
            if time.perf_counter() > self.deadline_s:
                break
            if self.refutes(middle):
                high = middle
            else:
                low = middle
        return high


class _Master:
    """max Σ y over covers; items used ≤ layers held, machines used ≤ machines there are."""

    def __init__(self, program: CoverProgram) -> None:
        self.program = program
        self.highs = highspy.Highs()
        set_options(self.highs, options_of(Effort()))
        n_items = len(program)
        nothing, empty = np.array([], dtype=np.int32), np.array([])
        for _ in range(n_items):
            self.highs.addRow(-highspy.kHighsInf, 0.0, 0, nothing, empty)
        for n in program.n_machines.tolist():
            self.highs.addRow(-highspy.kHighsInf, float(n), 0, nothing, empty)
        for item, (kind, layers) in enumerate(
            zip(program.item_class.tolist(), program.item_layers.tolist(), strict=True)
        ):
            rows = np.array([item, n_items + kind], dtype=np.int32)
            held, most = np.array([-float(layers), 1.0]), float(program.n_machines[kind])
            self.highs.addCol(0.0, 0.0, most, 2, rows, held)
        self.n_items = n_items
        self.highs.changeObjectiveSense(highspy.ObjSense.kMaximize)

    def add(self, cover: IntArray) -> None:
        rows = np.flatnonzero(cover).astype(np.int32)
        most = float(self.program.n_machines.sum() * self.program.item_layers.max())
        self.highs.addCol(1.0, 0.0, most, len(rows), rows, cover[rows].astype(float))

    @property
    def n_covers(self) -> int:
        return int(self.highs.getNumCol()) - self.n_items

    def solve(self) -> tuple[float, FloatArray]:
        """Layers covered, and the price of each item: its rate before the first cover."""
        if not self.n_covers:
            return 0.0, self.program.item_rate / self.program.rate
        if run_highs(self.highs, is_linear=True):
            raise KeyboardInterrupt
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            status = self.highs.modelStatusToString(self.highs.getModelStatus())
            raise SolverError(f"highs ended the layer-cover program with `{status}`")
        duals = np.array(self.highs.getSolution().row_dual[: self.n_items])
        return float(self.highs.getObjectiveValue()), np.abs(duals)


CELLS = 20_000
"""Parts that a rate is divided into; machines' rates are rounded up to whole parts, so that a
cover is never overlooked and the bound is loose by no more than one part a machine."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoverProgram:
    """What can cover a layer at a rate.

    Args:
        rate: F [tokens/s].
        n_machines: of each class (C,).
        item_class, item_layers: class of each item, and the layers it holds (I,).
        item_rate: tokens/s that it adds to a cover, at most F (I,).
    """

    rate: float
    n_machines: IntArray
    item_class: IntArray
    item_layers: IntArray
    item_rate: FloatArray

    def __len__(self) -> int:
        return len(self.item_class)

    def reaches(self, cover: IntArray) -> bool:
        """Whether the rates of a cover (I,) add up."""
        return bool(cover @ self.item_rate >= self.rate * (1.0 - 1e-12))


def cover_program(n_machines: IntArray, rates: FloatArray, rate: float) -> CoverProgram:
    """The covers of a rate.

    Args:
        rates: of each class by layers held (C, K).
    """
    item_class, item_layers = np.nonzero(rates > 0)
    return CoverProgram(
        rate=rate,
        n_machines=n_machines,
        item_class=item_class,
        item_layers=item_layers + 1,
        item_rate=np.minimum(rates[item_class, item_layers], rate),
    )


def cheapest_covers(program: CoverProgram, prices: FloatArray) -> tuple[float, list[IntArray]]:
    """The least price of a cover, rounded down, and good covers: one for each first item.

    An unbounded knapsack. All items add at least w cells, so w cells are settled at once.

    Args:
        prices: of each item, not negative (I,).

    Returns:
        No cover is cheaper than the price; the covers reach the rate by the rounded rates.
    """
    size = np.ceil(program.item_rate / program.rate * CELLS * (1.0 - 1e-12)).astype(np.int64)
    # the least item takes so many cells, so that none of them rests on another of the same step
    width = int(size.min())
    best = np.zeros(CELLS + 1)
    took = np.zeros(CELLS + 1, dtype=np.int64)
    for start in range(1, CELLS + 1, width):
        cells = np.arange(start, min(start + width, CELLS + 1))
        rest = np.maximum(cells[None, :] - size[:, None], 0)
        total = prices[:, None] + best[rest]
        took[cells] = total.argmin(axis=0)
        best[cells] = total[took[cells], np.arange(len(cells))]
    rest = np.maximum(CELLS - size, 0)
    total = prices + best[rest]
    covers = []
    for first in np.argsort(total, kind="stable"):
        cover = np.zeros(len(program), dtype=np.int64)
        cover[first] += 1
        left = int(rest[first])
        while left > 0:
            cover[took[left]] += 1
            left -= int(size[took[left]])
        covers.append(cover)
    return float(best[CELLS]), covers


def covered_layers_bound(program: CoverProgram, prices: FloatArray, cheapest: float) -> float:
    """Layers that covers can reach at most, by any prices of the items (Farley's bound).

    Prices that no cover undercuts one by are a solution of the dual, and so are any prices
    divided by the least of a cover. A machine is worth the most that one way to use it is.
    """
    if cheapest <= 0:
        return float("inf")
    worth = np.zeros(len(program.n_machines))
    np.maximum.at(worth, program.item_class, prices * program.item_layers)
    return float(program.n_machines @ worth / cheapest)
