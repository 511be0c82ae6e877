"""The layout program as a mixed-integer program: Pyomo states it, a solver of rows solves it.

The tolerances of such solvers are absolute, so they are set far below the 1e-3 that a program's
values may be, and what they still let pass is cut off and solved again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

# From their own modules: `pyomo.environ` would load every plug-in for 0.2 s more.
from pyomo.core import Binary, ConcreteModel, Constraint, Var, minimize
from pyomo.core.expr.numeric_expr import LinearExpression

from planner.equations.arrays import FloatArray
from planner.programs.layout import Assignment, LayoutProgram, Limit, violations
from planner.programs.mixed import MixedProgram
from planner.solvers.answers import Clock, judged
from planner.solvers.mixed import highs as mixed_highs
from planner.solvers.mixed import scip as mixed_scip
from planner.solvers.proving import Word
from planner.solvers.pyomo_reading import linear, stated
from planner.solvers.solution import Effort

_Key = TypeVar("_Key")
_Columns = dict[_Key, list[int]]  # column indices by where they belong
MOST_REPAIRS = 100
LET_PASS = 1e-8
"""Excess of a row that a solver's absolute tolerance may let pass; for a right side far below 1
that is coarser than the 1e-9 of `violations`."""


def build(program: LayoutProgram) -> ConcreteModel:
    """State the layout program as an integer program.

    minimise   Σ_k objective_k z_k + Σ_j objective_j x_j
    such that  Σ_k z_k = 1                                            one_context
               Σ_{j in (k, s)} x_j = z_k                       ∀ k,s  one_layout
               Σ_{j in k} bytes_j x_j - (capacity_k - bytes_k) z_k ≤ 0  ∀ k  hbm
               Σ_k context_k z_k + Σ_j column_j x_j ≤ at_most  ∀ limit  the limit's name
               x, z ∈ {0, 1}

    An infinite capacity or limit is no row.
    """
    m = ConcreteModel("layout")
    m.z = Var(range(program.n_contexts), domain=Binary)
    m.x = Var(range(program.n_columns), domain=Binary)
    z, x = list(m.z.values()), list(m.x.values())
    of_context, of_place = _places(program)

    @m.Objective(sense=minimize)
    def least(_m: ConcreteModel) -> object:
        return _sum(program.context_objective, z, program.column_objective, x)

    @m.Constraint()
    def one_context(_m: ConcreteModel) -> object:
        return linear([1.0] * len(z), z) == 1

    @m.Constraint(range(program.n_contexts), range(program.n_slots))
    def one_layout(_m: ConcreteModel, k: int, s: int) -> object:
        columns = of_place.get((k, s), [])
        ones = [1.0] * len(columns)
        return linear([*ones, -1.0], [*(x[j] for j in columns), z[k]]) == 0

    @m.Constraint(range(program.n_contexts))
    def hbm(_m: ConcreteModel, k: int) -> object:
        free = float(program.capacity_bytes[k] - program.context_bytes[k])
        if not math.isfinite(free):
            return Constraint.Skip
        columns = [j for j in of_context.get(k, []) if program.column_bytes[j] != 0]
        held = program.column_bytes[columns].tolist()
        return linear([*held, -free], [*(x[j] for j in columns), z[k]]) <= 0

    for limit in program.limits:
        if math.isfinite(limit.at_most):
            m.add_component(limit.name, Constraint(expr=_row(limit, z, x)))
    return m


def _places(program: LayoutProgram) -> tuple[_Columns[int], _Columns[tuple[int, int]]]:
    """Columns of each context, and of each context and slot."""
    of_context: _Columns[int] = {}
    of_place: _Columns[tuple[int, int]] = {}
    pairs = zip(program.column_context.tolist(), program.column_slot.tolist(), strict=True)
    for j, (k, s) in enumerate(pairs):
        of_context.setdefault(k, []).append(j)
        of_place.setdefault((k, s), []).append(j)
    return of_context, of_place


def _sum(context: FloatArray, z: list[Any], column: FloatArray, x: list[Any]) -> LinearExpression:
    """Σ context_k z_k + Σ column_j x_j, without the zeros."""
    terms = zip([*context.tolist(), *column.tolist()], [*z, *x], strict=True)
    kept = [(coefficient, variable) for coefficient, variable in terms if coefficient]
    return linear([c for c, _ in kept], [v for _, v in kept])


def _row(limit: Limit, z: list[Any], x: list[Any]) -> object:
    left = _sum(limit.context, z, limit.column, x)
    if left.linear_vars:
        return left <= limit.at_most
    return Constraint.Feasible if limit.at_most >= 0 else Constraint.Infeasible


def write_lp(program: LayoutProgram, path: Path) -> None:
    """Write the model as an LP file, with the names of `build`."""
    from pyomo.repn.plugins.lp_writer import LPWriter

    with path.open("w", encoding="utf-8") as stream:
        LPWriter().write(build(program), stream, symbolic_solver_labels=True)


def solve(program: LayoutProgram, effort: Effort) -> Word[Assignment]:
    """What HiGHS says of the program."""
    return _solved(program, effort, mixed_highs.solve)


def solve_by_scip(program: LayoutProgram, effort: Effort) -> Word[Assignment]:
    """What SCIP says of the same rows."""
    return _solved(program, effort, mixed_scip.solve)


_Solver = Callable[[MixedProgram, Effort], Word[FloatArray]]


def _solved(program: LayoutProgram, effort: Effort, solver: _Solver) -> Word[Assignment]:
    """Solve, again if the solver's tolerance let something pass."""
    clock = Clock()
    rows = stated(lambda: build(program))
    for _ in range(MOST_REPAIRS):
        left = effort
        if effort.time_limit_s is not None:
            left_s = max(0.0, effort.time_limit_s - clock.elapsed_s())
            left = replace(effort, time_limit_s=left_s)
        word = solver(rows, left)
        chosen = None if word.answer is None else _chosen(program, word.answer)
        broken = {} if chosen is None else violations(program, chosen)
        if chosen is None or not broken or max(broken.values()) > LET_PASS:
            break
        rows = _without(rows, [program.n_contexts + j for j in chosen.columns])
    return judged(program, word, chosen, wall_s=clock.elapsed_s())


def _without(rows: MixedProgram, columns: list[int]) -> MixedProgram:
    """The program with one choice cut off: not all of its columns together."""
    n = len(columns)
    return replace(
        rows,
        row=np.concatenate([rows.row, np.full(n, rows.n_rows)]),
        column=np.concatenate([rows.column, np.array(columns, dtype=np.int64)]),
        value=np.concatenate([rows.value, np.ones(n)]),
        low=np.append(rows.low, -np.inf),
        high=np.append(rows.high, n - 1.0),
        rows=(*rows.rows, f"not_again[{rows.n_rows}]"),
    )


def _chosen(program: LayoutProgram, values: FloatArray) -> Assignment:
    """The assignment that the values of z and x are."""
    z, x = values[: program.n_contexts], values[program.n_contexts :]
    columns = np.flatnonzero(x > 0.5)
    columns = columns[np.argsort(program.column_slot[columns], kind="stable")]
    return Assignment(context=int(np.argmax(z)), columns=tuple(columns.tolist()))
