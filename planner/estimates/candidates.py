"""Every choice of both phases, with its seconds and bytes, as arrays.

An *arm* is a layout in one pair of number formats; a candidate is an arm at one batch. Arms
that share mesh, weights at rest and formats share a *context*: one deployment picks a context, and
in it one candidate for prefill and one for decode. Where a switch is counted off along two axes, a
context may also say which phase has to tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.networks import network_table
from planner.estimates.steps import ONE_BYTE, Formats, Machine, pass_times, peak_of, stage_work
from planner.layouts.degrees import have_degrees
from planner.layouts.geometry import Pass, geometry
from planner.layouts.layer import residence, resident_weight_bytes
from planner.layouts.options import all_layouts, offered
from planner.layouts.table import LayoutTable
from planner.specs.records import FORMAT_BYTES, ClusterSpec, DeviceSpec, ModelSpec, Workload
from planner.specs.targets import FREE, Degrees
from planner.topology.meshes import MeshTable, mesh_table

MICROBATCHES = (1, 2, 4, 8, 16, 32, 64)
"""Parts that a pass through a pipeline may be cut into."""

PHASES = ("prefill", "decode")

BLOCK_CANDIDATES = 32_768
"""Candidates that are evaluated together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseCandidates:
    """One phase of all arms at all batches.

    Args:
        batches: batches considered, (B,).
        pass_s: time of one pass, (N, B) [s]; infinite where the phase is not offered the layout.
        kv_bytes: cache of the batch on the busiest device, (N, B) [bytes].
        working_bytes: activations and gathered weights during a pass, (N, B) [bytes].
    """

    batches: IntArray
    pass_s: FloatArray
    kv_bytes: FloatArray
    working_bytes: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeVariant:
    """One way to decode, of all arms at all batches.

    Args:
        n_drafted: tokens that a draft model proposes before each pass; 0 without one.
        rank: which of the draft's layouts, see `DraftTable`.
        candidates: time per token, and bytes with the draft's.
    """

    n_drafted: int
    rank: int
    candidates: PhaseCandidates


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormats:
    """Formats of a candidate's weights and of its KV cache, by name."""

    weights: str
    kv: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DraftTable:
    """The draft's layouts on the meshes of the target.

    Args:
        arms: all its layouts, (A,).
        formats: its number formats for each pair of the target's.
        chosen: rows of `arms` worth keeping, by format, mesh and rank, (F, M, R); -1 for none.
        pass_s: time of one pass for one token each, (F, M, R, B) [s]; infinite for none.
        held_bytes: weights, cache and activations of the busiest device, alike [bytes].
    """

    arms: LayoutTable
    formats: tuple[NumberFormats, ...]
    chosen: IntArray
    pass_s: FloatArray
    held_bytes: FloatArray

    @property
    def n_ranks(self) -> int:
        return int(self.chosen.shape[2])


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
class CandidateTable:
    """All candidates of a request.

    Args:
        machine: what they run on.
        formats: pairs of formats to choose from.
        arms: layouts, (N,); `arm_formats` and `context` index formats and contexts.
        prefill: seconds and bytes of prefill.
        variants: ways to decode; the first is without a draft.
        drafts: the draft's layouts, `None` without one.
        n_too_large: arms left out because their weights alone do not fit.
    """

    machine: Machine
    formats: tuple[NumberFormats, ...]
    arms: LayoutTable
    arm_formats: IntArray
    context: IntArray
    contexts: Contexts
    prefill: PhaseCandidates
    variants: tuple[DecodeVariant, ...]
    drafts: DraftTable | None
    n_too_large: int

    @property
    def decode(self) -> PhaseCandidates:
        """Decode without a draft."""
        return self.variants[0].candidates


