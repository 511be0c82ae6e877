"""How many experts some tokens reach, where experts are not equally popular.

A token goes to k different experts. Expert i is one of them with a chance qᵢ in proportion to its
load, none above one, Σ qᵢ = k; tokens choose independently. Of the experts that a device holds,
Σ qᵢ of T tokens' rows stay on average, and Σ (1 − (1 − qᵢ)ᵀ) experts are reached by any.

Devices that share the experts wait for each other: of all of them the one with most rows counts.
Where experts have copies, a balancer deals these so that no rank has much more than the others in
the long run; what chance brings in one pass remains: rows of a rank vary by Σ qᵢ (1 − qᵢ) for each
token, and the fullest of G equal ranks has as many standard deviations more as the highest of G
normal numbers. Source: `docs/decisions/0025-steps.md`.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from planner.equations.arrays import FloatArray, IntArray

PARTS = 1e9
"""A chance is counted in so many parts where copies are dealt: rounding decides no tie."""


def chances(loads: Sequence[float] | FloatArray, n_active: int) -> FloatArray:
    """Chance of each expert to be one of a token's, in proportion to loads and at most one (E,).

    >>> chances([1.0, 1.0, 2.0, 0.0], 2).tolist()
    [0.5, 0.5, 1.0, 0.0]
    >>> chances([1.0, 1.0, 9.0, 1.0], 2).round(2).tolist()
    [0.33, 0.33, 1.0, 0.33]
    """
    loads = np.asarray(loads, dtype=float)
    order = np.argsort(-loads, kind="stable")
    shares = loads[order]
    behind = shares[::-1].cumsum()[::-1]  # of each and all that are less popular
    left = n_active - np.arange(len(loads), dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        sure = (left > 0) & (shares * left >= behind)
    n_sure = int(np.argmin(sure)) if not sure.all() else len(loads)
    drawn = np.ones(len(loads))
    if n_sure < len(loads):
        rest = behind[n_sure]
        drawn[n_sure:] = shares[n_sure:] * (left[n_sure] / rest) if rest > 0 else 0.0
    back = np.empty_like(drawn)
    back[order] = drawn
    return back


def fullest(chances_: FloatArray, n_ranks: int) -> FloatArray:
    """Chances of the experts on that rank which most rows go to; ranks hold neighbours (E/G,).

    Where experts do not go evenly into ranks, the last rank has fewer.
    """
    held = -(-len(chances_) // n_ranks)
    padded = np.zeros(held * n_ranks)
    padded[: len(chances_)] = chances_
    ranks = padded.reshape(n_ranks, held)
    return np.asarray(ranks[ranks.sum(axis=1).argmax()])


def replicate(load: FloatArray, n_slots: int) -> IntArray:
    """Copies of each expert [E]: each free slot goes to whose copies are heaviest.

    Source: [EPLB2025], replication.
    """
    counts = np.ones(len(load), dtype=np.int64)
    for _ in range(n_slots - len(load) if len(load) else 0):
        counts[np.argmax(load / counts)] += 1
    return counts


def place(size: FloatArray, counts: IntArray, held: IntArray) -> None:
    """Fill empty slots [G, S] with copies, the heaviest first, always on the least loaded rank.

    Args:
        size: load of one copy of each expert [E].
        counts: copies of each expert [E].
        held: slots, all of them empty; filled in place.

    Source: [EPLB2025], balanced packing.
    """
    item = np.repeat(np.arange(len(size)), counts)
    order = np.argsort(-size[item], kind="stable")
    loads, filled = np.zeros(len(held)), np.zeros(len(held), dtype=np.int64)
    for e in item[order]:
        g = int(np.argmin(np.where(filled < held.shape[1], loads, np.inf)))
        held[g, filled[g]] = e
        loads[g] += size[e]
        filled[g] += 1


def fullest_balanced(chances_: FloatArray, n_ranks: int, n_redundant: int) -> FloatArray:
    """Chances of the copies on that rank which most rows go to, as a balancer deals them (S,).

    Copies of an expert share its rows equally, and fill G ranks of S slots; the order of experts
    does not matter.
    """
    n_slots = (len(chances_) + n_redundant) // n_ranks
    load = np.rint(chances_ * PARTS)
    counts = replicate(load, n_slots * n_ranks)
    held = np.zeros((n_ranks, n_slots), dtype=np.int64)
    place(load / counts, counts, held)
    rank = held[(load / counts)[held].cumsum(axis=1)[:, -1].argmax()]
    return np.asarray(chances_[rank] / counts[rank])


@cache
def expected_highest(n: int) -> float:
    """The highest of n independent standard normal numbers, on average [1].

    >>> [round(expected_highest(n), 4) for n in (1, 2, 32)]
    [0.0, 0.5642, 2.0697]
    """
    x = np.arange(-12.0, 12.0, 0.02)
    below = np.array([math.erfc(-one / math.sqrt(2.0)) / 2.0 for one in x])
    density = np.exp(-(x**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return float(np.sum(x * n * density * below ** (n - 1)) * 0.02)


def experts_reached(
    tokens: FloatArray, chances_: FloatArray, counts: FloatArray | float = 1.0
) -> FloatArray:
    """Experts that at least one of T tokens reaches, Σ c (1 − (1 − q)ᵀ) (N,).

    Args:
        tokens: T, (N,).
        chances_: q of each expert, (E,).
        counts: c, how many experts have that chance, (E,).
    """
    with np.errstate(divide="ignore"):
        spared = np.log1p(-chances_)  # minus infinity of an expert that every token goes to
    n_tokens = np.asarray(tokens, dtype=float)[:, None]
    exponents = np.multiply(
        n_tokens, spared, where=n_tokens > 0.0, out=np.zeros((len(n_tokens), len(spared)))
    )
    return np.asarray(-(np.expm1(exponents) * counts).sum(axis=1))
