"""A bound of the project's own: multipliers from a linear relaxation, recounted here.

HiGHS solves the relaxation, and whatever it says of the rows' prices is only a proposal: any
multipliers prove `programs.mixed.priced`, wrong ones prove less. So no solver is believed,
and where the relaxation is as good as the program itself, the proof is whole.
"""

from __future__ import annotations

import math
from dataclasses import replace

import highspy  # type: ignore[import-untyped]
import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.mixed import MixedProgram, priced
from planner.programs.proofs import MULTIPLIERS, claim, refusal
from planner.solvers.highs_run import options_of, run_highs, set_options
from planner.solvers.mixed.highs import highs_lp
from planner.solvers.solution import Clock, Effort, Word


def solve(program: MixedProgram, effort: Effort) -> Word[FloatArray]:
    """What multipliers prove: a bound, or that the rows cannot hold together; never an answer."""
    clock = Clock()
    try:
        multipliers, ray = multipliers_of(program, effort)
    except SolverError as error:
        return Word(answer=None, proof=refusal(MULTIPLIERS, str(error), clock.elapsed_s()))
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
    highs = highspy.Highs()
    # without presolve a basis, and with it a ray, is always there
    set_options(highs, {**options_of(effort), "presolve": "off", "solver": "simplex"})
    relaxed = replace(program, is_whole=np.zeros(program.n_columns, dtype=np.bool_))
    if highs.passModel(highs_lp(relaxed)) == highspy.HighsStatus.kError:
        raise SolverError(f"highs does not take the relaxation of `{program.name}`")
    run_highs(highs, is_linear=True)
    if highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        _, has_ray, ray = highs.getDualRay()
        return None, _signed(program, np.array(ray)) if has_ray else None
    prices = np.array(highs.getSolution().row_dual)
    return (prices if len(prices) == program.n_rows else None), None


def _signed(program: MixedProgram, ray: FloatArray) -> FloatArray:
    """The ray, or its opposite: which of them proves something is for arithmetic to say."""
    bare = _without_cost(program)
    return ray if priced(bare, ray).bound >= priced(bare, -ray).bound else -ray
