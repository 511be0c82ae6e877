"""`planner.fleet` and `planner.fleet_staircase`: what a program asks, and what it gets."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from planner.placing.asking import AnySite
from planner.placing.fleets.asking import fleet_request
from planner.placing.fleets.planning import fleet as find
from planner.results.fleets import FleetPlan, FleetStaircase, Round, Step
from planner.specs.ask.fleet import FleetRequest
from planner.specs.traffic.reading import load_traffic
from planner.specs.traffic.records import FleetTraffic, TrafficClass
from planner.specs.validation.arguments import arguments_checked, conformed

SaidTraffic = FleetTraffic | TrafficClass | str | Path | Sequence[TrafficClass]

_OWN = ("traffic", "site", "engines")


@arguments_checked(ranges="later")
def fleet(
    traffic: SaidTraffic,
    cluster: AnySite | None = None,
    engine: str | Sequence[str] | None = None,
    *,
    on_round: Callable[[Round], None] | None = None,
    **keywords: Any,  # noqa: ANN401
) -> FleetPlan:
    """Choose pools of replicas for traffic, provably cheapest, and try them by simulation.

    Args:
        traffic: a class or several, see `traffic_class`; or a file of them, or what `load_traffic`
            makes of one.
        cluster: what may serve, as `place` takes it, where the traffic says nothing of it.
        engine: `vllm`, `sglang`, `trtllm`; of several each replica has the best.
        on_round: called with each solution and what the simulation says of it.
        keywords: further arguments of `asking.fleet_request`: `roles`, `limits`, …

    Raises:
        RequestError: it cannot be asked; every problem is listed.
        NoPlanError: nothing can be served.
        OutOfTimeError: the time limit ended before a first fleet.
        SolverError: provers contradict each other.
    """
    return find(_request(traffic, cluster, engine, keywords), on_round=on_round)


@arguments_checked(ranges="later")
def fleet_staircase(
    traffic: SaidTraffic,
    cluster: AnySite | None = None,
    engine: str | Sequence[str] | None = None,
    *,
    lowest_per_s: float,
    highest_per_s: float,
    workers: int = 1,
    on_step: Callable[[Step], None] | None = None,
    **keywords: Any,  # noqa: ANN401
) -> FleetStaircase:
    """The least rent over traffic, step by step, with each breakpoint proved.

    Args:
        traffic, cluster, engine, keywords: as `fleet` takes them; the classes keep their shares.
        lowest_per_s, highest_per_s: requests of all classes together [1/s].
        workers: processes.
        on_step: called with each step as it is proved.

    Raises:
        RequestError: it cannot be asked; every problem is listed.
    """
    from planner.placing.fleets.choosing.staircase import staircase

    return staircase(
        _request(traffic, cluster, engine, keywords),
        lowest_per_s=lowest_per_s,
        highest_per_s=highest_per_s,
        workers=workers,
        on_step=on_step,
    )


def _request(
    traffic: SaidTraffic,
    cluster: AnySite | None,
    engine: str | Sequence[str] | None,
    given: dict[str, Any],
) -> FleetRequest:
    keywords = conformed(given, fleet_request, without=_OWN)
    return fleet_request(_traffic_of(traffic), site=cluster, engines=engine, **keywords)


def _traffic_of(said: SaidTraffic) -> FleetTraffic:
    if isinstance(said, FleetTraffic):
        return said
    if isinstance(said, str | Path):
        return load_traffic(said)
    return FleetTraffic(classes=(said,) if isinstance(said, TrafficClass) else tuple(said))
