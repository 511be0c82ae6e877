"""Small pools of machines, written in a line."""

from __future__ import annotations

import numpy as np

from planner_workshop.staging.machines.program import Pool


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
