"""What kinds of pass a station may have, and how much it serves at most by any scheduler."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.queues.loads import Load
from planner.estimates.queues.passes import PassTimes
from planner.specs.roles import DECODE, PREFILL
from planner.specs.stations import Station

_STEPS, _SETTLED = 60, 1e-9
_N_CONTEXTS = 6


def fluid_rate(station: Station, load: Load) -> float:
    """Requests a second beyond which no scheduler serves them on this station [1/s].

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
    decodes, reads = _does(station, load)
    n, tokens, took = _passes(station, load)
    written = n / load.mean_rounds if decodes else np.zeros_like(n)
    read = tokens / load.mean_input
    if not decodes or not reads:
        return float(np.max((read if reads else written) / took))
    return _least_of_lines(written / took, read / took)


def _does(station: Station, load: Load) -> tuple[bool, bool]:
    """Whether it decodes any of a load, and whether it reads prompts."""
    return station.role != PREFILL and load.mean_rounds > 0.0, station.role != DECODE


def _least_of_lines(at_one: FloatArray, at_none: FloatArray) -> float:
    """Least over w in 0 … 1 of the highest of the lines that these are the ends of (P,).

    The highest line at either end of an interval bounds the least from below where both meet, and
    is taken there next [Kelley1960].
    """
    low, high = int(np.argmax(at_none)), int(np.argmax(at_one))
    least = min(float(at_none[low]), float(at_one[high]))
    for _ in range(_STEPS):
        falls, rises = at_one[low] - at_none[low], at_one[high] - at_none[high]
        if falls >= 0.0 or rises <= 0.0:
            break
        price = float((at_none[low] - at_none[high]) / (rises - falls))
        values = at_none + price * (at_one - at_none)
        top = int(np.argmax(values))
        least = min(least, float(values[top]))
        if values[top] <= values[low] * (1.0 + _SETTLED):
            break
        if at_one[top] > at_none[top]:
            high = top
        else:
            low = top
    return least


def _passes(station: Station, load: Load) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Decodes, tokens of prompts and time of each kind of pass that there may be (P,)."""
    decodes, reads = _does(station, load)
    times = PassTimes(station)
    n, tokens = np.zeros(1), np.zeros(1)
    if decodes and station.decode is not None:
        most = _most_held(station, load)
        points = np.array(station.decode.n_sequences, dtype=float)
        if station.reading is not None:
            points = np.append(points, station.reading.n_sequences)
        n = np.unique(np.append(points[points < most], [0.0, most]))
    if reads and station.reading is not None:
        chunk = float(station.chunk_tokens)
        points = np.array(station.reading.prompt_tokens)
        tokens = np.unique(np.append(points[points < chunk], [0.0, chunk]))
    beside, read = (x.ravel() for x in np.meshgrid(n, tokens, indexing="ij"))
    if decodes and not station.mixes_prefill:
        beside, read = np.append(n, 0.0 * tokens), np.append(0.0 * n, tokens)
    took = times.decode_s(beside, load.mean_context) if decodes else 0.0 * beside
    took = took + times.read_s(beside, read, load.mean_span) / station.n_lanes
    real = took > 0.0
    return beside[real], read[real], took[real]


def _most_held(station: Station, load: Load) -> float:
    """Sequences that decode at once at most, whatever is reserved."""
    cached = load.n_input + load.n_output / 2.0
    return _roomy(station, load.mean(load.n_rounds * cached) / load.mean_rounds)


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
    times = PassTimes(station)
    decode_s = np.stack([times.decode_s(n, it) for it in contexts.tolist()], axis=1)
    read_s = times.read_s(n[:, None, None], tokens[None, :, None], spans) / station.n_lanes
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
    most = np.array([_roomy(station, it) for it in (shortest, *contexts[:-1].tolist())])
    points = {*station.decode.n_sequences, *(station.reading or station.decode).n_sequences}
    return _upto([*points, *most.tolist()], float(most[0])), contexts, most


def _upto(points: Sequence[float], most: float) -> FloatArray:
    """Points up to the last that there may be, and none."""
    return np.unique([0.0, *(it for it in points if it < most), most])


def _roomy(station: Station, context: float) -> float:
    """Sequences of so many cached tokens that decode at once at most."""
    held = station.held_bytes(context)
    roomy = station.room_bytes / held if held > 0.0 else np.inf
    return float(np.clip(roomy, 1.0, station.most_running))
