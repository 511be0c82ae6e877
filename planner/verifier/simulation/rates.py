"""Replicas at a rate: requests that are alike, come at random times and are served one by one.

Who plans asks this of its own simulation, who judges of the plain one here.
"""

from dataclasses import replace

from planner.results.arrivals import Load, Percentile
from planner.specs.records.roles import LEAST_PRESENT, PREFILL, Station
from planner.specs.traffic.distributions import FixedTokens
from planner.specs.traffic.lengths import IndependentLengths
from planner.specs.traffic.percentiles import TPOT, TTFT
from planner.specs.traffic.records import Arriving, TrafficClass
from planner.verifier.simulation.fleets import Simulation, simulate, simulate_steady
from planner.verifier.simulation.outcomes import FleetOutcome
from planner.verifier.simulation.pools import ClassLoad, ListedRequests, Pool, Requests, Route

SHARES = (0.5, 0.95, 0.99)
"""Percentiles that are told."""

N_REQUESTS = 10_000
"""That are served at a rate, at least."""

_N_FILLS, _FEWEST, _NAME = 4, 64, "all"


def load_at(
    station: Station,
    requests_per_s: float,
    *,
    n_input_tokens: int,
    n_output_tokens: int,
    yields: float = 1.0,
    n_replicas: int = 1,
    seed: int = 0,
    simulation: Simulation = simulate,
) -> Load:
    """What so many requests a second do at replicas, each given to the one with the fewest.

    Args:
        station: a rank of one of them.
        n_input_tokens: that it reads of a prompt.
        n_output_tokens: of an answer.
        yields: of these, in a pass.
        simulation: `simulate`, or what answers as it does.
    """
    writes = n_output_tokens > 1 and station.role != PREFILL
    n_passes = max(1, round((n_output_tokens - 1) / yields)) if writes else 0
    request, n_ranks = (n_input_tokens, n_passes + 1), n_replicas * station.n_ranks
    most = n_ranks * saturated_per_s(station, *request, simulation=simulation)
    load = Load(requests_per_s=requests_per_s, most_requests_per_s=most, station=station)
    if requests_per_s >= most:
        return load
    n_input, n_output = (FixedTokens(n_tokens=n) for n in request)
    lengths = IndependentLengths(input=n_input, output=n_output)
    outcome = simulate_steady(
        [Pool(name=_NAME, station=station, n_replicas=n_replicas, router=LEAST_PRESENT)],
        [_class(TrafficClass(name=_NAME, models=(), rate_per_s=requests_per_s, lengths=lengths))],
        n_requests=N_REQUESTS,
        seed=seed,
        shares=SHARES,
        simulation=simulation,
    )
    return _load(load, outcome, n_passes / max(1, n_output_tokens - 1), n_ranks)


def saturated_per_s(
    station: Station, n_input: int, n_output: int, *, simulation: Simulation = simulate
) -> float:
    """Requests a second that one rank ends where others always wait [1/s].

    Those who come more slowly are served in the long run, whatever their times: the saturation
    rule [Baccelli1995]. All come at once; what it takes to fill and to empty the rank is the same
    for twice as many.
    """
    n = max(_FEWEST, _N_FILLS * station.most_running)
    alone = Pool(name=_NAME, station=replace(station, n_ranks=1), n_replicas=1)
    once = Arriving(at_s=0.0, n_input=n_input, n_output=n_output)
    first_s, last_s = (
        simulation(
            [alone],
            [_class(ListedRequests(listed=[once] * many))],
            n_requests=many,
            n_batches=1,
            warm_up_share=0.0,
            wind_down_share=0.0,
        ).duration_s
        for many in (n, 2 * n)
    )
    return n / (last_s - first_s)


def _class(source: Requests) -> ClassLoad:
    return ClassLoad(name=_NAME, source=source, routes=(Route(pool=_NAME),))


def _load(load: Load, outcome: FleetOutcome, passes_a_token: float, n_ranks: int) -> Load:
    had, factors = outcome.of(_NAME), {TTFT: 1.0, TPOT: passes_a_token}
    return replace(
        load,
        n_in_flight=load.requests_per_s * had.e2e.mean_s.value / n_ranks,
        ttft_s=had.ttft.mean_s.value,
        tpot_s=passes_a_token * had.tpot.mean_s.value if passes_a_token else 0.0,
        percentiles=tuple(
            Percentile(
                quantity=name,
                share=share,
                at_most_s=None,
                simulated_s=factor * had.of(name).percentiles_s[share].value,
                half_width_s=factor * had.of(name).percentiles_s[share].half_width,
            )
            for name, factor in factors.items()
            for share in SHARES
            if factor
        ),
        simulated=outcome.simulated,
    )
