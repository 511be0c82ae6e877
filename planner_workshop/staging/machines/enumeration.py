"""Bounds and placements by trying all that may be better: all, and those near one."""

import time
from collections.abc import Collection

import numpy as np

from planner.programs.proofs import ENUMERATION
from planner_workshop.staging.machines.incumbents import LEAST_RATE, Incumbent
from planner_workshop.staging.machines.program import RELATIVE_TOLERANCE, Placement
from planner_workshop.staging.machines.spans import Spans, fixed
from planner_workshop.staging.machines.tree import Tree

A_NEIGHBOURHOOD = 30_000_000
"""Work in each neighbourhood."""

FEWEST, MOST = 2, 7
"""Machines that are free at once: more, when with fewer nothing is better."""

IN_VAIN = 2
"""Neighbourhoods for each machine there is that are tried in vain, before larger ones are."""


def enumerate_all(known: Incumbent, some: Spans, cells: int) -> None:
    """Try all placements that are better than the best; prove it, if that comes to its end."""
    began_s = time.perf_counter()
    above = max(known.rate * (1.0 + RELATIVE_TOLERANCE), LEAST_RATE / 2)
    tree = Tree(spans=some, above=above, prices=known.prices, deadline_s=known.deadline_s)
    is_whole = tree.search(cells)
    known.offer(tree.best)
    if is_whole:
        known.prove(ENUMERATION, max(tree.bound, known.rate), began_s)


def improve(known: Incumbent, some: Spans, cells: int) -> None:
    """Better placements near the best one, until none is found or the work is done."""
    n = len(some.first)
    rng = np.random.default_rng(known.tries.seed)
    size, in_vain, left = FEWEST, 0, float(cells)
    while left > 0 and size <= min(MOST, n - 1) and not known.is_closed and not known.is_late:
        if known.placement is None:
            return
        free = _related(some, known.placement, size, rng)
        near = fixed(some, known.placement, free)
        tree = Tree(
            spans=near,
            above=known.rate * (1.0 + RELATIVE_TOLERANCE),
            prices=known.prices,
            deadline_s=known.deadline_s,
        )
        tree.search(A_NEIGHBOURHOOD)
        left -= (tree.n_tried + 100) * tree.width
        before = known.rate
        known.offer(tree.best)
        in_vain = 0 if known.rate > before else in_vain + 1
        if known.rate > before:
            size = FEWEST
        elif in_vain >= IN_VAIN * n:
            size, in_vain = size + 1, 0


def _related(
    some: Spans, placement: Placement, size: int, rng: np.random.Generator
) -> Collection[int]:
    """Machines that hold layers near one layer, or none."""
    n = len(some.first)
    at = int(rng.integers(0, some.pool.n_layers + 1))
    far = rng.uniform(0.0, some.pool.n_layers / 2, n)
    for held in placement:
        beside = max(held.first - at, at - held.first - held.n_layers, 0)
        far[held.machine] = beside + rng.uniform(0.0, 1.0)
    near = np.argsort(far)[: max(2 * size, n // 3)]
    return frozenset(rng.choice(near, size, replace=False).tolist())
