"""A packing made by the rule of thumb, and one price of everything that may prove it the best."""

from __future__ import annotations

import math

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.placement import (
    Counts,
    PlacementProgram,
    most_copies,
    placement_objective,
    sizes,
    violations,
)
from planner.programs.proofs import MULTIPLIERS
from planner.programs.relaxation import even_bound
from planner.solvers.solution import Clock, Word
from planner.specs.certificates import Proof


def at_even_prices(program: PlacementProgram) -> Word[Counts]:
    """The greedy packing, and the bound that one price of all resources proves.

    Where slices that are worth most for what they use fill all that is free, that is all there
    is to prove, whatever the number of columns.
    """
    clock = Clock()
    counts = greedy(program)
    proof = Proof(
        prover=f"{MULTIPLIERS} of one price",
        outcome="stopped",
        value=math.inf if counts is None else placement_objective(program, counts),
        bound=even_bound(program),
        wall_s=clock.elapsed_s(),
    )
    return Word(answer=counts, proof=proof)


def greedy(program: PlacementProgram, *, first: FloatArray | None = None) -> Counts | None:
    """One column after the other, what is worth most for what it uses first; None if not valid.

    Args:
        first: what goes before worth, the largest first, (J,).
    """
    uses = program.uses
    resource, column, amount = uses.resource, uses.column, uses.amount
    if (np.diff(column) < 0).any():
        order = np.argsort(column, kind="stable")
        resource, column, amount = resource[order], column[order], amount[order]
    starts = np.searchsorted(column, np.arange(program.n_columns + 1))
    left = program.free.copy()
    copies = np.zeros(program.n_columns, np.int64)
    worth = program.objective / np.maximum(sizes(program), 1.0)
    most = most_copies(program)
    order = np.argsort(worth, kind="stable") if first is None else np.lexsort((worth, -first))
    for j in order.tolist():
        if program.objective[j] >= 0 or most[j] < 1:
            continue
        mine = slice(starts[j], starts[j + 1])
        if (left[resource[mine]] >= amount[mine]).all():
            left[resource[mine]] -= amount[mine]
            copies[j] = 1
    counts = Counts(copies=tuple(copies.tolist()))
    return None if violations(program, counts) else counts
