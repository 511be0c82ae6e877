"""Configurations of the layouts: of all that `planning.plan` would see, the best of each context.

Sources of configurations on nodes and on a torus alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.equations.arrays import IntArray
from planner.estimates.candidates import CandidateTable
from planner.placing.standing import Sharding, layout_sharding
from planner.programs.contexts import best_of_contexts
from planner.programs.deployment import Posing
from planner.programs.layout import Assignment
from planner.programs.posed import PosedProgram
from planner.results import Deployment
from planner.runtimes.describe import describe
from planner.specs.records import DeviceSpec
from planner.specs.request import Request
from planner.specs.runtimes import ROOFLINE


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
        found = describe(self.table, self.posed, self.request, choice)
        return replace(found, mesh=replace(found.mesh, n_positions=n_alike))

    def shard(self, choice: Assignment, model: str) -> tuple[Sharding, float]:
        """How the ranks of an assignment share the weights, and bytes of the busiest one's."""
        found = describe(self.table, self.posed, self.request, choice)
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


def best_layouts(
    request: Request, table: CandidateTable, group_of_mesh: Sequence[object]
) -> tuple[Layouts, list[tuple[object, int, Assignment]]]:
    """The best of the meshes of each group: its group, its mesh and its assignment.

    Args:
        group_of_mesh: of each mesh of the table; groups are answered in ascending order.
    """
    best = best_of_contexts(Posing(table, request, objective=request.objective))
    layouts = Layouts(
        request=request, table=table, posed=best.posed, n_candidates=best.n_candidates
    )
    mesh: IntArray = table.contexts.mesh[best.posed.number]
    of_group: dict[Any, list[int]] = {}
    for k, row in enumerate(mesh.tolist()):
        of_group.setdefault(group_of_mesh[row], []).append(k)
    found = []
    for group, contexts in sorted(of_group.items()):
        k = contexts[int(np.argmin(best.value[contexts]))]
        found.append((group, int(mesh[k]), best.assignment(k)))
    return layouts, found
