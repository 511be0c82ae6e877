"""Why no plan exists.

It is answered by exact solves of the same program with rows left out. A conflict is
found by a deletion filter over the named limits, the level at which users think: leave one
out, and if there is still no plan, it was not needed.

Source: the deletion filter of [Chinneck2008] §6.1, over groups of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from planner.describe import describe
from planner.errors import OutOfTimeError
from planner.estimates.candidates import CandidateTable, machine_of
from planner.estimates.requested import table_of
from planner.estimates.steps import Machine
from planner.gains import limits_of
from planner.programs.deployment import Posing
from planner.quantities import MEMORY, QUANTITIES
from planner.results import Conflict, Deployment, Obstacle
from planner.search import is_feasible
from planner.shortfall import (
    demand_reason,
    larger_pools,
    least_memory,
    most_served,
    proved_search,
)
from planner.specs.commands import command_of, reached_options
from planner.specs.models import FORMAT_BYTES
from planner.specs.quality import weights_losses
from planner.specs.reading import cluster_examples
from planner.specs.request import Request
from planner.units import show

EXPLAINED = (
    "each limit of a conflict was left out in turn, and the others of it could be met",
    "what is reachable is proved optimal",
)
UNEXPLAINED = ("time ended before it was known which limits stand in the way",)


def explain(request: Request, machine: Machine) -> Conflict:
    """The limits that no plan satisfies together, and what each could be.

    One irreducible set after the other: the first limit of each that an option can loosen
    yields, until what is left has a plan. Its values make the command of the hint.

    An explanation is proved, so it has no gap; out of time, it is what is proved by then.
    """
    proved = replace(request.options, gap=0.0, proof="two", time_limit_s=None)  # see `deadlines`
    request = replace(request, options=proved)
    table = table_of(request, machine, weights_within=(0.0, math.inf))
    obstacles: list[Obstacle] = []
    yielding: list[str] = []
    changed: list[str] = []  # those of them that an option can loosen until there is a plan
    verified: tuple[str, ...] = UNEXPLAINED
    closest, command = None, ""
    with suppress(OutOfTimeError):
        while not _holds(table, request, yielding):
            conflict = _irreducible(table, request, yielding)
            found = [_obstacle(table, request, name, conflict, yielding) for name in conflict]
            obstacles += found
            loosened = [one.name for one in found if one.name != MEMORY and one.reachable]
            if not loosened:  # memory by itself, whatever else yields
                yielding, changed = ["hbm", *yielding], []
                break
            yielding.append(loosened[0])
            changed = list(yielding)
        verified = EXPLAINED
        closest = _closest(table, request, yielding)
        command = _command(request, changed, closest)
    return Conflict(
        request=request,
        obstacles=tuple(obstacles),
        closest=closest,
        command=command,
        n_candidates=table.n_candidates,
        verified=verified,
    )


def _holds(table: CandidateTable, request: Request, without: list[str]) -> bool:
    return is_feasible(Posing(table, request, objective="cost", without=without), request.options)


def _irreducible(table: CandidateTable, request: Request, without: list[str]) -> list[str]:
    """Deletion filter: memory is tried first, so that a target alone is blamed if it can be."""
    names = [name for name in limits_of(request) if name not in without]
    needed = list(names)
    for name in sorted(names, key=lambda name: name != "hbm"):
        rest = [other for other in needed if other != name]
        left_out = [other for other in limits_of(request) if other not in rest]
        if not _holds(table, request, left_out):
            needed = rest
    return needed


def _obstacle(
    table: CandidateTable, request: Request, name: str, conflict: list[str], without: list[str]
) -> Obstacle:
    """The best value of one limited quantity when the other limits are kept.

    Where those conflict among themselves, only the others of this conflict are kept: it is
    irreducible, so they have a plan.
    """
    alone = [other for other in limits_of(request) if other not in conflict]
    in_memory = [other for other in alone if other != "hbm"]
    for left_out in ([name, *without], [name, *in_memory], [name, *alone]):
        best = _best(table, request, name, left_out)
        if best is not None:
            break
    assert best is not None
    deployment, reachable = best
    return Obstacle(
        name=name,
        asked=limits_of(request)[name],
        reachable=reachable,
        dimension=QUANTITIES[name].dimension,
        reason=(
            demand_reason(request, deployment, reachable, _within(request, left_out))
            if name == "demand"
            else _reason(name, deployment, reachable, _within(request, left_out))
        ),
    )


def _best(
    table: CandidateTable, request: Request, name: str, left_out: list[str]
) -> tuple[Deployment, float] | None:
    """A plan with the best value of a limited quantity, and that value, SI."""
    if name == "hbm":
        deployment = least_memory(table, request, left_out)
        return None if deployment is None else (deployment, deployment.memory.used_bytes)
    quantity = QUANTITIES[name]
    posing = Posing(table, request, objective=quantity.best, without=left_out)
    found = proved_search(posing, request)
    if found.assignment is None:
        return None
    deployment = describe(table, found.posed, request, found.assignment)
    reached = QUANTITIES["throughput"] if name == "demand" else quantity
    return deployment, reached.in_si(found.solution.objective)


def _closest(table: CandidateTable, request: Request, yielding: list[str]) -> Deployment | None:
    """The plan that breaks the first yielding limit by the least, and keeps those that stay."""
    if yielding[0] == "demand":
        return most_served(table, request, yielding)
    best = _best(table, request, yielding[0], yielding)
    return None if best is None else best[0]


def _command(request: Request, yielding: list[str], closest: Deployment | None) -> str:
    """A command that has a plan: limits at what is reachable, or another way to the memory."""
    if yielding == ["demand"]:
        served = closest.served_tokens_per_s if closest else math.inf
        for larger in larger_pools(request, served):
            if _has_plan(replace(request, cluster=larger)):
                return command_of(request, {"--topology": larger.name})
    if yielding and closest is not None:
        reached = {name: QUANTITIES[name].told(closest) for name in yielding}
        if "demand" in reached:
            reached["demand"] = closest.served_tokens_per_s
        return command_of(request, reached_options(reached))
    for option, value, other in _more_room(request):
        if _has_plan(other):
            return command_of(request, {option: value})
    return ""


def _more_room(request: Request) -> Iterator[tuple[str, str, Request]]:
    """Requests like this one with smaller weights, or on a larger pool of the same device.

    Formats are tried alone, those first that lose least by what is known.
    """
    model, widest = request.model, max(FORMAT_BYTES[name] for name in request.weights_formats)
    losses = weights_losses(model)
    limit = request.targets.quality_loss_fraction
    for name in sorted(model.weights_formats, key=lambda name: losses.get(name, math.inf)):
        is_good = limit is None or losses.get(name, math.inf) <= limit
        if is_good and FORMAT_BYTES[name] < widest and name not in request.weights_formats:
            yield "--weights", name, replace(request, weights_formats=(name,))
    for cluster in sorted(cluster_examples(), key=lambda cluster: cluster.n_devices):
        same = cluster.device.name == request.cluster.device.name
        if same and cluster.n_devices > request.cluster.n_devices:
            yield "--topology", cluster.name, replace(request, cluster=cluster)


def _has_plan(request: Request) -> bool:
    machine = machine_of(request.cluster, request.model)
    table = table_of(request, machine)
    return len(table.arms) > 0 and _holds(table, request, [])


def _within(request: Request, left_out: list[str]) -> str:
    """Which limits an obstacle's best value keeps, in words; the first left out is its own."""
    kept = [name for name in limits_of(request) if name not in left_out]
    others = {*limits_of(request)} - {left_out[0]}
    if others <= set(kept):
        return " within the other limits" if others else ""
    return f" with only {', '.join(f'`{name}`' for name in kept)} kept" if kept else " by itself"


