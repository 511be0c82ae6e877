"""`plan fleet`: options or a file of traffic to pools of replicas, their answer to text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.commands.options.parsing import STDOUT, Said
from planner.commands.reporting import reported
from planner.report.files import Answer

if TYPE_CHECKING:
    from planner.report.progress import FleetLine
    from planner.results.fleets import FleetStaircase
    from planner.specs.fleet_request import FleetRequest


def fleet(said: Said) -> Answer:
    """The cheapest fleet that serves traffic within percentiles."""
    from planner.commands.options.fleets import read_fleet
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
