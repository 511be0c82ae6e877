"""Llama 2 70B and Mixtral 8x7B under MLPerf's Server scenario: random arrivals, limits at p99.

The results say which devices served how many requests a second, and percentiles; they do not say by
how many replicas, sharded how, in which format, to prompts of which length. None of it is assumed:

* Frontier: the most requests a second that any deployment on these devices carries within both
  limits if prompts were of one token, and if they were of 256. No point may be beyond the first.
  The second is no prediction, but of a length that nobody states all devices can be asked: their
  best points should be equally near to it.
* Spread: p99 over p50 of TTFT and TPOT of every deployment that carries the measured rate within
  the limits. What was measured should be among these, or near.

Answers are as long on average as tokens a second over requests a second say, and at most 1024
tokens, which are the benchmark's; the shape between is unknown, so equal and geometric ones are
both asked. Formats are the least that a device computes with, for they carry most. Replicas get
requests by chance. Only devices at their full power are asked, whose kernels were measured.

Source: MLCommons, inference_results_v4.1, `mlperf_log_summary.txt` of each result (Apache-2.0).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.specs.records.served_formats import ServedFormats
from research.fleet.mlperf_results import Point, points
from research.fleet.replaying import (
    Replayed,
    Requests,
    Server,
    poisson,
    replay,
    station,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """How a replica is divided."""

    n_tensor: int
    n_stages: int

    @property
    def n_devices(self) -> int:
        return self.n_tensor * self.n_stages


LONGEST = 1024
"""Tokens of an answer at most (mlcommons/inference_policies, inference_rules.adoc)."""

MODELS = {"llama2-70b": "Llama-2-70b-hf", "mixtral-8x7b": "mixtral-8x7b"}
TOPOLOGIES = {
    "H100": "h100-nvl8-x1",
    "H200": "h200-nvl8-x1",
    "B200": "b200-nvl8-x1",
    "L40S": "l40s-x8",
}

_FP8 = ServedFormats(weights="fp8", experts="fp8", cache="fp8")
_FP4 = ServedFormats(weights="nvfp4", experts="nvfp4", cache="fp8")
FORMATS = {"B200": _FP4}
"""The least bytes that a device computes with; FP8 where nothing else is said."""

PARTS = tuple(
    Parts(n_tensor=n_tensor, n_stages=n_stages)
    for n_tensor, n_stages in ((1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (2, 2), (1, 4))
)
SHORTEST, USUAL = 1, 256
"""Tokens of prompts: none is shorter; and a length of which two devices can be asked."""

N_LIVES = 4
"""Lives of a request that a simulation goes on for; the first of them is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A replica and the requests that it gets: what the results do not say.

    Args:
        gpu, parts: its devices.
        n_input: tokens of every prompt.
        n_output: of an answer on average.
        is_geometric: answers are geometric in length, else equal.
    """

    model: str
    gpu: str
    parts: Parts
    n_input: int
    n_output: int
    is_geometric: bool


def served(case: Case, rate_per_s: float, seed: int = 1) -> Replayed:
    """What becomes of requests to one replica, once it is as full as it gets."""
    server = Server(
        model=MODELS[case.model],
        topology=TOPOLOGIES[case.gpu],
        engine="trtllm",
        n_tensor=case.parts.n_tensor,
        n_stages=case.parts.n_stages,
        most_running=2048,
        chunk_tokens=8192,
        formats=FORMATS.get(case.gpu, _FP8),
    )
    one = station(server, case.n_input, case.n_input + LONGEST)
    one = replace(one, request_s=0.0, request_token_s=0.0)
    life_s = case.n_output * 0.2
    n = max(400, round(rate_per_s * life_s * N_LIVES))
    found = replay(
        one,
        Requests(
            arrival_s=poisson(n, rate_per_s, seed),
            n_input=[case.n_input] * n,
            n_output=_lengths(case, n, seed),
        ),
    )
    first = n // N_LIVES
    return replace(found, ttft_s=found.ttft_s[first:], tpot_s=found.tpot_s[first:])


def _lengths(case: Case, n: int, seed: int) -> list[int]:
    if not case.is_geometric:
        return [case.n_output] * n
    draw, q = random.Random(seed), math.log1p(-1.0 / _untruncated(case.n_output))
    return [min(LONGEST, max(2, 1 + int(math.log(1.0 - draw.random()) / q))) for _ in range(n)]


def _untruncated(mean: float) -> float:
    """The mean of a geometric length that has this mean once none is above the longest."""
    low, high = mean, 10.0 * mean
    for _ in range(40):
        middle = (low + high) / 2.0
        cut = middle * (1.0 - (1.0 - 1.0 / middle) ** LONGEST)
        low, high = (middle, high) if cut < mean else (low, middle)
    return low


def within(point: Point, found: Replayed) -> bool:
    """Whether both limits hold at p99."""
    return bool(
        np.quantile(found.ttft_s, 0.99) <= point.ttft_limit_s
        and np.quantile(found.tpot_s, 0.99) <= point.tpot_limit_s
    )


@cache
def most_per_s(case: Case, ttft_limit_s: float, tpot_limit_s: float, n_steps: int = 6) -> float:
    """The largest rate of one replica within limits, within 2 %."""
    asked = replace(points()[0][0], ttft_limit_s=ttft_limit_s, tpot_limit_s=tpot_limit_s)
    low, high = 0.0, 1.0
    while within(asked, served(case, high)):
        low, high = high, 2.0 * high
    for _ in range(n_steps):
        middle = (low + high) / 2.0
        low, high = (middle, high) if within(asked, served(case, middle)) else (low, middle)
    return low


def cases(point: Point, n_input: int, *, is_geometric: bool) -> Iterator[Case]:
    """Every deployment on a point's devices."""
    for parts in PARTS:
        if point.n_devices % parts.n_devices == 0:
            yield Case(
                model=point.model,
                gpu=point.gpu,
                parts=parts,
                n_input=n_input,
                n_output=point.n_output,
                is_geometric=is_geometric,
            )


