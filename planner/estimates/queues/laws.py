"""Laws of one number: as weighted values, and on a grid of equal steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray

EVEN = tuple(float(x) for x in np.linspace(0.0, 1.0, 13))
UPPER = (*np.linspace(0.0, 0.8, 9).tolist(), 0.87, 0.91, 0.94, 0.96, 0.975, 0.9875, 1.0)
LOWER = tuple(1.0 - x for x in reversed(UPPER))
"""Edges of groups of a law, by share of its weight: alike, or finer where it is rare and large, or
rare and small, because the last percentiles are of these."""


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """Values and how likely each of them is.

    Args:
        values: in any order (V,).
        weights: not negative, of any sum (V,).
    """

    values: FloatArray
    weights: FloatArray

    def percentile(self, share: float) -> float:
        """What so large a share of the weight is no more than; NaN of no weight at all."""
        return self.percentiles((share,))[0]

    def percentiles(self, shares: tuple[float, ...]) -> tuple[float, ...]:
        """The same of several shares."""
        total = float(np.sum(self.weights))
        if not total > 0.0:
            return (float("nan"),) * len(shares)
        order = np.argsort(self.values)
        below = np.cumsum(self.weights[order]) / total
        at = np.searchsorted(below, np.array(shares) * (1.0 - 1e-12))
        return tuple(float(x) for x in self.values[order][np.minimum(at, len(order) - 1)])

    @property
    def mean(self) -> float:
        return float(self.values @ self.weights / np.sum(self.weights))

    def grouped(self, edges: tuple[float, ...]) -> Law:
        """Fewer values: the mean of each group of neighbours between such shares of the weight."""
        values, inverse = np.unique(self.values, return_inverse=True)
        weights = np.bincount(inverse, self.weights)
        if len(values) < len(edges):
            return Law(values, weights / np.sum(weights))
        middle = (np.cumsum(weights) - weights / 2.0) / np.sum(weights)
        group = np.clip(np.searchsorted(edges, middle) - 1, 0, len(edges) - 2)
        held = np.bincount(group, weights, len(edges) - 1)
        sums = np.bincount(group, weights * values, len(edges) - 1)
        kept = held > 0.0
        return Law(sums[kept] / held[kept], held[kept] / np.sum(held))


def mixed(laws: list[Law], shares: FloatArray) -> Law:
    """A law of several, each with its share."""
    weights = [
        law.weights / np.sum(law.weights) * share for law, share in zip(laws, shares, strict=True)
    ]
    return Law(np.concatenate([law.values for law in laws]), np.concatenate(weights))


def summed(one: Law, other: Law) -> Law:
    """The sum of two numbers that are independent."""
    values = one.values[:, None] + other.values[None, :]
    return Law(values.ravel(), (one.weights[:, None] * other.weights[None, :]).ravel())


def topped(one: Law, other: Law) -> Law:
    """The larger of two numbers that are independent."""
    values = np.maximum(one.values[:, None], other.values[None, :])
    return Law(values.ravel(), (one.weights[:, None] * other.weights[None, :]).ravel())


NONE = Law(np.array([np.nan]), np.ones(1))
NEVER = Law(np.array([np.inf]), np.ones(1))
"""Of what does not occur, and of what has no end."""


def on_grid(values: FloatArray, weights: FloatArray, step: float, size: int) -> FloatArray:
    """A law on multiples of a step, so that its mean is kept; what is beyond is at the end (size,).

    Args:
        values: not negative (V,).
    """
    at = np.minimum(values / step, size - 1.0)
    low = np.minimum(at.astype(np.int64), size - 2)
    part = at - low
    below = np.bincount(low, weights * (1.0 - part), size)
    return np.asarray(below + np.bincount(low + 1, weights * part, size))


def grouped_rows(
    values: FloatArray, law: FloatArray, edges: tuple[float, ...]
) -> tuple[FloatArray, FloatArray]:
    """Means and weights of groups of each row of ascending values (M, V), (M, A) each.

    A point is in one group as a whole, so that few points stay what they are.

    Args:
        edges: of groups, by share of the weight of a row, which is 1 (A + 1,).
    """
    n_groups = len(edges) - 1
    middle = (np.cumsum(law, axis=1) - law / 2.0).ravel()
    group = np.minimum(np.searchsorted(edges[1:-1], middle), n_groups - 1)
    at = group + np.repeat(np.arange(len(law)) * n_groups, law.shape[1])
    shape, size = (len(law), n_groups), len(law) * n_groups
    weight = np.bincount(at, law.ravel(), size)
    mean = np.bincount(at, (law * values).ravel(), size) / np.maximum(weight, 1e-300)
    return np.asarray(mean, float).reshape(shape), np.asarray(weight, float).reshape(shape)


def sliced(probability: FloatArray, shares: FloatArray) -> FloatArray:
    """Means of slices of a law over 0, 1, … of these shares from below (S,)."""
    edges = np.concatenate([[0.0], np.cumsum(shares) / np.sum(shares)])
    below = np.concatenate([[0.0], np.cumsum(probability)]) / np.sum(probability)
    moment = np.concatenate([[0.0], np.cumsum(probability * np.arange(len(probability)))])
    at = np.interp(edges, below, moment / np.sum(probability))
    return np.asarray(np.diff(at) / np.diff(edges))