def passes(workload: Workload) -> dict[str, Pass]:
    """Tokens of a pass of each phase; decode is taken at its mean context."""
    n_input = float(workload.n_input_tokens)
    return {
        "prefill": Pass(n_new_tokens=n_input, n_context_tokens=n_input, n_cached_tokens=n_input),
        "decode": Pass(
            n_new_tokens=1.0,
            n_context_tokens=workload.mean_decode_context,
            n_cached_tokens=float(workload.n_cached_tokens),
        ),
    }


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
) -> CandidateTable:
    """Evaluate every layout in every format at every batch of both phases.

    Args:
        model, machine, workload: what runs where, on which requests.
        formats: pairs of number formats to choose from.
        batches: decode batches to choose from.
        prefill_batches: prefill batches to choose from.
        weights_within: multiples of a device's memory: only arms whose weights alone need
            more than the first and at most the second. An explanation looks beyond one.
        degrees: only layouts that divide the model so.
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
    costs = format_costs(machine.device, formats)[:, arm_formats]
    work = passes(workload)

    def phase(name: str, choices: Sequence[int]) -> PhaseCandidates:
        sizes = np.asarray(choices, dtype=np.int64)
        found = evaluate_phase(model, machine, arms, work[name], sizes, costs)
        is_offered = offered(machine.meshes, arms, name, sizes)
        return replace(found, pass_s=np.where(is_offered, found.pass_s, np.inf))

    return CandidateTable(
        machine=machine,
        formats=tuple(formats),
        arms=arms,
        arm_formats=arm_formats,
        context=context,
        contexts=contexts,
        prefill=phase("prefill", prefill_batches),
        variants=(DecodeVariant(n_drafted=0, rank=0, candidates=phase("decode", batches)),),
        drafts=None,
        n_too_large=int(np.count_nonzero(weight_bytes > most)),
    )


def format_costs(device: DeviceSpec, formats: Sequence[NumberFormats]) -> FloatArray:
    """Bytes of a weight, bytes of a cached number, peak of the products, (3, formats)."""
    return np.array(
        [
            [FORMAT_BYTES[pair.weights] for pair in formats],
            [FORMAT_BYTES[pair.kv] for pair in formats],
            [peak_of(device, pair.weights) for pair in formats],
        ]
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


def evaluate_phase(
    model: ModelSpec,
    machine: Machine,
    arms: LayoutTable,
    work: Pass,
    batches: IntArray,
    costs: FloatArray,
) -> PhaseCandidates:
    """Evaluate each layout once for all its formats, block by block.

    Formats that cost the same are one. Arrays that stay in the cache are twice as fast.

    Args:
        costs: of the formats of each arm, see `format_costs`, (3, N).
    """
    size = (len(arms), len(batches))
    pass_s, kv_bytes, working_bytes = np.empty(size), np.empty(size), np.empty(size)
    n_sequences = batches[None, :].astype(float)
    layouts, layout = arms.distinct()
    prices, price = np.unique(costs, axis=1, return_inverse=True)
    price = price.reshape(-1)
    order = np.argsort(layout, kind="stable")
    block = max(1, BLOCK_CANDIDATES // len(batches))
    for start in range(0, len(layouts), block):
        rows = np.arange(start, min(start + block, len(layouts)))
        part = layouts.take(rows)
        shape = geometry(part, machine.meshes)
        stage = stage_work(model, machine, part, shape, work, n_sequences)
        held = residence(
            model,
            shape,
            work,
            n_sequences=n_sequences,
            weight_bytes_per_number=ONE_BYTE,
            kv_bytes_per_number=ONE_BYTE,
        )
        first, last = np.searchsorted(layout, [start, start + len(rows)], sorter=order)
        here = order[first:last]
        for which in np.unique(price[here]).tolist():
            mine = here[price[here] == which]
            weight, cached, peak = prices[:, which].reshape(3, 1, 1)
            inside, again = np.unique(layout[mine] - start, return_inverse=True)
            formats = Formats(weight_bytes=weight, kv_bytes=cached, peak_flop_per_s=peak)
            times = pass_times(machine, stage.take(inside), formats)
            pass_s[mine] = np.broadcast_to(times, (len(inside), len(batches)))[again]
            at = layout[mine] - start
            kv_bytes[mine] = (held.kv_bytes * cached)[at]
            gathered = held.gather_bytes * weight
            working_bytes[mine] = (held.activation_bytes + gathered)[at]
    return PhaseCandidates(
        batches=batches, pass_s=pass_s, kv_bytes=kv_bytes, working_bytes=working_bytes
    )


def format_pairs(
    weights_formats: Sequence[str], kv_formats: Sequence[str]
) -> tuple[NumberFormats, ...]:
    """Every weights format with every cache format."""
    return tuple(NumberFormats(weights=w, kv=kv) for w in weights_formats for kv in kv_formats)


def fitting(table: CandidateTable, chosen: PhaseCandidates, room_bytes: float) -> BoolArray:
    """Candidates that fit a device by themselves, weights included, (N, B)."""
    weights = table.contexts.weight_bytes[table.context]
    held = weights[:, None] + chosen.kv_bytes + chosen.working_bytes
    return np.asarray(held <= room_bytes)