def _reason(name: str, deployment: Deployment, reachable: float, within: str) -> str:
    """The fact that stands in the way, in one sentence."""
    n_devices = deployment.mesh.n_devices
    where = f"{n_devices} device{'s' * (n_devices > 1)} {deployment.mesh.label}"
    if deployment.n_replicas > 1:
        where = f"{deployment.n_replicas} replicas of {where}"
    if name in ("tpot", "ttft"):
        phase = deployment.decode if name == "tpot" else deployment.prefill
        largest, seconds = max(phase.step.parts(), key=lambda part: part[1])
        return (
            f"the fastest {phase.phase} pass{within} takes "
            f"{show(phase.step.total_s, 's')} ({phase.layout}, batch {phase.batch}, on {where}); "
            f"{show(seconds, 's')} of it is {largest}"
        )
    if name == "hbm":
        memory = deployment.memory
        return (
            f"the plan that needs least memory{within} takes {show(memory.used_bytes, 'B')} of "
            f"each device on {where}, {show(memory.weights_bytes, 'B')} of it weights in "
            f"{deployment.weights_format}; a device has {show(memory.capacity_bytes, 'B')}"
        )
    quantity = QUANTITIES[name]
    value = quantity.shown(reachable)
    return quantity.reason.format(within=within, value=value, where=where)
