"""Fleets, request by request: what pools of replicas do with classes of traffic; and at a rate.

At a rate requests are alike, come at random times and are served one by one: who plans asks this
of its own simulation, who judges of the plain one here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from planner.results.arrivals import Load, Percentile
from planner.specs.records.roles import LEAST_PRESENT, PREFILL, Station
from planner.specs.traffic.distributions import FixedTokens
from planner.specs.traffic.lengths import IndependentLengths
from planner.specs.traffic.percentiles import TPOT, TTFT
from planner.specs.traffic.records import Arriving, TrafficClass
from planner.verifier.simulation import outcomes
from planner.verifier.simulation.outcomes import SHARES, FleetOutcome, estimate
from planner.verifier.simulation.pools import (
    ClassLoad,
    ListedRequests,
    Pool,
    Ranks,
    Requests,
    Route,
)
from planner.verifier.simulation.runs import Run
from planner.verifier.simulation.workers import Workers

N_BATCHES = 20
WARM_UP_SHARE = 0.1
WIND_DOWN_SHARE = 0.02


def simulate(
    pools: Sequence[Pool],
    classes: Sequence[ClassLoad],
    *,
    n_requests: int,
    seed: int = 0,
    n_batches: int = N_BATCHES,
    warm_up_share: float = WARM_UP_SHARE,
    wind_down_share: float = WIND_DOWN_SHARE,
    shares: Sequence[float] = SHARES,
) -> outcomes.FleetOutcome:
    """Serve requests, and say what became of them.

    Args:
        pools: of replicas.
        classes: what is sent to them; all that comes is served to its end.
        n_requests: of all classes together; sources may end earlier.
        seed: of lengths, arrivals and routers.
        n_batches: that intervals are made of.
        warm_up_share, wind_down_share: of the requests, the first and the last, which are not
            counted; 0 and 0 for a finite run.
        shares: of percentiles.

    Raises:
        ValueError: a prompt has no route.
    """
    n_first, n_last = int(n_requests * warm_up_share), int(n_requests * wind_down_share)
    n_counted = n_requests - n_first - n_last
    n_batches = max(1, min(n_batches, n_counted))
    edges = [n_first + n_counted * b // n_batches for b in range(n_batches + 1)]
    run = Run(pools, classes, n_requests, seed)
    run.serve(edges)
    return outcomes.FleetOutcome(
        classes=tuple(_class_outcome(run, number, edges, shares) for number in range(len(classes))),
        pools=tuple(_pool_outcome(run.workers, ranks) for ranks in run.workers.pools.values()),
        n_requests=len(run.arrived_s),
        n_warm_up=n_first,
        n_wind_down=max(0, len(run.arrived_s) - edges[-1]),
        n_batches=n_batches,
        seed=seed,
        duration_s=run.workers.duration_s,
        ways={
            (load.name, pool): partial(_class_outcome, run, number, edges, shares, pool)
            for number, load in enumerate(classes)
            for pool in dict.fromkeys(route.pool for route in load.routes)
            if len(load.routes) > 1
        },
    )


def _class_outcome(
    run: Run, number: int, edges: Sequence[int], shares: Sequence[float], pool: str | None = None
) -> outcomes.ClassOutcome:
    """What became of a class; of those of its requests that were sent to a pool, if one is said."""
    log, load, n = run.workers.log, run.classes[number], len(run.arrived_s)
    batches = [
        [
            request
            for request in range(min(low, n), min(high, n))
            if (not log.of_class or log.of_class[request] == number)
            and (pool is None or run.route_of[request].pool == pool)
        ]
        for low, high in pairwise(edges)
    ]
    return outcomes.class_outcome(
        load.name,
        batches,
        [batch[number] for batch in run.workers.gaps[1:-1]],
        log=log,
        arrived_s=run.arrived_s,
        goodput=load.goodput,
        shares=shares,
    )


def _pool_outcome(workers: Workers, ranks: Ranks) -> outcomes.PoolOutcome:
    spans = [after - before for before, after in pairwise(workers.edge_s)]
    busy = [sum(of_ranks[one] for one in ranks.numbers) for of_ranks in workers.busy_s]
    shares = [
        (after - before) / span / len(ranks.numbers)
        for (before, after), span in zip(pairwise(busy), spans, strict=True)
        if span > 0.0
    ]
    whole = sum(spans) * len(ranks.numbers)
    return outcomes.PoolOutcome(
        name=ranks.pool.name,
        utilisation=estimate((busy[-1] - busy[0]) / whole if whole else math.nan, shares),
        n_begun_again=sum(one.n_begun_again for one in ranks.ranks),
    )


N_STAYS = 2.0
"""Mean stays of the requests that stay longest, which are not counted at first; one at last."""

MOST_REQUESTS = 1_000_000
"""That a run is lengthened to."""

_MOST_RUNS = 4

Simulation = Callable[..., outcomes.FleetOutcome]


def simulate_steady(
    pools: Sequence[Pool],
    classes: Sequence[ClassLoad],
    *,
    n_requests: int,
    seed: int,
    shares: Sequence[float],
    simulation: Simulation = simulate,
) -> outcomes.FleetOutcome:
    """Serve requests, and as many more as fill the fleet before the first that is counted.

    Args:
        pools, classes, seed, shares: as `simulate` takes them.
        n_requests: at least; of those that are counted there are never fewer.
        simulation: `simulate`, or what answers as it does.
    """
    n_counted = n_requests - int(n_requests * WARM_UP_SHARE) - int(n_requests * WIND_DOWN_SHARE)
    outcome = simulation(pools, classes, n_requests=n_requests, seed=seed, shares=shares)
    for _ in range(_MOST_RUNS - 1):
        stay = _requests_of_a_stay(classes, outcome)
        n_first, n_last = math.ceil(N_STAYS * stay), math.ceil(stay)
        whole = n_first + n_counted + n_last
        if outcome.n_warm_up >= n_first or not outcome.n_requests < whole <= MOST_REQUESTS:
            break
        outcome = simulation(
            pools,
            classes,
            n_requests=whole,
            seed=seed,
            warm_up_share=n_first / whole,
            wind_down_share=n_last / whole,
            shares=shares,
        )
    return outcome


def _requests_of_a_stay(classes: Sequence[ClassLoad], outcome: outcomes.FleetOutcome) -> float:
    """Requests of all classes that come while one stays, of the class that stays longest."""
    stays = [outcome.of(one.name).e2e.mean_s.value for one in classes]
    longest = max((stay for stay in stays if math.isfinite(stay)), default=0.0)
    return longest * outcome.n_requests / outcome.duration_s if outcome.duration_s else 0.0


LOAD_SHARES = (0.5, 0.95, 0.99)
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
    later: float = 1.0,
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
        later: how many times longer than simulated a first token takes, which delays no other.
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
        shares=LOAD_SHARES,
        simulation=simulation,
    )
    return _load(load, outcome, n_passes / max(1, n_output_tokens - 1), later, n_ranks)


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


def _load(
    load: Load, outcome: FleetOutcome, passes_a_token: float, later: float, n_ranks: int
) -> Load:
    had, factors = outcome.of(_NAME), {TTFT: later, TPOT: passes_a_token}
    ttft_s = had.ttft.mean_s.value
    stay_s = had.e2e.mean_s.value + (later - 1.0) * ttft_s
    return replace(
        load,
        n_in_flight=load.requests_per_s * stay_s / n_ranks,
        ttft_s=later * ttft_s,
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
            for share in LOAD_SHARES
            if factor
        ),
        simulated=outcome.simulated,
    )
