"""The sweep over layers: every front within the allowance, thousands of them at once.

A front is reached with different machines used; of those with the same ones the least waste is
kept. What may begin at a front is listed once, whichever layer the front is at.
"""

import time
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.running.deadlines import is_over
from planner_workshop.staging.machines.incumbents import LEAST_RATE, Incumbent
from planner_workshop.staging.machines.program import classes, regions
from planner_workshop.staging.machines.spans import Spans, layer_table
from planner_workshop.staging.machines.worth import SweepProgram, sweep_program

MOST, RELATIVE_STEP = 40_000_000, 0.05
"""Steps from one front to the next that are looked at, at all rates together; and the share of the
gap by which the bound comes down at each rate."""

MOST_LISTED = 400_000
"""Beginnings that are listed at all."""

UNKNOWN, NEVER = -2, -1
"""Next front of a step that was not looked at yet, and of one that links do not let pass."""

AT_ONCE = 1_000_000
"""Numbers of the largest arrays."""

SWEEP = "sweep over layers"

Front = tuple[tuple[int, int], ...]
"""Machines that held the last layer: beginning, and layers that it holds yet, 0 if it ends."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Steps:
    """What may begin at each front, one after the other."""

    begun: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    front: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    then: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    used: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    longest: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    waste: FloatArray = field(default_factory=lambda: np.zeros(0))


class Sweep:
    """Whether any placement may have a rate, as far as one boundary at a time can tell."""

    def __init__(self, program: SweepProgram, *, most: int, deadline_s: float) -> None:
        self.program, self.left, self.deadline_s = program, most, deadline_s
        self.fronts: list[Front] = [()]
        self.index: dict[Front, int] = {(): 0}
        self.steps = _Steps()
        self.start = np.zeros(1, dtype=np.int64)  # of each front: its first step,
        self.count = np.zeros(1, dtype=np.int64)  # how many steps it has,
        self.listed = np.full(1, -1.0)  # and within which waste they are all listed
        self.passed = cache(program.passed)

    def refutes(self) -> bool:
        """Whether it is proven that no placement has the rate; not if it takes too much work."""
        if self.program.allowance < 0:
            return self.program.room < 0
        front, used, waste = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(1)
        for layer in range(self.program.alike.n_layers):
            if not self._list(front, waste):
                return False
            which = self._possible(front, used, waste, layer)
            if which is None:
                return False
            at, step, wasted = which
            then = self.steps.then[step]
            here = np.flatnonzero(then >= 0)
            if not len(here):
                return True
            front, used, waste = _least(
                then[here], used[at[here]] + self.steps.used[step[here]], wasted[here]
            )
        ends = [self.program.leaves([one for one, _ in self.fronts[f]]) for f in np.unique(front)]
        return not any(ends)

    def _possible(
        self, front: IntArray, used: IntArray, waste: FloatArray, layer: int
    ) -> tuple[IntArray, IntArray, FloatArray] | None:
        """Steps from where the sweep is: from which state, which step, waste; None if too many."""
        upto = np.cumsum(self.count[front])
        self.left -= int(upto[-1])
        if self.left < 0 or time.perf_counter() > self.deadline_s:
            return None
        parts, at = [], 0
        while at < len(front):
            done = int(upto[at - 1]) if at else 0
            then = max(at + 1, int(np.searchsorted(upto, done + AT_ONCE)))
            which, step, wasted = self._fitting(
                front[at:then], used[at:then], waste[at:then], layer
            )
            parts.append((which + at, step, wasted))
            at = then
        which, step, wasted = (np.concatenate([part[i] for part in parts]) for i in range(3))
        steps = self.steps
        for one in np.unique(step[steps.then[step] == UNKNOWN]).tolist():
            steps.then[one] = self._next(one)
        return which, step, wasted

    def _fitting(
        self, front: IntArray, used: IntArray, waste: FloatArray, layer: int
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Steps within the allowance, by machines and layers that there are."""
        program, steps, count = self.program, self.steps, self.count[front]
        at = np.repeat(np.arange(len(front)), count)
        step = _ranges(self.start[front], count)
        wasted = waste[at] + steps.waste[step]
        fits = (wasted <= program.room) & (steps.then[step] != NEVER)
        fits &= layer + steps.longest[step] <= program.alike.n_layers
        # counts of all classes are fields of one number, a spare bit above each: with what is left
        # to its largest count added, the bit is set where more machines are used than there are
        fits &= ((used[at] + steps.used[step] + program.most) & program.carry) == 0
        return at[fits], step[fits], wasted[fits]

    def _next(self, step: int) -> int:
        """The front that a step leads to, NEVER if links do not let the rate pass."""
        program = self.program
        begun = tuple(one for one in self.steps.begun[step].tolist() if one >= 0)
        front = self.fronts[int(self.steps.front[step])]
        stays = [(one, left - 1) for one, left in front if left]
        if front:
            ended = tuple(one for one, left in front if not left)
            missing = program.need - sum(float(program.served[one]) for one, _ in stays)
            passes = missing <= 0 or self.passed(ended, begun) >= missing
        else:
            passes = program.enters(begun)
        if not passes:
            return NEVER
        then = tuple(sorted([*stays, *((one, int(program.held[one]) - 1) for one in begun)]))
        if then not in self.index:
            self.index[then] = len(self.fronts)
            self.fronts.append(then)
        return self.index[then]

    def _list(self, front: IntArray, waste: FloatArray) -> bool:
        """List what may begin at fronts that were not met before, or never with so little waste.

        Returns:
            False if that is too much.
        """
        new = len(self.fronts) - len(self.start)
        self.start = np.concatenate([self.start, np.zeros(new, dtype=np.int64)])
        self.count = np.concatenate([self.count, np.zeros(new, dtype=np.int64)])
        self.listed = np.concatenate([self.listed, np.full(new, -1.0)])
        least = np.full(len(self.fronts), np.inf)
        np.minimum.at(least, front, waste)
        room = self.program.room - least
        which = np.flatnonzero(room > self.listed)
        if not len(which):
            return True
        holding = np.zeros((len(which), int(self.program.held.max())))
        for row, one in enumerate(which.tolist()):
            for machine, left in self.fronts[one]:
                holding[row, :left] += self.program.served[machine]
        # what may begin depends on what goes on in each layer to come, and not on who does it
        alike, kind = np.unique(holding, axis=0, return_inverse=True)
        kind = kind.ravel()
        most = np.zeros(len(alike))
        np.maximum.at(most, kind, room[which])
        listed = beginnings(self.program, alike, most, MOST_LISTED)
        if listed is None:
            return False
        owner, begun, added = listed
        order = np.argsort(owner, kind="stable")
        owner, begun, added = owner[order], begun[order], added[order]
        first = np.searchsorted(owner, np.arange(len(alike) + 1))
        count = (first[1:] - first[:-1])[kind]
        taken = _ranges(first[:-1][kind], count)
        of = np.repeat(np.arange(len(which)), count)
        fits = added[taken] <= room[which][of]
        self._keep(which, of[fits], begun[taken[fits]], added[taken[fits]])
        self.listed[which] = room[which]
        return len(self.steps.front) <= MOST_LISTED

    def _keep(self, which: IntArray, of: IntArray, begun: IntArray, added: FloatArray) -> None:
        """Append steps of fronts `which`, in their order."""
        steps, program = self.steps, self.program
        count = np.bincount(of, minlength=len(which))
        self.start[which] = len(steps.front) + np.cumsum(count) - count
        self.count[which] = count
        unit = np.append(program.unit[program.kind], 0)  # -1, nothing, is the last
        held = np.append(program.held, 0)
        width = max(steps.begun.shape[1], begun.shape[1])
        longest = held[begun].max(axis=1, initial=0)
        steps.begun = np.concatenate([_wide(steps.begun, width), _wide(begun, width)])
        steps.front = np.concatenate([steps.front, which[of]])
        steps.then = np.concatenate([steps.then, np.full(len(of), UNKNOWN)])
        steps.used = np.concatenate([steps.used, unit[begun].sum(axis=1)])
        steps.longest = np.concatenate([steps.longest, longest])
        steps.waste = np.concatenate([steps.waste, added])


