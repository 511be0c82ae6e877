"""The placement program as an integer program: Pyomo states it, a solver of rows solves it.

How HiGHS is called, and why so, is said in `planner.solvers.highs_run`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pyomo.core import (
    Binary,
    ConcreteModel,
    Constraint,
    NonNegativeIntegers,
    NonNegativeReals,
    Var,
    minimize,
)
from pyomo.core.expr.numeric_expr import LinearExpression

from planner.programs.layout import FloatArray
from planner.programs.placement import (
    Counts,
    PlacementProgram,
    largest_share,
    most_copies,
    violations,
)
from planner.solvers.answers import Clock
from planner.solvers.highs_run import TOLERANCE, tolerances
from planner.solvers.mixed import highs as mixed_highs
from planner.solvers.mixed import scip as mixed_scip
from planner.solvers.placement.answers import judged
from planner.solvers.proving import Word
from planner.solvers.pyomo_reading import linear, stated
from planner.solvers.solution import Effort

Terms = list[tuple[float, int]]

TOLERANCES = (1e-7, TOLERANCE)
"""Counts are whole, so a coarse tolerance lets nothing pass but in demands and limits; where it
does the fine one is taken, with which a search is five times as long."""

SEARCH = {"mip_pscost_minreliable": 1, "mip_heuristic_effort": 0.01}
"""Few trials before a branch, and few dives: bounds of copies hardly differ, so that trying them
costs more than it tells. 4096 devices take half the time (8 s of CPU instead of 17)."""


SCIP_SEARCH = {
    "branching/relpscost/minreliable": 1,
    "branching/relpscost/maxreliable": 1,
    "separating/maxroundsroot": -1,
    "separating/maxstallroundsroot": 100,
}
"""Few trials for the same reason, and cuts at the root for as long as any moves the bound: 4096
devices are proved in 35 s of CPU, which otherwise keep a gap of 0.005 % after 100 s."""


def build(program: PlacementProgram) -> ConcreteModel:
    """State the placement program as an integer program, with the names of its module.

    Demands are in shares of themselves, so that the tolerance is one of a share.
    """
    m = ConcreteModel("placement")
    most = most_copies(program).tolist()
    m.n = Var(
        range(program.n_columns),
        domain=NonNegativeIntegers,
        bounds=lambda _m, j: (0, most[j]),
    )
    n = list(m.n.values())
    if program.is_for_share:
        m.s = Var(domain=NonNegativeReals, bounds=(0.0, largest_share(program)))
    _add_totals(m, program, most)

    @m.Objective(sense=minimize)
    def least(_m: ConcreteModel) -> object:
        return -m.s if program.is_for_share else _dot(program.objective, n)

    used: dict[int, Terms] = defaultdict(list)
    uses = program.uses
    entries = zip(uses.resource.tolist(), uses.column.tolist(), uses.amount.tolist(), strict=True)
    for r, j, amount in entries:
        used[r].append((float(amount), j))

    @m.Constraint(range(program.n_resources))
    def free(_m: ConcreteModel, r: int) -> object:
        if not _can_bind(used[r], int(program.free[r]), most):
            return Constraint.Skip
        return linear([a for a, _ in used[r]], [n[j] for _, j in used[r]]) <= int(program.free[r])

    _add_models(m, program, most)
    for limit in program.limits:
        if math.isfinite(limit.at_most):
            left = _dot(limit.column, n)
            if left.linear_vars:  # without any, `is_hopeless` has looked at it
                m.add_component(limit.name, Constraint(expr=left <= limit.at_most))
    _add_cuts(m, program)
    _add_sorts(m, program, most)
    return m


def _add_sorts(m: ConcreteModel, program: PlacementProgram, most: list[int]) -> None:
    """Which sorts of replicas are used, and how many of them may be."""
    columns = program.limited_sorts
    if not columns:
        return
    m.y = Var(range(len(columns)), domain=Binary)

    @m.Constraint(range(len(columns)))
    def used(_m: ConcreteModel, k: int) -> object:
        mine = columns[k].tolist()
        reach = sum(most[j] for j in mine)
        return linear([*[1.0] * len(mine), -float(reach)], [*(m.n[j] for j in mine), m.y[k]]) <= 0

    total = linear([1.0] * len(columns), list(m.y.values()))
    m.sorts = Constraint(expr=total <= program.most_sorts)


def _add_cuts(m: ConcreteModel, program: PlacementProgram) -> None:
    n = list(m.n.values())
    for cut in program.cuts:
        members = np.flatnonzero(cut.column).tolist()
        parts, variables = cut.column[members].tolist(), [n[j] for j in members]
        if not program.needed(cut):
            row = linear([*parts, -1.0], [*variables, m.s]) >= -cut.added
            m.add_component(cut.name, Constraint(expr=row))
        elif members and cut.added < 1:  # without any, `is_hopeless` has looked at it
            m.add_component(cut.name, Constraint(expr=linear(parts, variables) >= 1 - cut.added))


def _add_totals(m: ConcreteModel, program: PlacementProgram, most: list[int]) -> None:
    """Copies of columns that count alike, added up: rows that say nothing new.

    Places are many and alike, so that a branch on one of them moves no bound; one on how many
    there are together does. 4096 devices take half the time, 2048 a quarter.
    """
    alike: dict[tuple[float, ...], list[int]] = defaultdict(list)
    columns = (
        program.column_model,
        program.objective,
        program.rate,
        *(cut.column for cut in program.cuts),
    )
    for j, key in enumerate(zip(*(values.tolist() for values in columns), strict=True)):
        if any(key[1:]):
            alike[key].append(j)
    groups = [members for members in alike.values() if len(members) > 1]
    m.t = Var(
        range(len(groups)),
        domain=NonNegativeIntegers,
        bounds=lambda _m, g: (0, sum(most[j] for j in groups[g])),
    )

    @m.Constraint(range(len(groups)))
    def total(_m: ConcreteModel, g: int) -> object:
        ones = [1.0] * len(groups[g])
        return linear([*ones, -1.0], [*(m.n[j] for j in groups[g]), m.t[g]]) == 0


def _can_bind(terms: Terms, free: int, most: list[int]) -> bool:
    return sum(max(amount, 0.0) * most[j] for amount, j in terms) > free


def _dot(coefficients: FloatArray, variables: list[Any]) -> LinearExpression:
    kept = [(c, v) for c, v in zip(coefficients.tolist(), variables, strict=True) if c]
    return linear([c for c, _ in kept], [v for _, v in kept])


def _add_models(m: ConcreteModel, program: PlacementProgram, most: list[int]) -> None:
    """Rows of each model: its demand, and its replicas."""
    n = list(m.n.values())
    members = [
        np.flatnonzero(program.column_model == k).tolist() for k in range(len(program.models))
    ]

    @m.Constraint(range(len(program.models)))
    def demand(_m: ConcreteModel, k: int) -> object:
        asked = float(program.demand[k])
        if asked <= 0:
            return Constraint.Skip
        serving = [j for j in members[k] if program.rate[j]]
        shares = [float(program.rate[j]) / asked for j in serving]
        variables = [n[j] for j in serving]
        if program.is_for_share:
            return linear([*shares, -1.0], [*variables, m.s]) >= 0
        return linear(shares, variables) >= 1

    @m.Constraint(range(len(program.models)))
    def replicas(_m: ConcreteModel, k: int) -> object:
        low, high = int(program.least[k]), int(program.most[k])
        if not members[k] or (low <= 0 and sum(most[j] for j in members[k]) <= high):
            return Constraint.Skip
        return (low, linear([1.0] * len(members[k]), [n[j] for j in members[k]]), high)


def write_lp(program: PlacementProgram, path: Path) -> None:
    """Write the model as an LP file, with the names of `build`."""
    from pyomo.repn.plugins.lp_writer import LPWriter

    with path.open("w", encoding="utf-8") as stream:
        LPWriter().write(build(program), stream, symbolic_solver_labels=True)


def solve(program: PlacementProgram, effort: Effort) -> Word[Counts]:
    """What HiGHS says of the program."""
    clock = Clock()
    rows = stated(lambda: build(program))
    for tolerance in TOLERANCES:
        left = effort
        if effort.time_limit_s is not None:
            left_s = max(0.0, effort.time_limit_s - clock.elapsed_s())
            left = replace(effort, time_limit_s=left_s)
        options = {**SEARCH, **tolerances(tolerance)}
        word = mixed_highs.solve(rows, left, options=options)
        counts = _counts(program, word.answer)
        if counts is None or not violations(program, counts):
            break
    return judged(program, word, counts, wall_s=clock.elapsed_s())


def solve_by_scip(program: PlacementProgram, effort: Effort) -> Word[Counts]:
    """What SCIP says of the same rows."""
    clock = Clock()
    word = mixed_scip.solve(stated(lambda: build(program)), effort, options=SCIP_SEARCH)
    counts = _counts(program, word.answer)
    return judged(program, word, counts, wall_s=clock.elapsed_s())


def _counts(program: PlacementProgram, values: FloatArray | None) -> Counts | None:
    """Copies of each column: the first of the values."""
    if values is None:
        return None
    return Counts(copies=tuple(int(n) for n in np.rint(values[: program.n_columns])))
