"""What a solver of placements answers, and what happens before it may."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from planner.errors import SolverError
from planner.programs.layout import RELATIVE_TOLERANCE
from planner.programs.placement import (
    Counts,
    PlacementProgram,
    is_hopeless,
    most_copies,
    placement_objective,
    violations,
)
from planner.programs.proofs import refusal
from planner.solvers.proving import Proved, Word
from planner.specs.certificates import Outcome, Proof

PlacementSolution = Proved[Counts]
"""What provers say of a program; its objective is to be minimised, so a share counts negative."""

MOST_COPIES = 1 << 24
"""Of a column: with bounds of 2^40 HiGHS 1.13 has called optimal what was 2 % off."""


def judged(
    program: PlacementProgram, word: Word[Any], counts: Counts | None, *, wall_s: float
) -> Word[Counts]:
    """A solver's word of the program's rows as one of the program: an answer only if it is one.

    Args:
        word: of the rows, or of whatever else the solver read.
        counts: what its answer means; None without one.
        wall_s: that building and solving took.
    """
    proof = replace(word.proof, wall_s=wall_s)
    if counts is None:
        return replace(word, answer=None, proof=replace(proof, value=math.inf))
    broken = violations(program, counts)
    if broken:
        row, excess = max(broken.items(), key=lambda item: item[1])
        proof = refusal(proof.prover, f"its answer breaks `{row}` by {excess:.3g}", wall_s)
        return replace(word, answer=None, proof=proof)
    value = placement_objective(program, counts)
    # within rounding of the solver's own sums the two are one number
    near = abs(value - proof.bound) <= 10 * RELATIVE_TOLERANCE * max(1.0, abs(value))
    bound = value if near and proof.outcome == "optimal" else proof.bound
    return replace(word, answer=counts, proof=replace(proof, value=value, bound=bound))


def counted(program: PlacementProgram) -> Word[Counts] | None:
    """What arithmetic says where there is nothing to search: a row cannot hold, or no choice.

    Raises:
        SolverError: a column has no bound.
    """
    most = most_copies(program)
    if is_hopeless(program, most):
        return Word(answer=None, proof=_by_arithmetic("infeasible", math.inf, math.inf))
    if (most > MOST_COPIES).any():
        raise SolverError("a column of a placement may have copies without end")
    if (most > 0).any():
        return None
    nothing = Counts(copies=(0,) * program.n_columns)
    value = placement_objective(program, nothing)
    return Word(answer=nothing, proof=_by_arithmetic("optimal", value, value))


def _by_arithmetic(outcome: Outcome, value: float, bound: float) -> Proof:
    return Proof(
        prover="room of each column", outcome=outcome, value=value, bound=bound, wall_s=0.0
    )
