"""Every choice of a small placement program, as arrays: the referee of the other solvers.

Column by column every number of copies is appended to every choice so far that leaves room
for it. It shares no arithmetic with `violations` or with the solvers' models.
"""

import math

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.programs.placement import Counts, PlacementProgram, most_copies
from planner.programs.proofs import enumeration
from planner.solvers.solution import Clock, Effort, Word

MOST_CHOICES = 2_000_000


def solve(program: PlacementProgram, effort: Effort) -> Word[Counts]:
    """Look at every choice that what is free has room for; the effort is not looked at.

    Raises:
        SolverError: more than `MOST_CHOICES` of them, or a column without any bound.
    """
    del effort
    clock = Clock()
    table = _choices(program)
    values = np.where(_allowed(program, table), _values(program, table), math.inf)
    best = float(values.min(initial=math.inf))
    counts = None
    if math.isfinite(best) or (values == -math.inf).any():
        first = int(np.argmax(values <= best + 1e-12 * abs(best)))
        counts = Counts(copies=tuple(table[first].tolist()))
    proof = enumeration(len(table), best, clock.elapsed_s())
    return Word(answer=counts, proof=proof, n_nodes=len(table))


def is_small(program: PlacementProgram, most: int) -> bool:
    """Whether there are no more choices than so many, whatever rows several columns share."""
    if (program.uses.amount < 0).any():  # what is added may leave room for far more choices
        return False
    return float(np.log1p(most_copies(program)).sum()) <= math.log(most)


def _choices(program: PlacementProgram) -> IntArray:
    """All choices within what is free and the replicas of each model, (P, J).

    A column may take what later ones add to a resource: what they can add at most counts as
    room until they have had their turn, and a choice ends where they no longer make up for it.
    """
    takes, most = np.zeros((program.n_resources, program.n_columns), int), most_copies(program)
    takes[program.uses.resource, program.uses.column] = program.uses.amount
    rest = program.free[None, :].astype(np.int64)
    added = np.maximum(-takes, 0) * most
    if (rest + added.sum(axis=1) < 0).any():
        return np.zeros((0, program.n_columns), dtype=np.int64)
    to_come = added.sum(axis=1, keepdims=True) - added.cumsum(axis=1)  # by the columns after each
    left = program.most[None, :].astype(np.int64)
    table = np.zeros((1, 0), dtype=np.int64)
    for j in range(program.n_columns):
        used = takes[:, j] > 0
        model = program.column_model[j]
        fits = left[:, model]
        if used.any():
            room = rest[:, used] + to_come[used, j]
            fits = np.minimum(fits, (room // takes[used, j]).min(axis=1))
        fits = np.maximum(np.minimum(fits, most[j]), 0)  # limits leave room for few of some
        if int(fits.sum()) + len(fits) > MOST_CHOICES:
            raise SolverError(f"more than {MOST_CHOICES} choices are too many to look at each")
        ways = fits + 1
        rows = np.repeat(np.arange(len(table)), ways)
        copies = np.arange(len(rows)) - np.repeat(ways.cumsum() - ways, ways)
        table = np.column_stack([table[rows], copies])
        rest = rest[rows] - np.outer(copies, takes[:, j])
        left = left[rows]
        left[:, model] -= copies
        goes_on = (rest + to_come[:, j] >= 0).all(axis=1)
        if not goes_on.all():
            table, rest, left = table[goes_on], rest[goes_on], left[goes_on]
    return table


def _allowed(program: PlacementProgram, table: IntArray) -> FloatArray:
    """Which choices keep the rows that are not about room, (P,)."""
    fine = np.ones(len(table), dtype=np.bool_)
    for m in range(len(program.models)):
        mine = program.column_model == m
        fine &= table[:, mine].sum(axis=1) >= program.least[m]
        fine &= program.most[m] >= max(0, int(program.least[m]))
        if program.demand[m] > 0 and not program.is_for_share:
            rate = table[:, mine] @ program.rate[mine]
            fine &= rate >= program.demand[m] * (1 - 1e-9)
    for limit in program.limits:
        fine &= table @ limit.column <= limit.at_most + 1e-9 * abs(limit.at_most)
    for cut in program.cuts:
        reached = table @ cut.column + cut.added
        if program.is_for_share and cut.is_of_share:
            fine &= reached >= -1e-9 * abs(cut.added)
        else:
            fine &= reached >= 1 - 1e-9
    used = [table[:, columns].any(axis=1) for columns in program.limited_sorts]
    if used:
        fine &= np.sum(used, axis=0) <= program.most_sorts
    return np.asarray(fine)


def _values(program: PlacementProgram, table: IntArray) -> FloatArray:
    if not program.is_for_share:
        return np.asarray(table @ program.objective)
    worst = np.full(len(table), math.inf)
    for m in np.flatnonzero(program.demand > 0):
        mine = program.column_model == m
        worst = np.minimum(worst, table[:, mine] @ program.rate[mine] / program.demand[m])
    for cut in program.cuts:
        if cut.is_of_share:
            worst = np.minimum(worst, table @ cut.column + cut.added)
    return -worst
