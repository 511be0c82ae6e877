"""Mixed programs by HiGHS, handed over as arrays; how it is called: `planner.solvers.highs_run`."""

import math
from dataclasses import dataclass, replace
from functools import partial

import highspy  # type: ignore[import-untyped]
import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.mixed import MixedProgram
from planner.programs.proofs import refusal
from planner.solvers.highs_run import FEASIBLE_POINT, options_of, run_highs, set_options, version
from planner.solvers.mixed import RawAnswer, checked
from planner.solvers.recording import counts_of, notes_of_run, recorded
from planner.solvers.solution import Clock, Effort, Word
from planner.specs.records.solving import ProgramSize


@recorded
def solve(program: MixedProgram, effort: Effort) -> Word[FloatArray]:
    """What HiGHS says; that it failed is said as a refusal."""
    clock, prover = Clock(), f"highs {version()}"
    if not program.n_columns:  # HiGHS calls that no model
        raw = RawAnswer(outcome="optimal", values=np.zeros(0), bound=program.offset)
        return checked(program, raw, prover=prover, wall_s=clock.elapsed_s())
    try:
        raw = _run(program, effort)
    except SolverError as error:
        return Word(answer=None, proof=refusal(prover, str(error), clock.elapsed_s()))
    return checked(program, raw, prover=prover, wall_s=clock.elapsed_s())


def _run(program: MixedProgram, effort: Effort) -> RawAnswer:
    highs = _given(program, effort)
    is_linear = not program.is_whole.any()
    interrupted = run_highs(highs, effort=effort, is_linear=is_linear)
    status, info = highs.getModelStatus(), highs.getInfo()
    if (notes := notes_of_run()) is not None:
        notes.n_iterations = max(0, int(info.simplex_iteration_count))
        notes.presolved = partial(_presolved, program, effort)
    ends = highspy.HighsModelStatus
    if status in (ends.kInfeasible, ends.kUnboundedOrInfeasible):  # bounded, so never unbounded
        return RawAnswer(outcome="infeasible", values=None, bound=math.inf)
    stopped = status in (
        ends.kTimeLimit,
        ends.kInterrupt,
        ends.kHighsInterrupt,
        ends.kSolutionLimit,
        ends.kIterationLimit,
        ends.kMemoryLimit,
    )
    if not stopped and status != ends.kOptimal:
        raise SolverError(f"highs ended with: {highs.modelStatusToString(status)}")
    is_optimal = status == ends.kOptimal
    bound = float(info.mip_dual_bound)
    if is_linear:
        bound = float(info.objective_function_value) if is_optimal else -math.inf
    has_point = info.primal_solution_status == FEASIBLE_POINT
    return RawAnswer(
        outcome="optimal" if is_optimal else "stopped",
        values=np.array(highs.getSolution().col_value) if has_point else None,
        bound=bound,
        n_nodes=max(0, int(info.mip_node_count)),
        stopped_by="" if is_optimal else "interrupt" if interrupted else "time limit",
    )


def _presolved(program: MixedProgram, effort: Effort) -> ProgramSize:
    """What presolve leaves: HiGHS keeps nothing of that within its search, so it is done again."""
    highs = _given(program, effort)
    highs.presolve()
    lp = highs.getPresolvedLp()
    kinds = np.array([int(kind) for kind in lp.integrality_] or [0] * lp.num_col_, dtype=np.bool_)
    counts = counts_of(kinds, np.array(lp.col_lower_), np.array(lp.col_upper_))
    return ProgramSize(**counts, n_rows=int(lp.num_row_), n_nonzeros=len(lp.a_matrix_.value_))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vertex:
    """Where the linear relaxation ended.

    Args:
        is_optimal, is_infeasible: how; `status` in HiGHS's words.
        values: of the columns (N,).
        multipliers: of the rows (R,), empty where it has none.
        ray: of multipliers (R,), where it is infeasible and HiGHS has one.
    """

    is_optimal: bool
    is_infeasible: bool
    status: str
    values: FloatArray
    multipliers: FloatArray
    ray: FloatArray | None


def linear(program: MixedProgram, effort: Effort) -> Vertex:
    """What HiGHS makes of a program in which no column has to be whole; of which it proves nothing.

    Raises:
        SolverError: HiGHS failed.
        KeyboardInterrupt: interrupted.
    """
    relaxed = replace(program, is_whole=np.zeros(program.n_columns, dtype=np.bool_))
    highs = _given(relaxed, effort)
    if run_highs(highs, is_linear=True):
        raise KeyboardInterrupt
    status, solution = highs.getModelStatus(), highs.getSolution()
    if (notes := notes_of_run()) is not None:
        notes.n_iterations = int(highs.getInfo().simplex_iteration_count)
    is_infeasible = status == highspy.HighsModelStatus.kInfeasible
    has_ray, ray = highs.getDualRay()[1:] if is_infeasible else (False, [])
    return Vertex(
        is_optimal=status == highspy.HighsModelStatus.kOptimal,
        is_infeasible=is_infeasible,
        status=str(highs.modelStatusToString(status)),
        values=np.array(solution.col_value),
        multipliers=np.array(solution.row_dual),
        ray=np.array(ray) if has_ray else None,
    )


def _given(program: MixedProgram, effort: Effort) -> highspy.Highs:
    """HiGHS with a program and how to solve it."""
    highs, hints = highspy.Highs(), dict(program.hints.get("highs", {}))
    start = hints.pop("start", None)
    set_options(highs, {**options_of(effort), **hints})
    if highs.passModel(highs_lp(program)) == highspy.HighsStatus.kError:
        raise SolverError(f"highs does not take the program `{program.name}`")
    if start is not None:
        known = highspy.HighsSolution()
        known.col_value = start.tolist()
        highs.setSolution(known)
    return highs


def highs_lp(program: MixedProgram) -> highspy.HighsLp:
    """The program as HiGHS's own record."""
    n_columns = program.n_columns
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n_columns, program.n_rows
    lp.offset_ = program.offset
    lp.col_cost_ = program.cost
    lp.col_lower_, lp.col_upper_ = program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.low, program.high
    order = np.lexsort((program.row, program.column))
    starts = np.searchsorted(program.column[order], np.arange(n_columns + 1))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = starts.astype(np.int32)
    lp.a_matrix_.index_ = program.row[order].astype(np.int32)
    lp.a_matrix_.value_ = program.value[order].astype(float)
    if program.is_whole.any():
        kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        lp.integrality_ = [kinds[whole] for whole in program.is_whole.tolist()]
    if program.columns:
        lp.col_names_, lp.row_names_ = list(program.columns), list(program.rows)
    return lp
