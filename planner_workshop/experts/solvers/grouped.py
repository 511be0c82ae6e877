"""Groups of experts that stay on a node: which group on which node, then each node by itself.

Nodes are alike, so what a node carries is a set of groups, and its fullest rank depends on
that set alone. A dynamic program over sets finds the division whose worst set has the least
bound; the sets of that division are solved, their bounds sharpen, and it is asked again, until
the division it finds is one that is solved. With more than `MOST_GROUPS` groups only the greedy
division is solved, and the bound is that by counting.
"""

import math
from dataclasses import replace

import numpy as np

from planner.equations.arrays import IntArray
from planner_workshop.experts.program import ExpertProgram, simple_bound
from planner_workshop.experts.solvers.flat import Race, deal_groups, race
from planner_workshop.experts.solvers.slots import EMPTY, Limits, Slots

MOST_GROUPS = 10
MOST_DIVISIONS = 60

Division = tuple[int, ...]  # of each node the set of its groups, as bits


class Divided:
    """Sets of groups, their bounds, and what solving them gave.

    Args:
        program: with groups.
    """

    def __init__(self, program: ExpertProgram, limits: Limits) -> None:
        assert program.group is not None
        self.program, self.limits = program, limits
        self.n_groups = int(program.group.max()) + 1
        self.solved: dict[int, Race] = {}
        self._bounds: dict[int, float] = {}

    def members(self, groups: int) -> IntArray:
        """Experts of a set of groups."""
        assert self.program.group is not None
        return np.flatnonzero((groups >> self.program.group) & 1)

    def node_program(self, groups: int) -> ExpertProgram:
        """The placement of one node that carries a set of groups."""
        return replace(
            self.program,
            load=self.program.load[self.members(groups)],
            n_ranks=self.program.n_ranks // self.program.n_nodes,
            n_nodes=1,
            group=None,
            present=None,
            coactivation=None,
        )

    def bound(self, groups: int) -> float:
        """Of a set: by counting, or by what solving it proved; inf where it does not fit."""
        if groups in self.solved:
            return self.solved[groups].bound
        if groups not in self._bounds:
            node = self.node_program(groups)
            fits = node.n_experts <= node.n_all_slots
            self._bounds[groups] = (simple_bound(node)[0] if groups else 0.0) if fits else math.inf
        return self._bounds[groups]

    def solve(self, division: Division) -> float:
        """The fullest rank of a division, its sets solved."""
        for groups in filter(None, division):
            if groups not in self.solved:
                self.solved[groups] = race(self.node_program(groups), self.limits)
        return max(self.solved[groups].least for groups in division if groups)

    def least(self) -> tuple[float, Division]:
        """The division whose worst set has the least bound, and that bound."""
        n_nodes, everything = self.program.n_nodes, (1 << self.n_groups) - 1
        worst = {0: (0.0, ())} | {s: (self.bound(s), (s,)) for s in range(1, everything + 1)}
        by_n: dict[int, tuple[float, Division]] = dict(worst)  # one node
        for _ in range(n_nodes - 1):
            by_n = {s: self._split(s, by_n) for s in range(everything + 1)}
        value, division = by_n[everything]
        return value, division

    def _split(
        self, groups: int, least: dict[int, tuple[float, Division]]
    ) -> tuple[float, Division]:
        """The best way to give one more node a part of a set.

        The part has the set's lowest group: nodes are alike, so one order of them is enough.
        """
        best, rest = least[groups], groups & (groups - 1)
        lowest, part = groups ^ rest, rest
        while True:
            own = self.bound(lowest | part)
            others = least[rest ^ part]
            if max(own, others[0]) < best[0]:
                best = max(own, others[0]), (lowest | part, *others[1])
            if not part:
                return best
            part = (part - 1) & rest


def grouped(program: ExpertProgram, limits: Limits) -> Race:
    """Place experts whose groups stay on nodes; with what provers said of pairs on the way."""
    state = Divided(program, limits)
    node = deal_groups(program)
    best: Division = tuple(
        sum(1 << g for g in np.flatnonzero(node == m).tolist()) for m in range(program.n_nodes)
    )
    least, bound = state.solve(best), simple_bound(program)[0]
    if state.n_groups > MOST_GROUPS:
        return Race(
            program=program, limits=limits, slots=_slots(state, best), bound=bound, proof="mean"
        )
    for _ in range(MOST_DIVISIONS):
        value, division = state.least()
        bound = max(bound, value)
        if least <= bound * (1.0 + limits.gap) or limits.are_over:
            break
        if all(groups in state.solved for groups in division if groups):
            break  # nothing is left to sharpen: the gap is that of its sets
        solved = state.solve(division)
        if solved < least:
            least, best = solved, division
    words = [word for race in state.solved.values() for word in race.words]
    slots = _slots(state, best)
    return Race(
        program=program, limits=limits, slots=slots, bound=bound, proof="groups", words=words
    )


def _slots(state: Divided, division: Division) -> Slots:
    """The slots of all nodes, in the order of their groups."""
    program = state.program
    width = program.n_ranks // program.n_nodes
    held = np.full((program.n_ranks, program.n_slots), EMPTY, dtype=np.int64)
    counts = np.zeros(program.n_experts, dtype=np.int64)
    for m, groups in enumerate(sorted(filter(None, division), key=lambda s: s & -s)):
        members, solved = state.members(groups), state.solved[groups].slots
        inside = solved.held
        there = held[m * width : (m + 1) * width]
        there[inside != EMPTY] = members[inside[inside != EMPTY]]
        counts[members] = solved.counts
    return Slots(held=held, counts=counts)
