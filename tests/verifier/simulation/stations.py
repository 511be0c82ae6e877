"""Stations small enough that what becomes of their requests is known."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from planner.specs.records.roles import DecodeTimes, ReadingTimes, Station
from planner.verifier.simulation.log import Gaps, Log
from planner.verifier.simulation.rank import Rank


def station(
    *,
    step_s: float = 0.01,
    each_s: float = 0.0,
    token_s: float = 0.0,
    pass_s: float = 0.0,
    read_s: float = 0.0,
    **others: object,
) -> Station:
    """Passes of step_s + n each_s + n c token_s, and pass_s + p read_s of p tokens of prompts."""
    contexts, prompts = (0.0, 100_000.0), (0.0, 1.0, 100_000.0)
    decode = DecodeTimes(
        n_sequences=(1, 1000),
        context_tokens=contexts,
        seconds=tuple(
            tuple(step_s + n * (each_s + token_s * c) for c in contexts) for n in (1, 1000)
        ),
    )
    reading = ReadingTimes(
        n_sequences=(0,),
        prompt_tokens=prompts,
        span_tokens=(0.0,),
        seconds=(tuple((pass_s * (p > 0) + read_s * p,) for p in prompts),),
    )
    given = {
        "name": "one",
        "most_running": 1000,
        "chunk_tokens": 8192,
        "room_bytes": math.inf,
        "token_bytes": 1.0,
        "decode": decode,
        "reading": reading,
    }
    return Station(**{**given, **others})  # type: ignore[arg-type]


def served(
    one: Station, requests: Sequence[tuple[float, int, int]], n_cached: Sequence[int] = ()
) -> Log:
    """Serve requests, each with its arrival and its tokens of input and output, on one rank."""
    log = Log(
        n_input=[r[1] for r in requests],
        n_output=[r[2] for r in requests],
        ready_s=[r[0] for r in requests],
        first_s=[math.nan] * len(requests),
        last_s=[math.nan] * len(requests),
        gaps=Gaps(),
        n_cached=list(n_cached),
    )
    rank = Rank(one, log)
    for number in range(len(requests)):
        rank.arrive(number)
    rank.advance(math.inf)
    return log


def poisson(
    n: int, rate_per_s: float, n_input: int, mean_output: float, seed: int = 1
) -> list[tuple[float, int, int]]:
    """Requests at random times, whose answers are geometric in length."""
    draw, now, found = random.Random(seed), 0.0, []
    for _ in range(n):
        now += draw.expovariate(rate_per_s)
        length = 1
        if mean_output > 1.0:
            length += int(math.log(1.0 - draw.random()) / math.log(1.0 - 1.0 / mean_output))
        found.append((now, n_input, length))
    return found
