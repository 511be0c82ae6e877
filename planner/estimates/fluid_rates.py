"""What kinds of pass a station may have, and how much it serves at most by any scheduler."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.pass_times import PassTimes
from planner.specs.records.roles import DECODE, PREFILL, Station


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


_STEPS, _SETTLED = 60, 1e-9
_N_CONTEXTS = 6


def fluid_rates(stations: Sequence[Station], loads: Sequence[Load]) -> FloatArray:
    """Requests a second of each load beyond which no scheduler serves them on stations (K, L).

    Passes of any kind may be mixed in any shares y_i of the time: each decodes n_i ≤ N tokens and
    reads p_i ≤ B tokens of prompts in T_i. Of λ requests a second

        Σ y_i ≤ 1,    Σ y_i n_i / T_i ≥ λ E[rounds],    Σ y_i p_i / T_i ≥ λ E[input]

    Its dual has one price w of a token that is written against one that is read:

        λ ≤ max_i (w n_i / E[rounds] + (1 − w) p_i / E[input]) / T_i    for every w in 0 … 1

    of which the least is taken. T is linear between the points of its tables, so that the maximum
    is at these, at N and at B. N is the least of the places and of the room over the bytes that a
    sequence holds on average over its passes: Σ held ≤ room at all times, so on average too.
    Contexts and spans are at their means, which is no more than the mean of the times wherever
    time is convex in them, as attention is.
    """
    rates = np.zeros((len(stations), len(loads)))
    for rows in alike_stations(stations):
        n_points = _MOST_POINTS // len(loads)
        for some in np.array_split(rows, -(-len(rows) * _n_passes(stations[rows[0]]) // n_points)):
            rates[some] = _rates_of([stations[i] for i in some.tolist()], loads)
    return rates


_MOST_POINTS = 1 << 18
"""Passes that are timed at once, of all stations and loads together: they stay in a cache."""


def alike_stations(stations: Sequence[Station]) -> list[IntArray]:
    """Numbers of stations of which passes are of the same kinds."""
    groups: dict[Hashable, list[int]] = {}
    for i, station in enumerate(stations):
        key: list[Hashable] = [station.role, station.mixes_prefill, station.chunk_tokens]
        if station.decode is not None:
            key += [station.decode.n_sequences, station.decode.context_tokens]
        if (it := station.reading) is not None:
            key += [it.n_sequences, it.prompt_tokens, it.span_tokens]
        groups.setdefault(tuple(key), []).append(i)
    return [np.array(rows) for rows in groups.values()]


def _n_passes(station: Station) -> int:
    """Kinds of pass that are looked at, about."""
    decodes = len(station.decode.n_sequences) + 2 if station.decode else 1
    return decodes * (len(station.reading.prompt_tokens) if station.reading else 1)


def _rates_of(stations: Sequence[Station], loads: Sequence[Load]) -> FloatArray:
    """Of stations whose passes are of the same kinds (K, L)."""
    rounds = np.array([it.mean_rounds for it in loads])
    inputs = np.array([it.mean_input for it in loads])
    decodes, reads = rounds > 0.0, stations[0].role != DECODE
    decodes &= stations[0].role != PREFILL
    n, tokens, took = _passes(stations, loads, decodes)
    with np.errstate(divide="ignore", invalid="ignore"):  # of loads that decode nothing
        written = np.where(decodes[:, None, None], n / rounds[:, None, None], 0.0) / took
        read = tokens / inputs[:, None, None] / took
    shape = (len(stations) * len(loads), -1)
    at_one = np.broadcast_to(written, took.shape).reshape(shape)
    at_none = np.broadcast_to(read, took.shape).reshape(shape)
    if not reads:
        rates = at_one.max(axis=1)
    else:
        rates = at_none.max(axis=1)
        both = np.flatnonzero(np.tile(decodes, len(stations)))
        rates[both] = _least_of_lines(at_one[both], at_none[both])
    return np.asarray(rates.reshape(len(stations), len(loads)))


def _least_of_lines(at_one: FloatArray, at_none: FloatArray) -> FloatArray:
    """Least over w in 0 … 1 of the highest of the lines that these are the ends of (M, P), (M,).

    The highest line at either end of an interval bounds the least from below where both meet, and
    is taken there next [Kelley1960].
    """
    low, high = at_none.argmax(axis=1), at_one.argmax(axis=1)
    rows = np.arange(len(at_one))
    least = np.minimum(at_none[rows, low], at_one[rows, high])
    for _ in range(_STEPS):
        falls, rises = (at_one[rows, it] - at_none[rows, it] for it in (low[rows], high[rows]))
        goes_on = (falls < 0.0) & (rises > 0.0)
        rows, falls, rises = rows[goes_on], falls[goes_on], rises[goes_on]
        if not len(rows):
            break
        under, over = at_none[rows, low[rows]], at_none[rows, high[rows]]
        price = (under - over) / (rises - falls)
        values = at_none[rows] + price[:, None] * (at_one[rows] - at_none[rows])
        top = values.argmax(axis=1)
        every = np.arange(len(rows))
        highest, lowest = values[every, top], values[every, low[rows]]
        least[rows] = np.minimum(least[rows], highest)
        does_rise = at_one[rows, top] > at_none[rows, top]
        high[rows], low[rows] = (
            np.where(does_rise, top, high[rows]),
            np.where(does_rise, low[rows], top),
        )
        rows = rows[highest > lowest * (1.0 + _SETTLED)]
    return np.asarray(least)


def _passes(
    stations: Sequence[Station], loads: Sequence[Load], decodes: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Decodes, tokens of prompts and time of each kind of pass that there may be (K, L, N, P).

    Those that there are not do nothing, in a second.
    """
    station, times = stations[0], PassTimes(stations)
    points, tokens = np.zeros(1), np.zeros(1)
    most = np.zeros((len(stations), len(loads), 1))
    if station.decode is not None:
        held = np.where(decodes, [it.mean_context for it in loads], 1.0)
        most[..., 0] = np.where(decodes, _roomy(stations, held), 0.0)
        beside = station.reading.n_sequences if station.reading else ()
        points = np.unique([0.0, *station.decode.n_sequences, *beside])
    if station.role != DECODE and station.reading is not None:
        tokens = _upto(station.reading.prompt_tokens, float(station.chunk_tokens))
    n = np.concatenate([np.minimum(points, most), most], axis=2)[..., None]
    context, span = (
        np.array([getattr(it, name) for it in loads]) for name in ("mean_context", "mean_span")
    )
    lanes = np.array([it.n_lanes for it in stations])[:, None, None, None]
    took = times.decode_s(n, context[:, None, None]) + (
        times.read_s(n, tokens, span[:, None, None]) / lanes
    )
    real = took > 0.0
    if not station.mixes_prefill:
        real &= ~decodes[:, None, None] | (n == 0.0) | (tokens == 0.0)
    return np.where(real, n, 0.0), np.where(real, tokens, 0.0), np.where(real, took, 1.0)


