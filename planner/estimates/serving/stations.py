"""Deployments as stations: how long every pass of theirs takes, and for whom there is room.

All passes of all deployments are timed at once, on grids that double from point to point, or nearly
so where kernels go in steps; what lies between is close to linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.memory import cache_bytes, holding, state_bytes
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.serving import Serving
from planner.specs.roles import DECODE, PREFILL, TOGETHER
from planner.specs.stations import DecodeTimes, ReadingTimes, Station

_CONTEXTS, _SPANS, _BESIDE = 6, 5, 4
"""Points of the grids of contexts, of spans and of sequences that decode beside prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """The points at which passes of one deployment are timed, ascending."""

    sequences: FloatArray
    contexts: FloatArray
    beside: FloatArray
    prompts: FloatArray
    spans: FloatArray


def stations(
    serving: Serving,
    table: DeploymentTable,
    *,
    names: list[str],
    hbm_bytes: float,
    n_input_tokens: float,
    n_longest_tokens: float,
    role: str = TOGETHER,
) -> list[Station]:
    """One station for each deployment, whose batch is the most that it serves at once.

    Args:
        serving: what all deployments have in common, their formats too.
        hbm_bytes: of one device.
        n_input_tokens: of a usual request: what is cached grows from there.
        n_longest_tokens: of the longest request, its answer too.
    """
    most = [max(1, int(batch)) for batch in table.batch]
    chunks = [max(1, int(chunk)) for chunk in table.chunk_tokens]
    grids = [_grid(n, chunk, n_longest_tokens, role) for n, chunk in zip(most, chunks, strict=True)]
    middle = (n_input_tokens + n_longest_tokens) / 2.0
    decode = _decode_times(serving, table, grids) if role != PREFILL else [None] * len(grids)
    reading = (
        _reading_times(serving, table, grids, middle) if role != DECODE else [None] * len(grids)
    )
    room, fixed, each = _cached(serving, table, hbm_bytes, n_input_tokens, n_longest_tokens)
    engine = serving.engine
    return [
        Station(
            name=names[row],
            role=role,
            n_ranks=int(table.n_data[row]),
            n_lanes=int(table.n_stages[row]),
            most_running=most[row],
            chunk_tokens=chunks[row],
            mixes_prefill=engine.mixes_prefill,
            n_polled_rounds=engine.n_polled_rounds,
            request_s=0.0 if role == DECODE else engine.request_s,
            request_token_s=0.0 if role == DECODE else engine.request_token_s,
            room_bytes=float(room[row]),
            sequence_bytes=float(fixed[row]),
            token_bytes=float(each[row]),
            reserved_fraction=engine.reserved_fraction,
            decode=decode[row],
            reading=reading[row],
        )
        for row in range(len(table))
    ]


