"""Batches and chunks that each cut of a model is offered with, by what it does of a request."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray, joined_arrays
from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.estimates.serving.traffic import Traffic, parts_of
from planner.specs.ask.engine import CHUNKS, OVERLAPS, SMALL_CHUNKS, EngineRequest
from planner.specs.records.roles import DECODE, PREFILL

ROWS_AT_ONCE = 1 << 15
"""Rows timed at once: arrays of a pass then fit a processor's cache; found by trying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Batches and chunks, (G,) each.

    Args:
        batch: of an attention rank; where it is `by_stage`, of each stage, and 0 for one request
            in all of them.
    """

    batch: FloatArray
    chunk_tokens: FloatArray
    by_stage: bool = False


def grid_of(request: EngineRequest, traffic: Traffic, *, mixes_prefill: bool) -> Grid:
    """What is offered: of one phase no more than makes a difference.

    Where no prompt is read the chunk is room for buffers alone, so that the least will do. Small
    chunks make room for answers in the same pass, so that without these nobody is offered them
    who did not name them. No target decides what is offered: a stricter one would offer more, and
    might have the better plan. Prompts
    share a pass as far as it has room for them, whatever batches are offered for decode: one,
    twice as many each time, and all that share one.
    """
    if traffic.role == PREFILL:
        return _of_prompts(request, traffic)
    chunks = request.chunks if mixes_prefill else _usual(request)
    chunks = (min(chunks),) if traffic.role == DECODE else chunks
    batches = whole_requests(request.batches, traffic)
    batch, chunk = (axis.ravel() for axis in np.meshgrid(batches, chunks, indexing="ij"))
    return Grid(batch=batch, chunk_tokens=chunk)


def whole_requests(batches: Sequence[int], traffic: Traffic) -> tuple[int, ...]:
    """Of batches those in which no request lacks a sample."""
    return tuple(n for n in batches if n % traffic.n_sequences == 0)


def _usual(request: EngineRequest) -> tuple[int, ...]:
    """All chunks that were asked for; of those that nobody named not the small ones."""
    return request.chunks if request.chunks != CHUNKS else CHUNKS[len(SMALL_CHUNKS) :]


def _of_prompts(request: EngineRequest, traffic: Traffic) -> Grid:
    batch: list[float] = []
    chunk: list[float] = []
    for n_tokens in _usual(request):
        most = int(parts_of(np.array([float(n_tokens)]), traffic).most_prompts[0])
        shared = sorted({0, most, *(1 << k for k in range(most.bit_length()))})
        batch += shared
        chunk += [n_tokens] * len(shared)
    return Grid(batch=np.array(batch), chunk_tokens=np.array(chunk), by_stage=True)


def blocks(
    cuts: DeploymentTable,
    formats: Sequence[int],
    request: EngineRequest,
    grid: Grid,
    *,
    n_first: int = ROWS_AT_ONCE,
    n_most: int = ROWS_AT_ONCE,
) -> Iterator[DeploymentTable]:
    """Every cut in every format with all that is offered, some cuts at a time.

    Args:
        n_first: rows of the first block at most, or of one cut; others have up to twice as many
            as the one before.
        n_most: rows of any.
    """
    n_choices = max(1, len(grid.batch) * len(request.overlaps))
    for index in formats:
        first = 0
        while first < len(cuts):
            end = first + max(1, min(n_first, n_most) // n_choices)
            some = cuts.take(np.arange(first, min(end, len(cuts))))
            block = _with_batches(some, index, request, grid)
            if len(block):  # two batches alone may be what no cut has
                yield block
            first, n_first = end, 2 * n_first


def _with_batches(
    cuts: DeploymentTable, index: int, request: EngineRequest, grid: Grid
) -> DeploymentTable:
    row = np.repeat(np.arange(len(cuts)), len(grid.batch))
    batch = np.tile(grid.batch, len(cuts))
    chunk = np.tile(grid.chunk_tokens, len(cuts))
    if grid.by_stage:
        is_new = (batch > 0) | (cuts.n_stages[row] > 1)  # one in all stages is one in each of one
        row, batch, chunk = row[is_new], batch[is_new], chunk[is_new]
        batch = np.maximum(1.0, batch * cuts.n_stages[row])
    plain = deployments(
        formats=request.formats,
        n_tensor=cuts.n_tensor[row],
        n_data=cuts.n_data[row],
        n_stages=cuts.n_stages[row],
        n_expert_parallel=cuts.n_expert_parallel[row],
        n_redundant=cuts.n_redundant[row],
        n_expert_devices=cuts.n_expert_devices[row],
        n_microbatches=cuts.n_microbatches[row],
        batch=batch,
        chunk_tokens=chunk,
        format_index=np.full(len(row), index),
    )
    kinds = []
    if OVERLAPS[0] in request.overlaps:
        kinds.append(plain)
    if OVERLAPS[1] in request.overlaps:  # where there are messages to hide, and two batches
        able = plain.take(plain.exchanges & (plain.batch >= 2))
        kinds.append(replace(able, overlaps=np.ones(len(able), dtype=np.bool_)))
    return kinds[0] if len(kinds) == 1 else joined_arrays(kinds)


STEP = 1.4
"""From batch to batch where a few of them do."""


def thinned(batches: Sequence[int]) -> tuple[int, ...]:
    """Batches that are some way apart.

    >>> thinned(range(1, 20))
    (1, 2, 3, 5, 7, 10, 14)
    """
    kept: list[int] = []
    for n in sorted(batches):
        if not kept or n >= STEP * kept[-1]:
            kept.append(n)
    return tuple(kept)


def nearest(cuts: DeploymentTable, n_devices: int, most: int) -> DeploymentTable:
    """No more than so many cuts: those of about as many devices."""
    away = np.abs(np.log(cuts.n_devices / n_devices))
    return cuts.take(np.sort(np.argsort(away, kind="stable")[:most]))


class Look(NamedTuple):
    """How bounds are made.

    Args:
        step: from the least batch to the largest of those that are bounded at once.
        reads: whether prompts are counted, for each chunk; else decodes alone.
        n_least: of deployments that have to be left for it to be worth its while.
    """

    step: float
    reads: bool
    n_least: int = 0


class BatchSpans:
    """Deployments in spans of batches that follow each other, and which of them are left.

    Args:
        rows: cuts with one batch after the other, of any chunk (N,).
        can: with which chunks they start and may be wanted (C, N).
    """

    def __init__(self, rows: DeploymentTable, can: BoolArray) -> None:
        self.rows, self.can = rows, can
        self.decode_s = np.full(len(rows), np.nan)
        self.of_row = np.zeros(len(rows), dtype=np.int64)
        self._gone = np.zeros((0, 0), dtype=np.bool_)

    def by(self, look: Look) -> tuple[IntArray, ...]:
        """What is left of spans, by chunk; by the least for all chunks where nothing is read.

        Returns:
            chunk, span, first and last row, how many are left between them; all (S,).
        """
        left: BoolArray = np.any(self.can, axis=0)
        self.rows, self.can = self.rows.take(left), self.can[:, left]
        self.decode_s = self.decode_s[left]
        batch, step = self.rows.batch, look.step  # those within a step of each other are alike
        bins = np.floor(np.log(batch) / np.log(step)) if step > 1.0 else batch
        heads, self.of_row = self.rows.cut_runs(bins)
        can = self.can if look.reads else self.can.sum(axis=0, keepdims=True)
        at, n = np.arange(len(bins), dtype=np.int32), np.int32(len(bins))
        first = np.minimum.reduceat(np.where(can, at, n), heads, axis=1)
        last = np.maximum.reduceat(np.where(can, at, np.int32(-1)), heads, axis=1)
        n_left = np.add.reduceat(can, heads, axis=1, dtype=np.int64)
        self._gone = np.zeros(n_left.shape, dtype=np.bool_)
        chunk, span = np.nonzero(n_left)
        return chunk, span, *(each[chunk, span] for each in (first, last, n_left))

    def leave_out(self, chunk: IntArray, span: IntArray) -> None:
        """Leave out spans, as `by` named them last, of some chunks."""
        self._gone[chunk, span] = True
        self.can &= ~self._gone[:, self.of_row]
