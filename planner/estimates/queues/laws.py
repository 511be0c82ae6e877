"""Laws of one number: as weighted values, and on a grid of equal steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.equations.arrays import FloatArray, IntArray

EVEN = tuple(float(x) for x in np.linspace(0.0, 1.0, 13))
UPPER = (*np.linspace(0.0, 0.8, 9).tolist(), 0.87, 0.91, 0.94, 0.96, 0.975, 0.9875, 1.0)
LOWER = tuple(1.0 - x for x in reversed(UPPER))
"""Edges of groups of a law, by share of its weight: alike, or finer where it is rare and large, or
rare and small, because the last percentiles are of these."""

_MANY = 500
"""Values beyond which they are sorted near a percentile only, in so many bins."""

_NONE = 1e-9
"""Mean of a slice below which it is what sums are rounded by."""


@dataclass(frozen=True, eq=False)
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
        if len(self.values) > _MANY:
            return tuple(self._at(share * (1.0 - 1e-12) * total) for share in shares)
        order = np.argsort(self.values)
        below = np.cumsum(self.weights[order]) / total
        at = np.searchsorted(below, np.array(shares) * (1.0 - 1e-12))
        return tuple(float(x) for x in self.values[order][np.minimum(at, len(order) - 1)])

    def _at(self, weight: float) -> float:
        """The least value up to which there is so much weight: only its neighbours are sorted."""
        bins, below = self._binned
        which = int(np.searchsorted(below, weight))
        near = bins == min(which, len(below) - 1)
        values, weights = self.values[near], self.weights[near]
        order = np.argsort(values)
        before = below[which - 1] if which else 0.0
        at = int(np.searchsorted(before + np.cumsum(weights[order]), weight))
        return float(values[order[min(at, len(order) - 1)]])

    @cached_property
    def _binned(self) -> tuple[IntArray, FloatArray]:
        """Of each value its bin (V,), and the weight up to each bin."""
        low, high = self.values.min(), self.values.max()
        bins = ((self.values - low) * (_MANY / max(high - low, 1e-300))).astype(np.int64)
        return bins, np.cumsum(np.bincount(bins, self.weights))

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


class Lines:
    """Numbers that depend on one other, linear between points that all rows share.

    Args:
        points: ascending, two at least (P,).
        values: of each row, of one quantity or of several (..., R, P).
    """

    __slots__ = ("_last", "_points", "_rise", "_values")

    def __init__(self, points: FloatArray, values: FloatArray) -> None:
        self._points, self._values = points, values
        self._rise = np.diff(values, axis=-1) / np.diff(points)
        self._last = len(points) - 2

    def at(self, row: IntArray, x: FloatArray) -> FloatArray:
        """Of rows at values, of shapes that go together, also beyond the points (..., *x)."""
        at = np.searchsorted(self._points, x, side="right") - 1
        at = np.minimum(np.maximum(at, 0), self._last)
        beyond = x - self._points[at]
        return np.asarray(self._values[..., row, at] + beyond * self._rise[..., row, at])


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


_FINEST = 1000


def grouped_rows(
    values: FloatArray, law: FloatArray, edges: tuple[float, ...]
) -> tuple[FloatArray, FloatArray]:
    """Means and weights of groups of each row of ascending values (M, V), (M, A) each.

    A point is in one group as a whole, so that few points stay what they are.

    Args:
        edges: of groups, by share of the weight of a row, which is 1, in thousandths (A + 1,).
    """
    n_groups = len(edges) - 1
    middle = (np.cumsum(law, axis=1) - law / 2.0).ravel()
    finest = np.searchsorted(edges[1:-1], (np.arange(_FINEST + 1) + 0.5) / _FINEST)
    group = finest[np.minimum((middle * _FINEST).astype(np.int64), _FINEST)]
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
    width = np.diff(edges)
    first = np.interp(edges[:-1], below, np.arange(len(below)))  # of what has no width, its edge
    means = np.where(width > 0.0, np.diff(at) / np.maximum(width, 1e-300), first)
    return np.where(means < _NONE, 0.0, means)  # who is idle has exactly none, sums rounded or not
