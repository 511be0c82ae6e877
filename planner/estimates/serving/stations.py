"""Deployments as stations: how long every pass of theirs takes, and for whom there is room.

All passes of all deployments are timed at once, on grids that double from point to point, or nearly
so where kernels go in steps; what lies between is close to linear.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.memory import Holding, holding
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.serving import Serving, drafting_s
from planner.estimates.serving.traffic import Drafts, tokens_of_each
from planner.specs.records.roles import (
    DECODE,
    PREFILL,
    TOGETHER,
    DecodeTimes,
    ReadingTimes,
    Station,
)
from planner.specs.validation.hints import from_fields

_CONTEXTS, _SPANS, _BESIDE = 6, 5, 4
"""Points of the grids of contexts, of spans and of sequences that decode beside prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestShape:
    """Requests of a station, in tokens as it counts them.

    It counts no token of a prompt that is cached before, and of an answer one for each pass: who
    has n tokens for it has `tokens(n)` of them. Both are of requests that are all alike.

    Args:
        n_input_tokens: of a usual prompt: what is cached grows from there.
        n_longest_tokens: of the longest request, its answer too.
        n_past_tokens: of each prompt that the prefix cache has.
        n_shared_tokens: first tokens that all have in common, held once.
        n_forked_tokens: those that the samples of one request have in common.
        n_samples: sequences of a request, which the station counts as one of so many tokens a pass.
        drafts: that decode passes check; None without.
    """

    n_input_tokens: float
    n_longest_tokens: float
    n_past_tokens: float = 0.0
    n_shared_tokens: float = 0.0
    n_forked_tokens: float = 0.0
    n_samples: int = 1
    drafts: Drafts | None = None

    @property
    def yields(self) -> float:
        """Tokens of an answer in a pass."""
        return self.drafts.yields if self.drafts else 1.0

    def tokens(self, n: FloatArray | float) -> FloatArray:
        """Of sequences that have so many as the station counts, of any shape."""
        written = np.maximum(0.0, np.asarray(n) - self.n_input_tokens)
        return np.asarray(self.n_past_tokens + n + (self.yields - 1.0) * written)


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
    requests: RequestShape,
    *,
    names: list[str],
    hbm_bytes: float,
    role: str = TOGETHER,
) -> list[Station]:
    """One station for each deployment, whose batch is the most that it serves at once.

    Args:
        serving: what all deployments have in common, their formats too.
        hbm_bytes: of one device.
    """
    engine, none = serving.engine, [None] * len(table)
    most = [max(1, int(batch) // requests.n_samples) for batch in table.batch]
    rides = engine.mixes_prefill and role == TOGETHER
    n_each = requests.n_samples * int(tokens_of_each(requests.drafts)) if rides else 1
    chunks = [
        max(1, int(chunk) - n * (n_each - 1))
        for chunk, n in zip(table.chunk_tokens, most, strict=True)
    ]
    grids = [_grid(n, chunk, requests, role) for n, chunk in zip(most, chunks, strict=True)]
    decode = none if role == PREFILL else _decode_times(serving, table, requests, grids)
    reading = none if role == DECODE else _reading_times(serving, table, requests, grids)
    room, fixed, each = _cached(serving, table, hbm_bytes, requests)
    received_s = engine.request_s + engine.request_token_s * requests.n_past_tokens
    return [
        from_fields(
            Station,
            engine,
            name=names[row],
            role=role,
            n_ranks=int(table.n_data[row]),
            n_lanes=int(table.n_stages[row]),
            most_running=most[row],
            chunk_tokens=chunks[row],
            request_s=0.0 if role == DECODE else received_s,
            request_token_s=0.0 if role == DECODE else engine.request_token_s,
            room_bytes=float(room[row]),
            sequence_bytes=float(fixed[row]),
            token_bytes=float(each[row]),
            block_tokens=max(1, round(engine.n_block_tokens / requests.yields)),
            own_blocks=engine.n_own_blocks,
            retracts=all((engine.retracts, not engine.mixes_prefill, role == TOGETHER)),
            decode=decode[row],
            reading=reading[row],
        )
        for row in range(len(table))
    ]


def _grid(most: int, chunk: int, requests: RequestShape, role: str) -> _Grid:
    longest, least = requests.n_longest_tokens, requests.n_input_tokens if requests.drafts else 0.0
    sequences = sorted({*_doubling(1, most), *_doubling(3, most)})
    few = sequences[:: -max(1, len(sequences) // _BESIDE)]
    return _Grid(
        sequences=np.array(sequences, dtype=float),
        contexts=np.unique(np.linspace(least, longest, _CONTEXTS)),
        beside=np.array([0] if role == PREFILL else sorted({0, *few}), dtype=float),
        prompts=np.array([0.0, *_doubling(1, chunk)]),
        spans=np.array([0.0, *np.geomspace(min(256.0, longest / 2.0), longest, _SPANS - 1)]),
    )


def _doubling(first: int, last: int) -> list[int]:
    """first, 2 first, 4 first, …, and last."""
    sizes = []
    while first < last:
        sizes.append(first)
        first *= 2
    return [*sizes, last]


def _decode_times(
    serving: Serving, table: DeploymentTable, requests: RequestShape, grids: list[_Grid]
) -> list[DecodeTimes | None]:
    """D at each point of each deployment's grid: a pass, and the drafter's before it."""
    row, (n, context) = _points([(grid.sequences, grid.contexts) for grid in grids])
    rows, work = table.take(row), _decoding(table, requests, row, n, context)
    times = _timed(serving, rows, work) + serving.decode_host_s(np.asarray(work.n_decoding))
    if requests.drafts is not None:
        times = times + drafting_s(serving, rows, work, requests.drafts)
    return [
        DecodeTimes(
            n_sequences=tuple(int(x) for x in grid.sequences),
            context_tokens=tuple(float(x) for x in grid.contexts),
            seconds=_rows(cut.reshape(len(grid.sequences), -1)),
        )
        for grid, cut in zip(grids, _cuts(times, row, len(grids)), strict=True)
    ]


def _reading_times(
    serving: Serving, table: DeploymentTable, requests: RequestShape, grids: list[_Grid]
) -> list[ReadingTimes | None]:
    """R at each point of each deployment's grid: a pass that reads, less one that does not."""
    axes = [(grid.beside, grid.prompts, grid.spans) for grid in grids]
    row, (n, tokens, span) = _points(axes)
    rows = table.take(row)
    middle = (requests.n_input_tokens + requests.n_longest_tokens) / 2.0
    beside = _decoding(table, requests, row, n, middle)
    decoding_s = serving.decode_host_s(np.asarray(beside.n_decoding))
    alone = np.where(n > 0, _timed(serving, rows, beside) + decoding_s, 0.0)
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
            past_tokens=requests.n_past_tokens + np.maximum(0.0, span - each / 2.0),
        ),
    )
    host = serving.prefill_host_s + np.where(n > 0, decoding_s, 0.0)
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
    table: DeploymentTable,
    requests: RequestShape,
    row: IntArray,
    n: FloatArray,
    context: FloatArray | float,
) -> PassShape:
    """What decodes in one of the passes under way, of n requests in all."""
    n = n * requests.n_samples
    lanes = np.maximum(1.0, np.minimum(table.n_stages[row], n))
    return PassShape(
        n_decoding=n / lanes,
        n_positions=tokens_of_each(requests.drafts),
        context=requests.tokens(context),
    )


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
    return tuple(map(tuple, values.tolist()))


def _cached(
    serving: Serving, table: DeploymentTable, hbm_bytes: float, requests: RequestShape
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Room for caches on a device, and of a sequence what is fixed and what each token adds.

    Layers with windows keep no more than these, so the line through whole blocks of a usual prompt
    and of the longest request stands for both.
    """
    block, past = serving.engine.n_block_tokens, requests.n_past_tokens
    usual = float(requests.tokens(requests.n_input_tokens))
    longest = float(requests.tokens(requests.n_longest_tokens))
    n_usual = round(usual / block)
    low = float(block * max(1, n_usual))
    high = float(block * max(2 + n_usual, round(longest / block)))

    def held(n_tokens: float) -> Holding:
        return holding(
            serving.model,
            table,
            serving.formats,
            serving.engine,
            hbm_bytes=hbm_bytes,
            n_tokens=n_tokens,
            n_shared_tokens=requests.n_shared_tokens,
            n_forked_tokens=requests.n_forked_tokens,
            n_samples=requests.n_samples,
            drafts=requests.drafts,
        )

    first, last = held(low), held(high)
    each = (last.sequence_bytes - first.sequence_bytes) / (high - low)
    fixed = first.sequence_bytes - each * low
    # above its prompt a sequence has so many tokens for each that the station counts
    fixed = fixed + each * (past - (requests.yields - 1.0) * requests.n_input_tokens)
    n = requests.n_samples
    return last.room_bytes, n * fixed, n * each * requests.yields