def _grid(most: int, chunk: int, longest: float, role: str) -> _Grid:
    sequences = sorted({*_doubling(1, most), *_doubling(3, most)})
    few = sequences[:: -max(1, len(sequences) // _BESIDE)]
    return _Grid(
        sequences=np.array(sequences, dtype=float),
        contexts=np.linspace(0.0, longest, _CONTEXTS),
        beside=np.array([0] if role == PREFILL else sorted({0, *few}), dtype=float),
        prompts=np.array([0.0, *_doubling(1, chunk)]),
        spans=np.array([0.0, *np.geomspace(min(256.0, longest / 2.0), longest, _SPANS - 1)]),
    )


def _doubling(first: int, last: int) -> list[int]:
    """first, 2 first, 4 first, …, and last."""
    found = []
    while first < last:
        found.append(first)
        first *= 2
    return [*found, last]


def _decode_times(
    serving: Serving, table: DeploymentTable, grids: list[_Grid]
) -> list[DecodeTimes | None]:
    """D at each point of each deployment's grid."""
    row, (n, context) = _points([(grid.sequences, grid.contexts) for grid in grids])
    timed = _timed(serving, table.take(row), _decoding(table, row, n, context))
    times = timed + serving.decode_host_s
    return [
        DecodeTimes(
            n_sequences=tuple(int(x) for x in grid.sequences),
            context_tokens=tuple(float(x) for x in grid.contexts),
            seconds=_rows(cut.reshape(len(grid.sequences), -1)),
        )
        for grid, cut in zip(grids, _cuts(times, row, len(grids)), strict=True)
    ]


def _reading_times(
    serving: Serving, table: DeploymentTable, grids: list[_Grid], context: float
) -> list[ReadingTimes | None]:
    """R at each point of each deployment's grid: a pass that reads, less one that does not."""
    axes = [(grid.beside, grid.prompts, grid.spans) for grid in grids]
    row, (n, tokens, span) = _points(axes)
    rows = table.take(row)
    beside = _decoding(table, row, n, context)
    alone = np.where(n > 0, _timed(serving, rows, beside) + serving.decode_host_s, 0.0)
    read = np.maximum(tokens, 1.0)
    # as few prompts as have this span: one that has read so much before, or several short ones
    each = np.where(2.0 * span < read, np.maximum(2.0 * span, 1.0), read)
    both = _timed(
        serving,
        rows,
        replace(
            beside,
            n_prompts=read / each,
            prompt_tokens=each,
            past_tokens=np.maximum(0.0, span - each / 2.0),
        ),
    )
    host = serving.prefill_host_s + np.where(n > 0, serving.decode_host_s, 0.0)
    grown = np.where(tokens > 0.0, np.maximum(0.0, both + host - alone), 0.0)
    return [
        ReadingTimes(
            n_sequences=tuple(int(x) for x in grid.beside),
            prompt_tokens=tuple(float(x) for x in grid.prompts),
            span_tokens=tuple(float(x) for x in grid.spans),
            seconds=tuple(
                _rows(plane) for plane in cut.reshape(len(grid.beside), len(grid.prompts), -1)
            ),
        )
        for grid, cut in zip(grids, _cuts(grown, row, len(grids)), strict=True)
    ]


def _decoding(
    table: DeploymentTable, row: IntArray, n: FloatArray, context: FloatArray | float
) -> PassShape:
    """What decodes in one of the passes under way, of n sequences in all."""
    lanes = np.maximum(1.0, np.minimum(table.n_stages[row], n))
    return PassShape(n_decoding=n / lanes, context=context)


def _timed(serving: Serving, rows: DeploymentTable, work: PassShape) -> FloatArray:
    return np.asarray(serving.pass_time(rows, work).total_s)


def _points(axes: Sequence[tuple[FloatArray, ...]]) -> tuple[IntArray, list[FloatArray]]:
    """Every point of every deployment's grid: its row and its coordinates, (P,) each."""
    meshes = [np.meshgrid(*own, indexing="ij") for own in axes]
    row = np.repeat(np.arange(len(axes)), [mesh[0].size for mesh in meshes])
    columns = zip(*meshes, strict=True)
    return row, [np.concatenate([one.ravel() for one in column]) for column in columns]


def _cuts(values: FloatArray, row: IntArray, n_rows: int) -> Iterator[FloatArray]:
    """Values of each deployment by itself."""
    ends = np.searchsorted(row, np.arange(1, n_rows))
    yield from np.split(values, ends)


def _rows(values: FloatArray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(x) for x in line) for line in values)


def _cached(
    serving: Serving, table: DeploymentTable, hbm_bytes: float, n_input: float, n_longest: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Room for caches on a device, and of a sequence what is fixed and what each token adds.

    Half of the last block of a sequence is empty. Layers with windows keep no more than these,
    so the line through a usual prompt and the longest request stands for both.
    """
    model, formats, block = serving.model, serving.run_formats, serving.engine.n_block_tokens
    held = holding(
        model, table, serving.formats, serving.engine, hbm_bytes=hbm_bytes, n_tokens=n_longest
    )
    low = float(block * max(1, round(n_input / block)))
    high = float(block * max(2 + round(n_input / block), round(n_longest / block)))
    first, last = (cache_bytes(model, table, formats, n, block) for n in (low, high))
    each = (last - first) / (high - low)
    fixed = first - each * (low - block / 2.0) + state_bytes(model, table)
    return held.room_bytes, fixed, each
