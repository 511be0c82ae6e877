"""Small pools of machines, and the best placement of their layers by trying every one."""

from __future__ import annotations

from itertools import product

import numpy as np

from planner.programs.machines import Held, Pool
from planner.programs.replay import replayed_rate


def pool(n_layers, rates, type_of, *, links=1e12, coordinator=1e12, enters_within=False):
    """Machines of types with `rates`, with one link rate or a matrix of them."""
    n = len(type_of)
    matrix = np.broadcast_to(np.asarray(links, dtype=float), (n, n)).copy()
    np.fill_diagonal(matrix, 0.0)
    ends = np.full(n, float(coordinator))
    return Pool(
        n_layers=n_layers,
        types=tuple(f"t{i}" for i in range(len(rates))),
        rates=tuple(np.array(r, dtype=float) for r in rates),
        names=tuple(f"m{i}" for i in range(n)),
        type_of=np.array(type_of),
        links=matrix,
        from_coordinator=ends,
        to_coordinator=ends.copy(),
        enters_within=enters_within,
    )


def drawn(seed, *, limited=False, enters_within=False):
    """3 machines of two types and 4 layers, or 4 machines and 4 layers of which each holds 2."""
    rng = np.random.default_rng(seed)
    n_machines, most = ((3, 3), (4, 2))[seed % 2]
    rates = [
        np.sort(rng.uniform(20, 100, most) / np.arange(1, most + 1))[::-1].round(2)
        for _ in range(2)
    ]
    links = rng.choice([5.0, 15.0, 40.0], (n_machines, n_machines)) if limited else 1e12
    ends = 30.0 if limited and seed % 3 == 0 else 1e12
    kinds = rng.integers(0, 2, n_machines)
    return pool(4, rates, kinds, links=links, coordinator=ends, enters_within=enters_within)


def best_of_all(some: Pool) -> float:
    """The rate of the best placement: every machine idle, or with any layers that it can hold."""
    choices = [
        [None, *(Held(machine=m, first=i, n_layers=k)
                 for k in range(1, len(some.rates[int(some.type_of[m])]) + 1)
                 for i in range(some.n_layers - k + 1))]
        for m in range(len(some.names))
    ]  # fmt: skip
    best = 0.0
    for tried in product(*choices):
        placement = [held for held in tried if held is not None]
        through = np.zeros(some.n_layers)  # of each layer: no flow is above the least of them
        for held in placement:
            through[held.first : held.first + held.n_layers] += some.rate(
                held.machine, held.n_layers
            )
        if through.min() > best * (1.0 + 1e-9):
            best = max(best, replayed_rate(some, placement))
    return best
