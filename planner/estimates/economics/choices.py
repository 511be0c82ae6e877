"""The fastest layout that fits, for every format, split of devices and batch.

For a number of devices, stages and a batch, everything that can be asked for (cost, rent, speed)
grows with the time of a token and with nothing else. So of all ways to spread experts, to
run attention and to draft, only the fastest that fits can be in a best plan; of equally
fast ones the first. What is left has one entry for each format, split and batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray, joined_arrays
from planner.equations.speculation import expected_tokens, n_scored
from planner.estimates.economics.passes import LayoutRows, pass_latency_s, runs
from planner.estimates.economics.tables import PassTable, draft_table, pass_table, staircase
from planner.running.deadlines import check
from planner.specs.records.economics import EconomicsRequest, QuantizedModel

ABSENT = -1
"""The draft's row of a choice without one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choices:
    """Deployments to choose from, one entry each (J,).

    Args:
        served: index of the number format in the request.
        batch: requests decoded together.
        ways: layout of the target.
        n_drafted: tokens drafted before each pass; 0 without a draft.
        draft_ways: layout of the draft, all zero without one.
        token_s: mean time of a token of each request.
        held_bytes: what has to fit the busiest device: of target and draft together, or of the
            larger where each meets the memory by itself.
        n_considered: layouts, lookaheads and batches that these are the fastest of.
    """

    served: IntArray
    batch: IntArray
    ways: LayoutRows
    n_drafted: IntArray
    draft_ways: LayoutRows
    token_s: FloatArray
    held_bytes: FloatArray
    n_considered: int

    def __len__(self) -> int:
        return len(self.batch)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """One format: passes of target and draft, and the target's passes over drafted tokens.

    `scoring` holds the lookahead, the tokens that a round yields, and times (R, B). The
    last row of `draft` stands for no draft: nothing of everything. `splits` are the rows of
    equal stages and tensor degrees, and `most_bytes` (S,) is the most that a layout of each
    holds at any batch, without a draft.
    """

    target: PassTable
    draft: PassTable
    scoring: tuple[tuple[int, float, FloatArray], ...]
    joint_memory: bool
    splits: tuple[slice, ...]
    most_bytes: FloatArray
    n_considered: int

    def larger_than(self, n_bytes: float) -> list[int]:
        """The splits of which some layout holds more, with any draft."""
        starts = np.zeros(1, dtype=np.int64)
        drafts = float(self.draft.held.most_bytes(starts)[0]) if self.joint_memory else 0.0
        return np.flatnonzero(self.most_bytes + drafts > n_bytes).tolist()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fastest:
    """The fastest choice so far of each split at each batch (S, B), as rows of the tables."""

    row: IntArray
    n_drafted: IntArray
    draft_row: IntArray
    token_s: FloatArray

    def offer(
        self, split: int, token_s: FloatArray, row: IntArray, n_drafted: int, draft_row: IntArray
    ) -> None:
        """Take what is faster than what is there."""
        at = np.flatnonzero(token_s < self.token_s[split])
        self.token_s[split, at] = token_s[at]
        self.row[split, at] = row[at]
        self.n_drafted[split, at] = n_drafted
        self.draft_row[split, at] = draft_row[at]


def choices(
    request: EconomicsRequest,
    tables: Sequence[Tables],
    *,
    memory_scale: float = 1.0,
    tight_bytes: float = 0.0,
) -> Choices:
    """All that a request can choose from.

    Args:
        request: what is asked.
        tables: of each of its formats, see `tables_of`.
        memory_scale: factor on the memory of a device; infinite is no limit.
        tight_bytes: leave out splits of which no layout holds more than this.
    """
    room_bytes = request.hbm_bytes * memory_scale
    each = enumerate(tables)
    return joined_choices(
        [_of_format(request, index, table, room_bytes, tight_bytes) for index, table in each]
    )


def joined_choices(parts: Sequence[Choices]) -> Choices:
    """Choices of some lists, one list after the other."""
    return joined_arrays(
        parts,
        ways=joined_arrays([part.ways for part in parts]),
        draft_ways=joined_arrays([part.draft_ways for part in parts]),
        n_considered=sum(part.n_considered for part in parts),
    )


