"""Requests of classes drawn once, as arrays: every simulation with one seed gets the same."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.specs.traffic.records import Arriving

MOST_KEPT = 4_000_000
"""Requests of all sources together that are kept."""

_FEWEST = 64


class ArrivalProcess(Protocol):
    """Requests in the order of arrival, with or without an end; a class of traffic is one."""

    def requests(self, seed: int) -> Iterator[Arriving]: ...


@dataclass(slots=True, eq=False)
class _Drawn:
    """What was drawn of a source: seconds, and tokens in and out, (3, N)."""

    source: ArrivalProcess
    left: Iterator[Arriving]
    rows: FloatArray = field(default_factory=lambda: np.zeros((3, 0)))
    is_over: bool = False


_drawn: dict[tuple[int, int], _Drawn] = {}


def drawn(source: ArrivalProcess, seed: int, n: int) -> tuple[FloatArray, bool]:
    """The first n requests of a source, (3, N), and whether there are no more than these."""
    requests = _drawn.get((id(source), seed))
    if requests is None:
        if sum(it.rows.shape[1] for it in _drawn.values()) > MOST_KEPT:
            _drawn.clear()
        requests = _drawn[id(source), seed] = _Drawn(source, source.requests(seed))
    missing = n - requests.rows.shape[1]
    if missing > 0 and not requests.is_over:
        new = [(it.at_s, it.n_input, it.n_output) for it in islice(requests.left, missing)]
        requests.rows = np.concatenate(
            [requests.rows, np.array(new, float).reshape(-1, 3).T], axis=1
        )
        requests.is_over = len(new) < missing
    return requests.rows[:, :n], requests.is_over and n >= requests.rows.shape[1]


def seeds_of(n_sources: int, chance: random.Random) -> list[tuple[int, int]]:
    """Seeds of each source: of its requests, and of who chooses among its routes.

    One between them is left, as the verifier leaves it.
    """
    drawn_of = [[chance.getrandbits(64) for _ in range(3)] for _ in range(n_sources)]
    return [(first, last) for first, _, last in drawn_of]


def merged(
    sources: Sequence[ArrivalProcess], seeds: Sequence[int], n: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """The first n requests of all sources in the order of arrival, fewer where all end.

    Returns:
        When each comes [s] (N,), its tokens in and out (2, N), and the number of its source (N,).
    """
    counts = [min(n, n // len(sources) + _FEWEST)] * len(sources)
    while True:
        parts = [drawn(*it) for it in zip(sources, seeds, counts, strict=True)]
        ends = [np.inf if is_over else rows[0, -1] for rows, is_over in parts]
        until_s = min(ends, default=np.inf)
        rows = np.concatenate([rows for rows, _ in parts], axis=1)
        known = rows[0] < until_s
        if np.isinf(until_s) or known.sum() >= n or min(counts) > n:
            break
        counts = (np.array(counts) * np.where(np.array(ends) <= until_s, 2, 1)).tolist()
    numbers = np.repeat(np.arange(len(sources)), [rows.shape[1] for rows, _ in parts])
    order = np.argsort(rows[0], kind="stable")[:n]  # of what comes at once, the first class first
    return rows[0, order], rows[1:, order].astype(np.int64), numbers[order]
