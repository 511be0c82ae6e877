"""What replicas do at a rate, served again: the station point by point, the requests one by one."""

from __future__ import annotations

from dataclasses import replace

from planner.results.arrivals import Load
from planner.verifier.findings import Finding, differences
from planner.verifier.fleets.stations import Ground, counted_station
from planner.verifier.serving.ranks import Rank
from planner.verifier.serving.rounds import Served
from planner.verifier.simulation.rates import load_at


def counted_load(
    says: Load | None,
    rank: Rank,
    served: Served,
    requests_per_s: float,
    *,
    slower: float = 1.0,
    later: float = 1.0,
    n_replicas: int = 1,
    seed: int = 0,
) -> tuple[Load | None, list[Finding]]:
    """The load that is true of replicas, and what of its station cannot be.

    Args:
        slower, later: how many times longer than predicted passes are planned.
    """
    if says is None:
        fact = f"of {requests_per_s:g} requests a second is left out"
        return None, [Finding(path=("load",), says=None, fact=fact)]
    n_input, n_output = round(served.n_new_tokens), int(served.n_output_tokens)
    ground = Ground(
        rank=rank,
        served=served,
        n_input_tokens=float(n_input),
        n_longest_tokens=n_input + n_output / served.n_yielded,
        slower=slower,
        later=later,
    )
    station, wrong = counted_station(says.station, ground)
    if wrong or any(differences(says.station, station)):  # nothing is served by what is not so
        truth = replace(says, requests_per_s=requests_per_s, station=station)
        return truth, [one.below(("load", "station")) for one in wrong]
    found = load_at(
        says.station,
        requests_per_s,
        n_input_tokens=n_input,
        n_output_tokens=n_output,
        yields=served.n_yielded,
        n_replicas=n_replicas,
        seed=seed,
    )
    return found, []
