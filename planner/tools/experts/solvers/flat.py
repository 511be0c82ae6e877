"""Equal shares on ranks that are all alike: the fullest rank's load, and its bound.

    1. balance greedily, and polish
    2. raise the bound by patterns, bisecting on T
    3. bisect for placements from whole patterns, and polish each
    4. with two slots a rank, ask for an exact answer below the placement

It ends as soon as the gap is closed, as far as was asked.
"""

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.equations.routing import place, replicate
from planner.solvers.solution import Status, Word
from planner.specs.ask.targets import Provers
from planner.specs.records.certificates import Proof
from planner.tools.experts.program import ExpertProgram, copies_bound, mean_bound
from planner.tools.experts.solvers import pairs
from planner.tools.experts.solvers.choosing import placed_within
from planner.tools.experts.solvers.patterns import refutes
from planner.tools.experts.solvers.polish import polish
from planner.tools.experts.solvers.slots import EMPTY, Slots

CLOSE = 2e-4  # the grid of the patterns is no finer: nearer they cannot tell
MOST_HALVINGS = 8
MOST_ITEMS = 4_000_000  # experts times counts: beyond, patterns would not fit into memory
_NEAREST = 1.0  # share of the way from the bound to just below the placement


@dataclass(slots=True, kw_only=True, eq=False)
class Race:
    """Best placement and best bound so far.

    Args:
        load: of each expert [E].
        slots: the placement.
        bound: no placement's fullest rank has less.
        proof: what gave the bound.
        gap: distance that is good enough, as a share of the bound.
        seed: of shakes and of CP-SAT.
        until_s: `time.perf_counter()` to stop at.
        wanted: how many provers have to vouch for a bound.
        words: what provers said of pairs, in units of load.
    """

    load: FloatArray
    slots: Slots
    bound: float
    proof: str
    gap: float
    seed: int
    until_s: float
    wanted: Provers = "two"
    words: list[Proof] = field(default_factory=list)

    @property
    def least(self) -> float:
        return float(self.slots.loads(self.load).max())

    @property
    def is_over(self) -> bool:
        return self.least <= self.goal or time.perf_counter() >= self.until_s

    @property
    def goal(self) -> float:
        """Load of the fullest rank that is good enough."""
        return self.bound * (1.0 + self.gap)

    def polish(self, start: Slots, *, work: float = 1.0) -> None:
        slots = polish(
            start, self.load, goal=self.goal, seed=self.seed, until_s=self.until_s, work=work
        )
        if float(slots.loads(self.load).max()) < self.least:
            self.slots = slots


def race(
    program: ExpertProgram,
    *,
    gap: float,
    seed: int = 0,
    until_s: float = math.inf,
    starts: tuple[Slots, ...] = (),
    wanted: Provers = "two",
) -> Race:
    """Find a placement on ranks that are all alike, and a bound.

    Args:
        program: its groups, nodes, present copies and shares are not looked at.
        gap: distance to the bound that is good enough, as a share of it.
        seed: of shakes and of CP-SAT.
        until_s: `time.perf_counter()` to stop at.
        starts: placements to improve besides the greedy one.
        wanted: how many provers have to vouch for a bound.
    """
    bound, proof = simple_bound(program)
    at = Race(
        load=program.load,
        slots=greedy(program),
        bound=bound,
        proof=proof,
        gap=gap,
        seed=seed,
        until_s=until_s,
        wanted=wanted,
    )
    begins = (*starts, at.slots)
    at.slots = min(begins, key=lambda slots: float(slots.loads(program.load).max()))
    for start in begins:
        if not at.is_over:
            at.polish(start)
    spare = program.n_all_slots - program.n_experts
    is_small = program.n_experts * (spare + 1) <= MOST_ITEMS
    if is_small and not at.is_over:
        _raise_bound(at, program)
    if is_small and not at.is_over:
        _lower_placement(at, program)
    if is_small and not at.is_over and program.n_slots == 2:
        _settle_pairs(at, program)
    if not at.is_over:
        at.polish(at.slots, work=3.0)
    return at


def simple_bound(program: ExpertProgram) -> tuple[float, str]:
    """What holds however loads are shared: patterns count on equal shares."""
    mean, copies = mean_bound(program), copies_bound(program)
    return (mean, "mean") if mean >= copies else (copies, "copies")


def _raise_bound(at: Race, program: ExpertProgram) -> None:
    """Halve the distance between what patterns refute and what they do not."""
    low, high = at.bound, at.least
    for _ in range(MOST_HALVINGS):
        if high <= low * (1.0 + max(CLOSE, at.gap)) or at.is_over:
            return
        middle = (low + high) / 2.0
        if refutes(
            at.load, middle, n_ranks=program.n_ranks, n_slots=program.n_slots, until_s=at.until_s
        ):
            low = at.bound = middle
            at.proof = "patterns"
        else:
            high = middle


def _lower_placement(at: Race, program: ExpertProgram) -> None:
    """Halve the distance between placements found and loads within which none was found."""
    low = at.bound
    for _ in range(MOST_HALVINGS):
        high = at.least
        if high <= low * (1.0 + max(CLOSE, at.gap)) or at.is_over:
            return
        middle = (low + high) / 2.0
        slots = placed_within(
            at.load,
            middle,
            n_ranks=program.n_ranks,
            n_slots=program.n_slots,
            seed=at.seed,
            until_s=at.until_s,
        )
        if slots is None:
            low = middle
        else:
            at.polish(slots, work=0.3)


def _settle_pairs(at: Race, program: ExpertProgram) -> None:
    """Ask just below the placement, which may prove it; where that is too hard, lower.

    CP-SAT's word that there are no pairs leads the search; the last such word is the bound, if
    others say so too.
    """
    sure, refuted = (at.bound, at.proof), None
    share = _NEAREST
    for _ in range(2 * MOST_HALVINGS):
        if at.is_over:
            break
        nearest = at.least / (1.0 + 0.9 * max(at.gap, CLOSE))
        middle = max(nearest * share + at.bound * (1.0 - share), at.bound)
        posed = pairs.pair_rows(at.load, middle, n_ranks=program.n_ranks)
        if posed is None:
            at.bound, at.proof = sure = middle, "copies"
            continue
        word = pairs.pairs_within(posed, seed=at.seed, until_s=at.until_s)
        if word.answer is not None:
            slots = pairs.pair_slots(posed, word.answer, at.load, program.n_ranks)
            if float(slots.loads(at.load).max()) < at.least:
                at.slots = slots
        elif word.proof.outcome == "infeasible":
            refuted = middle, posed, word
            at.bound, at.proof = middle, "pairs"
        elif share <= _NEAREST / 4.0:
            break
        else:
            share /= 2.0
    if refuted is not None:
        _confirm_pairs(at, program, refuted, sure)


def _confirm_pairs(
    at: Race,
    program: ExpertProgram,
    refuted: tuple[float, pairs.PairRows, Word[FloatArray]],
    sure: tuple[float, str],
) -> None:
    """Keep the bound by pairs only if it is vouched for, as far as that is wanted."""
    middle, posed, word = refuted
    solution = pairs.pairs_refuted(posed, word, wanted=at.wanted, until_s=at.until_s)
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
        slots = pairs.pair_slots(posed, solution.answer, at.load, program.n_ranks)
        if float(slots.loads(at.load).max()) < at.least:
            at.slots = slots
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
        here = slice(m * width, (m + 1) * width)
        node = held[here]
        n_slots = program.n_slots * (width if program.group is not None else program.n_ranks)
        if program.group is None:
            node = held
        own = replicate(program.load[members], n_slots)
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