def frontier_per_s(point: Point, n_input: int, most_stages: int = 4) -> float:
    """The most that any deployment of so many stages carries on a point's devices."""
    return max(
        most_per_s(case, point.ttft_limit_s, point.tpot_limit_s)
        * point.n_devices
        / case.parts.n_devices
        for case in cases(point, n_input, is_geometric=False)
        if case.parts.n_stages <= most_stages
    )


def spreads(point: Point) -> dict[str, tuple[float, float]]:
    """Least and largest p99 over p50 of deployments that carry a point's rate; empty of none."""
    found: dict[str, list[float]] = {"ttft": [], "tpot": []}
    for is_geometric in (False, True):
        for case in cases(point, USUAL, is_geometric=is_geometric):
            one = served(case, point.rate_per_s * case.parts.n_devices / point.n_devices)
            if within(point, one):
                for name, values in (("ttft", one.ttft_s), ("tpot", one.tpot_s)):
                    low, high = np.quantile(values, (0.5, 0.99))
                    found[name].append(float(high / low))
    return {name: (min(of), max(of)) for name, of in found.items() if of}


def outside(measured: float, least: float, largest: float) -> float:
    """How far a value is below or above a range, relative; 0 inside."""
    return min(measured / least - 1.0, 0.0) or max(measured / largest - 1.0, 0.0)


def report() -> Iterator[str]:
    """Every point that is asked, against the frontier of its devices and all deployments."""
    asked, left = points()
    yield "MLPerf v4.1 Server: requests a second, of the most that any deployment carries"
    best: dict[str, tuple[float, float]] = {}
    off: dict[str, list[float]] = {"ttft": [], "tpot": []}
    n_carried = 0
    for point in asked:
        most = {length: frontier_per_s(point, length) for length in (SHORTEST, USUAL)}
        share = point.rate_per_s / most[USUAL]
        device = f"{point.model} on {point.gpu}"
        uncut = point.rate_per_s / frontier_per_s(point, USUAL, most_stages=1)
        best[device] = max(best.get(device, (0.0, 0.0)), (share, uncut))
        bounds = spreads(point)
        n_carried += bool(bounds)
        for name, (least, largest) in bounds.items():
            off[name].append(outside(point.spread[name], least, largest))
        ranges = "  ".join(
            f"{name.upper()} p99/p50 {point.spread[name]:.2f} of {least:.2f} to {largest:.2f}"
            for name, (least, largest) in bounds.items()
        )
        yield (
            f"  {point.submitter[:12]:12} {point.model:12} {point.gpu} x{point.n_devices:<2} "
            f"{point.rate_per_s:6.1f}/s: {point.rate_per_s / most[SHORTEST]:.2f} of the frontier "
            f"at prompts of {SHORTEST}, {share:.2f} at {USUAL}  {ranges or 'none carries it'}"
        )
    for device, (share, uncut) in best.items():
        yield (
            f"best point of {device}: {share:.2f} of the frontier at prompts of {USUAL} tokens, "
            f"{uncut:.2f} of that without pipelines"
        )
    for name, deviations in off.items():
        inside = sum(one == 0.0 for one in deviations)
        yield (
            f"{name.upper()} p99/p50: {inside} of {len(deviations)} points inside, "
            f"others off by {100 * _median(deviations):.0f} % in the median"
        )
    yield f"{n_carried} of {len(asked)} points are carried by some deployment at {USUAL} tokens"
    for why, n in Counter(left).most_common():
        yield f"left out: {n} rows, {why}"


def _median(deviations: Sequence[float]) -> float:
    return float(np.median([abs(one) for one in deviations if one] or [0.0]))
