"""A placement of experts and its bound: flat or in groups, equal or weighted, priced.

Placements are balanced greedily, polished, proved by patterns and chosen from patterns, in that
order, as far as it must be.
"""

import math
import time
from dataclasses import dataclass, replace
from functools import partial

from planner.equations.arrays import IntArray
from planner.errors import SolverError
from planner.programs.proofs import Vouched, claim, vouched
from planner.solvers.mixed import Formulation
from planner.solvers.proving import Proved, Prover, in_hand, prove
from planner.solvers.recording import solving_for
from planner.solvers.solution import Effort, Status, Word
from planner.specs.ask.targets import Provers
from planner.specs.records.certificates import Proof
from planner_workshop.experts.program import (
    ExpertProgram,
    Placement,
    equal_placement,
    max_load,
    n_moves,
    objective,
    simple_bound,
    violations,
)
from planner_workshop.experts.solvers.arranging import arranged, cheapest_on_the_way, complete
from planner_workshop.experts.solvers.flat import greedy, race
from planner_workshop.experts.solvers.grouped import grouped
from planner_workshop.experts.solvers.joint import formulation, improve, n_unknowns, split
from planner_workshop.experts.solvers.slots import Limits, polish

MOST_JOINTLY = {"equal": 800, "weighted": 300}
"""Whole numbers of a program that is solved in one piece, by the way to split."""
SECONDS_EACH = 10.0
"""Of a prover that has no other measure of work."""
COUNTED = {
    "mean": "mean load of the ranks",
    "copies": "copies and slots",
    "patterns": "patterns of a rank",
    "groups": "groups dealt to nodes",
}
"""Bounds that are the project's own arithmetic, by what is counted."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """A placement and what is known of it.

    Args:
        placement: the best that was found.
        proved: its objective, in units of load, and what provers say of it.
        proof: what gave the bound: mean, copies, patterns, pairs, groups or search.
    """

    placement: Placement
    proved: Proved[Placement]
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _State:
    """A placement, a bound that is vouched for, what gave it, and what provers said on the way."""

    placement: Placement
    bound: float
    proof: str
    words: tuple[Proof, ...] = ()


@solving_for("least load")
def solve_experts(
    program: ExpertProgram,
    *,
    gap: float = 1e-3,
    slack: float = 0.0,
    seed: int = 0,
    time_limit_s: float | None = None,
    proof: Provers = "two",
) -> Result:
    """Place experts: least objective, then least traffic, then fewest moves.

    Effort is counted in steps, so that the same program and seed give the same placement,
    unless the time limit ends the search.

    Args:
        program: the placement to be found.
        gap: distance to the bound that is good enough, as a share of it.
        slack: share of the least load that may be given up for less traffic.
        seed: of the search.
        time_limit_s: wall time, or None for as long as the steps take.
        proof: how many have to vouch for a bound: `two`, or `one`.

    Raises:
        SolverError: an answer breaks a constraint, or is beyond its bound.
    """
    until_s = math.inf if time_limit_s is None else time.perf_counter() + time_limit_s
    limits = Limits(gap=gap, seed=seed, until_s=until_s, wanted=proof)
    state = _balanced(program, limits)
    is_small = n_unknowns(program) <= MOST_JOINTLY[program.split]
    if is_small and not program.move_price:
        state = _jointly(program, state, limits)
    limit = max_load(program, state.placement) * (1.0 + slack) * (1.0 + 1e-12)
    there = arranged(program, state.placement.copies, load_limit=limit)
    if (there != state.placement.copies).any():
        state = replace(state, placement=split(program, there))
    placement, bound = _priced(program, state.placement, state.bound)
    state = replace(state, placement=placement, bound=bound)
    if is_small and program.move_price:
        state = _jointly(program, state, limits)
    return _verified(program, state, limits)


def _balanced(program: ExpertProgram, limits: Limits) -> _State:
    """A placement for its load alone, and a bound of that load with what proved it."""
    if program.split == "weighted":
        return _weighted(program, limits)
    if program.group is not None:
        raced = grouped(program, limits)
    else:
        present = None if program.present is None else complete(program, program.present)
        raced = race(program, limits, starts=() if present is None else (present,))
    return _State(
        placement=equal_placement(raced.slots.copies()),
        bound=raced.bound,
        proof=raced.proof,
        words=tuple(raced.words),
    )


def _weighted(program: ExpertProgram, limits: Limits) -> _State:
    """Shares chosen for the greedy copies, then for those that are best with equal shares."""
    bound, proof = simple_bound(program)
    goal = bound * (1.0 + limits.gap)
    slots = greedy(program)
    first = [slots.copies()]
    if program.group is None:
        first.append(polish(slots, program.load, goal=goal, limits=limits, work=0.3).copies())
    placement = improve(program, tuple(first), goal=goal, limits=limits)
    if max_load(program, placement) > goal and not limits.are_over:
        # nothing is claimed of equal shares here, so nobody has to vouch for them
        best = _balanced(replace(program, split="equal"), replace(limits, wanted="one")).placement
        other = improve(program, (best.copies,), goal=goal, limits=limits)
        placement = min(placement, other, key=lambda it: max_load(program, it))
    return _State(placement=placement, bound=bound, proof=proof)


def _priced(program: ExpertProgram, placement: Placement, bound: float) -> tuple[Placement, float]:
    """The cheapest of this placement and those on the way from the present one, and a bound.

    Either nothing moves, and the present placement's load is what it costs; or something does,
    and its price comes on top of the least load. What is missing at present must move.
    """
    if program.present is None or not program.move_price:
        return placement, bound
    price = program.move_price * program.mean_load
    start = complete(program, program.present)
    candidates = [placement]
    if start is not None and program.group is None:
        candidates.append(split(program, cheapest_on_the_way(program, start)))
    n_missing = int((program.present.sum(axis=1) == 0).sum())
    least = bound + price * max(1, n_missing)
    if not n_missing:
        stays = split(program, program.present)
        if violations(program, stays):
            least = bound  # copies that go need no move
        else:
            candidates.append(stays)
            least = min(least, _stays_bound(program, stays))
    best = min(candidates, key=lambda it: (objective(program, it), n_moves(program, it)))
    return best, max(bound, least)


def _jointly(program: ExpertProgram, state: _State, limits: Limits) -> _State:
    """A small program whole, where the gap is still open."""
    value = objective(program, state.placement)
    if value <= state.bound * (1.0 + limits.gap) or limits.are_over:
        return state
    left_s = min(limits.left_s, 3 * SECONDS_EACH)
    effort = Effort(time_limit_s=left_s, gap=limits.gap, seed=limits.seed)
    known = in_hand(state.placement.copies, value / program.mean_load, by="balancing")
    posed = formulation(program, state.placement.copies)
    names = ["cpsat"] if program.split == "equal" else []
    provers: list[Prover[IntArray]] = [
        partial(_word, posed, name) for name in (*names, "highs", "scip")
    ]
    solution = prove(provers, effort, wanted=limits.wanted, known=(known,), rows=posed.rows)
    unit, placement = program.mean_load, state.placement
    if solution.answer is not None:
        other = split(program, solution.answer)
        if not violations(program, other) and objective(program, other) < value:
            placement = other
    words = tuple(
        replace(proof, value=proof.value * unit, bound=proof.bound * unit, program="search")
        for proof in solution.vouched.proofs
        if proof.prover != known.proof.prover
    )
    bound = solution.vouched.bound if limits.wanted == "two" else solution.vouched.alone
    if bound * unit <= state.bound:
        return replace(state, placement=placement, words=(*state.words, *words))
    return _State(
        placement=placement, bound=bound * unit, proof="search", words=(*state.words, *words)
    )


def _word(posed: Formulation[IntArray], name: str, effort: Effort) -> Word[IntArray]:
    """What one solver says of the whole program, in a part of the time."""
    left_s = SECONDS_EACH if effort.time_limit_s is None else effort.time_limit_s
    return posed.word(name, replace(effort, time_limit_s=min(left_s, SECONDS_EACH)))


def _stays_bound(program: ExpertProgram, stays: Placement) -> float:
    """Cost without a move; copies may still be dropped, which can only be better by little.

    With equal shares a dropped copy loads the others more but its own rank less, so this is no
    more than the mean unless every expert has one copy, or shares are weighted.
    """
    if program.split == "weighted" or int(stays.n_copies.max()) == 1:
        return max_load(program, stays)
    return 0.0


def _verified(program: ExpertProgram, state: _State, limits: Limits) -> Result:
    """The placement with what is proved of it.

    Raises:
        SolverError: it breaks a row, or is beyond its bound.
    """
    broken = violations(program, state.placement)
    value, bound = objective(program, state.placement), state.bound
    if broken:
        raise SolverError(f"the placement breaks what it promised: {broken}")
    if bound > value * (1.0 + _ROUNDING):
        raise SolverError(f"nothing is said to be below {bound!r}, and {value!r} was found")
    is_closed = value <= bound * (1.0 + limits.gap)
    status = Status.OPTIMAL if _is_sure(state, limits) else Status.UNCONFIRMED
    proved = Proved(
        status=status if is_closed else Status.FEASIBLE,
        answer=state.placement,
        objective=value,
        vouched=_vouched(state, limits, value),
        n_nodes=0,
        stopped_by="time limit" if limits.are_over else "",
    )
    return Result(placement=state.placement, proved=proved, proof=state.proof)


def _is_sure(state: _State, limits: Limits) -> bool:
    """Whether the bound is vouched for: where two were wanted, no other bound was taken."""
    return limits.wanted == "two" or (state.proof in COUNTED and not state.words)


def _vouched(state: _State, limits: Limits, value: float) -> Vouched:
    """What provers said on the way, and the arithmetic that came last."""
    counted = COUNTED.get(state.proof, state.proof)
    arithmetic = claim(counted, state.bound)
    proofs = [one for one in state.words if one.program == state.proof]
    weighed = vouched(proofs, value)
    if state.proof in COUNTED:
        weighed = vouched([*state.words, arithmetic], value)
    # moves come on top of the load that provers spoke of
    bound = min(state.bound, value)
    is_sure = _is_sure(state, limits)
    return replace(
        weighed,
        proofs=(*state.words, *((arithmetic,) if state.proof in COUNTED else ())),
        bound=bound if is_sure else -math.inf,
        alone=bound,
        by=(weighed.by or (state.proof,)) if is_sure else (),
    )


def greedy_placement(program: ExpertProgram) -> Placement:
    """The greedy balancer's placement, with shares as the program splits."""
    return split(replace(program, present=None), greedy(program).copies())
