"""Qwen3-8B under vLLM on pairs of A100 PCIe: replicas that do both phases, and some that do one.

The rows do not say how many requests a row had; those of 1024 and 512 tokens answer: output tokens
a second are those of 64 requests that take as long as these at every rate. Nor how many tokens a
pass reads: the longest gaps, 0.18 s and more where prompts of 8192 tokens are read beside decodes,
are those of 2048, which vLLM took then.

Caches are handed over by every rank of a worker at once, each its own share: two move 4.7 GB/s in
rows of TP 2, where the connector was fitted to 3.1 GB/s at TP 1.

TTFT is left out: prompts of 8192 tokens take 0.43 s of an A100's peak, and half of the rows say
less, so many were cached, and no row says which. With all prompts read, and with none, replicas
that do both phases give gaps between which the measured ones should be. What prompts are cached
does not change a decode worker's passes. Kernels are those of the SXM device.

Hand-overs were measured alone too, one at a time: TTFT apart less TTFT together.

Source: the runs that `connectors/nixl.toml` was fitted to; measured numbers only.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from planner.specs.files.reading import load_connector
from planner.specs.records.roles import DECODE, PREFILL, ROUND_ROBIN, TOGETHER, Station
from planner.specs.traffic.records import Arriving
from planner.verifier.simulation.fleets import simulate
from planner.verifier.simulation.outcomes import FleetOutcome
from planner.verifier.simulation.pools import ClassLoad, Handover, ListedRequests, Pool, Route
from research.fleet.deviations import Deviation, deviation, table
from research.fleet.replaying import (
    DATA,
    Server,
    poisson,
    station,
)

N_REQUESTS, N_SEEDS = 64, 8
BLOCK = 16

_WORKERS = re.compile(r"(\d)P(?:\(TP(\d)\))?(\d)D")
_REPLICAS = re.compile(r"(\d)x TP(\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line; a replica's own prompts and answers, or those of workers of a phase.

    Args:
        n_first, n_second: replicas, or workers that read prompts and workers that decode.
    """

    name: str
    n_tensor: int
    n_first: int
    n_second: int
    n_input: int
    n_output: int
    rate_per_s: float
    written_per_s: float
    itl_ms: float
    itl_p99_ms: float

    @property
    def is_apart(self) -> bool:
        return self.n_second > 0

    @property
    def load(self) -> str:
        return f"{self.n_input}x{self.n_output} {self.rate_per_s:g}/s"


@cache
def rows() -> tuple[Row, ...]:
    """All 80."""
    with (DATA / "apart.csv").open(newline="") as file:
        return tuple(_row(row) for row in csv.DictReader(file))


