"""Every placement of experts of a small program: the referee of the solvers.

The best weighted shares of given copies are counted without a linear program: by the theorem of
maximum flow and minimum cut, T = max over sets A of experts of load(A) / #(ranks that hold any
of A).
"""

import math
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product

import numpy as np

from planner.equations.arrays import IntArray
from planner.errors import SolverError
from planner_workshop.experts.program import (
    ExpertProgram,
    equal_placement,
    max_load,
    n_moves,
    violations,
)

MOST_PLACEMENTS = 2_000_000


def solve_exhaustive(program: ExpertProgram) -> tuple[IntArray, float]:
    """The copies [E, G] of least objective, and the objective in units of load.

    Raises:
        SolverError: there are too many placements to look at.
    """
    contents = _contents(program)
    if len(contents) ** program.n_ranks > 50 * MOST_PLACEMENTS:
        raise SolverError(f"too many placements: {len(contents)} contents of each rank")
    best, least = None, math.inf
    for ranks in _placements(program, contents):
        copies = np.zeros((program.n_experts, program.n_ranks), dtype=np.int64)
        for g, held in enumerate(ranks):
            for e in held:
                copies[e, g] += 1
        if (copies.sum(axis=1) == 0).any():
            continue
        placement = equal_placement(copies)
        broken = violations(program, placement)
        if broken.keys() - {"split"}:
            continue
        peak = (
            max_load(program, placement)
            if program.split == "equal"
            else _weighted_peak(program, copies)
        )
        value = peak + program.move_price * program.mean_load * n_moves(program, placement)
        if value < least:
            best, least = copies, value
    if best is None:
        raise SolverError("no placement keeps every constraint")
    return best, least


def _contents(program: ExpertProgram) -> list[tuple[int, ...]]:
    """What one rank may hold."""
    return [
        held
        for n in range(program.n_slots + 1)
        for held in combinations_with_replacement(range(program.n_experts), n)
    ]


def _placements(
    program: ExpertProgram, contents: list[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Contents of all ranks; each set of them once where ranks are alike."""
    if program.present is None and program.group is None:
        return combinations_with_replacement(contents, program.n_ranks)
    return product(contents, repeat=program.n_ranks)


def _weighted_peak(program: ExpertProgram, copies: IntArray) -> float:
    held = copies > 0
    experts = range(program.n_experts)
    return max(
        float(program.load[list(some)].sum()) / int(held[list(some)].any(axis=0).sum())
        for size in range(1, program.n_experts + 1)
        for some in combinations(experts, size)
    )
