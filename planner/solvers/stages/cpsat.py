"""The stage program over integers, for OR-Tools CP-SAT.

Times become whole steps, rounded down, so that the bound holds: it is below the true one by less
than a step for each stage. The program is a flow, which linear relaxation sees and propagation
does not: so all rows are relaxed, and presolve, which hides them, is off.
"""

from __future__ import annotations

import math

import numpy as np
from ortools.sat.python import cp_model

from planner.errors import SolverError
from planner.programs.stages import Columns, StageProgram
from planner.solvers.cpsat_run import run_cpsat
from planner.solvers.solution import Effort, Status
from planner.solvers.stages import Least
from planner.solvers.stages.flow import Flow, cut_of, flow

_LARGEST = 2**32
"""Steps of the longest time: the sum of a million of them is an integer of 64 bits."""


def least(program: StageProgram, columns: Columns, effort: Effort) -> Least:
    """The least sum; see `planner.solvers.stages`.

    Raises:
        SolverError: CP-SAT failed.
        KeyboardInterrupt: interrupted.
    """
    posed = flow(program, columns)
    step_ms = max(float(posed.cost.max()), 1e-9) / _LARGEST
    model, variables = _model(posed, step_ms)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = effort.threads
    solver.parameters.random_seed = effort.seed
    solver.parameters.relative_gap_limit = effort.gap
    solver.parameters.linearization_level = 2
    solver.parameters.cp_model_presolve = False
    if effort.time_limit_s is not None:
        solver.parameters.max_time_in_seconds = max(0.0, effort.time_limit_s)
    ended = run_cpsat(solver, model)
    if ended == cp_model.INFEASIBLE:
        return Least(status=Status.INFEASIBLE, cut=None, bound=math.inf)
    bound = max(0.0, solver.best_objective_bound * step_ms)
    if ended == cp_model.UNKNOWN:
        return Least(status=Status.UNKNOWN, cut=None, bound=bound)
    if ended not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise SolverError(f"cpsat ended with `{solver.status_name(ended)}`")
    chosen = [v for v in range(posed.n_columns) if solver.boolean_value(variables[v])]
    status = Status.OPTIMAL if ended == cp_model.OPTIMAL else Status.FEASIBLE
    return Least(status=status, cut=cut_of(columns, np.array(chosen)), bound=bound)


def _model(posed: Flow, step_ms: float) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    model = cp_model.CpModel()
    variables = [model.new_bool_var(name) for name in posed.names]
    order = np.argsort(posed.row, kind="stable")
    ends = np.searchsorted(posed.row[order], np.arange(len(posed.low) + 1))
    for r, (low, high) in enumerate(zip(posed.low, posed.high, strict=True)):
        entries = order[ends[r] : ends[r + 1]]
        terms = [variables[c] for c in posed.column[entries]]
        weights = posed.value[entries].astype(int).tolist()
        total = cp_model.LinearExpr.weighted_sum(terms, weights)
        if np.isfinite(low):
            model.add(total == int(low))
        else:
            model.add(total <= int(high))
    steps = np.floor(posed.cost / step_ms).astype(np.int64).tolist()
    model.minimize(cp_model.LinearExpr.weighted_sum(variables, steps))
    return model, variables
