"""Fleets with room to spare, that a simulation soon confirms: what goes out if time ends.

Of each configuration the rate is taken at which no scheduler decodes more sequences at once than
its targets of TPOT leave time for, less what reading a prompt takes of its target of TTFT, and a
part of that. Nothing of it is proved, nor kept in the book.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.fluid_rates import alike_stations
from planner.estimates.pass_times import PassTimes
from planner.placing.configurations import AnyConfiguration
from planner.placing.fleets.candidate_sets import CandidateSet
from planner.placing.fleets.choosing.rate_cache import at_way
from planner.placing.fleets.choosing.searching import RENT, settled
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.request_classes import RequestClass
from planner.placing.fleets.solutions import Solution
from planner.specs.records.roles import DECODE, Station
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT

MARGINS = (2.0, 3.0, 5.0, 10.0)
"""Times the traffic that rates have to serve: the next where the one before is refuted."""


def roomy_fleet(
    market: CandidateSet, wider: Mapping[str, float], objective: str = RENT
) -> Solution:
    """The best fleet whose replicas serve so many times what they are taken for.

    Args:
        wider: margins of streams that need more than the least, by name.
    """
    rates = market.roomy
    if not all(id(one) in rates for one in market.offered.configurations):
        rates.update(_roomy_rates(market))

    def roomy(config: AnyConfiguration) -> AnyConfiguration:
        """By the way that serves most within its targets, at a part of its rate."""
        most, way = float(rates[id(config)].max()), int(np.argmax(rates[id(config)]))
        return at_way(config, most / wider.get(source_of(config).stream.name, MARGINS[0]), way)

    return settled(market, objective=objective, now=roomy)


def _roomy_rates(market: CandidateSet) -> dict[int, FloatArray]:
    """What each way of configurations serves, by their identity; of all of a model at once."""
    of_model: dict[str, list[AnyConfiguration]] = {}
    for one in market.offered.configurations:
        of_model.setdefault(market.streams[one.model].model.name, []).append(one)
    rates = {}
    for some in of_model.values():
        sources = [source_of(one) for one in some]
        stations = [*{id(it): it for one in sources for it in one.ways.stations}.values()]
        streams = [*dict.fromkeys(one.stream for one in sources)]
        decoded, unread = _decoded(stations, streams), _unread(stations, streams)
        row = {id(it): i for i, it in enumerate(stations)}
        number = {it: i for i, it in enumerate(streams)}
        for one, source in zip(some, sources, strict=True):
            at = [row[id(it)] for it in source.ways.stations], number[source.stream]
            rates[id(one)] = np.minimum(source.ways.bounds, decoded[at]) * unread[at]
    return rates


def _decoded(stations: Sequence[Station], streams: Sequence[RequestClass]) -> FloatArray:
    """Requests a second that are decoded in passes within the targets of TPOT (K, G)."""
    loads, rates = [it.load for it in streams], np.full((len(stations), len(streams)), np.inf)
    most_s = np.array([it.least_s(TPOT, ITL) for it in streams])
    rounds = np.array([it.mean_rounds for it in loads])
    context = np.array([[it.mean_context] for it in loads])
    is_held = np.isfinite(most_s) & (rounds > 0.0)
    for rows in alike_stations(stations):
        some = [stations[i] for i in rows.tolist()]
        if some[0].decode is None:
            continue
        points = some[0].decode.n_sequences
        n = np.array([[*points, it.most_running] for it in some], dtype=float)[:, None]
        took_s = PassTimes(some).decode_s(n, context)
        written = np.where(took_s <= most_s[:, None], n / took_s, 0.0).max(axis=2)
        n_ranks = np.array([[it.n_ranks] for it in some])
        with np.errstate(divide="ignore"):  # of who writes nothing more
            rates[rows] = np.where(is_held, written * n_ranks / rounds, np.inf)
    return rates


def _unread(stations: Sequence[Station], streams: Sequence[RequestClass]) -> FloatArray:
    """What is left of the target of TTFT once a prompt is read, as a share of it (K, G)."""
    shares = np.ones((len(stations), len(streams)))
    most_s = np.array([it.least_s(TTFT, E2E) for it in streams])
    n_input = np.array([it.load.mean_input for it in streams])
    span = np.array([it.load.mean_span for it in streams])
    for rows in alike_stations(stations):
        some, chunk = [stations[i] for i in rows.tolist()], stations[rows[0]].chunk_tokens
        if some[0].role == DECODE:
            continue
        read_s = PassTimes(some).read_s(np.zeros((len(some), 1)), np.minimum(n_input, chunk), span)
        shares[rows] = np.maximum(0.0, 1.0 - np.maximum(1.0, n_input / chunk) * read_s / most_s)
    return shares
