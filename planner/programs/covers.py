"""Layer covers: what any placement of a rate must contain, whatever its stages.

At a rate F every layer is held by machines through which F tokens/s pass. So each layer has a
*cover*: a multiset of (class, layers held) whose rates, none above F, add up to F. A machine that
holds k layers is in k covers. If not even fractions of covers reach all layers, no placement has
the rate: that is a bound, proven by the prices of a linear program and a knapsack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray

CELLS = 20_000
"""Parts that a rate is divided into; machines' rates are rounded up to whole parts, so that a
cover is never overlooked and the bound is loose by no more than one part a machine."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoverProgram:
    """What can cover a layer at a rate.

    Args:
        rate: F [tokens/s].
        n_layers: layers to cover.
        n_machines: of each class (C,).
        item_class, item_layers: class of each item, and the layers it holds (I,).
        item_rate: tokens/s that it adds to a cover, at most F (I,).
    """

    rate: float
    n_layers: int
    n_machines: IntArray
    item_class: IntArray
    item_layers: IntArray
    item_rate: FloatArray

    def __len__(self) -> int:
        return len(self.item_class)

    def reaches(self, cover: IntArray) -> bool:
        """Whether the rates of a cover (I,) add up."""
        return bool(cover @ self.item_rate >= self.rate * (1.0 - 1e-12))


def cover_program(
    n_machines: IntArray, rates: FloatArray, n_layers: int, rate: float
) -> CoverProgram:
    """The covers of a rate.

    Args:
        rates: of each class by layers held (C, K).
    """
    item_class, item_layers = np.nonzero(rates > 0)
    return CoverProgram(
        rate=rate,
        n_layers=n_layers,
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
