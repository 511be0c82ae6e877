"""A class of requests on a station: how long the passes take that decode it and that read it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.estimates.queues.laws import LOWER, UPPER, Law, Lines
from planner.estimates.queues.loads import Load
from planner.estimates.queues.passes import PassTimes
from planner.estimates.queues.room import Room
from planner.specs.roles import DECODE, PREFILL
from planner.specs.stations import Station

_POINTS = 20
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
        self.own = Own(load)
        self.times = times or PassTimes(station)
        self.decodes = station.role != PREFILL and load.mean_rounds > 0.0
        self.reads = station.role != DECODE
        self.mixes = station.mixes_prefill or not self.decodes

    def at(self, rate_per_s: float) -> Served:
        """The same that come as often as this, with all that does not depend on how often."""
        if self.decodes:
            _ = self.usual, self.room
        if self.reads:
            _ = self.reading_moments, self.prompt_points
        found = copy(self)
        found.load = self.load.at(rate_per_s)
        return found

    def judging(self, own: Own) -> Served:
        """The same, of which only these requests are judged."""
        found = copy(self)
        found.own = own
        return found

    def held_to(self, most_running: int) -> Served:
        """The same requests on a station with so many places."""
        return Served(replace(self.station, most_running=most_running), self.load, self.times)

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
        cv2 = self.load.mean(alone**2) / mean**2 - 1.0 if mean > 0.0 else 0.0
        return mean, max(1e-9, cv2)

    @cached_property
    def prompt_points(self) -> FloatArray:
        """Tokens of prompts between which a pass takes linearly longer, up to a chunk (P,)."""
        reading = self.station.reading
        points = np.array(reading.prompt_tokens if reading else (0.0, 1.0))
        return np.unique(np.append(points, [0.0, self.station.chunk_tokens]))

    def reads_s(self, n: FloatArray) -> Lines:
        """What a pass is longer while n decode (N,), by tokens of prompts of the mean span."""
        points = self.prompt_points
        return Lines(points, self.added_s(n[:, None], points, self.load.mean_span))

    @cached_property
    def room(self) -> Room:
        """For caches."""
        return Room(self.station, self.load)

    @cached_property
    def usual(self) -> Usual:
        """Passes beside as many as there may be, at points."""
        return Usual(
            self, np.unique(np.round(np.geomspace(1.0, self.station.most_running, _POINTS)))
        )

    def gathered_s(self, n: FloatArray, n_prompts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What prompts add that come at random to passes while n decode [s], and passes of each.

        Args:
            n: sequences that decode (N,).
            n_prompts: that are read together on average (N,).
        """
        usual = Usual(self, n)
        return usual.gathered_s(n_prompts), usual.passes

    def round_s(self, usual: Usual) -> FloatArray:
        """Mean time from one token to the next, with the prompts that come (N,) [s].

        The fixed point of T = D(n, c) + E[R(n, prompts that come in T)]; where the chunk is full,
        a pass that is full of prompts.
        """
        plain = usual.plain_s
        if not self.reads:
            return plain
        if not self.mixes:
            return self._between_looks_s(usual) / self.n_looks
        took = plain
        for _ in range(_ROUNDS):
            grown = plain + usual.gathered_s(self.load.rate_per_s * took)
            grown = np.minimum(usual.full_s, grown)
            if np.max(grown / took) < _SETTLED:
                break
            took = grown
        return took

    def _between_looks_s(self, usual: Usual) -> FloatArray:
        """From look to look, of an engine that reads whoever came before it decodes again (N,) [s].

        Passes read who came in those that decoded, then who came in that, and so on, each with the
        probability that anybody came.
        """
        plain = usual.plain_s * self.n_looks
        took, lasts, likely = plain, plain, np.ones_like(plain)
        for _ in range(_ROUNDS):
            comes = self.load.rate_per_s * lasts
            anybody = np.maximum(usual.any_comes(comes), 1e-12)
            lasts = usual.gathered_s(comes) / anybody
            likely = likely * anybody
            took = took + likely * lasts
            if np.max(likely * lasts / plain) < _SETTLED - 1.0:
                return took
        kept = np.minimum(anybody, 1.0 - 1.0 / _MOST_GROWN)
        took = took + likely * lasts * kept / (1.0 - kept)
        return np.asarray(np.minimum(took, _MOST_GROWN * plain))


class Own:
    """Lengths of the requests that are judged: of all that come, or of a group of them."""

    def __init__(self, load: Load) -> None:
        self._load = load

    @cached_property
    def inputs(self) -> Law:
        """Prompts, in groups that are finer where they are long."""
        return Law(self._load.n_input, self._load.weight).grouped(UPPER)

    @cached_property
    def answers(self) -> Law:
        """Passes that answers take, where they take any, finer where they are short."""
        rounds = self._load.n_rounds
        return Law(rounds, self._load.weight * (rounds > 0.0)).grouped(LOWER)

    @property
    def decodes(self) -> bool:
        """Whether any answer has two tokens."""
        return self._load.mean_rounds > 0.0


class Usual:
    """Passes beside n that decode, whatever the rate.

    Args:
        served: the requests and the station.
        n: sequences that decode (N,).

    `plain_s` and `full_s` are those that read nothing and a whole chunk [s], `chunk_tokens` what
    they read; `alone_s` is what a prompt adds by itself [s] and `passes` in how many, on average.
    """

    def __init__(self, served: Served, n: FloatArray) -> None:
        self.n = n
        self.plain_s = served.plain_s(n)
        self.chunk_tokens = served.chunk_tokens(n)
        self._n_input = served.load.mean_input
        if served.reads:
            self.full_s = served.full_s(n)
            self._reads_s, self._rows = served.reads_s(n), np.arange(len(n))
            self.alone_s, self.passes = (x @ served.load.weight for x in served.prompts_s(n))

    def any_comes(self, n_prompts: FloatArray) -> FloatArray:
        """Probability that there is anything to read of prompts that come at random (N,)."""
        return np.asarray(-np.expm1(-n_prompts * self.passes))

    def gathered_s(self, n_prompts: FloatArray) -> FloatArray:
        """What prompts add that come at random, no more than each by itself (N,) [s].

        Args:
            n_prompts: that are read together on average (N,).
        """
        any_comes = self.any_comes(n_prompts)
        tokens = n_prompts * self._n_input / np.maximum(any_comes, 1e-300)
        n_full = np.maximum(1.0, tokens / self.chunk_tokens)
        shared = n_full * self._reads_s.at(self._rows, tokens / n_full)
        return np.asarray(np.minimum(n_prompts * self.alone_s, any_comes * shared))
