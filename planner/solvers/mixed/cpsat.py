"""Programs of whole numbers by CP-SAT: rows exact, the objective in whole steps, rounded down."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.mixed import MixedProgram
from planner.programs.proofs import refusal
from planner.solvers.cpsat import ask, power_of_two, prover, set_parameters
from planner.solvers.mixed import RawAnswer, judged
from planner.solvers.solution import Clock, Effort, Word

OBJECTIVE_BITS = 52
"""Of the largest sum of costs: an int64, and exact as a float."""


def solve(program: MixedProgram, effort: Effort, *, work: float | None = None) -> Word[FloatArray]:
    """What CP-SAT says; that it failed, or cannot take the rows, is said as a refusal.

    Flows are seen by their linear relaxation and not by propagation, so all rows are relaxed.

    Args:
        work: CP-SAT's own measure, about seconds; unlike time, it repeats.
    """
    clock = Clock()
    try:
        model, variables, scale = _model(program)
        solver = cp_model.CpSolver()
        set_parameters(solver, effort, spent_s=clock.elapsed_s())
        solver.parameters.linearization_level = 2
        if work is not None:
            solver.parameters.max_deterministic_time = work
        word = ask(solver, model, effort, scale=scale, clock=clock)
    except SolverError as error:
        return Word(answer=None, proof=refusal(prover(), str(error), clock.elapsed_s()))
    values = None
    if word.answer is not None:
        values = np.array([float(solver.value(v)) for v in variables])
    raw = RawAnswer(
        outcome=word.proof.outcome,
        values=values,
        bound=word.proof.bound + program.offset,
        n_nodes=word.n_nodes,
        stopped_by=word.stopped_by,
    )
    return judged(program, raw, prover=prover(), wall_s=clock.elapsed_s())


def _model(program: MixedProgram) -> tuple[cp_model.CpModel, list[cp_model.IntVar], float]:
    """The program over integers; its variables; and units of its objective in one of ours.

    Raises:
        SolverError: a column or a row is not of whole numbers.
    """
    sides = np.concatenate([program.low, program.high])
    numbers = (program.value, program.lower, program.upper, sides[np.isfinite(sides)])
    if not program.is_whole.all() or any((part != np.rint(part)).any() for part in numbers):
        raise SolverError(f"cpsat: the program `{program.name}` is not of whole numbers")
    if (program.lower[program.cost != 0] < 0).any():  # costs are rounded down
        raise SolverError(f"cpsat: columns of `{program.name}` that cost are below zero")
    model = cp_model.CpModel()
    bounds = zip(program.lower.tolist(), program.upper.tolist(), program.columns, strict=True)
    variables = [model.new_int_var(int(low), int(high), name) for low, high, name in bounds]
    order = np.argsort(program.row, kind="stable")
    ends = np.searchsorted(program.row[order], np.arange(1, program.n_rows))
    least, most = cp_model.INT_MIN, cp_model.INT_MAX
    for r, entries in enumerate(np.split(order, ends) if program.n_rows else []):
        terms = [variables[c] for c in program.column[entries].tolist()]
        weights = program.value[entries].astype(np.int64).tolist()
        low, high = program.low[r], program.high[r]
        model.add_linear_constraint(
            cp_model.LinearExpr.weighted_sum(terms, weights),
            int(low) if np.isfinite(low) else least,
            int(high) if np.isfinite(high) else most,
        )
    box = np.maximum(np.abs(program.lower), np.abs(program.upper))
    reach = float(np.abs(program.cost) @ box)
    scale = power_of_two(2.0**OBJECTIVE_BITS / (reach or 1.0))
    if reach:
        costs = np.floor(program.cost * scale).astype(np.int64).tolist()
        model.minimize(cp_model.LinearExpr.weighted_sum(variables, costs))
    return model, variables, scale
