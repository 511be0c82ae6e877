"""Stage patterns: machines of one region that hold the same layers, and together are fast enough.

A placement whose machines are in line is a row of such stages. How many stages of each pattern
there are is all that a solver has to say; which machines, and which layers, follows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner_workshop.staging.machines.program import RELATIVE_TOLERANCE, Classes

MOST_PATTERNS = 5_000
"""Of them that are listed; beyond them the search is a heuristic, and its bound stands."""

MOST_ALIKE = 100
"""Patterns of one region and number of layers that are kept: those that exceed the rate least."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Patterns:
    """Stages that reach a rate, from which no machine can be left out (P,).

    Args:
        rate: that each reaches [tokens/s].
        n_layers: that its machines hold.
        counts: machines of each class (P, C).
        region: that they are in.
        entry, leaving: whether the coordinator's links carry the rate to and from it.
    """

    rate: float
    n_layers: IntArray
    counts: IntArray
    region: IntArray
    entry: BoolArray
    leaving: BoolArray

    def __len__(self) -> int:
        return len(self.n_layers)


def patterns(pool: Classes, rate: float) -> Patterns:
    """Every minimal stage of a rate, in each region; the closest where there are very many."""
    rows: list[tuple[int, int, IntArray]] = []
    for region in range(pool.n_regions):
        members = np.flatnonzero(pool.region == region)
        for k in range(1, pool.rates.shape[1] + 1):
            covers = _covers(pool.rates[members, k - 1], pool.n_machines[members], rate)
            listed = list(islice(covers, MOST_PATTERNS))
            listed.sort(key=lambda taken: float(taken @ pool.rates[members, k - 1]))
            for taken in listed[:MOST_ALIKE]:
                counts = np.zeros(len(pool.members), dtype=np.int64)
                counts[members] = taken
                rows.append((k, region, counts))
    return _patterns(pool, rate, rows)


def _patterns(pool: Classes, rate: float, rows: list[tuple[int, int, IntArray]]) -> Patterns:
    counts = np.array([row[2] for row in rows], dtype=np.int64).reshape(-1, len(pool.members))
    n_layers = np.array([row[0] for row in rows], dtype=np.int64)
    region = np.array([row[1] for row in rows], dtype=np.int64)
    each = pool.rates.T[n_layers - 1] if len(rows) else np.zeros((0, len(pool.members)))
    need = rate * (1.0 - RELATIVE_TOLERANCE)
    entry = (counts * np.minimum(each, pool.entry[region][:, None])).sum(axis=1) >= need
    leaving = (counts * np.minimum(each, pool.leaving[region][:, None])).sum(axis=1) >= need
    return Patterns(
        rate=rate, n_layers=n_layers, counts=counts, region=region, entry=entry, leaving=leaving
    )


def _covers(rates: FloatArray, most: IntArray, rate: float) -> Iterator[IntArray]:
    """Minimal counts of machines whose rates add up to `rate`: fastest first, depth first."""
    order = np.argsort(-rates, kind="stable")
    speeds, limits = rates[order].tolist(), most[order].tolist()
    reachable = [sum(s * n for s, n in zip(speeds[i:], limits[i:], strict=True))
                 for i in range(len(speeds) + 1)]  # fmt: skip
    need = rate * (1.0 - RELATIVE_TOLERANCE)
    taken = [0] * len(speeds)

    def go(i: int, total: float) -> Iterator[IntArray]:
        if total >= need:  # the slowest that is taken is needed, as it was taken last
            counts = np.zeros(len(speeds), dtype=np.int64)
            counts[order] = taken
            yield counts
            return
        if i == len(speeds) or total + reachable[i] < need or not speeds[i]:
            return
        enough = min(limits[i], int(np.ceil((need - total) / speeds[i] - 1e-12)))
        for n in range(enough, -1, -1):
            taken[i] = n
            yield from go(i + 1, total + n * speeds[i])
        taken[i] = 0

    yield from go(0, 0.0)


def crossing_flow(
    ended: tuple[FloatArray, IntArray], begun: tuple[FloatArray, IntArray], links: FloatArray
) -> float:
    """Tokens/s from machines of one stage to those of the next, over links of their regions.

    By the duality of flow and cut: of each region a cut takes some that end, the slowest; and of
    those that begin each by itself, or its links from all others, whichever is less.

    Args:
        ended, begun: rates of the machines, and their regions (m,), (n,).
        links: tokens/s from each machine of one region to each of another (R, R).
    """
    rates, region = begun
    homes = sorted(set(ended[1].tolist()))
    slowest = [
        np.concatenate([[0.0], np.cumsum(np.sort(ended[0][ended[1] == home]))]) for home in homes
    ]
    least = math.inf
    for taken in product(*(range(len(sums)) for sums in slowest)):
        left = sum(float(sums[a]) for a, sums in zip(taken, slowest, strict=True))
        linked = np.zeros(len(rates))
        for a, sums, home in zip(taken, slowest, homes, strict=True):
            if a < len(sums) - 1:
                linked += (len(sums) - 1 - a) * links[home][region]
        least = min(least, left + float(np.minimum(rates, linked).sum()))
    return least


def crossings(pool: Classes, some: Patterns) -> dict[tuple[int, int], BoolArray]:
    """Which patterns may follow which, over the least link of two regions (P, P) each."""
    by_pair: dict[tuple[int, int], BoolArray] = {}
    speeds = [
        np.repeat(np.minimum(pool.rates[:, k - 1], some.rate), counts)
        for k, counts in zip(some.n_layers, some.counts, strict=True)
    ]
    need = some.rate * (1.0 - RELATIVE_TOLERANCE)
    known: dict[tuple[bytes, bytes, float], bool] = {}
    for a in range(pool.n_regions):
        for b in range(pool.n_regions):
            if a == b:
                continue
            link = float(pool.crossing[a, b])
            reaches = np.zeros((len(some), len(some)), dtype=np.bool_)
            for p in np.flatnonzero(some.region == a):
                for q in np.flatnonzero(some.region == b):
                    key = (speeds[p].tobytes(), speeds[q].tobytes(), link)
                    if key not in known:
                        ended = speeds[p], np.full(len(speeds[p]), a)
                        begun = speeds[q], np.full(len(speeds[q]), b)
                        known[key] = crossing_flow(ended, begun, pool.crossing) >= need
                    reaches[p, q] = known[key]
            by_pair[a, b] = reaches
    return by_pair
