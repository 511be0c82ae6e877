"""Configurations of the layouts: of all that `planning.plan` would see, the best of each context.

Sources of configurations on nodes and on a torus alike, role by role. Of the meshes of a group, and
where phases are apart of each format of the cache,

    together  the one that is best
    decode    the one that writes most
    prefill   those of which none reads more prompts a second and has a first token as soon;
              where first tokens may take any time, the one that reads most
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.candidates import CandidateTable, table_of
from planner.estimates.steps import Machine
from planner.placing.configurations import Offers
from planner.programs import deployment as slots
from planner.programs.blocks import BlockProgram, Objective, joined
from planner.programs.contexts import SHARED, best_of_contexts
from planner.programs.deployment import Posing
from planner.programs.layout import Assignment, LayoutProgram, ceiling
from planner.programs.rows import alike_rows, dominated
from planner.results.phase_deployments import LayoutDeployment
from planner.running.deadlines import is_over
from planner.runtimes.describe import agree, describe, describe_phase, ground_of
from planner.specs.ask.request import Request
from planner.specs.records.devices import DeviceSpec, ModelSpec, Workload
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.records.runtimes import ROOFLINE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layouts(Offers):
    """The layouts of one cluster in one role, as `planning.plan` would see them.

    Args:
        posed: the best of each context, or the columns of a phase that are worth something.
        n_candidates: what they were chosen from.
        role: of `planner.specs.records.roles`; of a phase assignments have one column.
    """

    request: Request
    table: CandidateTable
    posed: BlockProgram
    n_candidates: int
    role: str = TOGETHER

    @property
    def device(self) -> DeviceSpec:
        return self.request.cluster.device

    def deployment(self, choice: Assignment, n_alike: int) -> LayoutDeployment:
        """The layout of an assignment, of which so many replicas are placed."""
        table, posed, first = self.table, self.posed, choice.columns[0]
        arm = int(posed.arm[first])
        ground = ground_of(table.machine, int(table.arms.mesh[arm]), n_alike)
        if self.role == TOGETHER:
            return describe(table, posed, self.request, choice, ground)
        batch, figures = int(posed.batch[first]), self.quantities(choice)
        phase = describe_phase(table, self.request, self.role, arm, batch, ground)
        agree(
            {
                "tokens": (figures["output_tokens_per_s"], phase.output_tokens_per_s),
                "pass": (figures["ttft_s"] + figures["tpot_s"], phase.phase.step.total_s),
                "rent": (figures["usd_per_hour"], phase.usd_per_hour),
                "cache of a request": (figures["handed_bytes"], phase.handed_bytes),
            }
        )
        return phase

    def quantities(self, choice: Assignment) -> dict[str, Any]:
        """What a placement wants to know of an assignment, by name of a configuration's field."""
        quantities, columns = self.posed.quantities, list(choice.columns)
        of_any = {
            "engine": ROOFLINE.name,
            "role": self.role,
            "output_tokens_per_s": 1e3 / float(quantities["throughput"][1][columns].sum()),
            "usd_per_hour": float(quantities["rent"][0][choice.context]),
            "source": self,
            "choice": choice,
        }
        if self.role == TOGETHER:
            return {**of_any, "tpot_s": float(quantities["latency"][1][columns].sum()) / 1e3}
        pass_s = float(quantities.facts.of_column["pass_s"][columns[0]])
        number = self.table.contexts.formats[self.posed.number[choice.context]]
        kv_format = self.table.formats[int(number)].kv
        return {
            **of_any,
            "tpot_s": pass_s if self.role == DECODE else 0.0,
            "ttft_s": pass_s if self.role == PREFILL else 0.0,
            "kv_format": kv_format,
            "handed_bytes": handed_bytes(self.request.model, self.request.workload, kv_format),
        }


def handed_bytes(model: ModelSpec, workload: Workload, kv_format: str) -> float:
    """What is kept of one request at its input, of the whole model, each number once [bytes]."""
    return replace(model, kv_format=kv_format).kv_bytes(float(workload.n_input_tokens))


