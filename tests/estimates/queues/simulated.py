"""Percentiles of a situation as the simulator finds them, with how sure it is of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.verifier.simulation.gaps import Gaps
from planner.verifier.simulation.rank import Log, Rank
from tests.estimates.queues.situations import Mix, Situation

SHARES = (0.5, 0.9, 0.99)
N_BATCHES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What was seen.

    Args:
        ttft_s, tpot_s, itl_s: at each of `SHARES`.
        ttft_error, tpot_error: standard error of each, as a share of it, by means of batches.
        begun_again: times that a request lost its place, for each request.
        n: requests.
        rate_per_s: at which they came.
    """

    ttft_s: tuple[float, ...]
    tpot_s: tuple[float, ...]
    itl_s: tuple[float, ...]
    ttft_error: tuple[float, ...]
    tpot_error: tuple[float, ...]
    begun_again: float
    n: int
    rate_per_s: float


def simulated(one: Situation, *, seed: int, n: int, most: int, error: float = 0.015) -> Simulated:
    """Simulate until no percentile has a standard error above that, or `most` requests."""
    while True:
        found = _run(one, np.random.default_rng(seed), n)
        worst = max(x for x in (*found.ttft_error, *found.tpot_error) if not math.isnan(x))
        if worst <= error or n >= most:
            return found
        n = min(most, int(n * min(6.0, max(1.5, (worst / error) ** 2))))


def arrivals(draw: np.random.Generator, rate: float, cv2: float, n: int) -> np.ndarray:
    """Renewals of gamma times; Poisson where these vary as exponential ones do."""
    return np.cumsum(draw.gamma(1.0 / cv2, cv2 / rate, n))


@dataclass(frozen=True, slots=True)
class Served:
    """Requests: when they came (N,), the cells that they are of (N,), and what became of them."""

    arrived_s: np.ndarray
    cell: np.ndarray
    log: Log


def _served(one: Situation, draw: np.random.Generator, n: int) -> Served:
    """So many requests, and what became of them."""
    load = one.load
    times = arrivals(draw, load.rate_per_s, load.arrival_cv2, n)
    cell = draw.choice(len(load.weight), size=n, p=load.weight)
    nan = [math.nan] * n
    log = Log(
        n_input=load.n_input[cell].astype(int).tolist(),
        n_output=load.n_output[cell].astype(int).tolist(),
        ready_s=times.tolist(),
        first_s=nan,
        last_s=nan.copy(),
        gaps=Gaps(),
    )
    rank = Rank(one.station, log)
    for number in range(n):
        rank.arrive(number)
    rank.advance(math.inf)
    return Served(times, cell, log)


def simulated_classes(one: Mix, *, seed: int, n: int) -> list[dict[str, tuple[float, ...]]]:
    """Percentiles of each class of a mix, and their standard errors as shares of them."""
    seen = _served(one.situation, np.random.default_rng(seed), n)
    ttft, tpot, settled = _times(seen)
    found = []
    for cells in one.classes:
        mine = (seen.cell >= cells.start)[settled] & (seen.cell < cells.stop)[settled]
        found.append(
            {
                "ttft": tuple(np.quantile(ttft[mine], SHARES)),
                "tpot": tuple(np.quantile(tpot[mine], SHARES)),
                "ttft_error": _errors(ttft[mine]),
                "tpot_error": _errors(tpot[mine]),
            }
        )
    return found


def _times(seen: Served) -> tuple[np.ndarray, np.ndarray, slice]:
    """TTFT and TPOT of requests once all is settled, and which these are."""
    n, log = len(seen.cell), seen.log
    first, last = np.array(log.first_s), np.array(log.last_s)
    settled = slice(n // 20, n - n // 50)
    ttft = (first - seen.arrived_s)[settled]
    tpot = ((last - first) / np.maximum(1, np.array(log.n_output) - 1))[settled]
    return ttft, tpot, settled


def _run(one: Situation, draw: np.random.Generator, n: int) -> Simulated:
    seen = _served(one, draw, n)
    log, (ttft, tpot, _) = seen.log, _times(seen)
    return Simulated(
        ttft_s=tuple(np.quantile(ttft, SHARES)),
        tpot_s=tuple(np.quantile(tpot, SHARES)),
        itl_s=tuple(log.gaps.percentile_s(share) for share in SHARES),
        ttft_error=_errors(ttft),
        tpot_error=_errors(tpot),
        begun_again=log.n_begun_again / n,
        n=n,
        rate_per_s=one.load.rate_per_s,
    )


def _errors(values: np.ndarray) -> tuple[float, ...]:
    batches = np.array([np.quantile(part, SHARES) for part in np.array_split(values, N_BATCHES)])
    spread = batches.std(axis=0, ddof=1) / math.sqrt(N_BATCHES)
    return tuple(np.where(spread > 0, spread / np.maximum(batches.mean(axis=0), 1e-12), 0.0))


def running(one: Situation, n: int) -> np.ndarray:
    """Sequences that decode, as each of so many requests finds them."""
    seen = _served(one, np.random.default_rng(1), n)
    begin, end = np.sort(seen.log.first_s), np.sort(seen.log.last_s)
    found = np.searchsorted(begin, seen.arrived_s) - np.searchsorted(end, seen.arrived_s)
    return found[n // 10 :]


def served_rate(one: Situation, n: int) -> float:
    """Requests a second while there are always some that wait."""
    draw = np.random.default_rng(1)
    cell = draw.choice(len(one.load.weight), size=n, p=one.load.weight)
    log = Log(
        n_input=one.load.n_input[cell].astype(int).tolist(),
        n_output=one.load.n_output[cell].astype(int).tolist(),
        ready_s=[0.0] * n,
        first_s=[math.nan] * n,
        last_s=[math.nan] * n,
        gaps=Gaps(),
    )
    rank = Rank(one.station, log)
    for number in range(n):
        rank.arrive(number)
    rank.advance(math.inf)
    ends = np.sort(log.last_s)
    first, last = n // 5, 3 * n // 5
    return float((last - first) / (ends[last] - ends[first]))
