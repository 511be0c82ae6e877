"""Every assignment of a small program, as arrays: the referee of the other solvers.

It shares no arithmetic with `violations` or with the solvers' models.
"""

import math
from functools import reduce

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.programs.layout import Assignment, LayoutProgram
from planner.programs.proofs import enumeration
from planner.solvers.solution import Clock, Effort, Word

MOST_ASSIGNMENTS = 5_000_000


def solve(program: LayoutProgram, effort: Effort) -> Word[Assignment]:
    """Look at every assignment; the effort is not looked at.

    Raises:
        SolverError: more than `MOST_ASSIGNMENTS` of them.
    """
    del effort
    clock = Clock()
    n_points = n_assignments(program)
    if n_points > MOST_ASSIGNMENTS:
        raise SolverError(f"{n_points} assignments are too many to look at each")
    groups = [_groups(program, k) for k in range(program.n_contexts)]
    values = [_values(program, k, slots) for k, slots in enumerate(groups)]
    best = min((float(array.min()) for array in values if array.size), default=math.inf)
    assignment = None if best == math.inf else _first(values, groups, best)
    proof = enumeration(n_points, best, clock.elapsed_s())
    return Word(answer=assignment, proof=proof, n_nodes=n_points)


def is_small(program: LayoutProgram, most: int = MOST_ASSIGNMENTS) -> bool:
    """Whether every assignment can be looked at."""
    return n_assignments(program) <= most


def n_assignments(program: LayoutProgram) -> int:
    """How many there are: over contexts the products of their slots' columns."""
    place = program.column_context * program.n_slots + program.column_slot
    n_columns = np.bincount(place, minlength=program.n_contexts * program.n_slots).tolist()
    starts = range(0, len(n_columns), program.n_slots or 1)
    return sum(math.prod(n_columns[start : start + program.n_slots]) for start in starts)


def _groups(program: LayoutProgram, k: int) -> list[IntArray]:
    in_context = program.column_context == k
    return [np.flatnonzero(in_context & (program.column_slot == s)) for s in range(program.n_slots)]


def _values(program: LayoutProgram, k: int, slots: list[IntArray]) -> FloatArray:
    """Objective of every assignment of a context, one axis a slot; inf where a row breaks."""

    def total(context: FloatArray, column: FloatArray) -> FloatArray:
        grid = reduce(np.add.outer, [column[group] for group in slots], context[k])
        return np.asarray(grid)

    values = total(program.context_objective, program.column_objective)
    rows = [(total(program.context_bytes, program.column_bytes), program.capacity_bytes[k])]
    rows += [(total(limit.context, limit.column), limit.at_most) for limit in program.limits]
    for left, right in rows:
        if math.isfinite(right):
            values = np.where(left - right > 1e-9 * abs(right), math.inf, values)
    return values


def _first(values: list[FloatArray], groups: list[list[IntArray]], best: float) -> Assignment:
    """The smallest assignment within 1e-9 of the best objective."""
    good = best + 1e-9 * abs(best)
    k = next(k for k, array in enumerate(values) if array.size and array.min() <= good)
    cell = np.unravel_index(int(np.argmax(values[k] <= good)), values[k].shape)
    columns = tuple(int(group[i]) for group, i in zip(groups[k], cell, strict=True))
    return Assignment(context=k, columns=columns)
