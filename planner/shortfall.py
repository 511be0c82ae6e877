"""What lacks: the least memory that any plan needs, and what a demand beyond the pool takes.

`explain` asks; whether a larger pool has a plan, it finds out itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from planner.describe import describe
from planner.errors import RequestError
from planner.estimates.candidates import CandidateTable
from planner.programs.deployment import Posing
from planner.programs.posed import Source
from planner.quantities import GIB, MS, QUANTITIES
from planner.results import Deployment
from planner.search import Found, optimum, search
from planner.solvers.solution import Status
from planner.specs.ledger import recording
from planner.specs.reading import load_cluster
from planner.specs.records import ClusterSpec, NodesFabric
from planner.specs.request import Request
from planner.units import show

DEMAND = QUANTITIES["demand"]
"""Of which the best is, without a demand, the time of a token when the whole pool works on it."""

CLOSE = 1e-8
"""Share of what a plan needs of a device that counts as no less: more than rows let pass."""

MORE_NODES = 4
"""How many sizes of a pool of nodes are tried, from as many devices as one layout takes."""


def most_served(table: CandidateTable, request: Request, yielding: list[str]) -> Deployment | None:
    """The cheapest plan for the largest demand that can be met, to three digits."""
    whole = Posing(table, request, objective=DEMAND.best, without=yielding)
    served = MS / optimum(whole, request.options).objective
    less = _with_demand(request, DEMAND.rounded(served))
    posing = Posing(table, less, objective="cost", without=[*yielding[1:]])
    found = proved_search(posing, request)
    if found.assignment is None:  # what is left over by rounding costs too much
        return None
    return describe(table, found.posed, less, found.assignment)


def least_memory(table: CandidateTable, request: Request, without: list[str]) -> Deployment | None:
    """The plan whose fullest moment needs least of a device, with some limits left out.

    The program can minimise one of the moments, and no plan needs less than that. Where another
    moment of the plan needs more, a plan is asked for that needs less in each, until there is none
    or the moment that was minimised is the fullest.
    """
    hbm_bytes = request.cluster.device.hbm_bytes
    reserve_bytes = request.cluster.device.reserve_bytes
    others = [name for name in without if name != "hbm"]
    best, scale = None, math.inf
    while True:
        posing = Posing(table, request, objective="memory", without=others, memory_scale=scale)
        found = proved_search(posing, request)
        if found.assignment is None:
            return best
        best = describe(table, found.posed, request, found.assignment)
        used = best.memory.used_bytes
        if used <= (found.solution.objective / GIB + reserve_bytes) * (1 + CLOSE):
            return best
        scale = used * (1 - CLOSE) / hbm_bytes


def proved_search(source: Source, request: Request) -> Found:
    """The best of a program, or that there is none; nothing that is only the best so far.

    Raises:
        OutOfTimeError: time ended before either was known.
        UnsettledError: the provers do not agree on it.
    """
    found = search(source, request.options, n_alternatives=0)
    if found.solution.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        raise found.solution.unsettled()
    return found


def _with_demand(request: Request, tokens_per_s: float) -> Request:
    targets = replace(request.targets, demand_tokens_per_s=tokens_per_s)
    return replace(request, targets=targets)


def demand_reason(request: Request, deployment: Deployment, served: float, within: str) -> str:
    """How many replicas the demand takes, and how many there is room for."""
    demand = request.targets.demand_tokens_per_s
    assert demand is not None
    each = deployment.output_tokens_per_s / deployment.n_replicas
    n_devices = deployment.mesh.n_devices
    n_room, n_needed = round(served / each), math.ceil(demand / each)
    replicas = f"{n_room} replica{'s' * (n_room > 1)}"
    return (
        f"the most that the pool serves{within} is {show(served, 'token/s')}, by {replicas} of "
        f"{n_devices} device{'s' * (n_devices > 1)} {deployment.mesh.label}; "
        f"{show(demand, 'token/s')} need {n_needed} of them, {n_needed * n_devices} devices"
    )


def larger_pools(request: Request, served_tokens_per_s: float) -> Iterator[ClusterSpec]:
    """Pools of more such nodes, in proportion to the demand, by the names that patterns give."""
    fabric, name = request.cluster.fabric, request.cluster.name
    demand = request.targets.demand_tokens_per_s
    assert demand is not None
    if not isinstance(fabric, NodesFabric) or not name.endswith(f"-x{fabric.n_nodes}"):
        return
    family = name.removesuffix(f"x{fabric.n_nodes}")
    n_nodes = math.ceil(fabric.n_nodes * demand / served_tokens_per_s * (1 - 1e-9))
    for n in range(max(n_nodes, fabric.n_nodes + 1), n_nodes + MORE_NODES):
        try:
            with recording():  # looked at, not used
                larger = load_cluster(f"{family}x{n}")
        except RequestError:  # a name of the user's own, or more nodes than the pattern allows
            return
        if larger.device.name == request.cluster.device.name:
            yield replace(larger, usd_per_hour=request.cluster.usd_per_hour)
