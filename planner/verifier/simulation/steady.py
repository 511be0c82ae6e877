"""Fleets simulated for as long as it takes until they are as full as they stay.

What comes first finds a fleet that is empty, and is served faster than who comes later. A fleet is
full once requests have stayed in it a few times over: where that takes longer than what a run
leaves uncounted, the run is not steady, and says too little of every time. It is repeated with as
many more requests. Source: [Law2015] §9.5.1, the initial transient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from planner.verifier.simulation.fleets import WARM_UP_SHARE, WIND_DOWN_SHARE, simulate
from planner.verifier.simulation.loads import ClassLoad
from planner.verifier.simulation.outcomes import FleetOutcome
from planner.verifier.simulation.pools import Pool

N_STAYS = 2.0
"""Mean stays of the requests that stay longest, which are not counted at first; one at last."""

MOST_REQUESTS = 1_000_000
"""That a run is lengthened to."""

_MOST_RUNS = 4

Simulation = Callable[..., FleetOutcome]


def simulate_steady(
    pools: Sequence[Pool],
    classes: Sequence[ClassLoad],
    *,
    n_requests: int,
    seed: int,
    shares: Sequence[float],
    simulation: Simulation = simulate,
) -> FleetOutcome:
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


def _requests_of_a_stay(classes: Sequence[ClassLoad], outcome: FleetOutcome) -> float:
    """Requests of all classes that come while one stays, of the class that stays longest."""
    stays = [outcome.of(one.name).e2e.mean_s.value for one in classes]
    longest = max((stay for stay in stays if math.isfinite(stay)), default=0.0)
    return longest * outcome.n_requests / outcome.duration_s if outcome.duration_s else 0.0
