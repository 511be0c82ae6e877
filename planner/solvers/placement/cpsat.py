"""The placement program as a constraint program over integers: OR-Tools CP-SAT.

Scaled here, by powers of two, as `planner.solvers.cpsat` says: what CP-SAT accepts is accepted
by `violations`, and its bound is one of the true objective.

    limits     coefficients up, right side down
    demand     in shares of itself, coefficients down, right side up; a copy that serves all of
               it by itself counts as just that
    cuts       likewise, in shares of what they need; those of a share as it is
    objective  coefficients down; of a share, up, since a share is maximised
"""

from __future__ import annotations

import math

import numpy as np
from ortools.sat.python import cp_model

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.layout import RELATIVE_TOLERANCE
from planner.programs.placement import Counts, PlacementProgram, most_copies
from planner.programs.proofs import refusal
from planner.solvers.cpsat import ask, integer_row, power_of_two, prover, set_parameters
from planner.solvers.placement import judged
from planner.solvers.solution import Clock, Effort, Word

DEMAND_BITS = 44  # of one share: a thousand roundings stay within the tolerance of 1e-9
OBJECTIVE_BITS = 52  # of the largest sum: int64, and exact as a float

Variables = list[cp_model.IntVar]


def build(program: PlacementProgram) -> tuple[cp_model.CpModel, Variables, float]:
    """State the program over integers.

    Returns:
        the model; its variables, one a column; and how many units of its objective make one
        of the program's.
    """
    model = cp_model.CpModel()
    most = most_copies(program)
    n = [model.new_int_var(0, int(u), f"n({j})") for j, u in enumerate(most.tolist())]
    uses = program.uses
    order = np.argsort(uses.resource, kind="stable")
    ends = np.searchsorted(uses.resource[order], np.arange(1, program.n_resources))
    for r, entries in enumerate(np.split(order, ends)):
        amounts = uses.amount[entries].tolist()
        free = int(program.free[r])
        columns = uses.column[entries].tolist()
        reach = sum(max(a, 0) * int(most[j]) for a, j in zip(amounts, columns, strict=True))
        if reach > free:
            total = cp_model.LinearExpr.weighted_sum([n[j] for j in columns], amounts)
            model.add(total <= free).with_name(f"free({r})")
    _add_models(model, program, n)
    _add_limits(model, program, n)
    _add_cuts(model, program, n)
    _add_sorts(model, program, n)
    if program.is_for_share:
        return model, n, _maximise_share(model, program, n)
    reach = float(np.abs(program.objective) @ np.maximum(most, 1))  # each cost has to fit
    scale = power_of_two(2.0**OBJECTIVE_BITS / (reach or 1.0))
    costs = [int(c) for c in np.floor(program.objective * scale).tolist()]
    model.minimize(cp_model.LinearExpr.weighted_sum(n, costs))
    return model, n, scale


def _add_models(model: cp_model.CpModel, program: PlacementProgram, n: Variables) -> None:
    """Rows of each model: its demand, and its replicas."""
    for m in range(len(program.models)):
        members = np.flatnonzero(program.column_model == m)
        mine = [n[j] for j in members.tolist()]
        low, high = int(program.least[m]), int(program.most[m])
        if mine:
            model.add_linear_constraint(cp_model.LinearExpr.sum(mine), low, high).with_name(
                f"replicas({m})"
            )
        asked = float(program.demand[m])
        if asked > 0 and not program.is_for_share:
            one = 2.0**DEMAND_BITS
            shares = np.floor(np.minimum(program.rate[members] / asked, 1.0) * one)
            total = cp_model.LinearExpr.weighted_sum(mine, _integers(shares))
            right = math.ceil((1.0 - RELATIVE_TOLERANCE) * one)
            model.add(total >= right).with_name(f"demand({m})")


def _add_limits(model: cp_model.CpModel, program: PlacementProgram, n: Variables) -> None:
    for limit in program.limits:
        if math.isfinite(limit.at_most) and limit.column.any():
            coefficients, right = integer_row(limit.column, limit.at_most)
            total = cp_model.LinearExpr.weighted_sum(n, coefficients)
            model.add(total <= right).with_name(limit.name)


def _add_cuts(model: cp_model.CpModel, program: PlacementProgram, n: Variables) -> None:
    """Rows of the cuts in which no share stands."""
    one = 2.0**DEMAND_BITS
    for cut in program.cuts:
        needed = program.needed(cut) * (1.0 - RELATIVE_TOLERANCE) - cut.added
        if program.needed(cut) and needed > 0:
            widest = max(needed, 1.0)
            parts = _integers(np.floor(np.minimum(cut.column, needed) / widest * one))
            total = cp_model.LinearExpr.weighted_sum(n, parts)
            model.add(total >= math.ceil(needed / widest * one)).with_name(cut.name)


def _add_sorts(model: cp_model.CpModel, program: PlacementProgram, n: Variables) -> None:
    """Which sorts of replicas are used, and how many of them may be."""
    used, most = [], most_copies(program)
    for k, columns in enumerate(program.limited_sorts):
        used.append(model.new_bool_var(f"y({k})"))
        mine, reach = [n[j] for j in columns.tolist()], int(most[columns].sum())
        model.add(cp_model.LinearExpr.sum(mine) <= reach * used[k]).with_name(f"used({k})")
    if used:
        model.add(cp_model.LinearExpr.sum(used) <= program.most_sorts).with_name("sorts")


def _maximise_share(model: cp_model.CpModel, program: PlacementProgram, n: Variables) -> float:
    """The share of the worst served model as the objective; how many units make one."""
    most = most_copies(program).astype(float)
    asked = np.flatnonzero(program.demand > 0).tolist()
    members = {m: np.flatnonzero(program.column_model == m) for m in asked}
    shares = {m: program.rate[members[m]] / program.demand[m] for m in asked}
    cuts = program.cuts_of_share
    reach = max(
        *(float(shares[m] @ most[members[m]]) for m in asked),
        *(float(cut.column @ most) + abs(cut.added) for cut in cuts),
        0.0,
    )
    scale = power_of_two(2.0 ** (OBJECTIVE_BITS - 1) / (reach or 1.0))
    s = model.new_int_var(0, 1 << (OBJECTIVE_BITS + 1), "s")
    for m in asked:
        coefficients = _integers(np.ceil(shares[m] * scale))
        mine = [n[j] for j in members[m].tolist()]
        total = cp_model.LinearExpr.weighted_sum([*mine, s], [*coefficients, -1])
        model.add(total >= 0).with_name(f"demand({m})")
    for cut in cuts:
        coefficients = _integers(np.ceil(cut.column * scale))
        total = cp_model.LinearExpr.weighted_sum([*n, s], [*coefficients, -1])
        model.add(total >= -math.ceil(cut.added * scale)).with_name(cut.name)
    model.minimize(-s)
    return scale


def _integers(values: FloatArray) -> list[int]:
    return [int(value) for value in values.tolist()]


def solve(program: PlacementProgram, effort: Effort) -> Word[Counts]:
    """What CP-SAT says of the program; that it failed is said as a refusal."""
    clock = Clock()
    try:
        model, n, scale = build(program)
        solver = cp_model.CpSolver()
        set_parameters(solver, effort, spent_s=clock.elapsed_s())
        word = ask(solver, model, effort, scale=scale, clock=clock)
    except SolverError as error:
        return Word(answer=None, proof=refusal(prover(), str(error), clock.elapsed_s()))
    counts = None
    if word.answer is not None:
        counts = Counts(copies=tuple(int(solver.value(v)) for v in n))
    return judged(program, word, counts, wall_s=clock.elapsed_s())
