"""`plan fleet`: options or a file of traffic to pools of replicas, their answer to text."""

from __future__ import annotations

import sys
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

    climbed = read_staircase(written, said)
    request = read_fleet(written, said)
    line = FleetLine(sys.stderr)
    steps = None if climbed is None else _climbed(request, line, climbed)
    if steps is not None and (written.json or written.csv == STDOUT):
        return _steps_answer(written, steps)
    from planner.fleets.planning import fleet as find

    return _answer(written, _Found(plan=find(request, on_round=line.on_round), steps=steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A fleet, and the steps of its rent over traffic where they are asked for."""

    plan: FleetPlan
    steps: FleetStaircase | None


def _climbed(request: FleetRequest, line: FleetLine, asked: dict[str, Any]) -> FleetStaircase:
    from planner.fleets.staircase import staircase

    return staircase(request, **asked, on_step=line.on_step)


def _steps_answer(written: WrittenFleet, steps: FleetStaircase) -> Answer:
    """Steps for a program."""
    from planner.report.fleets import staircase_csv, staircase_text

    if written.csv == STDOUT:
        return Answer(text=staircase_csv(steps).rstrip("\n"), is_data=True)
    files = [] if written.csv is None else [(written.csv, staircase_csv(steps))]
    return answered(
        steps, lambda: staircase_text(steps, width()), is_json=written.json, files=files
    )


def _answer(written: WrittenFleet, found: _Found) -> Answer:
    from planner.report.fleets import fleet_csv, fleet_line, fleet_text

    files = tuple(_files(written, found))
    if written.csv == STDOUT:
        return Answer(text=fleet_csv(found.plan).rstrip("\n"), is_data=True, files=files)

    def text() -> str:
        if written.quiet:
            return fleet_line(found.plan)
        return fleet_text(found.plan, width(), staircase=found.steps)

    return answered(found.plan, text, is_json=written.json, files=files)


def _files(written: WrittenFleet, found: _Found) -> Iterator[tuple[str, str]]:
    """Name and text of the files that were asked for."""
    from planner.report.fleets import fleet_csv, fleet_page, staircase_csv

    if written.csv not in (None, STDOUT):
        text = fleet_csv(found.plan) if found.steps is None else staircase_csv(found.steps)
        yield str(written.csv), text
    if written.html is not None:
        yield written.html, fleet_page(found.plan, staircase=found.steps)
