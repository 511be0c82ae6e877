"""`plan fleet`: options or a file of traffic to pools of replicas, their answer to text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from planner.commands.options.parsing import STDOUT
from planner.commands.options.reading import read_roles
from planner.commands.options.said import Said
from planner.commands.options.traffic import OF_ONE_CLASS, read_traffic
from planner.commands.placements import DEFAULT_SITE, read_limits
from planner.commands.reporting import reported
from planner.placing.fleets.asking import engine_problems, fleet_request
from planner.report.files import Answer
from planner.specs.fleet_request import FleetRequest
from planner.specs.pools import load_site
from planner.specs.request import SolverOptions
from planner.specs.state import load_state
from planner.specs.traffic.reading import load_traffic
from planner.specs.traffic.records import FleetTraffic

if TYPE_CHECKING:
    from planner.report.progress import FleetLine
    from planner.results.fleets import FleetStaircase


def fleet(said: Said) -> Answer:
    """The cheapest fleet that serves traffic within percentiles."""
    from planner.placing.floorplans import floorplan_of
    from planner.report.progress import FleetLine
    from planner.running.phases import begin

    request = read_fleet(said)
    begin("simulating what replicas carry")
    line = FleetLine(rate_per_s=request.rate_per_s)
    steps = None if said.staircase is None else _climbed(request, line, said)
    is_for_programs = said.json or said.csv == STDOUT
    if steps is not None and is_for_programs and said.html is None:
        return reported(said, steps)
    from planner.placing.fleets.planning import fleet as find

    best = find(request, on_round=line.on_round)
    floorplan = floorplan_of(request.site, request.state)
    return reported(said, best, record=steps, staircase=steps, floorplan=floorplan)


def _climbed(request: FleetRequest, line: FleetLine, said: Said) -> FleetStaircase:
    from planner.placing.fleets.staircase import staircase

    lowest, highest = said.staircase
    return staircase(
        request,
        lowest_per_s=lowest,
        highest_per_s=highest,
        workers=said.workers,
        on_step=line.on_step,
    )


def read_fleet(said: Said) -> FleetRequest:
    """Everything that was asked for.

    Raises:
        RequestError: with the problems of words, options, files and the request together.
    """
    said.problems += engine_problems(said.engine)
    keywords = _read_search(said)
    traffic = _read_traffic(said)
    keywords |= _read_site(said, traffic)
    keywords |= read_roles(said)
    request = None
    if traffic is not None and (keywords["site"] is not None or _has_devices(traffic)):
        request = said.collect(partial(fleet_request, traffic, **keywords))
    said.check()
    assert request is not None  # or something is wrong with what it is made of
    return request


def _read_traffic(said: Said) -> FleetTraffic | None:
    """The classes of options, or of a file, beside which options of one class say nothing."""
    file = said.traffic
    if file is None:
        return read_traffic(said)
    for name in filter(said.is_given, OF_ONE_CLASS):
        fact = f"is of one class, and `{file}` says what the classes are"
        said.refuse(name, fact, "leave it out, or write it there", value=said.texts[name][0])
    return said.collect(partial(load_traffic, file))


def _has_devices(traffic: FleetTraffic | None) -> bool:
    """Whether a file of traffic says what serves it."""
    return traffic is not None and traffic.supply is not None and bool(traffic.supply.kinds)


def _read_site(said: Said, traffic: FleetTraffic | None) -> Mapping[str, Any]:
    """What serves, where the traffic says nothing of it."""
    name = said.topology or (None if _has_devices(traffic) else DEFAULT_SITE)
    if "" in said.count:
        said.refuse("--count", "is of which kind?", "write `--count h100-sxm=16`", value="")
    return {
        "site": None if name is None else said.collect(partial(load_site, name)),
        "state": said.load("--state", load_state),
        "counts": {key: n for key, n in said.count.items() if key} or None,
        "prices": said.price,
    }


def _read_search(said: Said) -> dict[str, Any]:
    """Arguments of the request that are neither traffic nor site."""
    return {
        **said.sets(),
        "engines": said.engine or None,
        "sharing": not said.no_sharing,
        "limits": read_limits(said),
        "quality_loss_fraction": said.max_quality_loss,
        "options": SolverOptions(**said.sets("SolverOptions")),
    }
