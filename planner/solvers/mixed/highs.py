"""Mixed programs by HiGHS, handed over as arrays; how it is called: `planner.solvers.highs_run`."""

from __future__ import annotations

import math

import highspy  # type: ignore[import-untyped]
import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.mixed import MixedProgram
from planner.programs.proofs import refusal
from planner.solvers.highs_run import FEASIBLE_POINT, options_of, run_highs, set_options, version
from planner.solvers.mixed import RawAnswer, judged
from planner.solvers.solution import Clock, Effort, Word


def solve(program: MixedProgram, effort: Effort) -> Word[FloatArray]:
    """What HiGHS says; that it failed is said as a refusal."""
    clock, prover = Clock(), f"highs {version()}"
    if not program.n_columns:  # HiGHS calls that no model
        raw = RawAnswer(outcome="optimal", values=np.zeros(0), bound=program.offset)
        return judged(program, raw, prover=prover, wall_s=clock.elapsed_s())
    try:
        raw = _run(program, effort)
    except SolverError as error:
        return Word(answer=None, proof=refusal(prover, str(error), clock.elapsed_s()))
    return judged(program, raw, prover=prover, wall_s=clock.elapsed_s())


def _run(program: MixedProgram, effort: Effort) -> RawAnswer:
    highs = highspy.Highs()
    set_options(highs, {**options_of(effort), **program.hints.get("highs", {})})
    if highs.passModel(highs_lp(program)) == highspy.HighsStatus.kError:
        raise SolverError(f"highs does not take the program `{program.name}`")
    if program.start is not None:
        known = highspy.HighsSolution()
        known.col_value = program.start.tolist()
        highs.setSolution(known)
    is_linear = not program.is_whole.any()
    interrupted = run_highs(highs, effort=effort, is_linear=is_linear)
    status, info = highs.getModelStatus(), highs.getInfo()
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
