"""Speculative decoding as one more choice of decode: how far to draft, and where the draft runs.

The draft model runs on the mesh of the target, in a layout of its own, beside the target's
weights and cache in the same memory. For each mesh, format and batch the draft's layouts
are reduced to those that no other beats in both time and bytes; a *variant* of decode is a
lookahead with one of them. A variant looks to the program like any decode: a time per
token, and bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.equations.speculation import expected_tokens, n_scored
from planner.estimates.phases import (
    AT_ONCE,
    NumberFormats,
    PhaseCandidates,
    evaluate_phase,
    format_costs,
    passes,
)
from planner.estimates.steps import Machine
from planner.layouts.geometry import LayoutTable, Pass, geometry
from planner.layouts.layer import resident_weight_bytes
from planner.layouts.options import all_layouts
from planner.running.deadlines import check
from planner.specs.ask.targets import Speculation
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec, Workload

MOST_COMPARED = 4_000_000
"""Pairs of layouts times batches that are compared together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeVariant:
    """One way to decode.

    Args:
        n_drafted: tokens that a draft model proposes before each pass; 0 without one.
        rank: which of the draft's layouts, see `DraftTable`.
    """

    n_drafted: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DraftTable:
    """The draft's layouts on the meshes of the target.

    Args:
        speculation: how far it may draft.
        work: tokens of a decode pass without a draft.
        arms: all its layouts, (A,).
        formats: its number formats for each pair of the target's.
        chosen: rows of `arms` worth keeping, by format, mesh and rank, (F, M, R); -1 for none.
        pass_s: time of one pass for one token each, (F, M, R, B) [s]; infinite for none.
        held_bytes: weights, cache and activations of the busiest device, alike [bytes].
    """

    speculation: Speculation
    work: Pass
    arms: LayoutTable
    formats: tuple[NumberFormats, ...]
    chosen: IntArray
    pass_s: FloatArray
    held_bytes: FloatArray

    @property
    def variants(self) -> tuple[DecodeVariant, ...]:
        """Each lookahead with each rank of layout."""
        ranks = range(self.chosen.shape[2])
        lookaheads = self.speculation.lookaheads
        return tuple(DecodeVariant(n_drafted=n, rank=rank) for n in lookaheads for rank in ranks)

    def decodes(
        self, target: tuple[IntArray, IntArray], verify: Callable[[Pass], PhaseCandidates]
    ) -> Iterator[PhaseCandidates]:
        """Every variant of decode of some arms of the target.

        Args:
            target: their meshes and their formats, (N,) each.
            verify: evaluates their passes that score what was drafted.
        """
        mesh, formats = target
        convention = self.speculation.convention
        for n_drafted in self.speculation.lookaheads:
            scored = n_scored(n_drafted, convention=convention)
            yields = expected_tokens(n_drafted, self.speculation.acceptance, convention=convention)
            scoring = verify(replace(self.work, n_new_tokens=float(scored)))
            for rank in range(self.chosen.shape[2]):
                draft_s = self.pass_s[formats, mesh, rank]
                held = self.held_bytes[formats, mesh, rank]
                yield replace(
                    scoring,
                    pass_s=(scoring.pass_s + n_drafted * draft_s) / yields,
                    kv_bytes=scoring.kv_bytes + held,
                    written_bytes=scoring.written_bytes + held,  # it is there in every phase
                )


