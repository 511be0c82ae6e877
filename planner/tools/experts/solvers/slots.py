"""A placement under way, and one that was found: which expert is in which slot.

held[g, i]  expert in slot i of rank g, or -1 where it is empty  [G, S]
counts[e]   copies of each expert                                [E]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.solvers.proving import Proved
from planner.tools.experts.program import ExpertProgram, Placement

EMPTY = -1


@dataclass(slots=True, kw_only=True, eq=False)
class Slots:
    """Slots that change while a placement is improved; the copies share equally."""

    held: IntArray
    counts: IntArray

    def copy(self) -> Slots:
        return Slots(held=self.held.copy(), counts=self.counts.copy())

    def sizes(self, load: FloatArray) -> FloatArray:
        """Load of one copy of each expert, and last the 0 of an empty slot [E + 1]."""
        return np.append(load / np.maximum(self.counts, 1), 0.0)

    def values(self, load: FloatArray) -> FloatArray:
        """Load of each slot [G, S]."""
        return np.asarray(self.sizes(load)[self.held])

    def loads(self, load: FloatArray) -> FloatArray:
        """Load of each rank [G]."""
        return np.asarray(self.values(load).sum(axis=1))

    def copies(self) -> IntArray:
        """Copies of each expert on each rank [E, G]."""
        return table(self.held, len(self.counts))


def table(held: IntArray, n_experts: int) -> IntArray:
    """Slots as copies of each expert on each rank [E, G]."""
    slots = np.zeros((n_experts + 1, len(held)), dtype=np.int64)
    np.add.at(slots, (held, np.arange(len(held))[:, None]), 1)
    return slots[:n_experts]


def slots_of(copies: IntArray, program: ExpertProgram) -> Slots:
    """Copies of each expert on each rank [E, G] as slots."""
    held = np.full((program.n_ranks, program.n_slots), EMPTY, dtype=np.int64)
    for g in range(program.n_ranks):
        there = np.repeat(np.arange(len(copies)), copies[:, g])
        held[g, : len(there)] = there
    return Slots(held=held, counts=np.asarray(copies.sum(axis=1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """A placement and what is known of it.

    Args:
        placement: the best that was found.
        proved: its objective, in units of load, and what provers say of it.
        proof: what gave the bound: mean, copies, patterns, pairs, groups or search.
        is_cut_short: whether the time limit ended the search.
    """

    placement: Placement
    proved: Proved[Placement]
    proof: str
    is_cut_short: bool = False
