"""Configurations of one phase of the layouts: replicas that read prompts, or write answers.

Of the meshes of a group and each format of the cache

    decode    the one that writes most
    prefill   those of which none reads more prompts a second and has a first token as soon;
              where first tokens may take any time, the one that reads most
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.candidates import CandidateTable
from planner.placing.standing import Sharding, layout_sharding
from planner.programs import deployment as slots
from planner.programs.deployment import Posing
from planner.programs.posed import PosedProgram
from planner.programs.single_phases import chosen_of_slot, least, pareto
from planner.results.phase_deployments import PhaseDeployment
from planner.runtimes.agreeing import agree
from planner.runtimes.describe import describe_phase, ground_of
from planner.specs.records import FORMAT_BYTES, DeviceSpec, ModelSpec, Workload
from planner.specs.request import Request
from planner.specs.roles import DECODE, PREFILL
from planner.specs.runtimes import ROOFLINE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseLayouts:
    """The layouts of one phase on one cluster, as `planning.plan` would see them.

    Args:
        posed: the columns of the phase that are worth something.
        role: which phase.
        n_candidates: what they were chosen from.
    """

    request: Request
    table: CandidateTable
    posed: PosedProgram
    role: str
    n_candidates: int

    @property
    def device(self) -> DeviceSpec:
        return self.request.cluster.device

    def deployment(self, choice: int, n_alike: int) -> PhaseDeployment:
        """The replica of a column, of which so many are placed."""
        arm, batch = int(self.posed.arm[choice]), int(self.posed.batch[choice])
        ground = ground_of(self.table.machine, int(self.table.arms.mesh[arm]), n_alike)
        found = describe_phase(self.table, self.request, self.role, arm, batch, ground)
        figures = self.quantities(choice)
        agree(
            {
                "tokens": (figures["output_tokens_per_s"], found.output_tokens_per_s),
                "pass": (figures["ttft_s"] + figures["tpot_s"], found.phase.step.total_s),
                "rent": (figures["usd_per_hour"], found.usd_per_hour),
                "cache of a request": (figures["handed_bytes"], found.handed_bytes),
            }
        )
        return found

    def shard(self, choice: int, model: str) -> tuple[Sharding, float]:
        """How the ranks of a column share the weights, and bytes of the busiest one's."""
        found = self.deployment(choice, 1)
        return layout_sharding(model, found), found.weights_bytes

    def quantities(self, choice: int) -> dict[str, Any]:
        """What a placement wants to know of a column, by name of a configuration's field."""
        quantities, context = self.posed.quantities, self.posed.program.column_context[choice]
        pass_s = float(quantities.facts.of_column["pass_s"][choice])
        number = self.table.contexts.formats[self.posed.number[context]]
        kv_format = self.table.formats[int(number)].kv
        return {
            "engine": ROOFLINE.name,
            "role": self.role,
            "output_tokens_per_s": 1e3 / float(quantities["throughput"][1][choice]),
            "tpot_s": pass_s if self.role == DECODE else 0.0,
            "ttft_s": pass_s if self.role == PREFILL else 0.0,
            "usd_per_hour": float(quantities["rent"][0][context]),
            "kv_format": kv_format,
            "handed_bytes": handed_bytes(self.request.model, self.request.workload, kv_format),
            "source": self,
            "choice": choice,
        }


def handed_bytes(model: ModelSpec, workload: Workload, kv_format: str) -> float:
    """The KV cache of one request at its input, of the whole model, each number once [bytes]."""
    at_own_format = model.kv_bytes(float(workload.n_input_tokens))
    return at_own_format * (FORMAT_BYTES[kv_format] / FORMAT_BYTES[model.kv_format])


def best_phases(
    request: Request, table: CandidateTable, group_of_mesh: Sequence[object], role: str
) -> tuple[PhaseLayouts, list[tuple[int, int]]]:
    """The best of one phase of the meshes of each group: its mesh and its column.

    Args:
        group_of_mesh: of each mesh of the table; groups are answered in ascending order, of each
            the formats of the cache in theirs, of each of these the first token in time first.
    """
    slot = {PREFILL: slots.PREFILL, DECODE: slots.DECODE}[role]
    is_ttft_bound = request.targets.ttft_s is not None

    def choosing(posed: PosedProgram, columns: IntArray, group: IntArray) -> IntArray:
        token = posed.quantities["throughput"][1][columns]
        delay: FloatArray = posed.quantities.facts.of_column["pass_s"][columns]
        if role == PREFILL and is_ttft_bound:
            return pareto(group, delay, token)
        return least(group, posed.program.column_objective[columns], token, delay)

    posed = chosen_of_slot(Posing(table, request, objective=request.objective), slot, choosing)
    columns = np.arange(posed.program.n_columns)
    context = posed.program.column_context
    mesh = table.contexts.mesh[posed.number][context]
    groups: list[Any] = [*group_of_mesh]
    number = {group: i for i, group in enumerate(sorted(set(groups)))}
    rank = np.array([number[one] for one in groups])
    cached = sorted({pair.kv for pair in table.formats})
    kv = np.array([cached.index(pair.kv) for pair in table.formats])
    group = rank[mesh] * len(cached) + kv[table.contexts.formats[posed.number]][context]
    best = choosing(posed, columns, group)
    delay = posed.quantities.facts.of_column["pass_s"][best]
    best = best[np.lexsort([delay, group[best]])]
    layouts = PhaseLayouts(
        request=request,
        table=table,
        posed=posed,
        role=role,
        n_candidates=table.n_offered_to(role),
    )
    return layouts, list(zip(mesh[best].tolist(), best.tolist(), strict=True))