def draft_table(
    machine: Machine,
    targets: Sequence[NumberFormats],
    workload: Workload,
    batches: IntArray,
    speculation: Speculation,
) -> DraftTable:
    """Evaluate the draft everywhere, some meshes at a time, and keep its layouts worth it.

    Args:
        targets: pairs of formats that the target may take.
    """
    draft, work = speculation.draft, passes(workload)["decode"]
    arms = all_layouts(machine.meshes, moe=draft.moe)
    formats = tuple(_draft_formats(draft, pair) for pair in targets)
    ends = np.searchsorted(arms.mesh, np.arange(len(machine.meshes) + 1)).tolist()
    drafts: dict[tuple[int, int], tuple[IntArray, FloatArray, FloatArray]] = {}
    for meshes in _runs(ends, max(1, AT_ONCE // len(batches))):
        check()
        rows = np.arange(ends[meshes.start], ends[meshes.stop])
        times, held = _evaluated(draft, machine, arms.take(rows), formats, (work, batches))
        for mesh in meshes:
            here = np.arange(ends[mesh], ends[mesh + 1]) - rows[:1]
            for f in range(len(formats)):
                good = here[_undominated(times[f, here], held[f, here])]
                drafts[f, mesh] = rows[good], times[f, good], held[f, good]
    n_ranks = max((len(rows) for rows, _, _ in drafts.values()), default=0)
    size = len(formats), len(machine.meshes), n_ranks
    chosen = np.full(size, -1, dtype=np.int64)
    pass_s, held_bytes = (np.full((*size, len(batches)), np.inf) for _ in range(2))
    for (f, mesh), (rows, time, n_bytes) in drafts.items():
        chosen[f, mesh, : len(rows)] = rows
        pass_s[f, mesh, : len(rows)], held_bytes[f, mesh, : len(rows)] = time, n_bytes
    return DraftTable(
        speculation=speculation,
        work=work,
        arms=arms,
        formats=formats,
        chosen=chosen,
        pass_s=pass_s,
        held_bytes=held_bytes,
    )


def _runs(ends: Sequence[int], most: int) -> Iterator[range]:
    """Neighbouring meshes with no more layouts together, or one mesh that has more."""
    first = 0
    for mesh in range(1, len(ends)):
        if mesh == len(ends) - 1 or ends[mesh + 1] - ends[first] > most:
            yield range(first, mesh)
            first = mesh


def _evaluated(
    draft: ModelSpec,
    machine: Machine,
    arms: LayoutTable,
    formats: Sequence[NumberFormats],
    tokens: tuple[Pass, IntArray],
) -> tuple[FloatArray, FloatArray]:
    """Seconds and bytes of some of the draft's layouts in every format, (F, A, B)."""
    n_formats, n_arms = len(formats), len(arms)
    costs = np.repeat(format_costs(machine.device, formats), n_arms, axis=1)
    each = arms.take(np.tile(np.arange(n_arms), n_formats))
    phase = evaluate_phase(draft, machine, each, *tokens, costs)
    widths = (np.array([[FORMAT_BYTES[pair.weights]]]) for pair in formats)
    shape = geometry(arms, machine.meshes)
    weights = np.stack([resident_weight_bytes(draft, shape, width) for width in widths])
    size = n_formats, n_arms, -1
    held = weights + phase.kv_bytes.reshape(size) + phase.working_bytes.reshape(size)
    return phase.pass_s.reshape(size), held


def _draft_formats(draft: ModelSpec, target: NumberFormats) -> NumberFormats:
    """As the draft is published: in the target's format if it is one of those, else the first."""
    weights = target.weights if target.weights in draft.published_weights else None
    return NumberFormats(weights=weights or draft.published_weights[0], kv=draft.kv_format)


def _undominated(time: FloatArray, size: FloatArray) -> BoolArray:
    """Rows (A, B) that at some batch no other row matches in both, earlier rows first."""
    earlier = np.arange(len(time))[:, None] < np.arange(len(time))[None]
    kept = np.zeros(len(time), dtype=np.bool_)
    at_once = max(1, MOST_COMPARED // max(1, len(time)) ** 2)
    for first in range(0, time.shape[1], at_once):
        t, n = time[:, first : first + at_once], size[:, first : first + at_once]
        no_slower, no_larger = t[:, None] <= t[None], n[:, None] <= n[None]
        better = (t[:, None] < t[None]) | (n[:, None] < n[None])
        beats = no_slower & no_larger & (better | earlier[..., None])
        stands = np.logical_not(beats.any(axis=0))
        kept |= np.asarray(np.logical_or.reduce(stands, axis=1))
    return kept
