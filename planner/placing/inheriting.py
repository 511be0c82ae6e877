"""What a repair is asked for: what the standing placement was, and what is said anew."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.errors import Problem, RequestError
from planner.placing.asking import has_slices, placement_request
from planner.results.placements import Placement
from planner.results.repairs import RepairRequest
from planner.specs.ask.placement import PlacementRequest, inherited_and_changed
from planner.specs.files.state import State
from planner.specs.records.devices import DeviceSpec
from planner.topology.costs import CostTable


def repair_request(
    before: Placement,
    said: Mapping[str, Any],
    *,
    state: State | None,
    loss: float,
    most_points: int,
    devices: Mapping[str, DeviceSpec] | None = None,
) -> RepairRequest:
    """The request of a repair.

    Args:
        before: what stands.
        said: arguments of `placement_request`; of those that are None, what stands decides.
        devices: records of a graph's devices, where a graph is said.

    Raises:
        RequestError: as `placement_request`; or what stands was costed by a function.
    """
    old = before.request
    unnamed = [one for one in old.costs if not one.name]
    if unnamed and said.get("costs") is None and said.get("cluster") is None:
        fact = "what stands was placed by a function's costs of groups, which no record holds"
        remedy = "give the function again"
        raise RequestError([Problem(where="group_costs", fact=fact, remedy=remedy)])
    kept = {name: getattr(old, name) for name in _INHERITED}
    kept |= {"cluster": old.site, "engine": old.engines, "costs": costs_of(old)}
    if said.get("cluster") is not None:
        kept["costs"] = None  # of other groups
        kept["aligned"] = old.aligned and has_slices(said["cluster"])
    keywords = {key: value for key, value in said.items() if value is not None}
    wanted = placement_request(**{**kept, **keywords}, state=state, devices=devices)
    wanted = _with_rows(wanted, old)
    inherited, changed = inherited_and_changed(old, wanted)
    return RepairRequest(
        before=before,
        wanted=wanted,
        loss_fraction=loss,
        most_points=most_points,
        inherited=inherited,
        changed=changed,
    )


def _with_rows(wanted: PlacementRequest, old: PlacementRequest) -> PlacementRequest:
    """A request with the rows of tables that stand, where it may have them: files may be gone."""
    if all(getattr(wanted, name) == getattr(old, name) for name in _OF_ROWS):
        return replace(wanted, deployments=old.deployments)
    return wanted


_INHERITED = (
    *("models", "workload", "targets", "objective", "limits", "batches", "most_devices"),
    *("aligned", "confidence", "options"),
)
"""Fields of what stands that are as they were where nothing else is said."""

_OF_ROWS = ("site", "models", "engines", "workload")
"""What says which rows of a table may be placed."""


def costs_of(request: PlacementRequest) -> CostTable | None:
    """The table of groups' costs of a request; None without one."""
    return {one.name: (one.bytes_per_s, one.latency_s) for one in request.costs} or None
