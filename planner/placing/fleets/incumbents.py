"""Fleets with room to spare, that a simulation soon confirms: what goes out if time ends.

Of each configuration the rate is taken at which no scheduler decodes more sequences at once than
its targets of TPOT leave time for, less what reading a prompt takes of its target of TTFT, and a
part of that. Nothing of it is proved, nor kept in the book.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from planner.estimates.queues.passes import PassTimes
from planner.placing.fabrics.patterns import NodeConfiguration
from planner.placing.fleets.book import at_way
from planner.placing.fleets.chosen import Chosen
from planner.placing.fleets.market import Market
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.searching import RENT, settled
from planner.placing.fleets.streams import Stream
from planner.specs.roles import DECODE
from planner.specs.stations import Station
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT

MARGINS = (2.0, 3.0, 5.0, 10.0)
"""Times the traffic that rates have to serve: the next where the one before is refuted."""


def roomy_fleet(market: Market, margin: float, objective: str = RENT) -> Chosen:
    """The best fleet whose replicas serve so many times what they are taken for."""
    return settled(market, objective=objective, now=partial(_roomy, margin=margin))


def _roomy(one: NodeConfiguration, margin: float) -> NodeConfiguration:
    """A configuration by the way that serves most within its targets, at a part of its rate."""
    source = source_of(one)
    both = zip(source.ways.stations, source.ways.bounds, strict=True)
    rates = np.array(
        [min(b, _decoded(it, source.stream)) * _unread(it, source.stream) for it, b in both]
    )
    return at_way(one, float(rates.max()) / margin, int(np.argmax(rates)))


def _least(stream: Stream, *quantities: str) -> float:
    """The least that a target allows of some quantities [s]; inf without any."""
    limits = (one.target for one in stream.targets if one.target.quantity in quantities)
    return min((one.at_most_s for one in limits), default=math.inf)


def _decoded(station: Station, stream: Stream) -> float:
    """Requests a second that are decoded in passes within the targets of TPOT."""
    load, most_s = stream.load, _least(stream, TPOT, ITL)
    if station.decode is None or math.isinf(most_s) or load.mean_rounds <= 0.0:
        return math.inf
    n = np.append(station.decode.n_sequences, station.most_running).astype(float)
    took_s = PassTimes([station]).decode_s(n[None], np.array(load.mean_context))[0]
    written = float(np.where(took_s <= most_s, n / took_s, 0.0).max())
    return written * station.n_ranks / load.mean_rounds


def _unread(station: Station, stream: Stream) -> float:
    """What is left of the target of TTFT once a prompt is read, as a share of it."""
    load, most_s = stream.load, _least(stream, TTFT, E2E)
    if station.role == DECODE or math.isinf(most_s):
        return 1.0
    n_passes = max(1.0, load.mean_input / station.chunk_tokens)
    tokens, span = np.minimum(load.mean_input, station.chunk_tokens), np.array(load.mean_span)
    read_s = n_passes * float(PassTimes([station]).read_s(np.zeros(1), tokens, span)[0])
    return max(0.0, 1.0 - read_s / most_s)
