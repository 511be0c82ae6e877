"""Random workloads that an engine's own scheduler and both simulators are given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from planner.estimates.simulation.arrays import PoolOfReplicas, Routes, Sent, serve
from planner.specs.records.roles import DecodeTimes, ReadingTimes, Station
from planner.verifier.simulation.log import Gaps, Log
from planner.verifier.simulation.pools import rank_of

Work = dict[str, Any]
N_REQUESTS = 80


ENGINES = ("vllm", "sglang")


def workload(seed: int, n_requests: int = N_REQUESTS, engine: str = "vllm") -> Work:
    """The one of this number: every second is short of blocks, a quarter has prompts that begin
    alike; of all a quarter has priorities, and half have passes composed ahead."""
    draw = np.random.default_rng(seed)
    longest = int(2 ** draw.uniform(7, 11))
    n_input = draw.integers(1, longest, n_requests)
    n_output = draw.integers(1, int(2 ** draw.uniform(3, 9)) + 1, n_requests)
    family, n_shared = np.full(n_requests, -1), np.zeros(n_requests, np.int64)
    begins_alike = seed // 2 % 4 == 0
    if begins_alike:
        n_families = int(draw.integers(1, 5))
        begin = draw.integers(1, longest, n_families)
        family = np.where(
            draw.random(n_requests) < 0.8, draw.integers(0, n_families, n_requests), -1
        )
        n_shared = np.where(family >= 0, begin[family], 0)
        if draw.random() < 0.5:  # of some prompts less
            n_shared = np.where(draw.random(n_requests) < 0.3, n_shared // 2, n_shared)
        n_input = n_input + n_shared
    running = int(2 ** draw.uniform(2, 6))
    block = int(draw.choice([1, 16, 16, 32]))
    whole = -(-(n_input + n_output) // block)
    n_blocks = int(whole.max() * 2 * running)
    if seed % 2:
        n_blocks = int(max(whole.max(), whole.mean() * running * draw.uniform(0.1, 0.6)))
    chunk = int(max(running, 2 ** draw.uniform(6, 12)))
    pass_s, token_s = 0.01, float(draw.choice([1e-5, 2e-5, 1e-4]))
    busy_s = n_output.mean() * pass_s / running + (n_input.mean() + n_output.mean()) * token_s
    gap_s = busy_s / draw.uniform(0.6, 3.0)
    arrived = np.cumsum(draw.exponential(gap_s, n_requests))
    by_priority = bool(draw.random() < 0.25)
    levels = draw.integers(0, 3, n_requests) if by_priority else np.zeros(n_requests, np.int64)
    columns = (arrived, n_input, n_output, family, n_shared, levels)
    work = {
        "engine": engine,
        "seed": seed,
        "block": block,
        "n_blocks": n_blocks,
        "chunk": chunk,
        "running": running,
        "watermark": float(draw.choice([0.0, 0.0, 0.01, 0.1])),
        "priority": by_priority,
        "caches": bool(begins_alike or draw.random() < 0.5),
        "ahead": bool(draw.random() < 0.5),
        "pass_s": pass_s,
        "token_s": token_s,
        "requests": [list(row) for row in zip(*(it.tolist() for it in columns), strict=True)],
    }
    return work if engine == "vllm" else _by_tokens(work, draw)


def _by_tokens(work: Work, draw: np.random.Generator) -> Work:
    """The same for SGLang, whose pages have one token mostly, and who begins with a page to spare;
    answers are longer where room is short, so that less is reserved than they come to, and some
    come when all that was there before has ended."""
    page, share = int(draw.choice([1, 1, 16, 64])), float(draw.choice([1.0, 0.3, 0.1]))
    n_tokens = work["n_blocks"] * work["block"]
    if work["seed"] % 2:
        factor, rests_s = int(draw.integers(1, 4)), float(draw.choice([0.0, 1000.0]))
        half = len(work["requests"]) // 2
        n_tokens = int(n_tokens * draw.uniform(0.5, 1.0))
        work["requests"] = [
            [at + rests_s * (number > half), n, factor * m, *rest]
            for number, (at, n, m, *rest) in enumerate(work["requests"])
        ]
    longest = max(n_input + n_output for _, n_input, n_output, *_ in work["requests"])
    n_tokens = max(n_tokens, longest + page + 1)
    return work | {
        "block": page,
        "n_blocks": -(-n_tokens // page),
        "chunk": max(work["chunk"] // page, 1) * page,
        "reserves": share,
    }


def station_of(work: Work) -> Station:
    """Whose passes take as long as the workload says."""
    pass_s, token_s, most = work["pass_s"], work["token_s"], float(1 << 20)
    numbers, retracts = (0.0, 1.0, most), work["engine"] == "sglang"
    return Station(
        name="engine",
        most_running=work["running"],
        chunk_tokens=work["chunk"],
        composes_ahead=work["ahead"],
        mixes_prefill=not retracts,
        room_bytes=float((work["n_blocks"] + (not retracts)) * work["block"]),
        token_bytes=1.0,
        block_tokens=work["block"],
        own_blocks=int(not retracts),
        watermark_fraction=work["watermark"],
        caches_prefixes=work["caches"],
        by_priority=work["priority"],
        reserved_fraction=0.7 * 0.14 * work["reserves"] if retracts else 0.0,
        retracts=retracts,
        decode=DecodeTimes(
            n_sequences=(1, 1 << 20),
            context_tokens=(0.0,),
            seconds=((pass_s + token_s,), (pass_s + token_s * most,)),
        ),
        reading=ReadingTimes(
            n_sequences=(0, 1, 1 << 20),
            prompt_tokens=numbers,
            span_tokens=(0.0,),
            seconds=tuple(
                tuple(((pass_s * (n == 0) + token_s * p) * (p > 0),) for p in numbers)
                for n in (0, 1, 1 << 20)
            ),
        ),
    )


def by_verifier(work: Work) -> tuple[list[float], list[float]]:
    """First and last tokens as the verifier's simulation has them."""
    columns = [list(it) for it in zip(*work["requests"], strict=True)]
    n = len(columns[0])
    log = Log(
        n_input=columns[1],
        n_output=columns[2],
        ready_s=columns[0],
        first_s=[math.nan] * n,
        last_s=[math.nan] * n,
        gaps=Gaps(),
        family=columns[3],
        n_shared=columns[4],
        priority=columns[5],
    )
    rank = rank_of(station_of(work), log)
    for request in range(n):
        rank.arrive(request)
    rank.advance(math.inf)
    return log.first_s, log.last_s


def by_arrays(work: Work) -> tuple[list[float], list[float]]:
    """First and last tokens as the simulator on arrays has them, compiled or not."""
    at_s, n_input, n_output, family, n_shared, priority = (
        np.array(it) for it in zip(*work["requests"], strict=True)
    )
    nothing = np.zeros(len(at_s), np.int64)
    sent = Sent(
        arrived_s=at_s,
        n_input=n_input,
        n_output=n_output,
        of_class=nothing,
        route=nothing,
        family=family,
        n_shared=n_shared,
        priority=priority,
    )
    pool = PoolOfReplicas(
        station=station_of(work), n_replicas=1, router="least", chances=np.zeros(0)
    )
    nowhere = np.full(1, -1)
    routes = Routes(pool=nothing[:1], then=nowhere, links=nowhere, of_links=np.zeros((0, 5)))
    served = serve([pool], routes, sent, n_classes=1, edges=[0], counts_gaps=False)
    return served.first_s.tolist(), served.last_s.tolist()
