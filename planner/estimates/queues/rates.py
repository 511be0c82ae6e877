"""How much a station serves at most: what no scheduler exceeds."""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.queues.loads import Load
from planner.estimates.queues.passes import PassTimes
from planner.specs.roles import DECODE, PREFILL
from planner.specs.stations import Station

_STEPS, _SETTLED = 60, 1e-9


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
    held = station.held_bytes(load.mean(load.n_rounds * cached) / load.mean_rounds)
    roomy = station.room_bytes / held if held > 0.0 else np.inf
    return float(np.clip(roomy, 1.0, station.most_running))