def sweep(known: Incumbent, some: Spans) -> None:
    """Bring the bound down, as far as the work allows."""
    step, left, table = (known.bound - known.rate) * RELATIVE_STEP, MOST, layer_table(some)
    while not known.is_closed and not known.is_late:
        began_s, rate = time.perf_counter(), max(known.bound - step, known.rate, LEAST_RATE)
        alike = classes(known.pool, regions(known.pool, rate), hopes=True)
        rates = np.array([table[list(members)].max(axis=0) for members in alike.members])
        program = sweep_program(alike, rates, rate)
        if program is None:
            return
        trial = Sweep(program, most=left, deadline_s=known.deadline_s)
        if not trial.refutes():
            return
        left = trial.left
        known.prove(SWEEP, rate, began_s)


def beginnings(
    program: SweepProgram, holding: FloatArray, room: FloatArray, at_most: int
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """What may begin beside machines that go on, so that together they hold the layer.

    Args:
        holding: tokens/s of those that go on, in this layer and those after it (F, K).
        room: waste that may be added (F,).

    Returns:
        index into `holding`, beginnings by index with −1 behind them, waste added: (S,), (S, n),
        (S,); None if they are more than `at_most`, or time is over.
    """
    k = np.arange(holding.shape[1])
    adds = np.where(k < program.held[:, None], program.served[:, None], 0.0)
    owner, last = np.arange(len(holding)), np.zeros(len(holding), dtype=np.int64)
    waste, begun = np.zeros(len(holding)), np.zeros((len(holding), 0), dtype=np.int64)
    listed = []
    while len(owner):
        holds = holding[:, 0] >= program.need
        listed.append((owner[holds], begun[holds], waste[holds]))
        grown = []
        step = max(1, AT_ONCE // (len(program) * len(k)))
        for at in range(0, len(owner), step):
            if is_over():
                return None
            part = slice(at, at + step)
            added = waste[part, None] + _added(program, holding[part], adds)
            fits = added <= room[owner[part], None]
            fits &= np.arange(len(program)) >= last[part, None]
            row, column = np.nonzero(fits)
            row_begun = np.concatenate([begun[part][row], column[:, None]], axis=1)
            if len(row) > at_most:
                return None
            grown.append((owner[part][row], column, added[row, column], row_begun,
                          holding[part][row] + adds[column]))  # fmt: skip
        owner, last, waste, begun, holding = (
            np.concatenate([one[i] for one in grown]) for i in range(5)
        )
        if len(owner) > at_most:
            return None
    width = max(one[1].shape[1] for one in listed)
    return (
        np.concatenate([one[0] for one in listed]),
        np.concatenate([_wide(one[1], width) for one in listed]),
        np.concatenate([one[2] for one in listed]),
    )


def _added(program: SweepProgram, holding: FloatArray, adds: FloatArray) -> FloatArray:
    """Waste that each beginning adds: of its own, and beyond the rate in the layers it holds."""
    added = np.broadcast_to(program.wasted, (len(holding), len(program))).copy()
    for k in range(holding.shape[1]):
        here = np.flatnonzero(adds[:, k])
        before = np.maximum(holding[:, k] - program.rate, 0.0)
        after = np.maximum(holding[:, k, None] + adds[here, k] - program.rate, 0.0)
        added[:, here] += after - before[:, None]
    return added


def _least(
    front: IntArray, used: IntArray, waste: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Of equal fronts with the same machines used, the one with the least waste."""
    # waste only adds up: whatever can follow the one with more can follow the one with less
    order = np.lexsort((waste, used, front))
    front, used, waste = front[order], used[order], waste[order]
    first = np.ones(len(front), dtype=np.bool_)
    first[1:] = (front[1:] != front[:-1]) | (used[1:] != used[:-1])
    return front[first], used[first], waste[first]


def _ranges(first: IntArray, count: IntArray) -> IntArray:
    """first, first + 1, … of each, count of them."""
    return np.arange(int(count.sum())) + np.repeat(first - np.cumsum(count) + count, count)


def _wide(rows: IntArray, width: int) -> IntArray:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=-1)