def done_per_s(station: Station, shortest: float, longest: float) -> FloatArray:
    """What each kind of pass does in a second, all ranks together (P, 4).

    Sequences that it decodes, tokens of prompts that it reads, and the tokens that the ones and the
    others attend to. T and these are linear in each of n, context, tokens and span between the
    points of its tables: no other pass does more of any mixture than one of these. Between two
    contexts there are as many sequences as have room at the shorter.

    Args:
        shortest, longest: tokens that a sequence has cached.
    """
    n, contexts, most = _decoding(station, shortest, longest)
    tokens, spans = np.zeros(1), np.zeros(1)
    if station.role != DECODE and station.reading is not None:
        tokens = _upto(station.reading.prompt_tokens, float(station.chunk_tokens))
        spans = _upto(station.reading.span_tokens, longest)
    times = PassTimes([station])
    decode_s = times.decode_s(n[None, :, None], contexts)[0]
    read_s = times.read_s(n[None, :, None, None], tokens[:, None], spans)[0] / station.n_lanes
    took_s = decode_s[:, :, None, None] + read_s[:, None]
    axes = np.meshgrid(n, contexts, tokens, spans, indexing="ij")
    real = (axes[0] <= most[None, :, None, None]) & (took_s > 0.0)
    if station.role != DECODE and not station.mixes_prefill:
        real &= (axes[0] == 0.0) | (axes[2] == 0.0)
    beside, cached, read, span = (it[real] for it in axes)
    did = np.stack([beside, read, beside * cached, read * span], axis=1)
    return np.asarray(did / took_s[real][:, None] * station.n_ranks)


def _decoding(
    station: Station, shortest: float, longest: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sequences that decode (N,), their contexts, and the most that there may be at each (C,)."""
    if station.role == PREFILL or station.decode is None:
        return np.zeros(1), np.zeros(1), np.zeros(1)
    inside = [it for it in station.decode.context_tokens if shortest < it < longest]
    between = np.geomspace(shortest, longest, _N_CONTEXTS)
    contexts = np.unique([shortest, longest, *inside, *between])
    most = _roomy([station], np.array([shortest, *contexts[:-1]]))[0]
    points = {*station.decode.n_sequences, *(station.reading or station.decode).n_sequences}
    return _upto([*points, *most.tolist()], float(most[0])), contexts, most


def _upto(points: Sequence[float], most: float) -> FloatArray:
    """Points up to the last that there may be, and none."""
    return np.unique([0.0, *(it for it in points if it < most), most])


def _roomy(stations: Sequence[Station], contexts: FloatArray) -> FloatArray:
    """Sequences of so many cached tokens that decode at once at most (K, C)."""
    names = ("room_bytes", "sequence_bytes", "token_bytes", "most_running")
    room, fixed, each, most = (
        np.array([[float(getattr(it, name))] for it in stations]) for name in names
    )
    held = fixed + each * contexts
    with np.errstate(divide="ignore", invalid="ignore"):
        roomy = np.where(held > 0.0, room / held, np.inf)
    return np.asarray(np.clip(roomy, 1.0, most))
