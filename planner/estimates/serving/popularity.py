"""Rows and experts of the fullest device of a stage, by how popular each expert is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.routing import chances, experts_reached, fullest
from planner.specs.architecture import Experts

_NONE = np.zeros(0)


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
        mine, device = ranks == n_ranks, _fullest(ffn, int(n_ranks))
        rows[mine] = tokens[mine] * device.rows_per_token
        hit[mine] = device.n_hit(tokens[mine])
    return Reached(rows=rows, n_hit=np.maximum(hit, np.minimum(1.0, ffn.n_experts / ranks)))


@dataclass(slots=True, kw_only=True)
class _Fullest:
    """The fullest device of a stage, on average over the orders of experts.

    Candidates differ in a few hundred numbers of tokens, so that experts hit are remembered by it.

    Args:
        chances: of its experts, distinct ones (D,).
        counts: experts with each of these chances (D,).
        known: numbers of tokens in ascending order, and experts hit by so many: two arrays (K,).
    """

    chances: FloatArray
    counts: FloatArray
    known: tuple[FloatArray, FloatArray] = (_NONE, _NONE)

    @property
    def rows_per_token(self) -> float:
        return float(self.chances @ self.counts)

    def n_hit(self, tokens: FloatArray) -> FloatArray:
        """Experts there that any of so many tokens visits (N,)."""
        wanted, place = np.unique(np.asarray(tokens, dtype=float), return_inverse=True)
        counts, hits = self.known
        fresh = np.setdiff1d(wanted, counts, assume_unique=True)
        if len(fresh):
            counts = np.concatenate([counts, fresh])
            hits = np.concatenate([hits, experts_reached(fresh, self.chances, self.counts)])
            order = np.argsort(counts)
            counts, hits = counts[order], hits[order]
            self.known = (counts, hits)  # set at once: threads see a whole pair
        return np.asarray(hits[np.searchsorted(counts, wanted)][place])


@lru_cache(maxsize=256)
def _fullest(ffn: Experts, n_ranks: int) -> _Fullest:
    orders = ffn.expected_loads[: None if n_ranks > 1 else 1]  # one device holds all in any order
    held = [fullest(chances(loads, ffn.n_active), n_ranks) for loads in orders]
    distinct, counts = np.unique(np.concatenate(held), return_counts=True)
    return _Fullest(chances=distinct, counts=counts / len(orders))
