"""The stage program as a mixed-integer program, handed to HiGHS as arrays.

There may be ten thousand columns, so no modelling language stands between. Presolve is off and
the scheduler is reset around each run, for the reasons that `planner.solvers.highs` gives.
"""

from __future__ import annotations

import math
import threading
from pathlib import Path

import highspy  # type: ignore[import-untyped]
import numpy as np
from highspy.highs import HighsCallbackEvent  # type: ignore[import-untyped]

from planner.errors import SolverError
from planner.programs.stages import Columns, StageProgram
from planner.solvers.answers import run_interruptibly
from planner.solvers.solution import Effort, Status
from planner.solvers.stages import Least
from planner.solvers.stages.flow import Flow, cut_of, flow

TOLERANCE = 1e-9
_FEASIBLE_POINT = 2  # kSolutionStatusFeasible


def least(program: StageProgram, columns: Columns, effort: Effort) -> Least:
    """The least sum; see `planner.solvers.stages`.

    Raises:
        SolverError: HiGHS failed.
        KeyboardInterrupt: interrupted.
    """
    highs = _highs(flow(program, columns), effort)
    stop = threading.Event()

    def check(event: HighsCallbackEvent) -> None:
        if stop.is_set():
            event.interrupt()

    highs.cbMipInterrupt += check
    highspy.Highs.resetGlobalScheduler(True)
    try:
        if run_interruptibly(lambda: _run(highs), stop.set):
            raise KeyboardInterrupt
    finally:
        highspy.Highs.resetGlobalScheduler(True)
    return _answer(highs, columns)


def _run(highs: highspy.Highs) -> None:
    if highs.run() == highspy.HighsStatus.kError:
        raise SolverError(f"highs failed: {highs.modelStatusToString(highs.getModelStatus())}")


def _answer(highs: highspy.Highs, columns: Columns) -> Least:
    status, info = highs.getModelStatus(), highs.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Least(status=Status.INFEASIBLE, cut=None, bound=math.inf)
    bound = max(0.0, float(info.mip_dual_bound))
    if info.primal_solution_status != _FEASIBLE_POINT:
        if status != highspy.HighsModelStatus.kTimeLimit:
            raise SolverError(f"highs ended with `{highs.modelStatusToString(status)}`")
        return Least(status=Status.UNKNOWN, cut=None, bound=bound)
    values = np.array(highs.getSolution().col_value[: len(columns)])
    found = cut_of(columns, np.flatnonzero(values > 0.5))
    is_optimal = status == highspy.HighsModelStatus.kOptimal
    return Least(status=Status.OPTIMAL if is_optimal else Status.FEASIBLE, cut=found, bound=bound)


def _highs(posed: Flow, effort: Effort) -> highspy.Highs:
    model = highspy.Highs()
    options = {
        "output_flag": False,
        "presolve": "off",
        "threads": effort.threads,
        "random_seed": effort.seed,
        "mip_rel_gap": effort.gap,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": TOLERANCE,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
    }
    if effort.time_limit_s is not None:
        options["time_limit"] = max(0.0, effort.time_limit_s)
    for name, value in options.items():
        if model.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"highs does not take {value!r} for its option `{name}`")
    if model.passModel(_lp(posed)) == highspy.HighsStatus.kError:
        raise SolverError("highs does not take the stage program")
    return model


def _lp(posed: Flow) -> highspy.HighsLp:
    n_columns, n_rows = len(posed.cost), len(posed.low)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n_columns, n_rows
    lp.col_cost_ = posed.cost
    lp.col_lower_, lp.col_upper_ = np.zeros(n_columns), np.ones(n_columns)
    lp.row_lower_, lp.row_upper_ = posed.low, posed.high
    order = np.lexsort((posed.row, posed.column))
    starts = np.searchsorted(posed.column[order], np.arange(n_columns + 1))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = starts.astype(np.int32)
    lp.a_matrix_.index_ = posed.row[order].astype(np.int32)
    lp.a_matrix_.value_ = posed.value[order].astype(float)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * n_columns
    lp.col_names_, lp.row_names_ = list(posed.names), list(posed.rows)
    return lp


def write_lp(program: StageProgram, columns: Columns, path: Path) -> None:
    """Write the program as an LP file, with its names."""
    model = _highs(flow(program, columns), Effort())
    if model.writeModel(str(path)) == highspy.HighsStatus.kError:
        raise SolverError(f"highs cannot write {path}")