def _of_format(
    request: EconomicsRequest, index: int, tables: Tables, room_bytes: float, tight_bytes: float
) -> Choices:
    splits = tables.larger_than(tight_bytes)
    size = (len(splits), len(request.batches))
    fastest = _Fastest(
        row=np.zeros(size, dtype=np.int64),
        n_drafted=np.zeros(size, dtype=np.int64),
        draft_row=np.full(size, ABSENT),
        token_s=np.full(size, np.inf),
    )
    for at, split in enumerate(splits):
        _search(tables, fastest, at, split, room_bytes)
    split_of, place = np.nonzero(np.isfinite(fastest.token_s))
    row, draft_row = fastest.row[split_of, place], fastest.draft_row[split_of, place]
    target, draft = tables.target, tables.draft
    together = np.add if tables.joint_memory else np.maximum
    return Choices(
        served=np.full(len(row), index),
        batch=np.asarray(request.batches)[place],
        ways=target.ways.take(row),
        n_drafted=fastest.n_drafted[split_of, place],
        draft_ways=draft.ways.take(draft_row),
        token_s=fastest.token_s[split_of, place],
        held_bytes=together(target.bytes_at(row, place), draft.bytes_at(draft_row, place)),
        n_considered=tables.n_considered,
    )


def tables_of(request: EconomicsRequest) -> tuple[Tables, ...]:
    """Every pass that a plan may need, evaluated once, a table for each format.

    Raises:
        OutOfTimeError: there is no time for that.
    """
    tables = []
    for served in request.served:
        check()
        tables.append(_tables(request, served))
    return tuple(tables)


def _tables(request: EconomicsRequest, served: QuantizedModel) -> Tables:
    drafting = request.drafting
    target = pass_table(request, served.target, request.targets.degrees)
    draft = draft_table(request, served.draft)
    scoring = []
    for n_drafted in drafting.lookaheads if served.draft else ():
        n_tokens = n_scored(n_drafted, convention=drafting.convention)
        scored = replace(served.target, n_scored_tokens=float(n_tokens))
        yields = expected_tokens(n_drafted, drafting.acceptance, convention=drafting.convention)
        times = pass_latency_s(scored, target.ways, request.batches)
        scoring.append((n_drafted, yields, times))
    ways = target.ways
    # runs of layouts with equal stages and tensor degrees
    splits = runs(ways.n_stages * (ways.n_tensor.max(initial=0) + 1) + ways.n_tensor)
    return Tables(
        target=target,
        draft=draft,
        scoring=tuple(scoring),
        joint_memory=request.memory == "in-flight",
        splits=tuple(splits),
        most_bytes=target.held.most_bytes(np.array([rows.start for rows in splits], dtype=int)),
        n_considered=_n_considered(target, draft, len(scoring), splits),
    )


def _search(tables: Tables, fastest: _Fastest, at: int, split: int, room_bytes: float) -> None:
    """Offer every layout of a split, alone and with every draft that fits beside it."""
    target, rows, most_bytes = tables.target, tables.splits[split], tables.most_bytes[split]
    tight = bool(most_bytes > room_bytes)
    row, token_s = _least(target, target.latency_s, rows, np.array(room_bytes), tight=tight)
    fastest.row[at], fastest.token_s[at] = row, token_s  # the first, and without a draft
    if not tables.scoring:
        return
    n_devices = int(target.ways.n_devices[rows.start])
    for step in staircase(tables.draft, n_devices, room_bytes=room_bytes):
        beside = step.held_bytes if tables.joint_memory else np.zeros(1)
        left_bytes = room_bytes - beside
        tight = bool(most_bytes > left_bytes.min())
        for n_drafted, yields, scoring in tables.scoring:
            row, scored_s = _least(target, scoring, rows, left_bytes, tight=tight)
            token_s = (scored_s + n_drafted * step.latency_s) / yields
            fastest.offer(at, token_s, row, n_drafted, step.row)
        if not tight:
            break  # a smaller draft is slower, and makes room for nothing


def _least(
    table: PassTable, latency_s: FloatArray, rows: slice, room_bytes: FloatArray, *, tight: bool
) -> tuple[IntArray, FloatArray]:
    """The first fastest layout that fits at each batch, a row of the table, and its time (B,).

    Where it is not `tight`, every layout fits at every batch.
    """
    times = latency_s[rows]
    if tight:
        times = np.where(table.held.total_bytes(rows) <= room_bytes, times, np.inf)
    best = times.argmin(axis=0)
    return best + rows.start, times[best, np.arange(times.shape[1])]


def _n_considered(
    target: PassTable, draft: PassTable, n_lookaheads: int, splits: Sequence[slice]
) -> int:
    """Layouts of the target at all batches, alone and with every draft on as many devices."""
    if not n_lookaheads:
        return int(np.count_nonzero(np.isfinite(target.latency_s)))
    total = 0
    for rows in splits:
        possible = np.isfinite(target.latency_s[rows]).sum(axis=0)
        beside = draft.ways.n_devices == target.ways.n_devices[rows.start]
        n_drafts = np.isfinite(draft.latency_s[beside]).sum(axis=0)
        total += int((possible * (1 + n_lookaheads * n_drafts)).sum())
    return total
