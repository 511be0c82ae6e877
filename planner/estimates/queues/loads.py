"""What comes to a station: how often, and how long prompts and answers are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.equations.arrays import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Load:
    """Requests of one class that come to one station.

    Args:
        rate_per_s: of requests [1/s].
        n_input, n_output: tokens of the prompts and of the answers of each cell of lengths (K,).
        weight: share of all requests that each cell has (K,).

    Raises:
        ValueError: arrays of different lengths, none, or values that cannot be.
    """

    rate_per_s: float
    n_input: FloatArray
    n_output: FloatArray
    weight: FloatArray

    def __post_init__(self) -> None:
        names = ("n_input", "n_output", "weight")
        given = [np.asarray(getattr(self, name), dtype=float) for name in names]
        if len({x.shape for x in given}) > 1 or given[0].ndim != 1 or not len(given[0]):
            raise ValueError("cells need as many inputs as outputs and weights, and one at least")
        for name, value, least in zip(names, given, (1.0, 1.0, 0.0), strict=True):
            if not np.min(value) >= least:
                raise ValueError(f"a cell has fewer than {least:g} of {name}")
            object.__setattr__(self, name, value)
        if not min(self.rate_per_s, np.sum(self.weight) - 1e-300) >= 0.0:
            raise ValueError("no weight, or a negative rate")
        object.__setattr__(self, "weight", self.weight / np.sum(self.weight))

    def mean(self, values: FloatArray) -> float:
        """Over requests, of a value of each cell (K,)."""
        return float(self.weight @ values)

    @cached_property
    def n_rounds(self) -> FloatArray:
        """Passes in which each cell decodes (K,): the first token comes with its prompt."""
        return self.n_output - 1.0

    @cached_property
    def mean_rounds(self) -> float:
        return self.mean(self.n_rounds)

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
