"""Roles that are asked for: what is wrong with them, and what they mean for a request."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from planner.errors import Problem, RequestError
from planner.estimates.pools import nearest_pools
from planner.runtimes.registry import layers_of
from planner.specs.ask.placement import PlacementRequest
from planner.specs.ask.targets import EXPERT_DEVICES
from planner.specs.files.reading import USUAL_CONNECTOR, load_connector
from planner.specs.records.roles import ANY, APART, TOGETHER, Connector, RoleOptions
from planner.specs.records.runtimes import LAYOUT_RUNTIMES, is_table


def asked_roles(
    roles: str | None,
    connector: Connector | None,
    *,
    prefill_devices: int | None,
    decode_devices: int | None,
    expert_devices: int | None = None,
) -> RoleOptions:
    """The roles that replicas may have; what fixes the devices of one asks for both.

    Raises:
        RequestError: some has no effect; every problem is listed.
    """
    fixed = {"--prefill-devices": prefill_devices, "--decode-devices": decode_devices}
    fixed[EXPERT_DEVICES] = expert_devices
    said = {where: n_devices for where, n_devices in fixed.items() if n_devices is not None}
    name = roles or (APART if said else TOGETHER)
    without = [*said, *(["--connector"] if connector else [])] if name == TOGETHER else []
    fact = "has no effect where every replica does both phases"
    remedy = "leave it out, or write `--roles free`"
    RequestError.raise_if_any(Problem(where=it, fact=fact, remedy=remedy) for it in without)
    if name == TOGETHER:
        return RoleOptions()
    return RoleOptions(
        name=name,
        connector=connector or load_connector(USUAL_CONNECTOR),
        prefill_devices=prefill_devices,
        decode_devices=decode_devices,
        expert_devices=expert_devices,
    )


def between_fabrics(roles: RoleOptions) -> Iterator[Problem]:
    """Roles that would hand caches over from one fabric to another."""
    if roles.name != TOGETHER:
        fact = "hands caches over, and no link leads from one fabric to another"
        remedy = "place on each by itself, or leave it out"
        yield Problem(where="--roles", value=roles.name, fact=fact, remedy=remedy)


def role_problems(request: PlacementRequest) -> Iterator[Problem]:
    """What means nothing where phases have devices of their own."""
    if request.roles.name == TOGETHER:
        return
    if request.objective == "latency":
        fact = "is of replicas that do both phases: one of prefill writes no token"
        remedy = "ask for another objective, or `--roles together`"
        yield Problem(where="--objective", value=request.objective, fact=fact, remedy=remedy)
    if request.layout_first:
        fact = "chooses replicas that do both phases"
        yield Problem(where="layout_first", fact=fact, remedy="leave it out")
    if request.roles.expert_devices is not None:
        yield from _without_experts(request)
    for demand in request.models:
        if demand.replicas is not None:
            fact = f"of {demand.model.name}: a replica of prefill and one of decode serve together"
            value, remedy = str(demand.replicas), "ask for a demand or a rate"
            yield Problem(where="--replicas", value=value, fact=fact, remedy=remedy)


def _without_experts(request: PlacementRequest) -> Iterator[Problem]:
    """Devices of experts where there are no experts, or nobody times them so."""
    n_devices = request.roles.expert_devices or ANY
    value = {ANY: "any"}.get(n_devices, str(n_devices))
    where = Problem(where=EXPERT_DEVICES, value=value, fact="")
    counts = [*filter(None, (layers_of(one.model).expert_counts for one in request.models))]
    near = [nearest_pools(it, max(1, n_devices)) for it in counts]  # one device always does
    if not counts:
        yield replace(where, fact="is of models with experts", remedy="leave it out")
    elif near and all(near):
        remedy = " or ".join(f"`{EXPERT_DEVICES} {n}`" for n in near[0])
        fact = f"hold no equal parts of {min(counts[0])} experts"
        yield replace(where, fact=fact, remedy=f"nearest: {remedy}")
    if all(is_table(name) or name in LAYOUT_RUNTIMES for name in request.engines):
        fact, remedy = "means nothing without a serving engine", "name one: `plan engines` has them"
        yield replace(where, fact=fact, remedy=remedy)


def said_of(roles: RoleOptions) -> dict[str, Any]:
    """Arguments of `place` that ask for the same roles."""
    if roles.name == TOGETHER:
        return {"roles": None}
    return {"roles": roles.name, **{f.name: getattr(roles, f.name) for f in fields(roles)[1:]}}
