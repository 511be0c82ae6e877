"""Configurations of one phase of the layouts: replicas that read prompts, or write answers.

Of the meshes of a group and each format of the cache

    decode    the one that writes most
    prefill   those of which none reads more prompts a second and has a first token as soon;
              where first tokens may take any time, the one that reads most
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.candidates import CandidateTable
from planner.placing.configurations import Sharding, layout_sharding
from planner.programs import deployment as slots
from planner.programs.contexts import SHARED
from planner.programs.deployment import Posing
from planner.programs.layout import LayoutProgram, ceiling
from planner.programs.posed import Aim, PosedProgram, Source, joined
from planner.results.phase_deployments import PhaseDeployment
from planner.running.deadlines import is_over
from planner.runtimes.describe import agree, describe_phase, ground_of
from planner.specs.ask.request import Request
from planner.specs.records.devices import FORMAT_BYTES, DeviceSpec, ModelSpec, Workload
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.records.runtimes import ROOFLINE


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

    posed = chosen_of_slot(Posing(table, request, Aim(objective=request.objective)), slot, choosing)
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
        request=request, table=table, posed=posed, role=role, n_candidates=table.n_offered_to(role)
    )
    return layouts, list(zip(mesh[best].tolist(), best.tolist(), strict=True))


class Choosing(Protocol):
    """Which of some columns no other of their group outdoes: places among them, ascending."""

    def __call__(self, posed: PosedProgram, columns: IntArray, group: IntArray) -> IntArray: ...


def chosen_of_slot(source: Source, slot: int, choosing: Choosing) -> PosedProgram:
    """Of each context the columns of one slot that are worth something, while there is time.

    A replica that does one phase holds what that phase holds, and keeps the limits of that phase.
    So the columns of the other slot, the rows of the memory that both share, and the limits on the
    other slot do not bind it: what is left of a program is its columns, each of which fits by
    itself.
    """
    parts: list[PosedProgram] = []
    for posed in source.blocks():
        if parts and is_over():
            break
        columns = _keeping(posed.program, slot)
        context = posed.program.column_context[columns]
        columns = columns[choosing(posed, columns, context)]
        contexts = np.unique(posed.program.column_context[columns])
        parts.append(posed.take(contexts=contexts, columns=columns))
    return joined(parts)


def least(group: IntArray, *values: FloatArray) -> IntArray:
    """The place of the least of each group by the first value, of equals by the next; ascending.

    >>> least(np.array([0, 0, 1, 1]), np.array([2.0, 1.0, 1.0, 1.0]), np.array([0.0, 0, 5, 4]))
    array([1, 3])
    """
    order = np.lexsort([*reversed(values), group])
    sorted_groups = group[order]
    return np.sort(order[np.flatnonzero(np.diff(sorted_groups, prepend=-1))])


def pareto(group: IntArray, first: FloatArray, second: FloatArray) -> IntArray:
    """Places where none of the group is less in one value and no more in the other; ascending.

    Of equals in both the first stays.

    >>> pareto(np.array([0, 0, 0, 1]), np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 4, 9]))
    array([0, 2, 3])
    """
    order = np.lexsort([second, first, group])
    _, rank = np.unique(second[order], return_inverse=True)
    # every rank of a group is below all of the group before it, so that one pass does for all
    step = len(rank) + 1
    value = rank.reshape(-1) + (group[order].max(initial=0) - group[order]) * step
    before = np.minimum.accumulate(value)
    is_less = value[1:] < before[:-1]
    return np.sort(order[np.concatenate([[True] * (len(value) > 0), is_less]).astype(np.bool_)])


def _keeping(program: LayoutProgram, slot: int) -> IntArray:
    """Columns of a slot that keep the limits on it by themselves, ascending."""
    columns = np.flatnonzero(program.column_slot == slot)
    kept = np.ones(len(columns), dtype=np.bool_)
    context = program.column_context[columns]
    for limit in program.limits:
        mine = limit.column[columns]
        if limit.name in SHARED or not (mine.any() or limit.context.any()):
            continue
        kept &= limit.context[context] + mine <= ceiling(limit.at_most)
    return columns[kept]