def best_of_roles(
    request: Request,
    machine: Machine,
    group_of_mesh: Sequence[Any],
    roles: Sequence[str],
    *,
    whole: bool = False,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Mesh and quantities of all configurations, role by role, in the order of the groups.

    Args:
        group_of_mesh: of each mesh of the machine; groups come in ascending order, of phases the
            formats of the cache of each in theirs, the first token in time first.
        whole: the best of each sharding of the weights in a group.
    """
    tables = _tables(request, machine, roles)
    number = {group: i for i, group in enumerate(sorted({*group_of_mesh}))}
    rank = np.array([number[group] for group in group_of_mesh], np.int64)
    for role in roles:
        table = tables[role]
        if not len(table.contexts):
            continue
        if role == TOGETHER:
            layouts, choices = _best_layouts(request, table, rank, whole=whole)
        elif request.workload.n_decode_steps:  # else there is nothing to decode elsewhere
            layouts, choices = _best_of_phase(request, table, rank, role)
        else:
            continue
        mesh = table.contexts.mesh[layouts.posed.number]
        for choice in choices:
            yield int(mesh[choice.context]), layouts.quantities(choice)


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


def _best_layouts(
    request: Request, table: CandidateTable, rank: IntArray, *, whole: bool
) -> tuple[Layouts, list[Assignment]]:
    """The best of the meshes of each group.

    Args:
        rank: of the group of each mesh.
    """
    best = best_of_contexts(Posing(table, request, Objective(objective=request.objective)))
    contexts, number = table.contexts, best.posed.number
    mesh = contexts.mesh[number]
    keys = [rank[mesh]]
    if whole:
        weights = sorted({pair.weights for pair in table.formats})
        kept = np.array([weights.index(pair.weights) for pair in table.formats])
        keys += [mesh, contexts.stored[number], contexts.data[number], contexts.sliced[number]]
        keys.append(kept[contexts.formats[number]])
    _, group = alike_rows(keys)
    chosen = least(group, best.value)
    chosen = chosen[np.argsort(group[chosen])]
    layouts = Layouts(
        request=request, table=table, posed=best.posed, n_candidates=best.n_candidates
    )
    return layouts, [best.assignment(k) for k in chosen.tolist()]


def _best_of_phase(
    request: Request, table: CandidateTable, rank: IntArray, role: str
) -> tuple[Layouts, list[Assignment]]:
    """The best of one phase of the meshes of each group and each format of the cache."""
    slot = {PREFILL: slots.PREFILL, DECODE: slots.DECODE}[role]
    is_front = role == PREFILL and request.targets.ttft_s is not None

    def choosing(posed: BlockProgram, columns: IntArray, group: IntArray) -> IntArray:
        token = posed.quantities["throughput"][1][columns]
        delay: FloatArray = posed.quantities.facts.of_column["pass_s"][columns]
        if is_front:
            n_groups = int(group.max(initial=-1)) + 1
            return np.flatnonzero(~dominated([token, delay], group, n_groups))
        return least(group, posed.program.column_objective[columns], token, delay)

    posing = Posing(table, request, Objective(objective=request.objective))
    posed = _chosen_of_slot(posing, slot, choosing)
    context = posed.program.column_context
    number = posed.number[context]
    cached = sorted({pair.kv for pair in table.formats})
    kv = np.array([cached.index(pair.kv) for pair in table.formats])
    group = rank[table.contexts.mesh[number]] * len(cached) + kv[table.contexts.formats[number]]
    best = choosing(posed, np.arange(posed.program.n_columns), group)
    delay = posed.quantities.facts.of_column["pass_s"][best]
    best = best[np.lexsort([delay, group[best]])]
    layouts = Layouts(
        request=request, table=table, posed=posed, n_candidates=table.n_offered_to(role), role=role
    )
    return layouts, [Assignment(context=int(context[j]), columns=(j,)) for j in best.tolist()]


Choosing = Callable[[BlockProgram, IntArray, IntArray], IntArray]
"""Which of some columns no other of their group outdoes: places among them, ascending."""


def _chosen_of_slot(source: Posing, slot: int, choosing: Choosing) -> BlockProgram:
    """Of each context the columns of one slot that are worth something, while there is time.

    A replica that does one phase holds what that phase holds, and keeps the limits of that phase.
    So the columns of the other slot, the rows of the memory that both share, and the limits on the
    other slot do not bind it: what is left of a program is its columns, each of which fits by
    itself.
    """
    parts: list[BlockProgram] = []
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
    return np.sort(order[np.flatnonzero(np.diff(group[order], prepend=-1))])


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
