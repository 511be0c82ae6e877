"""From the placement that is there, one change at a time, as long as it pays for its moves.

Where a move has a price, the best placement may be near the present one. Each step changes
what helps the fullest rank most: one slot's expert (a move), or two slots' places (two moves).
Every state passed is a candidate, and the cheapest counts.
"""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.experts import ExpertProgram, equal_placement, objective
from planner.solvers.experts.polish import exchange
from planner.solvers.experts.slots import Slots, slots_of

MOST_STEPS = 400


def complete(program: ExpertProgram, copies: IntArray) -> Slots | None:
    """Copies with those experts added that are nowhere; None where they do not fit.

    An expert that is missing goes to the least loaded rank with a free slot.
    """
    copies = copies.copy()
    if (copies.sum(axis=0) > program.n_slots).any():
        return None
    for e in np.flatnonzero(copies.sum(axis=1) == 0):
        free = copies.sum(axis=0) < program.n_slots
        if not free.any():
            return None
        loads = program.load @ (copies / np.maximum(copies.sum(axis=1, keepdims=True), 1))
        copies[e, int(np.argmin(np.where(free, loads, np.inf)))] = 1
    return slots_of(copies, program)


def cheapest_on_the_way(program: ExpertProgram, start: Slots) -> IntArray:
    """The copies [E, G] of least load and price of moves among the states passed."""
    at = start.copy()
    best = at.copies()
    least = objective(program, equal_placement(best))
    for _ in range(MOST_STEPS):
        one, two = at.copy(), at.copy()
        if not exchange(one, program.load):
            one = at
        _swap(two, program.load)
        peaks = [float(state.loads(program.load).max()) for state in (at, one, two)]
        gains = (peaks[0] - peaks[1], (peaks[0] - peaks[2]) / 2.0)  # by move
        if max(gains) <= 0.0:
            break
        at = one if gains[0] >= gains[1] else two
        copies = at.copies()
        found = objective(program, equal_placement(copies))
        if found < least:
            best, least = copies, found
    return best


def _swap(at: Slots, load: FloatArray) -> None:
    """Exchange a slot of the fullest rank with one of another, where that helps most."""
    values = at.values(load)
    loads = values.sum(axis=1)
    g = int(np.argmax(loads))
    change = values[None, :, :] - values[g][:, None, None]  # [slot of g, rank, its slot]
    peak = np.maximum(loads[g] + change, loads[None, :, None] - change)
    peak[:, g, :] = np.inf
    i, h, j = np.unravel_index(int(np.argmin(peak)), peak.shape)
    if peak[i, h, j] < loads[g]:
        at.held[g, i], at.held[h, j] = at.held[h, j], at.held[g, i]
