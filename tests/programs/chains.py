"""Chains to cut that tests draw, and two ways to cut them that share nothing with the solvers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np

from planner_workshop.staging.cuts.program import StageProgram


def chain(
    rng: np.random.Generator,
    *,
    n_units: int,
    n_groups: tuple[int, ...],
    hands: bool = True,
    room: float = 1.6,
) -> StageProgram:
    """Units of unequal length and size on kinds of unequal speed and memory.

    Args:
        room: memory of all groups together, as a multiple of what the units need.
    """
    n_kinds = len(n_groups)
    units = rng.choice([0.3, 1.0, 1.7, 2.4], n_units) * rng.uniform(0.9, 1.1, n_units)
    sizes = rng.uniform(0.5, 1.5, n_units)
    speed = rng.uniform(0.5, 2.0, n_kinds)
    time, size = (np.concatenate([[0.0], np.cumsum(x)]) for x in (units, sizes))
    run = (time[None, :] - time[:, None]) * speed[:, None, None] + 0.05
    held = np.broadcast_to(size[None, :] - size[:, None], run.shape).copy()
    return StageProgram(
        kinds=tuple(f"k{t}" for t in range(n_kinds)),
        n_groups=np.array(n_groups, dtype=np.int64),
        run_ms=run,
        held_gib=held,
        room_gib=rng.uniform(0.7, 1.3, n_kinds) * room * sizes.sum() / sum(n_groups),
        hand_ms=rng.uniform(0.0, 0.4, (n_kinds, n_kinds)) * hands,
    )


def by_dynamic_programming(program: StageProgram, objective: str) -> float:
    """The best cut of a chain on groups of one kind: least over the place of the last cut.

    best[n][j]: the first j units in n stages, each but the last of all handing over.
    """
    (n_groups,), n_units = program.n_groups.tolist(), program.n_units
    hand = float(program.hand_ms[0, 0])
    best = np.full((n_groups + 1, n_units + 1), np.inf)
    best[0, 0] = 0.0
    for n in range(1, n_groups + 1):
        for j in range(1, n_units + 1):
            sends = hand if j < n_units else 0.0
            for i in range(j):
                if program.held_gib[0, i, j] > program.room_gib[0]:
                    continue
                stage = program.run_ms[0, i, j] + sends
                before = best[n - 1, i]
                total = before + stage if objective == "latency" else max(before, stage)
                best[n, j] = min(best[n, j], total)
    return float(best[:, n_units].min())


def by_enumeration(program: StageProgram, objective: str) -> float:
    """The best of every order of every choice of groups, with every cut between units."""
    best = np.inf
    kinds = [t for t, n in enumerate(program.n_groups.tolist()) for _ in range(n)]
    for order in _orders(kinds):
        for inner in combinations(range(1, program.n_units), len(order) - 1):
            best = min(best, _value(program, order, (0, *inner, program.n_units), objective))
    return float(best)


def _orders(kinds: list[int]) -> Iterator[tuple[int, ...]]:
    for n in range(1, len(kinds) + 1):
        yield from set(permutations(kinds, n))


def _value(
    program: StageProgram, order: tuple[int, ...], ends: tuple[int, ...], objective: str
) -> float:
    times = []
    for index, kind in enumerate(order):
        first, last = ends[index], ends[index + 1]
        if program.held_gib[kind, first, last] > program.room_gib[kind]:
            return float("inf")
        then = order[index + 1 :]
        sends = program.hand_ms[kind, then[0]] if then else 0.0
        times.append(float(program.run_ms[kind, first, last] + sends))
    return sum(times) if objective == "latency" else max(times)
