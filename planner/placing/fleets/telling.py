"""What an answer has besides its figures: the tables that they follow from, and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.placing.engines import EngineSource
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.simulating import PlannedPool
from planner.report.launch.telling import with_commands_of
from planner.results.fleets import FleetPlan
from planner.specs.kernels import EngineTables


def told(plan: FleetPlan, pools: Sequence[PlannedPool]) -> FleetPlan:
    """A fleet whose request holds the kernels of its engines, with commands that start them."""
    listed = {}
    for one in pools:
        made_by = source_of(one.configuration).made_by
        if not isinstance(made_by, EngineSource):
            continue
        machines = made_by.machines
        kernels = replace(machines.kernels, rivals={})
        tables = EngineTables(engine=machines.engine, kernels=kernels)
        listed[machines.engine.name, kernels.device] = tables
    request = replace(plan.request, tables=tuple(listed.values()))
    found = with_commands_of(replace(plan, request=request))
    assert isinstance(found, FleetPlan)
    return found
