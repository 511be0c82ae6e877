"""The maximum flow of one placement by OR-Tools, with the least cut that shows it."""

from __future__ import annotations

import numpy as np
from ortools.graph.python import max_flow  # type: ignore[import-untyped]

from planner.equations.arrays import IntArray
from planner.programs.spans import Cut, Spans, meet

UNITS = 10**6
"""Whole numbers a token/s."""


def maximum_flow(some: Spans, chosen: IntArray) -> tuple[float, Cut]:
    """Tokens/s that one placement serves, rounded down to 1e-6; and a cut that no more passes.

    It is for searching: the rate of an answer is replayed, and the cut's rate counted anew.

    Args:
        chosen: span of each machine (M,).
    """
    pool, n = some.pool, len(chosen)
    first = np.array([some.first[m][i] for m, i in enumerate(chosen.tolist())])
    end = np.array([some.end[m][i] for m, i in enumerate(chosen.tolist())])
    rate = np.array([some.rate[m][i] for m, i in enumerate(chosen.tolist())])
    links = np.where(meet(pool, first[None], end[None])[0], some.links, 0.0)
    tail, head = np.nonzero(links)
    starts, ends = np.flatnonzero(first == 0), np.flatnonzero(end == pool.n_layers)
    source, sink = 2 * n, 2 * n + 1  # a machine's way in is its index, its way out n further
    flow = max_flow.SimpleMaxFlow()
    flow.add_arcs_with_capacity(
        np.concatenate([np.arange(n), n + tail, np.full(len(starts), source), n + ends]),
        np.concatenate([np.arange(n) + n, head, starts, np.full(len(ends), sink)]),
        _units(
            rate,
            links[tail, head],
            np.minimum(rate, pool.from_coordinator)[starts],
            np.minimum(rate, pool.to_coordinator)[ends],
        ),
    )
    if flow.solve(source, sink) != flow.OPTIMAL:
        return 0.0, Cut(before=np.ones(n, dtype=np.bool_), behind=np.ones(n, dtype=np.bool_))
    near = np.zeros(2 * n + 2, dtype=np.bool_)
    near[flow.get_source_side_min_cut()] = True
    return flow.optimal_flow() / UNITS, Cut(before=near[:n], behind=near[n : 2 * n])


def _units(*rates: np.ndarray) -> IntArray:
    return np.asarray(np.floor(np.concatenate(rates) * UNITS), dtype=np.int64)
