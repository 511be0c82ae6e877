"""What pairs of columns hand over, dealt out to their replicas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.placing.program import KTOKEN
from planner.placing.searching import Choice

LEAST = 1e-12
"""Of a rate, below which it is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """Answers whose prompts one replica reads and another writes, by number of the replicas."""

    source: int
    target: int
    output_tokens_per_s: float


def handed_over(choice: Choice) -> tuple[Handed, ...]:
    """Between replicas in the order in which they are located; none where nothing is.

    Replicas of a column share evenly what it hands over, so that none does more than it can; and
    a share goes to as few others as may be.
    """
    network = choice.posed.network
    if network is None:
        return ()
    first: dict[int, int] = {}
    n_before = choice.posed.columns.n_parts
    n_so_far = 0
    for j, n in enumerate(choice.counts.copies[n_before:], n_before):
        first[j] = n_so_far
        n_so_far += n
    found: list[Handed] = []
    pairs = zip(network.prefill.tolist(), network.decode.tolist(), choice.flows, strict=True)
    for p, d, rate in pairs:
        if rate <= LEAST:
            continue
        n_sources, n_targets = choice.counts.copies[p], choice.counts.copies[d]
        found += [
            Handed(source=first[p] + i, target=first[d] + k, output_tokens_per_s=share / KTOKEN)
            for i, k, share in _dealt(rate, n_sources, n_targets)
        ]
    return tuple(found)


def _dealt(rate: float, n_sources: int, n_targets: int) -> Iterator[tuple[int, int, float]]:
    """An even share of each source to targets that each take an even share, in their order.

    In shares of rate / (sources × targets) all cuts are whole numbers.
    """
    part, i, k = rate / (n_sources * n_targets), 0, 0
    left, room = n_targets, n_sources
    while i < n_sources:
        n = min(left, room)
        yield i, k, n * part
        left, room = left - n, room - n
        if not left:
            i, left = i + 1, n_targets
        if not room:
            k, room = k + 1, n_sources
