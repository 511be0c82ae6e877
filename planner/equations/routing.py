"""How many experts some tokens reach, where experts are not equally popular.

A token goes to k different experts. Expert i is one of them with a chance qᵢ in proportion to its
load, none above one, Σ qᵢ = k; tokens choose independently. Of the experts that a device holds,
Σ qᵢ of T tokens' rows stay on average, and Σ (1 − (1 − qᵢ)ᵀ) experts are reached by any.

Devices that share the experts wait for each other: of all of them the one with most rows counts.
Source: `docs/decisions/0025-steps.md`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.equations.arrays import FloatArray


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
    found = np.ones(len(loads))
    if n_sure < len(loads):
        rest = behind[n_sure]
        found[n_sure:] = shares[n_sure:] * (left[n_sure] / rest) if rest > 0 else 0.0
    back = np.empty_like(found)
    back[order] = found
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
