"""Configurations of the layouts: of all that `planning.plan` would see, the best of each context.

Sources of configurations on nodes and on a torus alike, role by role.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.equations.arrays import IntArray
from planner.estimates.candidates import CandidateTable, table_of
from planner.estimates.steps import Machine
from planner.placing.configurations import Sharding, layout_sharding
from planner.placing.phases import best_phases
from planner.programs.contexts import best_of_contexts
from planner.programs.deployment import Posing
from planner.programs.layout import Assignment
from planner.programs.posed import Aim, PosedProgram
from planner.results.deployments import Deployment
from planner.runtimes.describe import describe, ground_of
from planner.specs.ask.request import Request
from planner.specs.records.devices import DeviceSpec
from planner.specs.records.roles import PREFILL, TOGETHER
from planner.specs.records.runtimes import ROOFLINE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layouts:
    """The layouts of one cluster, as `planning.plan` would see them.

    Args:
        posed: the best of each context, see `best_of_contexts`.
        n_candidates: what they were chosen from.
    """

    request: Request
    table: CandidateTable
    posed: PosedProgram
    n_candidates: int

    @property
    def device(self) -> DeviceSpec:
        return self.request.cluster.device

    def deployment(self, choice: Assignment, n_alike: int) -> Deployment:
        """The layout of an assignment, of which so many replicas are placed."""
        mesh = int(self.table.arms.mesh[self.posed.arm[choice.columns[0]]])
        ground = ground_of(self.table.machine, mesh, n_alike)
        return describe(self.table, self.posed, self.request, choice, ground)

    def shard(self, choice: Assignment, model: str) -> tuple[Sharding, float]:
        """How the ranks of an assignment share the weights, and bytes of the busiest one's."""
        found = self.deployment(choice, 1)
        return layout_sharding(model, found), found.memory.weights_bytes

    def quantities(self, choice: Assignment) -> dict[str, Any]:
        """What a placement wants to know of an assignment, by name of a configuration's field."""
        quantities, columns = self.posed.quantities, list(choice.columns)
        return {
            "engine": ROOFLINE.name,
            "output_tokens_per_s": 1e3 / float(quantities["throughput"][1][columns].sum()),
            "tpot_s": float(quantities["latency"][1][columns].sum()) / 1e3,
            "usd_per_hour": float(quantities["rent"][0][choice.context]),
            "source": self,
            "choice": choice,
        }


def best_of_roles(
    request: Request,
    machine: Machine,
    group_of_mesh: Sequence[object],
    roles: Sequence[str],
    *,
    whole: bool = False,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Mesh and quantities of all configurations, role by role, in the order of the groups.

    Args:
        group_of_mesh, whole: see `best_layouts`.
    """
    tables = _tables(request, machine, roles)
    for role in roles:
        table = tables[role]
        if not len(table.contexts):
            continue
        if role == TOGETHER:
            layouts, found = best_layouts(request, table, group_of_mesh, whole=whole)
            yield from ((row, layouts.quantities(best)) for _, row, best in found)
        elif request.workload.n_decode_steps:  # else there is nothing to decode elsewhere
            phases, chosen = best_phases(request, table, group_of_mesh, role)
            yield from ((row, phases.quantities(column)) for row, column in chosen)


def _tables(request: Request, machine: Machine, roles: Sequence[str]) -> dict[str, CandidateTable]:
    """The candidates of each role; roles that are offered the same batches share them.

    Decode is offered what it is beside a prefill. Prefill by itself may be offered other batches,
    and then needs no decode but the least there is.
    """
    apart = replace(request, prefill_batches=request.prefill_batches_apart)
    if TOGETHER not in roles or apart.prefill_batches == request.prefill_batches:
        return dict.fromkeys(roles, table_of(apart, machine))
    tables = dict.fromkeys(roles, table_of(request, machine))
    if PREFILL in roles:
        tables[PREFILL] = table_of(replace(apart, batches=request.batches[:1]), machine)
    return tables


def best_layouts(
    request: Request, table: CandidateTable, group_of_mesh: Sequence[object], *, whole: bool = False
) -> tuple[Layouts, list[tuple[object, int, Assignment]]]:
    """The best of the meshes of each group: its group, its mesh and its assignment.

    Args:
        group_of_mesh: of each mesh of the table; groups are answered in ascending order.
        whole: the best of each sharding of the weights in a group.
    """
    best = best_of_contexts(Posing(table, request, Aim(objective=request.objective)))
    layouts = Layouts(
        request=request, table=table, posed=best.posed, n_candidates=best.n_candidates
    )
    contexts, number = table.contexts, best.posed.number
    mesh: IntArray = contexts.mesh[number]
    cuts = np.stack([mesh, contexts.stored[number], contexts.data[number], contexts.sliced[number]])
    weights = sorted({pair.weights for pair in table.formats})
    kept = [weights.index(pair.weights) for pair in table.formats]
    of_group: dict[Any, list[int]] = {}
    for k, row in enumerate(mesh.tolist()):
        sharding = (*cuts[:, k].tolist(), kept[contexts.formats[number[k]]]) if whole else ()
        of_group.setdefault((group_of_mesh[row], sharding), []).append(k)
    found = []
    for (group, _), some in sorted(of_group.items()):
        k = some[int(np.argmin(best.value[some]))]
        found.append((group, int(mesh[k]), best.assignment(k)))
    return layouts, found
