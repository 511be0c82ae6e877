"""Rows and experts of the fullest device of a stage, by how popular each expert is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.routing import chances, experts_reached, fullest
from planner.specs.architecture import Experts


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What tokens bring to that device of a stage which has most rows, (N,) each.

    Args:
        rows: tokens times the experts there that they go to.
        n_hit: experts there that any of them visits.
    """

    rows: FloatArray
    n_hit: FloatArray


def reached(ffn: Experts, tokens: FloatArray, n_expert_parallel: ArrayLike) -> Reached:
    """By the popularity of experts; the mean of its orders."""
    ranks = np.broadcast_to(np.asarray(n_expert_parallel), np.shape(tokens))
    rows, hit = np.zeros(np.shape(tokens)), np.zeros(np.shape(tokens))
    for n_ranks in np.unique(ranks):
        mine = ranks == n_ranks
        held = _fullest(ffn, int(n_ranks))
        rows[mine] = tokens[mine] * np.mean([one.sum() for one in held])
        hit[mine] = experts_reached(tokens[mine], held)
    return Reached(rows=rows, n_hit=np.maximum(hit, np.minimum(1.0, ffn.n_experts / ranks)))


@lru_cache(maxsize=256)
def _fullest(ffn: Experts, n_ranks: int) -> tuple[FloatArray, ...]:
    """Chances of the experts of the fullest device, in each order."""
    orders = ffn.expected_loads[: None if n_ranks > 1 else 1]  # one device holds all in any order
    return tuple(fullest(chances(loads, ffn.n_active), n_ranks) for loads in orders)
