"""Equal shares on ranks that are all alike: the fullest rank's load, and its bound.

    1. balance greedily, and polish
    2. raise the bound by patterns, bisecting on T
    3. bisect for placements from whole patterns, and polish each
    4. with two slots a rank, ask for an exact answer below the placement

It ends as soon as the gap is closed, as far as was asked.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.equations.routing import place, replicate
from planner.solvers.solution import Status, Word
from planner.specs.records.certificates import Proof
from planner_workshop.experts.program import ExpertProgram, simple_bound
from planner_workshop.experts.solvers.choosing import (
    PairRows,
    pair_rows,
    pair_slots,
    pairs_refuted,
    pairs_within,
    placed_within,
)
from planner_workshop.experts.solvers.patterns import refutes
from planner_workshop.experts.solvers.slots import EMPTY, Limits, Slots, polish

CLOSE = 2e-4  # the grid of the patterns is no finer: nearer they cannot tell
MOST_HALVINGS = 8
MOST_ITEMS = 4_000_000  # experts times counts: beyond, patterns would not fit into memory
_NEAREST = 1.0  # share of the way from the bound to just below the placement


@dataclass(slots=True, kw_only=True, eq=False)
class Race:
    """Best placement and best bound so far.

    Args:
        program: its groups, nodes, present copies and shares are not looked at.
        slots: the placement.
        bound: no placement's fullest rank has less.
        proof: what gave the bound.
        words: what provers said of pairs, in units of load.
    """

    program: ExpertProgram
    limits: Limits
    slots: Slots
    bound: float
    proof: str
    words: list[Proof] = field(default_factory=list)

    @property
    def least(self) -> float:
        return self.slots.peak(self.program.load)

    @property
    def is_over(self) -> bool:
        return self.least <= self.goal or self.limits.are_over

    @property
    def goal(self) -> float:
        """Load of the fullest rank that is good enough."""
        return self.bound * (1.0 + self.limits.gap)

    @property
    def near(self) -> float:
        """Share of a load below which the distance of placement and bound is not halved."""
        return max(CLOSE, self.limits.gap)

    def offer(self, slots: Slots) -> None:
        if slots.peak(self.program.load) < self.least:
            self.slots = slots

    def polish(self, start: Slots, *, work: float = 1.0) -> None:
        self.offer(polish(start, self.program.load, goal=self.goal, limits=self.limits, work=work))


def race(program: ExpertProgram, limits: Limits, *, starts: tuple[Slots, ...] = ()) -> Race:
    """Find a placement on ranks that are all alike, and a bound.

    Args:
        starts: placements to improve besides the greedy one.
    """
    bound, proof = simple_bound(program)
    begins = (*starts, greedy(program))
    best = min(begins, key=lambda slots: slots.peak(program.load))
    at = Race(program=program, limits=limits, slots=best, bound=bound, proof=proof)
    for start in begins:
        if not at.is_over:
            at.polish(start)
    spare = program.n_all_slots - program.n_experts
    is_small = program.n_experts * (spare + 1) <= MOST_ITEMS
    if is_small and not at.is_over:
        _raise_bound(at)
    if is_small and not at.is_over:
        _lower_placement(at)
    if is_small and not at.is_over and program.n_slots == 2:
        _settle_pairs(at)
    if not at.is_over:
        at.polish(at.slots, work=3.0)
    return at


def _raise_bound(at: Race) -> None:
    """Halve the distance between what patterns refute and what they do not."""
    low, high = at.bound, at.least
    for _ in range(MOST_HALVINGS):
        if high <= low * (1.0 + at.near) or at.is_over:
            return
        middle = (low + high) / 2.0
        if refutes(at.program, middle, until_s=at.limits.until_s):
            low = at.bound = middle
            at.proof = "patterns"
        else:
            high = middle


def _lower_placement(at: Race) -> None:
    """Halve the distance between placements found and loads within which none was found."""
    low = at.bound
    for _ in range(MOST_HALVINGS):
        high = at.least
        if high <= low * (1.0 + at.near) or at.is_over:
            return
        middle = (low + high) / 2.0
        slots = placed_within(at.program, middle, at.limits)
        if slots is None:
            low = middle
        else:
            at.polish(slots, work=0.3)


def _settle_pairs(at: Race) -> None:
    """Ask just below the placement, which may prove it; where that is too hard, lower.

    CP-SAT's word that there are no pairs leads the search; the last such word is the bound, if
    others say so too.
    """
    load, n_ranks = at.program.load, at.program.n_ranks
    sure, refuted = (at.bound, at.proof), None
    share = _NEAREST
    for _ in range(2 * MOST_HALVINGS):
        if at.is_over:
            break
        nearest = at.least / (1.0 + 0.9 * at.near)
        middle = max(nearest * share + at.bound * (1.0 - share), at.bound)
        posed = pair_rows(load, middle, n_ranks=n_ranks)
        if posed is None:
            at.bound, at.proof = sure = middle, "copies"
            continue
        word = pairs_within(posed, at.limits)
        if word.answer is not None:
            at.offer(pair_slots(posed, word.answer, load, n_ranks))
        elif word.proof.outcome == "infeasible":
            refuted = middle, posed, word
            at.bound, at.proof = middle, "pairs"
        elif share <= _NEAREST / 4.0:
            break
        else:
            share /= 2.0
    if refuted is not None:
        _confirm_pairs(at, refuted, sure)


def _confirm_pairs(
    at: Race, refuted: tuple[float, PairRows, Word[FloatArray]], sure: tuple[float, str]
) -> None:
    """Keep the bound by pairs only if it is vouched for, as far as that is wanted."""
    middle, posed, word = refuted
    solution = pairs_refuted(posed, word, at.limits)
    at.words += [
        replace(
            proof,
            bound=middle if proof.bound == math.inf else -math.inf,
            outcome="stopped" if proof.is_accepted else proof.outcome,
            program="pairs",
        )
        for proof in solution.vouched.proofs
    ]
    if solution.answer is not None:
        at.offer(pair_slots(posed, solution.answer, at.program.load, at.program.n_ranks))
    if solution.status is not Status.INFEASIBLE:
        at.bound, at.proof = sure


def greedy(program: ExpertProgram) -> Slots:
    """Place by the greedy rules; within groups, if the program has them and they deal evenly.

    [EPLB2025] replicates, one slot after another, the expert whose copies have the highest load
    each; then it places copies, heaviest first, on the least loaded rank with a free slot. Where
    groups of experts have to stay on a node, it first deals the groups, heaviest first, to the
    least loaded node with room, equally many to each, and replicates and places within nodes.

    It fills every slot, and knows no bound.
    """
    held = np.full((program.n_ranks, program.n_slots), EMPTY, dtype=np.int64)
    width = program.n_ranks // program.n_nodes
    counts = np.zeros(program.n_experts, dtype=np.int64)
    for m, members in enumerate(_members(program)):
        node = held if program.group is None else held[m * width : (m + 1) * width]
        own = replicate(program.load[members], node.size)
        counts[members] = own
        place(program.load[members] / own, own, node)
        node[node != EMPTY] = members[node[node != EMPTY]]
    return Slots(held=held, counts=counts)


def _members(program: ExpertProgram) -> list[IntArray]:
    """Experts of each node, or all of them together where there are no groups."""
    if program.group is None:
        return [np.arange(program.n_experts)]
    node = deal_groups(program)
    return [np.flatnonzero(node[program.group] == m) for m in range(program.n_nodes)]


def deal_groups(program: ExpertProgram) -> IntArray:
    """Node of each group: heaviest first, to the least loaded node with room for it."""
    assert program.group is not None
    weight = np.bincount(program.group, weights=program.load)
    n_members = np.bincount(program.group)
    room = np.full(program.n_nodes, program.n_slots * program.n_ranks // program.n_nodes)
    most = -(-len(weight) // program.n_nodes)
    loads, dealt = np.zeros(program.n_nodes), np.zeros(program.n_nodes, dtype=np.int64)
    node = np.zeros(len(weight), dtype=np.int64)
    for group in np.argsort(-weight, kind="stable"):
        fits = (room >= n_members[group]) & (dealt < most)
        fits = fits if fits.any() else room >= n_members[group]
        m = int(np.argmin(np.where(fits, loads, np.inf)))
        node[group], loads[m] = m, loads[m] + weight[group]
        dealt[m] += 1
        room[m] -= n_members[group]
    return node
