"""Speculative decoding as one more choice of decode: how far to draft, and where the draft runs.

The draft model runs on the mesh of the target, in a layout of its own, beside the target's
weights and cache in the same memory. For each mesh, format and batch the draft's layouts
are reduced to those that no other beats in both time and bytes; a *variant* of decode is a
lookahead with one of them. A variant looks to the program like any decode: a time per
token, and bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.equations.speculation import expected_tokens, n_scored
from planner.estimates.candidates import (
    CandidateTable,
    DecodeVariant,
    DraftTable,
    NumberFormats,
    evaluate_phase,
    format_costs,
    passes,
)
from planner.layouts.geometry import geometry
from planner.layouts.layer import resident_weight_bytes
from planner.layouts.options import all_layouts
from planner.layouts.table import LayoutTable
from planner.specs.records import FORMAT_BYTES, ModelSpec, Workload
from planner.specs.request import Speculation


def with_speculation(
    table: CandidateTable, model: ModelSpec, workload: Workload, speculation: Speculation
) -> CandidateTable:
    """The table with a variant of decode for each lookahead and each rank of draft layout."""
    drafts = draft_table(table, workload, speculation)
    work = passes(workload)["decode"]
    costs = format_costs(table.machine.device, table.formats)[:, table.arm_formats]
    variants = list(table.variants)
    not_offered = np.where(np.isfinite(table.decode.pass_s), 0.0, np.inf)
    for n_drafted in speculation.lookaheads:
        scored = n_scored(n_drafted, convention=speculation.convention)
        yields = expected_tokens(
            n_drafted, speculation.acceptance, convention=speculation.convention
        )
        verify = evaluate_phase(
            model,
            table.machine,
            table.arms,
            replace(work, n_new_tokens=float(scored)),
            table.decode.batches,
            costs,
        )
        for rank in range(drafts.n_ranks):
            draft_s = drafts.pass_s[table.arm_formats, table.arms.mesh, rank]
            held = drafts.held_bytes[table.arm_formats, table.arms.mesh, rank]
            variants.append(
                DecodeVariant(
                    n_drafted=n_drafted,
                    rank=rank,
                    candidates=replace(
                        verify,
                        pass_s=(verify.pass_s + n_drafted * draft_s) / yields + not_offered,
                        kv_bytes=verify.kv_bytes + held,
                    ),
                )
            )
    return replace(table, variants=tuple(variants), drafts=drafts)


def draft_table(table: CandidateTable, workload: Workload, speculation: Speculation) -> DraftTable:
    """Evaluate the draft everywhere, and keep its layouts that are worth it."""
    draft, machine = speculation.draft, table.machine
    arms = all_layouts(machine.meshes, moe=draft.moe)
    work, batches = passes(workload)["decode"], table.decode.batches
    formats = tuple(_draft_formats(draft, pair) for pair in table.formats)
    times, bytes_held = [], []
    for costs, pair in zip(format_costs(machine.device, formats).T, formats, strict=True):
        phase = evaluate_phase(
            draft, machine, arms, work, batches, np.repeat(costs[:, None], len(arms), axis=1)
        )
        width = np.array([[FORMAT_BYTES[pair.weights]]])
        weights = resident_weight_bytes(draft, geometry(arms, machine.meshes), width)
        times.append(phase.pass_s)
        bytes_held.append(weights + phase.kv_bytes + phase.working_bytes)
    chosen = _worth_keeping(arms, len(machine.meshes), times, bytes_held)
    row = np.maximum(chosen, 0)
    by_format = np.arange(len(formats))[:, None, None]
    absent = (chosen < 0)[..., None]
    return DraftTable(
        arms=arms,
        formats=formats,
        chosen=chosen,
        pass_s=np.where(absent, np.inf, np.stack(times)[by_format, row]),
        held_bytes=np.where(absent, np.inf, np.stack(bytes_held)[by_format, row]),
    )


def _draft_formats(draft: ModelSpec, target: NumberFormats) -> NumberFormats:
    """The target's format where the draft has it, else the draft's own first."""
    weights = target.weights if target.weights in draft.weights_formats else None
    return NumberFormats(weights=weights or draft.weights_formats[0], kv=draft.kv_format)


def _worth_keeping(
    arms: LayoutTable, n_meshes: int, times: Sequence[FloatArray], held: Sequence[FloatArray]
) -> IntArray:
    """Rows of each format and mesh that are best at some batch, (F, M, R), padded with -1."""
    rows = [
        [
            members[_undominated(time[members], size[members])]
            for members in (np.flatnonzero(arms.mesh == mesh) for mesh in range(n_meshes))
        ]
        for time, size in zip(times, held, strict=True)
    ]
    n_ranks = max((len(kept) for of_format in rows for kept in of_format), default=0)
    padded = [
        [np.pad(kept, (0, n_ranks - len(kept)), constant_values=-1) for kept in of_format]
        for of_format in rows
    ]
    return np.array(padded, dtype=np.int64).reshape(len(times), n_meshes, n_ranks)


def _undominated(time: FloatArray, size: FloatArray) -> BoolArray:
    """Rows (A, B) that at some batch no other row matches in both, earlier rows first."""
    no_slower = time[:, None] <= time[None]
    no_larger = size[:, None] <= size[None]
    better = (time[:, None] < time[None]) | (size[:, None] < size[None])
    earlier = np.arange(len(time))[:, None] < np.arange(len(time))[None]
    beats = no_slower & no_larger & (better | earlier[..., None])
    survives = np.logical_not(beats.any(axis=0))
    kept: BoolArray = np.logical_or.reduce(survives, axis=1)
    return kept