def _row(row: dict[str, str]) -> Row:
    name = row["architecture"]
    apart, together = _WORKERS.search(name), _REPLICAS.search(name)
    if apart:
        n_first, n_tensor, n_second = int(apart[1]), int(apart[2] or 1), int(apart[3])
    else:
        assert together is not None
        n_first, n_tensor, n_second = int(together[1]), int(together[2]), 0
    n_input, n_output = (int(x) for x in row["workload"].split("x"))
    return Row(
        name=name,
        n_tensor=n_tensor,
        n_first=n_first,
        n_second=n_second,
        n_input=n_input,
        n_output=n_output,
        rate_per_s=float(row["rate_req_s"]),
        written_per_s=float(row["output_tok_s"]),
        itl_ms=float(row["itl_mean_ms"]),
        itl_p99_ms=float(row["itl_p99_ms"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Of one row, on average over seeds."""

    itl_ms: float
    itl_p99_ms: float
    written_per_s: float


@cache
def simulated(row: Row, *, is_cached: bool = False) -> Found:
    """What a run of so many requests gives on average."""
    runs = [_run(row, seed, is_cached=is_cached) for seed in range(1, N_SEEDS + 1)]
    gaps = [run.classes[0].itl for run in runs]
    return Found(
        itl_ms=float(np.mean([1e3 * one.mean_s.value for one in gaps])),
        itl_p99_ms=float(np.mean([1e3 * one.at_s(0.99) for one in gaps])),
        written_per_s=float(np.mean([N_REQUESTS * row.n_output / run.duration_s for run in runs])),
    )


def _run(row: Row, seed: int, *, is_cached: bool) -> FleetOutcome:
    """Requests at random, in turn to replicas or to workers that read their prompts."""
    cached = (row.n_input - 1) // BLOCK * BLOCK if is_cached else 0
    listed = [
        Arriving(at_s=at, n_input=row.n_input - cached, n_output=row.n_output)
        for at in poisson(N_REQUESTS, row.rate_per_s, seed)
    ]
    load = ClassLoad(
        name=row.load,
        source=ListedRequests(listed=listed),
        routes=(_route(row),),
        n_cached_tokens=cached,
    )
    return simulate(
        _pools(row),
        [load],
        n_requests=N_REQUESTS,
        n_batches=1,
        warm_up_share=0.0,
        wind_down_share=0.0,
    )


def _pools(row: Row) -> list[Pool]:
    roles = (
        {PREFILL: row.n_first, DECODE: row.n_second} if row.is_apart else {TOGETHER: row.n_first}
    )
    return [
        Pool(name=role, station=_station(row, role), n_replicas=n, router=ROUND_ROBIN)
        for role, n in roles.items()
    ]


def _route(row: Row) -> Route:
    if not row.is_apart:
        return Route(pool=TOGETHER)
    connector, second = load_connector("nixl"), _station(row, DECODE)
    handover = Handover(  # of one rank: all move their shares at once
        latency_s=connector.latency_s,
        bytes_per_s=connector.bytes_per_s or math.inf,
        sequence_bytes=second.sequence_bytes,
        token_bytes=second.token_bytes,
    )
    return Route(pool=PREFILL, then=DECODE, handover=handover)


def _station(row: Row, role: str) -> Station:
    server = Server(
        model="qwen3-8b",
        topology="a100-nvl8-x1",
        engine="vllm",
        n_tensor=row.n_tensor,
        most_running=256,
        chunk_tokens=2048,
        role=role,
    )
    return station(server, row.n_input, row.n_input + row.n_output)


def errors(chosen: Sequence[Row], *, is_cached: bool = False) -> dict[str, Deviation]:
    """By quantity."""
    found = [simulated(row, is_cached=is_cached) for row in chosen]
    return {
        "ITL mean": deviation([x.itl_ms for x in found], [x.itl_ms for x in chosen]),
        "ITL p99": deviation([x.itl_p99_ms for x in found], [x.itl_p99_ms for x in chosen]),
        "output tokens/s": deviation(
            [x.written_per_s for x in found], [x.written_per_s for x in chosen]
        ),
    }


def between(chosen: Sequence[Row], slack: float = 0.05) -> int:
    """Rows whose mean gap is between those with all prompts cached and with none, within slack."""
    return sum(
        simulated(row, is_cached=True).itl_ms * (1.0 - slack)
        <= row.itl_ms
        <= simulated(row).itl_ms * (1.0 + slack)
        for row in chosen
    )


def ordered(chosen: Sequence[Row], apart_by: float = 0.1) -> tuple[int, int]:
    """Pairs of architectures under one load whose mean gaps differ: as simulated, and in all."""
    right = n_pairs = 0
    for one, other in combinations(chosen, 2):
        if one.load != other.load or abs(one.itl_ms / other.itl_ms - 1.0) < apart_by:
            continue
        n_pairs += 1
        simulates = simulated(one).itl_ms < simulated(other).itl_ms
        right += simulates == (one.itl_ms < other.itl_ms)
    return right, n_pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """One hand-over, as timed from outside."""

    link: str
    n_bytes: float
    seconds: float


@cache
def hand_overs() -> tuple[HandOver, ...]:
    """All 12."""
    with (DATA / "hand_overs.csv").open(newline="") as file:
        return tuple(
            HandOver(
                link=row["link"],
                n_bytes=float(row["kv_mb"]) * 2**20,
                seconds=float(row["transfer_tax_ms"]) / 1e3,
            )
            for row in csv.DictReader(file)
        )


def handed_over(chosen: Sequence[HandOver]) -> Deviation:
    """Of the connector's account, on a link that is no limit."""
    connector = load_connector("nixl")
    return deviation(
        [connector.latency_s + one.n_bytes / (connector.bytes_per_s or math.inf) for one in chosen],
        [one.seconds for one in chosen],
    )


def report() -> Iterator[str]:
    """Every row, errors by roles, and whether architectures come out in the same order."""
    yield "Qwen3-8B on A100 PCIe under vLLM: measured → simulated"
    for row in rows():
        found = simulated(row)
        yield (
            f"  {row.name:22} {row.load:18} ITL {row.itl_ms:g}→{found.itl_ms:.4g} ms"
            f"  p99 {row.itl_p99_ms:g}→{found.itl_p99_ms:.4g} ms"
            f"  {row.written_per_s:g}→{found.written_per_s:.4g} tok/s"
        )
    together = [row for row in rows() if not row.is_apart]
    for load in ("1024x512", "8192x128"):
        for is_cached, name in ((False, "all prompts read"), (True, "all prompts cached")):
            chosen = [row for row in together if row.load.startswith(load)]
            yield f"both phases, {load}, {name}: {len(chosen)}"
            yield from table(errors(chosen, is_cached=is_cached))
        chosen = [row for row in rows() if row.is_apart and row.load.startswith(load)]
        yield f"one phase each, {load}: {len(chosen)}"
        yield from table(errors(chosen))
    yield f"gaps between all cached and none, within 5 %: {between(together)} of {len(together)}"
    right, n_pairs = ordered(rows())
    yield f"pairs whose mean gaps differ by a tenth and more: {right} of {n_pairs} in this order"
    yield "hand-overs by connectors/nixl.toml, which was fitted to these"
    links = sorted({one.link for one in hand_overs()})
    yield from table(
        {link: handed_over([one for one in hand_overs() if one.link == link]) for link in links}
    )
    yield f"left out: TTFT of {len(rows())} rows, whose prompts were cached in part"
