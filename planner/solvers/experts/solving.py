"""A placement and its bound, whatever is asked: flat or in groups, equal or weighted, priced."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from planner.equations.arrays import IntArray
from planner.errors import SolverError
from planner.programs.expert_bounds import copies_bound, mean_bound
from planner.programs.experts import (
    ExpertProgram,
    Placement,
    equal_placement,
    max_load,
    n_moves,
    objective,
    violations,
)
from planner.solvers.experts.arranging import arranged
from planner.solvers.experts.flat import race
from planner.solvers.experts.found import Found
from planner.solvers.experts.greedy import greedy
from planner.solvers.experts.grouped import grouped
from planner.solvers.experts.joint import n_unknowns, solve_cpsat, solve_highs
from planner.solvers.experts.moving import cheapest_on_the_way, complete
from planner.solvers.experts.polish import polish
from planner.solvers.experts.weighted import best_shares, improve

MOST_JOINTLY = {"equal": 800, "weighted": 300}
"""Whole numbers of a program that is solved in one piece, by the way to split."""
HIGHS_TIME_S = 10.0  # it has no other measure of work
_ROUNDING = 1e-9


def solve_experts(
    program: ExpertProgram,
    *,
    gap: float = 1e-3,
    slack: float = 0.0,
    seed: int = 0,
    time_limit_s: float | None = None,
) -> Found:
    """Place experts: least objective, then least traffic, then fewest moves.

    Effort is counted in steps, so that the same program and seed give the same placement,
    unless the time limit ends the search.

    Args:
        program: the placement to be found.
        gap: distance to the bound that is good enough, as a share of it.
        slack: share of the least load that may be given up for less traffic.
        seed: of the search.
        time_limit_s: wall time, or None for as long as the steps take.

    Raises:
        SolverError: an answer breaks a constraint, or is beyond its bound.
    """
    until_s = math.inf if time_limit_s is None else time.perf_counter() + time_limit_s
    placement, bound, proof = _balanced(program, gap=gap, seed=seed, until_s=until_s)
    is_small = n_unknowns(program) <= MOST_JOINTLY[program.split]
    if is_small and not program.move_price:
        placement, bound, proof = _jointly(program, placement, (bound, proof, gap), (seed, until_s))
    limit = max_load(program, placement) * (1.0 + slack) * (1.0 + 1e-12)
    there = arranged(program, placement.copies, load_limit=limit)
    if (there != placement.copies).any():
        placement = _split(program, there)
    placement, bound = _priced(program, placement, bound)
    if is_small and program.move_price:
        placement, bound, proof = _jointly(program, placement, (bound, proof, gap), (seed, until_s))
    return _verified(program, placement, (bound, proof), cut=time.perf_counter() >= until_s)


def _balanced(
    program: ExpertProgram, *, gap: float, seed: int, until_s: float
) -> tuple[Placement, float, str]:
    """A placement for its load alone, and a bound of that load with what proved it."""
    if program.split == "weighted":
        return _weighted(program, gap=gap, seed=seed, until_s=until_s)
    if program.group is not None:
        slots, bound, proof = grouped(program, gap=gap, seed=seed, until_s=until_s)
        return equal_placement(slots.copies()), bound, proof
    present = None if program.present is None else complete(program, program.present)
    starts = () if present is None else (present,)
    found = race(program, gap=gap, seed=seed, until_s=until_s, starts=starts)
    return equal_placement(found.slots.copies()), found.bound, found.proof


def _weighted(
    program: ExpertProgram, *, gap: float, seed: int, until_s: float
) -> tuple[Placement, float, str]:
    """Shares chosen for the greedy copies, then for those that are best with equal shares."""
    bound, proof = weighted_bound(program)
    goal = bound * (1.0 + gap)
    slots = greedy(program)
    first = [slots.copies()]
    if program.group is None:
        even = polish(slots, program.load, goal=goal, seed=seed, until_s=until_s, work=0.3)
        first.append(even.copies())
    placement = improve(program, tuple(first), goal=goal, seed=seed, until_s=until_s)
    if max_load(program, placement) > goal and time.perf_counter() < until_s:
        equal = replace(program, split="equal")
        best, _, _ = _balanced(equal, gap=gap, seed=seed, until_s=until_s)
        other = improve(program, (best.copies,), goal=goal, seed=seed, until_s=until_s)
        placement = min(placement, other, key=lambda one: max_load(program, one))
    return placement, bound, proof


def weighted_bound(program: ExpertProgram) -> tuple[float, str]:
    """What holds for weighted shares too: patterns count on equal ones."""
    mean, copies = mean_bound(program), copies_bound(program)
    return (mean, "mean") if mean >= copies else (copies, "copies")


def _split(program: ExpertProgram, copies: IntArray) -> Placement:
    return equal_placement(copies) if program.split == "equal" else best_shares(program, copies)


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
        candidates.append(_split(program, cheapest_on_the_way(program, start)))
    stays = _split(program, program.present)
    n_missing = int((program.present.sum(axis=1) == 0).sum())
    least = bound + price * max(1, n_missing)
    if not violations(program, stays):
        candidates.append(stays)
        least = min(least, _stays_bound(program, stays))
    elif not n_missing:
        least = bound  # copies that go need no move
    best = min(candidates, key=lambda one: (objective(program, one), n_moves(program, one)))
    return best, max(bound, least)


def _jointly(
    program: ExpertProgram,
    placement: Placement,
    known: tuple[float, str, float],
    limits: tuple[int, float],
) -> tuple[Placement, float, str]:
    """A small program whole, where the gap is still open."""
    (bound, proof, gap), (seed, until_s) = known, limits
    value = objective(program, placement)
    left_s = until_s - time.perf_counter()
    if value <= bound * (1.0 + gap) or left_s <= 0.0:
        return placement, bound, proof
    if program.split == "equal":
        copies, proven = solve_cpsat(program, hint=placement.copies, seed=seed, time_limit_s=left_s)
    else:
        copies, proven = solve_highs(program, time_limit_s=min(left_s, HIGHS_TIME_S))
    if copies is not None:
        other = _split(program, copies)
        if not violations(program, other) and objective(program, other) < value:
            placement = other
    return (placement, proven, "search") if proven > bound else (placement, bound, proof)


def _stays_bound(program: ExpertProgram, stays: Placement) -> float:
    """Cost without a move; copies may still be dropped, which can only be better by little.

    With equal shares a dropped copy loads the others more but its own rank less, so this is no
    more than the mean unless every expert has one copy, or shares are weighted.
    """
    if program.split == "weighted" or int(stays.n_copies.max()) == 1:
        return max_load(program, stays)
    return 0.0


def _verified(
    program: ExpertProgram, placement: Placement, proven: tuple[float, str], *, cut: bool
) -> Found:
    broken = violations(program, placement)
    value = objective(program, placement)
    bound, proof = proven
    if broken:
        raise SolverError(f"the placement breaks what it promised: {broken}")
    if bound > value * (1.0 + _ROUNDING):
        raise SolverError(f"nothing is said to be below {bound!r}, and {value!r} was found")
    return Found(
        placement=placement,
        objective=value,
        bound=min(bound, value),
        proof=proof,
        is_cut_short=cut,
    )


def greedy_placement(program: ExpertProgram) -> Placement:
    """The greedy balancer's placement, with shares as the program splits."""
    return _split(replace(program, present=None), greedy(program).copies())


def placement_of(program: ExpertProgram, copies: IntArray) -> Placement:
    """A given placement, with shares as the program splits."""
    return _split(program, np.asarray(copies))


__all__ = ["greedy_placement", "placement_of", "solve_experts", "weighted_bound"]
