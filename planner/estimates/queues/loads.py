"""What comes to a station: how often, and how long prompts and answers are."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray

Cells: TypeAlias = slice | BoolArray | IntArray
"""Some cells of a load: a part of them, which of them (K,), or their numbers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Load:
    """Requests of one class that come to one station.

    Args:
        rate_per_s: of requests [1/s].
        n_input, n_output: tokens of the prompts and of the answers of each cell of lengths (K,).
        weight: share of all requests that each cell has (K,).
        arrival_cv2: squared coefficient of variation of the times between arrivals; 1 of Poisson.
        n_alike: stations that a router keeps alike in number, of which this one gets its part, see
            `planner.estimates.queues.pooling`.

    Raises:
        ValueError: arrays of different lengths, none, or values that cannot be.
    """

    rate_per_s: float
    n_input: FloatArray
    n_output: FloatArray
    weight: FloatArray
    arrival_cv2: float = 1.0
    n_alike: int = 1

    def __post_init__(self) -> None:
        names = ("n_input", "n_output", "weight")
        given = [np.asarray(getattr(self, name), dtype=float) for name in names]
        if len({x.shape for x in given}) > 1 or given[0].ndim != 1 or not len(given[0]):
            raise ValueError("cells need as many inputs as outputs and weights, and one at least")
        for name, value, least in zip(names, given, (1.0, 1.0, 0.0), strict=True):
            if not np.min(value) >= least:
                raise ValueError(f"a cell has fewer than {least:g} of {name}")
            object.__setattr__(self, name, value)
        if not min(self.rate_per_s, self.arrival_cv2, np.sum(self.weight) - 1e-300) >= 0.0:
            raise ValueError("no weight, or a negative rate or cv²")
        object.__setattr__(self, "weight", self.weight / np.sum(self.weight))

    def at(self, rate_per_s: float) -> Load:
        """The same requests, that come as often as this."""
        if not rate_per_s >= 0.0:
            raise ValueError("no weight, or a negative rate or cv²")
        found = copy(self)  # with all that was found of the lengths
        object.__setattr__(found, "rate_per_s", rate_per_s)
        return found

    def mean(self, values: FloatArray) -> float:
        """Over requests, of a value of each cell (K,)."""
        return float(self.weight @ values)

    def only(self, cells: Cells) -> Load:
        """Requests of some cells, as often as these come.

        Raises:
            ValueError: there are none of these.
        """
        weight = self.weight[cells]
        if not np.sum(weight) > 0.0:
            raise ValueError("a group of requests that has none")
        return Load(
            rate_per_s=self.rate_per_s * float(np.sum(weight)),
            n_input=self.n_input[cells],
            n_output=self.n_output[cells],
            weight=weight,
            arrival_cv2=self.arrival_cv2,
            n_alike=self.n_alike,
        )

    @property
    def pool_cv2(self) -> float:
        """Of the arrivals of all that are alike together, of which this station has some."""
        return max(0.0, 1.0 + self.n_alike * (self.arrival_cv2 - 1.0))

    @cached_property
    def n_rounds(self) -> FloatArray:
        """Passes in which each cell decodes (K,): the first token comes with its prompt."""
        return self.n_output - 1.0

    @cached_property
    def mean_rounds(self) -> float:
        return self.mean(self.n_rounds)

    @cached_property
    def shared_stay(self) -> float:
        """κ: the mean of the shorter of two requests' rounds, over the mean of one's [1]."""
        if self.mean_rounds <= 0.0:
            return 1.0
        order = np.argsort(self.n_rounds)
        rounds, weight = self.n_rounds[order], self.weight[order]
        longer = 1.0 - np.cumsum(weight)
        return float((rounds * weight) @ (2.0 * longer + weight)) / self.mean_rounds

    @cached_property
    def mean_input(self) -> float:
        return self.mean(self.n_input)

    @cached_property
    def mean_context(self) -> float:
        """Tokens that a sequence has cached in a pass, over all passes that it decodes in."""
        if self.mean_rounds <= 0.0:
            return self.mean_input + 1.0
        cached = self.n_input + self.n_output / 2.0
        return self.mean(self.n_rounds * cached) / self.mean_rounds

    @cached_property
    def mean_span(self) -> float:
        """Tokens that one of a prompt attends to, over all of them: those before it."""
        return self.mean(self.n_input**2) / (2.0 * self.mean_input)
