"""`plan fleet`: options or a file of traffic to pools of replicas, their answer to text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.commands.options.parsing import Said
from planner.report.delivery import Answer, answered
from planner.report.files import STDOUT
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.report.progress import FleetLine
    from planner.results.fleets import FleetPlan, FleetStaircase
    from planner.results.floorplans import FloorPlan
    from planner.specs.fleet_request import FleetRequest


def fleet(said: Said) -> Answer:
    """The cheapest fleet that serves traffic within percentiles."""
    from planner.commands.options.fleets import read_fleet
    from planner.report.progress import FleetLine
    from planner.running.phases import begin

    request = read_fleet(said)
    begin("simulating what replicas carry")
    line = FleetLine(rate_per_s=request.rate_per_s)
    steps = None if said.staircase is None else _climbed(request, line, said)
    is_for_programs = said.json or said.csv == STDOUT
    if steps is not None and is_for_programs and said.html is None:
        return _answer(said, _Found(plan=None, steps=steps))
    from planner.placing.fleets.planning import fleet as find

    return _answer(said, _Found(plan=find(request, on_round=line.on_round), steps=steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A fleet, and the steps of its rent over traffic where they are asked for.

    A program reads one record: the steps alone.
    """

    plan: FleetPlan | None
    steps: FleetStaircase | None

    @property
    def record(self) -> FleetPlan | FleetStaircase:
        found = self.steps or self.plan
        assert found is not None
        return found

    @property
    def fleet(self) -> FleetPlan:
        assert self.plan is not None
        return self.plan


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


def _answer(said: Said, found: _Found) -> Answer:
    files = tuple(_files(said, found))
    if said.csv == STDOUT:
        return Answer(text=_table(found).rstrip("\n"), is_data=True, files=files)
    text = _line if said.quiet else _text
    return answered(found.record, lambda: text(found), is_json=said.json, files=files)


def _files(said: Said, found: _Found) -> Iterator[tuple[str, str]]:
    """Name and text of the files that were asked for."""
    if said.csv not in (None, STDOUT):
        yield str(said.csv), _table(found)
    if said.html is not None:
        from planner.report.fleets import fleet_page

        plan = found.fleet
        yield said.html, fleet_page(plan, staircase=found.steps, floorplan=_floorplan(plan))


def _table(found: _Found) -> str:
    from planner.report.fleets import fleet_csv, staircase_csv

    return fleet_csv(found.fleet) if found.steps is None else staircase_csv(found.steps)


def _line(found: _Found) -> str:
    from planner.report.fleets import fleet_line, staircase_line

    steps = [] if found.steps is None else [staircase_line(found.steps)]
    return "\n".join([fleet_line(found.fleet), *steps])


def _text(found: _Found) -> str:
    from planner.report.fleets import fleet_text

    plan = found.fleet
    return fleet_text(plan, width(), staircase=found.steps, floorplan=_floorplan(plan))


def _floorplan(plan: FleetPlan) -> FloorPlan:
    """The devices as they are, for a map."""
    from planner.placing.floorplans import floorplan_of

    return floorplan_of(plan.request.site, plan.request.state)
