"""`plan fleet`: options or a file of traffic to pools of replicas, their answer to text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_fleets import WrittenFleet
from planner.report.delivery import Answer, answered
from planner.report.files import STDOUT
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.report.progress import FleetLine
    from planner.results.fleets import FleetPlan, FleetStaircase
    from planner.results.floorplans import FloorPlan
    from planner.specs.fleet_request import FleetRequest

_NOTHING_ASKED = WrittenFleet()


def fleet(
    written: Annotated[WrittenFleet, Parameter(name="*")] = _NOTHING_ASKED,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Find the cheapest fleet that serves traffic within percentiles, and try it by simulation."""
    from planner.commands.options.fleets import read_fleet, read_staircase
    from planner.report.progress import FleetLine
    from planner.running.phases import begin

    climbed = read_staircase(written, said)
    request = read_fleet(written, said)
    begin("simulating what replicas carry")
    line = FleetLine(rate_per_s=request.rate_per_s)
    steps = None if climbed is None else _climbed(request, line, climbed)
    is_for_programs = written.json or written.csv == STDOUT
    if steps is not None and is_for_programs and written.html is None:
        return _answer(written, _Found(plan=None, steps=steps))
    from planner.placing.fleets.planning import fleet as find

    return _answer(written, _Found(plan=find(request, on_round=line.on_round), steps=steps))


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


def _climbed(request: FleetRequest, line: FleetLine, asked: dict[str, Any]) -> FleetStaircase:
    from planner.placing.fleets.staircase import staircase

    return staircase(request, **asked, on_step=line.on_step)


def _answer(written: WrittenFleet, found: _Found) -> Answer:
    files = tuple(_files(written, found))
    if written.csv == STDOUT:
        return Answer(text=_table(found).rstrip("\n"), is_data=True, files=files)
    text = _line if written.quiet else _text
    return answered(found.record, lambda: text(found), is_json=written.json, files=files)


def _files(written: WrittenFleet, found: _Found) -> Iterator[tuple[str, str]]:
    """Name and text of the files that were asked for."""
    if written.csv not in (None, STDOUT):
        yield str(written.csv), _table(found)
    if written.html is not None:
        from planner.report.fleets import fleet_page

        plan = found.fleet
        yield written.html, fleet_page(plan, staircase=found.steps, floorplan=_floorplan(plan))


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
