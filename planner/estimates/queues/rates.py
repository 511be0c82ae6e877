"""How much a station serves: what no scheduler exceeds, and where its own queue no longer ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.equations.arrays import FloatArray
from planner.estimates.queues.loads import Load
from planner.estimates.queues.served import Served
from planner.specs.roles import PREFILL
from planner.specs.stations import Station

_POINTS, _FEWEST = 32, 0.05
_STEPS, _SETTLED = 60, 1e-9


def stable_rate(station: Station, load: Load) -> float:
    """Requests that a station serves in a second while there are always some that wait [1/s].

    With n in the passes n / E[rounds] end with each, and as many prompts are read beside:

        λ(n) = n / (E[rounds] T(n)),    T(n) = D(n, c) + E[R(n, prompts of a pass, s)]

    for the best n that places, room and the chunk that decodes and prompts share allow. Where
    prompts are read alone, between looks r passes apart, T(n) = D(n, c) + E[R(0, …)] / r of the
    prompts of r passes. Where nothing decodes, or prompts fill the chunk before anything else is
    full, a chunk is read in each pass.
    """
    return kept_up_with(Served(station, load))


def kept_up_with(served: Served) -> float:
    """The same of requests and a station."""
    if not served.decodes:
        return _reading_rate(served, 0.0)
    most = _most_decoding(served.station, served.load)
    rates, fits, n = _rates(served, np.geomspace(_FEWEST, most, _POINTS))
    if not fits.all() and fits.any():  # the largest that fits is between two points
        last = int(np.flatnonzero(fits)[-1])
        best = float(np.max(rates[fits]))
        rates, fits, n = _rates(served, np.linspace(n[last], n[last + 1], _POINTS))
        return max(best, float(np.max(rates[fits])))
    return float(np.max(rates)) if fits.any() else _reading_rate(served, 1.0)


def _rates(served: Served, n: FloatArray) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Rates of as many decodes, whether places and the chunk allow that, and the decodes (N,)."""
    station, load = served.station, served.load
    ends = n / load.mean_rounds
    if not served.reads:
        return ends / served.plain_s(n), np.ones(len(n), dtype=bool), n
    read, passes = served.gathered_s(n, ends * served.n_looks)
    rates = ends / (served.plain_s(n) + read / served.n_looks)
    if not served.mixes:
        return rates, np.ones(len(n), dtype=bool), n
    has_places = n + ends * passes <= station.most_running
    return rates, has_places & (ends * load.mean_input <= served.chunk_tokens(n)), n


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
    return fluid_of(Served(station, load))


def fluid_of(served: Served) -> float:
    """The same of requests and a station."""
    load = served.load
    n, tokens, took = _passes(served)
    written = n / load.mean_rounds if served.decodes else np.zeros_like(n)
    read = tokens / load.mean_input
    if not served.decodes or not served.reads:
        return float(np.max((read if served.reads else written) / took))
    return _least_of_lines(written / took, read / took)


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


def _passes(served: Served) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Decodes, tokens of prompts and time of each kind of pass that there may be (P,)."""
    station, load = served.station, served.load
    n, tokens = np.zeros(1), np.zeros(1)
    if served.decodes and station.decode is not None:
        most = _most_held(station, load)
        points = np.array(station.decode.n_sequences, dtype=float)
        if station.reading is not None:
            points = np.append(points, station.reading.n_sequences)
        n = np.unique(np.append(points[points < most], [0.0, most]))
    if served.reads and station.reading is not None:
        chunk = float(station.chunk_tokens)
        points = np.array(station.reading.prompt_tokens)
        tokens = np.unique(np.append(points[points < chunk], [0.0, chunk]))
    beside, read = (x.ravel() for x in np.meshgrid(n, tokens, indexing="ij"))
    if not served.mixes:
        beside, read = np.append(n, 0.0 * tokens), np.append(0.0 * n, tokens)
    took = served.times.decode_s(beside, load.mean_context) if served.decodes else 0.0 * beside
    took = took + served.times.read_s(beside, read, load.mean_span) / station.n_lanes
    real = took > 0.0
    return beside[real], read[real], took[real]


def _most_held(station: Station, load: Load) -> float:
    """Sequences that decode at once at most, whatever is reserved."""
    cached = load.n_input + load.n_output / 2.0
    held = station.held_bytes(load.mean(load.n_rounds * cached) / load.mean_rounds)
    roomy = station.room_bytes / held if held > 0.0 else np.inf
    return float(np.clip(roomy, 1.0, station.most_running))


def _most_decoding(station: Station, load: Load) -> float:
    """Sequences that decode while there are always some that wait.

    What they hold and have reserved leaves half of a request's need empty on average.
    """
    reserved = station.reserved_fraction
    cached = load.n_input + (1.0 + reserved) * load.n_output / 2.0
    held = station.held_bytes(load.mean(load.n_rounds * cached) / load.mean_rounds)
    owed = 0.0 if station.role == PREFILL else reserved
    needed = station.held_bytes(load.mean(load.n_input + owed * load.n_output))
    roomy = (station.room_bytes - needed / 2.0) / held if held > 0.0 else np.inf
    return float(np.clip(roomy, 1.0, station.most_running))


def _reading_rate(served: Served, n: float) -> float:
    """Prompts that full chunks have, each beside n decodes."""
    return float(served.chunk_tokens(n) / served.load.mean_input / served.full_s(n))
