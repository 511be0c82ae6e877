"""Every choice of both phases, with its seconds and bytes, as arrays.

An *arm* is a layout in one pair of number formats; a candidate is an arm at one batch. Arms
that share mesh, weights at rest and formats share a *context*: one deployment picks a context, and
in it one candidate for prefill and one for decode. Where a switch is counted off along two axes, a
context may also say which phase has to tell them apart.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.networks import network_table
from planner.estimates.phases import (
    NONE,
    Margins,
    NumberFormats,
    PhaseCandidates,
    evaluate_phase,
    format_costs,
    formats_of,
    margins_of,
    passes,
)
from planner.estimates.speculation import DecodeVariant, DraftTable, draft_table
from planner.estimates.steps import Machine
from planner.layouts.degrees import have_degrees, have_name
from planner.layouts.geometry import LayoutTable, Pass, geometry
from planner.layouts.layer import resident_weight_bytes
from planner.layouts.options import MICROBATCHES, all_layouts, n_offered, offered
from planner.specs.ask.request import Request
from planner.specs.ask.targets import ANY_LAYOUTS, FREE, Degrees, Layouts, Speculation
from planner.specs.records.devices import FORMAT_BYTES, ClusterSpec, ModelSpec, Workload
from planner.topology.meshes import MeshTable, mesh_table

BLOCK = 262_144
"""Candidates of a block: they are evaluated, screened and forgotten together."""

MOST_REMEMBERED = 2_000_000
"""Candidates of blocks that are kept for the next look at them, 24 bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contexts:
    """Ways to use the pool, shape (K,): mesh, formats, how weights rest."""

    mesh: IntArray
    stored: IntArray
    data: IntArray
    sliced: IntArray
    formats: IntArray
    weight_bytes: FloatArray
    n_devices: IntArray

    def __len__(self) -> int:
        return len(self.mesh)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """All candidates of some contexts, evaluated.

    Args:
        arms: which of the table's arms they are, ascending (N,).
        prefill: seconds and bytes of prefill.
        decodes: of each way to decode: time per token, and bytes with the draft's.
    """

    arms: IntArray
    prefill: PhaseCandidates
    decodes: tuple[PhaseCandidates, ...]

    @property
    def n_candidates(self) -> int:
        return sum(phase.pass_s.size for phase in (self.prefill, *self.decodes))


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateTable:
    """All candidates of a request: which there are, and, block by block, what they take.

    A block has all arms of its contexts, and all formats of its layouts, so that each layout is
    evaluated once for all of them.

    Args:
        model, machine, workload: what runs where, on which requests.
        formats: pairs of formats to choose from.
        arms: layouts, (N,); `arm_formats` and `context` index formats and contexts.
        prefill_batches, batches: of both phases, int[B].
        variants: ways to decode; the first is without a draft.
        drafts: the draft's layouts, `None` without one.
        n_too_large: arms left out because their weights alone do not fit.
        asked: layouts that phases must have.
        margins: planned over predicted time of passes.
    """

    model: ModelSpec
    machine: Machine
    workload: Workload
    formats: tuple[NumberFormats, ...]
    arms: LayoutTable
    arm_formats: IntArray
    context: IntArray
    contexts: Contexts
    prefill_batches: IntArray
    batches: IntArray
    variants: tuple[DecodeVariant, ...]
    drafts: DraftTable | None
    n_too_large: int
    asked: Layouts = ANY_LAYOUTS
    margins: Margins = NONE
    remembered: dict[int, Block] = field(default_factory=dict)

    @property
    def n_candidates(self) -> int:
        """What phases are offered of all arms, whether they fit or not."""
        n_decodes = len(self.variants) * self.n_offered_to("decode")
        return self.n_offered_to("prefill") + n_decodes

    def n_offered_to(self, phase: str) -> int:
        """Arms that a phase is offered at its batches, whether they fit or not."""
        batches = self.prefill_batches if phase == "prefill" else self.batches
        named = self._named.get(phase)
        arms = self.arms if named is None else self.arms.take(np.flatnonzero(named))
        return n_offered(self.machine.meshes, arms, phase, batches)

    @property
    def n_of_arm(self) -> int:
        """Candidates of one arm."""
        return len(self.prefill_batches) + len(self.variants) * len(self.batches)

    def blocks(self) -> Iterator[Block]:
        """Everything, evaluated block by block; the first blocks are remembered.

        Blocks of few devices and of many take turns, so that whatever is good is met early.
        """
        for start in spread(list(self._runs)):
            arms, block = self._runs[start], self.remembered.get(start)
            if block is None:
                block = self.block(arms)
                known = sum(one.n_candidates for one in self.remembered.values())
                if known + block.n_candidates <= MOST_REMEMBERED:
                    self.remembered[start] = block
            yield block

    def block_of(self, contexts: IntArray) -> Block:
        """Some contexts, evaluated anew."""
        return self.block(np.flatnonzero(np.isin(self.context, contexts)))

    def block(self, arms: IntArray) -> Block:
        layouts, costs = self.arms.take(arms), self._costs[:, arms]
        work = passes(self.workload, self.model.n_diffusion_passes)

        def phase(name: str, single: Pass, batches: IntArray) -> PhaseCandidates:
            candidates = evaluate_phase(self.model, self.machine, layouts, single, batches, costs)
            if single.n_times != 1.0:
                candidates = candidates.lengthened(single.n_times)
            candidates.pass_s[~offered(self.machine.meshes, layouts, name, batches)] = np.inf
            if name in self._named:
                candidates.pass_s[~self._named[name][arms]] = np.inf
            return candidates

        def decode(single: Pass) -> PhaseCandidates:
            return phase("decode", single, self.batches)

        decodes = [decode(work["decode"])]
        if self.drafts is not None:
            target = layouts.mesh, self.arm_formats[arms]
            decodes += self.drafts.decodes(target, decode)
        prefill = phase("prefill", work["prefill"], self.prefill_batches)
        if self.margins != NONE:
            prefill = prefill.lengthened(self.margins.prefill)
            factor = self.margins.decode_on(self.machine.meshes.n_devices[layouts.mesh])
            decodes = [one.lengthened(factor) for one in decodes]
        return Block(arms=arms, prefill=prefill, decodes=tuple(decodes))

    @cached_property
    def _named(self) -> dict[str, BoolArray]:
        """Of each phase whose layout is asked for by name, the arms that have it, (N,)."""
        return {
            phase: have_name(self.model, self.arms, self.machine.meshes, layout)
            for phase, layout in self.asked.fixed().items()
        }

    @cached_property
    def _costs(self) -> FloatArray:
        return format_costs(self.machine.device, self.formats)[:, self.arm_formats]

    @cached_property
    def _runs(self) -> dict[int, IntArray]:
        """Arms of each block by the place where it starts in the order of contexts.

        Contexts that differ in formats only stay together: their layouts are the same.
        """
        if not len(self.arms):
            return {0: np.zeros(0, dtype=np.int64)}
        contexts = self.contexts
        keys = (contexts.sliced, contexts.data, contexts.stored, contexts.mesh)
        rank = np.lexsort(keys)
        same = np.logical_and.reduce([key[rank][1:] == key[rank][:-1] for key in keys])
        family = np.empty(len(contexts), dtype=np.int64)
        family[rank] = np.cumsum(np.append(0, ~same))[: len(contexts)]
        order = np.argsort(family[self.context], kind="stable")
        ends = np.flatnonzero(np.append(np.diff(family[self.context][order]), 1)) + 1
        runs, start, most = {}, 0, max(1, BLOCK // self.n_of_arm)
        for end, next_end in zip(ends.tolist(), [*ends[1:].tolist(), math.inf], strict=True):
            if next_end - start > most:
                runs[start] = np.sort(order[start:end])
                start = end
        return runs


def machine_of(cluster: ClusterSpec, model: ModelSpec) -> Machine:
    """The pool's meshes with their network.

    Of pipelines that give the busiest stage equally many layers only the shortest is kept:
    longer ones use more devices and take more stage times for the same work.
    """
    meshes = mesh_table(cluster, max_stages=model.n_layers)
    stages = meshes.n_stages
    busiest = np.ceil(model.n_layers / stages)
    shortest = np.ceil(model.n_layers / busiest) == stages
    kept = meshes if shortest.all() else meshes.take(np.flatnonzero(shortest))
    return Machine(device=cluster.device, meshes=kept, network=network_table(kept, cluster.fabric))


def usable_bytes(machine: Machine, *, scale: float = 1.0) -> float:
    """Memory of a device that a plan may fill, had it `scale` times as much [bytes]."""
    return machine.device.hbm_bytes * scale - machine.device.reserve_bytes


def candidate_table(
    model: ModelSpec,
    machine: Machine,
    workload: Workload,
    *,
    formats: Sequence[NumberFormats],
    batches: Sequence[int],
    prefill_batches: Sequence[int],
    weights_within: tuple[float, float] = (0.0, 1.0),
    degrees: Degrees = FREE,
    layouts_asked: Layouts = ANY_LAYOUTS,
    speculation: Speculation | None = None,
    margins: Margins = NONE,
) -> CandidateTable:
    """Every layout in every format, to be evaluated at every batch of both phases.

    Args:
        model, machine, workload: what runs where, on which requests.
        formats: pairs of number formats to choose from.
        batches: decode batches to choose from.
        prefill_batches: prefill batches to choose from.
        weights_within: multiples of a device's memory: only arms whose weights alone need
            more than the first and at most the second. An explanation looks beyond one.
        degrees: only layouts that divide the model so.
        layouts_asked: only these of each phase.
        speculation: a draft model that decode may use; none without it.
        margins: planned over predicted time of passes.
    """
    layouts = all_layouts(machine.meshes, microbatches=MICROBATCHES, moe=model.moe)
    kept = have_degrees(model, layouts, machine.meshes, degrees)
    layouts = layouts if kept.all() else layouts.take(np.flatnonzero(kept))
    n_layouts, n_formats = len(layouts), len(formats)
    rows = np.tile(np.arange(n_layouts), n_formats)
    arm_formats = np.repeat(np.arange(n_formats), n_layouts)
    weight_bytes = _weight_bytes(model, machine.meshes, layouts, formats)
    more, most = (usable_bytes(machine, scale=scale) for scale in weights_within)
    fits = (weight_bytes > more) & (weight_bytes <= most)
    arms, arm_formats = layouts.take(rows[fits]), arm_formats[fits]
    contexts, context = _contexts(machine, arms, arm_formats, weight_bytes[fits])
    sizes = np.asarray(batches, dtype=np.int64)
    drafts = None
    if speculation is not None:
        drafts = draft_table(machine, tuple(formats), workload, sizes, speculation)
    return CandidateTable(
        model=model,
        machine=machine,
        workload=workload,
        formats=tuple(formats),
        arms=arms,
        arm_formats=arm_formats,
        context=context,
        contexts=contexts,
        prefill_batches=np.asarray(prefill_batches, dtype=np.int64),
        batches=sizes,
        variants=(DecodeVariant(n_drafted=0, rank=0), *(drafts.variants if drafts else ())),
        drafts=drafts,
        n_too_large=int(np.count_nonzero(weight_bytes > most)),
        asked=layouts_asked,
        margins=margins,
    )


def _weight_bytes(
    model: ModelSpec, meshes: MeshTable, layouts: LayoutTable, formats: Sequence[NumberFormats]
) -> FloatArray:
    """Weights at rest of every layout in every format, formats one after the other."""
    shape = geometry(layouts, meshes)
    return np.concatenate(
        [
            resident_weight_bytes(model, shape, np.array([[FORMAT_BYTES[pair.weights]]]))[:, 0]
            for pair in formats
        ]
    )


def _contexts(
    machine: Machine, arms: LayoutTable, arm_formats: IntArray, weight_bytes: FloatArray
) -> tuple[Contexts, IntArray]:
    """Distinct (mesh, formats, weights at rest), and which of them each arm belongs to."""
    ways = (arms.mesh, arm_formats, arms.stored, arms.data, arms.sliced, arms.apart)
    keys = np.stack(ways, axis=1)
    unique, first, context = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return (
        Contexts(
            mesh=unique[:, 0],
            formats=unique[:, 1],
            stored=unique[:, 2],
            data=unique[:, 3],
            sliced=unique[:, 4],
            weight_bytes=weight_bytes[first],
            n_devices=machine.meshes.n_devices[unique[:, 0]],
        ),
        context.reshape(-1),
    )


def alone_bytes(table: CandidateTable, block: Block, phase: PhaseCandidates) -> FloatArray:
    """What candidates take of a device by themselves, weights included, (N, B) [bytes]."""
    weights = table.contexts.weight_bytes[table.context[block.arms]]
    return np.asarray(weights[:, None] + phase.kv_bytes + phase.working_bytes)


def spread(values: Sequence[int]) -> list[int]:
    """Values in an order in which those that are near each other come far apart.

    Their places are sorted by the bits of their numbers, the last bit first.

    >>> spread([0, 1, 2, 3, 4, 5, 6])
    [0, 4, 2, 6, 1, 5, 3]
    """
    n_bits = max(1, (len(values) - 1).bit_length())
    return [values[i] for i in sorted(range(len(values)), key=lambda i: f"{i:0{n_bits}b}"[::-1])]


def table_of(
    request: Request, machine: Machine, *, weights_within: tuple[float, float] = (0.0, 1.0)
) -> CandidateTable:
    """Every layout, format, batch and lookahead of a request.

    Args:
        request: what was asked.
        machine: the pool's meshes and network.
        weights_within: see `candidate_table`.
    """
    return candidate_table(
        request.model,
        machine,
        request.workload,
        formats=formats_of(request),
        batches=request.batches,
        prefill_batches=request.prefill_batches,
        weights_within=weights_within,
        degrees=request.targets.degrees,
        layouts_asked=request.targets.layouts,
        speculation=request.speculation,
        margins=margins_of(request),
    )
