"""Replicas that are dealt out node by node: each has devices of its own."""

from __future__ import annotations

from collections.abc import Iterator

from planner.specs.targets import Targets
from planner.verifier.findings import Finding

Pool = tuple[int, int]
"""Devices of a pool, and of a node of it."""


def homeless(targets: Targets, pool: Pool, n_devices: int, n_replicas: int) -> Iterator[Finding]:
    """Another number of replicas than was asked for, or more than have devices of their own.

    One that fits a node stays in it; a larger one begins with a node of its own.

    Args:
        n_devices: of one replica.
    """
    asked = targets.n_replicas
    if asked is not None and n_replicas != asked:
        yield Finding(path=("n_replicas",), says=n_replicas, fact=f"are not {asked}")
    places = n_places(pool, n_devices)
    if not 1 <= n_replicas <= places:
        yield Finding(path=("n_replicas",), says=n_replicas, fact=f"have {places} places")


def n_places(pool: Pool, n_devices: int) -> int:
    """Replicas of so many devices that are dealt out; one wherever it fits at all."""
    whole_pool, node = pool
    step = node if n_devices <= node else -(-n_devices // node) * node
    sizes = (min(step, whole_pool - first) for first in range(0, whole_pool, step))
    whole = sum(size // n_devices if n_devices <= node else size == step for size in sizes)
    return max(whole, n_devices <= whole_pool)
