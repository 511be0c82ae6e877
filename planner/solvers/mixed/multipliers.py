"""A bound of the project's own: multipliers from a linear relaxation, recounted here.

HiGHS solves the relaxation, and whatever it says of the rows' prices is only a proposal: any
multipliers prove `programs.mixed.priced`, wrong ones prove less. So no solver is believed,
and where the relaxation is as good as the program itself, the proof is whole.
"""

import math
from dataclasses import replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.mixed import MixedProgram, priced
from planner.programs.proofs import MULTIPLIERS, claim, refusal
from planner.solvers.mixed.highs import linear
from planner.solvers.recording import notes_of_run, recorded
from planner.solvers.solution import Clock, Effort, Word


@recorded
def solve(program: MixedProgram, effort: Effort) -> Word[FloatArray]:
    """What multipliers prove: a bound, or that the rows cannot hold together; never an answer."""
    clock = Clock()
    try:
        multipliers, ray = multipliers_of(program, effort)
    except SolverError as error:
        return Word(answer=None, proof=refusal(MULTIPLIERS, str(error), clock.elapsed_s()))
    notes, proving = notes_of_run(), ray if multipliers is None else multipliers
    if notes is not None and proving is not None:
        notes.price(program, proving)
    bound = -math.inf if multipliers is None else priced(program, multipliers).bound
    if ray is not None and priced(_without_cost(program), ray).bound > 0:
        bound = math.inf
    return Word(answer=None, proof=claim(MULTIPLIERS, bound, wall_s=clock.elapsed_s()))


def _without_cost(program: MixedProgram) -> MixedProgram:
    """Of which any bound above zero proves that nothing is feasible."""
    return replace(program, cost=np.zeros(program.n_columns), offset=0.0)


def multipliers_of(
    program: MixedProgram, effort: Effort
) -> tuple[FloatArray | None, FloatArray | None]:
    """Prices of the rows (R,) of the linear relaxation; or a ray of them, where it cannot hold.

    Raises:
        SolverError: HiGHS failed.
    """
    # without presolve a basis, and with it a ray, is always there
    hints = {"highs": {"presolve": "off", "solver": "simplex"}}
    vertex = linear(replace(program, hints=hints), effort)
    if vertex.is_infeasible:
        return None, None if vertex.ray is None else _signed(program, vertex.ray)
    return (vertex.multipliers if len(vertex.multipliers) == program.n_rows else None), None


def _signed(program: MixedProgram, ray: FloatArray) -> FloatArray:
    """The ray, or its opposite: which of them proves something is for arithmetic to say."""
    bare = _without_cost(program)
    return ray if priced(bare, ray).bound >= priced(bare, -ray).bound else -ray
