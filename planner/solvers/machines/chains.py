"""One machine after the other: the placement to begin with where many links are missing."""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.machines import Held, Placement, Pool, rate_table
from planner.solvers.machines.known import Known

MOST_STEPS = 5_000
"""Machines that are appended in a search for one chain, right or wrong."""

TARGETS = 24
"""Rates that are tried, each between one that has a chain and one that seems to have none."""


def chain(known: Known) -> None:
    """Bisect the rate at which a chain is found; the best is offered."""
    low, high = known.rate, known.bound
    for _ in range(TARGETS):
        if high <= low * 1.01 or known.is_late:
            return
        # far below the bound the rate falls by factors
        target = (low + high) / 2 if low > high / 8 else max(high / 4, 1e-9)
        found = best_chain(known.pool, target)
        if found is None:
            high = target
        else:
            low = max(target, known.offer(found))


def best_chain(pool: Pool, rate: float) -> Placement | None:
    """Machines that hold all layers one after the other and pass on the rate, or None.

    Each holds as many layers as it serves at the rate. Depth first, those with the most layers
    first, and of them those that can send to the most others.
    """
    held, after = _held(pool, rate), pool.links >= rate
    last = pool.to_coordinator >= rate
    worth = held * (1.0 + after.sum(axis=1) / (1.0 + len(held)))
    order = np.argsort(-worth, kind="stable")
    path: list[int] = []
    used = np.zeros(len(held), dtype=np.bool_)
    stack = [_next(order, used, held, pool.from_coordinator >= rate)]
    n_layers, steps = 0, 0
    while stack and steps < MOST_STEPS:
        if not stack[-1]:
            stack.pop()
            if path:
                gone = path.pop()
                used[gone] = False
                n_layers -= int(held[gone])
            continue
        machine = stack[-1].pop()
        steps += 1
        path.append(machine)
        used[machine] = True
        n_layers += int(held[machine])
        if n_layers >= pool.n_layers and last[machine]:
            return _placed(path, held, pool.n_layers)
        is_done = n_layers >= pool.n_layers
        stack.append([] if is_done else _next(order, used, held, after[machine]))
    return None


def _held(pool: Pool, rate: float) -> IntArray:
    """The most layers of each machine at which it serves the rate (M,)."""
    table: FloatArray = rate_table(pool)[pool.type_of]
    return np.asarray(np.where(table >= rate, np.arange(1, table.shape[1] + 1), 0).max(axis=1))


def _next(order: IntArray, used: np.ndarray, held: IntArray, linked: np.ndarray) -> list[int]:
    """Machines that may come next, the best last."""
    free = order[(held[order] > 0) & linked[order] & ~used[order]]
    return [int(machine) for machine in free[::-1]]


def _placed(path: list[int], held: IntArray, n_layers: int) -> Placement:
    """The chain; its last machine holds no more layers than are left."""
    placed, first = [], 0
    for machine in path:
        most = min(int(held[machine]), n_layers - first)
        placed.append(Held(machine=machine, first=first, n_layers=most))
        first += most
    return tuple(placed)
