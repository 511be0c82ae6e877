"""A class of requests on a station: how long the passes take that decode it and that read it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.estimates.queues.loads import Load
from planner.estimates.queues.passes import PassTimes
from planner.specs.roles import DECODE, PREFILL
from planner.specs.stations import Station

_ROUNDS, _SETTLED = 60, 1.0003
_MOST_GROWN = 100.0
"""Where prompts that are read alone come faster than they are read, a pass has no end."""


class Served:
    """A station and its load. Contexts and spans are the means of the load.

    Of a pipeline's passes that read prompts, so many lanes are under way at once: each keeps the
    station from the next for its share of them only.
    """

    def __init__(self, station: Station, load: Load, times: PassTimes | None = None) -> None:
        self.station = station
        self.load = load
        self.times = times or PassTimes(station)
        self.decodes = station.role != PREFILL and load.mean_rounds > 0.0
        self.reads = station.role != DECODE
        self.mixes = station.mixes_prefill or not self.decodes

    @property
    def n_looks(self) -> int:
        """Decode passes between two looks for requests."""
        return 1 if self.mixes or not self.reads else self.station.n_polled_rounds

    def beside(self, n: ArrayLike) -> FloatArray:
        """Of n that decode, those in a pass that reads prompts."""
        decoding = np.asarray(n, dtype=float)
        return decoding if self.mixes and self.decodes else np.zeros_like(decoding)

    def chunk_tokens(self, n: ArrayLike) -> FloatArray:
        """Most tokens of prompts of a pass while n decode."""
        return np.maximum(1.0, self.station.chunk_tokens - self.beside(n))

    def plain_s(self, n: ArrayLike) -> FloatArray:
        """A pass that decodes n and reads nothing [s]."""
        if not self.decodes:
            return np.zeros_like(np.asarray(n, dtype=float))
        return self.times.decode_s(n, self.load.mean_context)

    def ridden_s(self, n: ArrayLike) -> FloatArray:
        """What decodes add to a pass that reads prompts while n decode [s]."""
        return self.plain_s(self.beside(n))

    def added_s(self, n: ArrayLike, tokens: ArrayLike, span: ArrayLike) -> FloatArray:
        """What a pass that reads so much keeps the station longer while n decode [s]."""
        return self.times.read_s(self.beside(n), tokens, span) / self.station.n_lanes

    def full_s(self, n: ArrayLike) -> FloatArray:
        """A pass that reads all that it may while n decode [s]."""
        return self.ridden_s(n) + self.added_s(n, self.chunk_tokens(n), self.load.mean_span)

    def prompts_s(self, n: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What each cell's prompt adds by itself while n decode [s], and in how many passes.

        Args:
            n: sequences that decode (N,).

        Returns:
            (N, K) each.
        """
        whole, decoding = self.load.n_input[None, :], n[:, None]
        most = self.chunk_tokens(decoding)
        n_full = np.ceil(whole / most) - 1.0
        rest = whole - n_full * most
        read = n_full * self.added_s(decoding, most, n_full * most / 2.0)
        return read + self.added_s(decoding, rest, whole - rest / 2.0), n_full + 1.0

    @cached_property
    def reading_moments(self) -> tuple[float, float]:
        """Mean of what a prompt takes by itself [s], and its squared coefficient of variation."""
        alone = self.prompts_s(np.zeros(1))[0][0]
        mean = self.load.mean(alone)
        return mean, max(1e-9, self.load.mean(alone**2) / mean**2 - 1.0)

    def gathered_s(self, n: FloatArray, n_prompts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What prompts add that come at random to passes while n decode [s], and passes of each.

        Args:
            n: sequences that decode (N,).
            n_prompts: that are read together on average (N,).
        """
        alone, passes = self.prompts_s(n)
        each = np.asarray(passes @ self.load.weight)
        return self._shared_s(n, n_prompts, alone @ self.load.weight, each), each

    def _shared_s(
        self, n: FloatArray, n_prompts: FloatArray, alone_s: FloatArray, passes: FloatArray
    ) -> FloatArray:
        """What prompts add together, no more than each by itself (N,) [s]."""
        any_comes = -np.expm1(-n_prompts * passes)
        tokens = n_prompts * self.load.mean_input / np.maximum(any_comes, 1e-300)
        n_full = np.maximum(1.0, tokens / self.chunk_tokens(n))
        shared = n_full * self.added_s(n, tokens / n_full, self.load.mean_span)
        return np.minimum(n_prompts * alone_s, any_comes * shared)

    def round_s(self, n: FloatArray) -> FloatArray:
        """Mean time from one token to the next while n decode, with the prompts that come (N,) [s].

        The fixed point of T = D(n, c) + E[R(n, prompts that come in T)]; where the chunk is full,
        a pass that is full of prompts.
        """
        plain = self.plain_s(n)
        if not self.reads:
            return plain
        most = self.full_s(n) if self.mixes else _MOST_GROWN * plain
        took = plain
        alone_s, passes = (x @ self.load.weight for x in self.prompts_s(n))
        for _ in range(_ROUNDS):
            prompts = self.load.rate_per_s * took * self.n_looks
            added = self._shared_s(n, prompts, alone_s, passes) / self.n_looks
            grown = np.minimum(most, plain + added)
            if np.max(grown / took) < _SETTLED:
                break
            took = grown
        return took
