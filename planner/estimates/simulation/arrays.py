"""Fleets and the requests that are sent to them as arrays, and what becomes of both."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.simulation.core import FIELDS, NOBODY, core, is_compiled
from planner.specs.records.roles import AT_RANDOM, LEAST_PRESENT, PREFILL, ROUTERS, Station

N_BINS = 5200
"""Of gaps between tokens, 400 a decade from 10⁻⁸ s on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sent:
    """Requests in the order of arrival, (N,) each.

    Args:
        arrived_s: when each comes.
        n_input, n_output: tokens.
        of_class, route: numbers.
        family, n_shared: prompts of a family, from 0 on, begin with so many tokens that are alike;
            -1 of none. None where no prompts do.
        priority: from 0 on, the lower goes first where the engine heeds it.
    """

    arrived_s: FloatArray
    n_input: IntArray
    n_output: IntArray
    of_class: IntArray
    route: IntArray
    family: IntArray | None = None
    n_shared: IntArray | None = None
    priority: IntArray | None = None

    def __len__(self) -> int:
        return len(self.arrived_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolOfReplicas:
    """Replicas that are alike, behind one router.

    Args:
        station: one rank of a replica.
        router: of `planner.specs.records.roles`.
        chances: that a router which chooses at random takes, (N,); empty of others.
    """

    station: Station
    n_replicas: int
    router: str
    chances: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Routes:
    """Where requests go, (R,) each.

    Args:
        pool: that serves them, or reads their prompts.
        then: the pool that decodes them; below 0 where the first does.
        links: number of what hands them over; below 0 where nothing does.
        of_links: seconds of each cache, bytes a second of a pair and of a replica, bytes of a cache
            whatever its length and of each token; (L, 5).
    """

    pool: IntArray
    then: IntArray
    links: IntArray
    of_links: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedRun:
    """What became of requests (N,), and of ranks (R,) in each batch (B,).

    Args:
        first_s, last_s: when each had its first and its last token; infinite where no replica has
            room for it.
        gaps: between tokens, by batch, class and bin; before the first batch too, (B + 1, C, bins).
        gap_total_s: their sum, (B + 1, C).
        edge_s: when batches began.
        busy_s: how long each rank had been busy by then, (B, R).
        n_begun_again: how often a request lost its place, by pool.
    """

    first_s: FloatArray
    last_s: FloatArray
    gaps: IntArray
    gap_total_s: FloatArray
    edge_s: FloatArray
    busy_s: FloatArray
    n_begun_again: IntArray


class _Arrays:
    """Arrays as the core takes them: memory that C sees, or lists, which Python reads faster."""

    def __init__(self) -> None:
        self._kept: dict[str, FIELDS] = {}

    def of(self, values: FloatArray | IntArray, name: str = "") -> FIELDS:
        flat: Any = np.ascontiguousarray(values).reshape(-1)
        made: FIELDS = memoryview(flat) if is_compiled() else flat.tolist()
        if name:
            self._kept[name] = made
        return made

    def back(self, name: str) -> Any:  # noqa: ANN401 # of floats or of integers
        return np.asarray(self._kept[name])


def _floats(n: int) -> FIELDS:
    return _Arrays().of(np.zeros(n))  # whose memory is not touched until it is used


def _integers(n: int) -> FIELDS:
    return _Arrays().of(np.zeros(n, np.int64))


def serve(
    pools: Sequence[PoolOfReplicas],
    routes: Routes,
    sent: Sent,
    *,
    n_classes: int,
    edges: Sequence[int],
    counts_gaps: bool,
) -> SimulatedRun:
    """Serve requests one by one.

    Args:
        edges: numbers of the requests with which batches begin, ascending.
        counts_gaps: whether gaps between tokens are counted, which takes a third of the time.
    """
    n, arrays = len(sent), _Arrays()
    requests, ends = _requests(arrays, sent)
    n_ranks = sum(one.n_replicas * one.station.n_ranks for one in pools)
    n_bins = N_BINS if counts_gaps else 0
    gaps = arrays.of(np.zeros((len(edges) + 1) * n_classes * max(1, n_bins), np.int64), "gaps")
    totals = arrays.of(np.zeros((len(edges) + 1) * n_classes), "totals")
    made: list[Any] = []
    ranks: list[Any] = []
    pool_of: list[int] = []
    n_replicas = 0
    for number, pool in enumerate(pools):
        made.append(_pool(arrays, pool, len(ranks), n_replicas))
        times, numbers, scales = _times(arrays, pool.station), *_of_rank(pool.station, sent)
        most = pool.station.most_running
        sizes = (n_classes, 8 * most + 32, pool.station.block_tokens, most + 2, 2 * most + 4)
        for _ in range(pool.n_replicas * pool.station.n_ranks):
            heap = core.Heap(_integers(2 * most + 16), _integers(2 * most + 16), ends)
            idle, integers = _idle(pool.station, sent), tuple(map(_integers, sizes))
            first = _integers(1 if sent.family is None else int(np.max(sent.family)) + 2)
            tree = core.Tree(requests, pool.station.block_tokens, first)
            sums = totals, _floats(n_classes)
            rank = core.Rank(
                numbers, scales, times, requests, heap, idle, tree, gaps, sums, n_bins, integers
            )
            rank.is_watched = _is_watched(pool)
            ranks.append(rank)
            pool_of.append(number)
        n_replicas += pool.n_replicas
    fleet = core.Fleet(
        made,
        ranks,
        requests,
        arrays.of(np.array(pool_of, np.int64)),
        arrays.of(np.stack([routes.pool, routes.then, routes.links], axis=1)),
        [
            core.Links(scales, _floats(n_replicas**2), _floats(n_replicas), _floats(n_replicas))
            for scales in routes.of_links.tolist()
        ],
        arrays.of(np.array(edges, np.int64)),
        (
            arrays.of(np.zeros(len(edges)), "edge_s"),
            arrays.of(np.zeros(len(edges) * n_ranks), "busy_s"),
            _floats(n_ranks),
        ),
        (_integers(n), arrays.of(sent.route)),
    )
    fleet.serve(arrays.of(sent.arrived_s))
    begun_again = np.bincount(pool_of, [one.n_begun_again for one in ranks], len(pools))
    return SimulatedRun(
        first_s=arrays.back("first_s"),
        last_s=arrays.back("last_s"),
        gaps=arrays.back("gaps").reshape(len(edges) + 1, n_classes, -1),
        gap_total_s=arrays.back("totals").reshape(len(edges) + 1, n_classes),
        edge_s=arrays.back("edge_s"),
        busy_s=arrays.back("busy_s").reshape(len(edges), n_ranks),
        n_begun_again=begun_again.astype(np.int64),
    )


def _requests(arrays: _Arrays, sent: Sent) -> tuple[object, FIELDS]:
    """All requests, and the line in which the heaps of all ranks keep their keys."""
    n = len(sent)
    nan, nothing = np.full(n, math.nan), np.zeros(n, np.int64)
    floats = (
        arrays.of(nan.copy()),
        arrays.of(nan.copy(), "first_s"),
        arrays.of(nan.copy(), "last_s"),
        arrays.of(np.full(n, -1.0)),
    )
    nobody = np.full(n, NOBODY)
    ends, run = arrays.of(nobody.copy()), arrays.of(nobody.copy())
    integers = (_integers(n), ends, *(_integers(n) for _ in range(5)), run, _integers(n))
    given = (sent.n_input, sent.n_output, sent.of_class)
    optional = ((sent.family, nobody), (sent.n_shared, nothing), (sent.priority, nothing))
    alike = tuple(arrays.of(usual if it is None else it) for it, usual in optional)
    return core.Requests(*map(arrays.of, given), alike, floats, integers), ends


def _idle(station: Station, sent: Sent) -> object:
    """Blocks of a rank that nobody holds: a run at most of each, and as many that are no more."""
    n_runs, n_families, n_shared = 1, 0, 0
    if station.caches_prefixes and not station.retracts:
        n_blocks = station.room_bytes / max(station.token_bytes * station.block_tokens, 1e-300)
        n_runs = 2 * int(min(n_blocks, len(sent))) + 64
    if sent.family is not None and sent.n_shared is not None:
        n_families = int(np.max(sent.family)) + 1
        n_shared = int(np.max(sent.n_shared)) // station.block_tokens
    sizes = (n_families + 1, n_families + 1, (n_families + 1) * n_shared)
    families = tuple(map(_integers, sizes))
    for family in range(n_families):
        families[1][family] = NOBODY
    return core.Idle(tuple(_integers(1 << n_runs.bit_length()) for _ in range(4)), families)


def _of_rank(station: Station, sent: Sent) -> tuple[tuple[int | bool, ...], tuple[float, ...]]:
    has_levels = station.by_priority and sent.priority is not None
    numbers = (
        station.n_lanes,
        station.most_running,
        station.chunk_tokens,
        station.n_polled_rounds,
        station.block_tokens,
        station.own_blocks,
        int(np.max(sent.priority)) + 1 if has_levels and sent.priority is not None else 1,
        station.mixes_prefill,
        station.composes_ahead,
        station.role == PREFILL,
        station.reading is None,
        station.caches_prefixes,
        station.retracts,
    )
    step_s = 0.0 if station.decode is None else float(np.min(station.decode.seconds))
    answer_s = (int(np.min(sent.n_output, initial=1 << 40)) - 1) * step_s
    shares = (station.reserved_fraction, station.watermark_fraction)
    return numbers, (*_bytes(station), *shares, answer_s, step_s)


def _bytes(station: Station) -> tuple[float, float, float]:
    """Room; what a sequence has whatever its length; what is in a block."""
    block_bytes = station.token_bytes * station.block_tokens
    return station.room_bytes, station.sequence_bytes, block_bytes


def _is_watched(pool: PoolOfReplicas) -> bool:
    """Whether something depends on when requests of a pool end."""
    looks = pool.router == LEAST_PRESENT and pool.n_replicas > 1
    return looks or pool.station.n_ranks > 1 or pool.station.role == PREFILL


def _pool(arrays: _Arrays, pool: PoolOfReplicas, first_rank: int, first_replica: int) -> object:
    station = pool.station
    router, counted = ROUTERS.index(pool.router), (station.block_tokens, station.own_blocks)
    numbers = (first_rank, pool.n_replicas, station.n_ranks, router, first_replica, *counted)
    chances = arrays.of(pool.chances if pool.router == AT_RANDOM else np.zeros(0))
    counts = _integers(pool.n_replicas * station.n_ranks), _integers(pool.n_replicas)
    costs = (*_bytes(station), station.request_s, station.request_token_s)
    return core.Pool(numbers, costs, *counts, chances)


def _times(arrays: _Arrays, station: Station) -> object:
    """Times of passes, D on a line for each number of sequences."""
    decode, reading = station.decode, station.reading
    contexts, lines = np.zeros(1), np.zeros((1, 1))
    if decode is not None:
        contexts, seconds = np.array(decode.context_tokens, float), np.array(decode.seconds)
        known = np.array(decode.n_sequences, float)
        counts = np.arange(station.most_running + 1, dtype=float)
        at = np.clip(np.searchsorted(known, counts, side="right") - 1, 0, max(len(known) - 2, 0))
        beyond = np.minimum(at + 1, len(known) - 1)
        wide = np.where(beyond > at, known[beyond] - known[at], 1.0)
        inside = np.where(beyond > at, (counts - known[at]) / wide, 0.0)
        lines = seconds[at] + inside[:, None] * (seconds[beyond] - seconds[at])
    grids, planes = [np.zeros(1)] * 3, np.zeros(1)
    if reading is not None:
        nodes = (reading.n_sequences, reading.prompt_tokens, reading.span_tokens)
        grids, planes = [np.array(one, float) for one in nodes], np.array(reading.seconds)
    return core.Times(*map(arrays.of, (contexts, lines, *grids, planes)))
