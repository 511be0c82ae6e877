"""The placement program as an integer program: Pyomo states it, HiGHS solves it.

How HiGHS is called, and why so, is said in `planner.solvers.highs`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import highspy  # type: ignore[import-untyped]
import numpy as np
from pyomo.contrib.solver.solvers.highs import Highs
from pyomo.core import (
    ConcreteModel,
    Constraint,
    NonNegativeIntegers,
    NonNegativeReals,
    Var,
    minimize,
)
from pyomo.core.expr.numeric_expr import LinearExpression

from planner.programs.layout import FloatArray
from planner.programs.placement import Counts, PlacementProgram, most_copies, violations
from planner.solvers.answers import Clock, run_interruptibly
from planner.solvers.highs import TOLERANCE, linear, listen, run, set_options, status_of
from planner.solvers.placement.answers import Ending, PlacementSolution, placed, trivial
from planner.solvers.solution import Effort, Status

Terms = list[tuple[float, int]]

TOLERANCES = (1e-7, TOLERANCE)
"""Counts are whole, so a coarse tolerance lets nothing pass but in demands and limits; where it
does the fine one is taken, with which a search is five times as long."""

SEARCH = {"mip_pscost_minreliable": 1, "mip_heuristic_effort": 0.01}
"""Few trials before a branch, and few dives: bounds of copies hardly differ, so that trying them
costs more than it tells. 4096 devices take half the time (8 s of CPU instead of 17)."""


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
        m.s = Var(domain=NonNegativeReals)
    _add_totals(m, program)

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
    return m


def _add_totals(m: ConcreteModel, program: PlacementProgram) -> None:
    """Copies of columns that count alike, added up: rows that say nothing new.

    Places are many and alike, so that a branch on one of them moves no bound; one on how many
    there are together does. 4096 devices take half the time, 2048 a quarter.
    """
    alike: dict[tuple[float, ...], list[int]] = defaultdict(list)
    columns = (program.column_model, program.objective, program.rate)
    for j, key in enumerate(zip(*(values.tolist() for values in columns), strict=True)):
        if any(key[1:]):
            alike[key].append(j)
    groups = [members for members in alike.values() if len(members) > 1]
    m.t = Var(range(len(groups)), domain=NonNegativeIntegers)

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


def solve(program: PlacementProgram, effort: Effort) -> PlacementSolution:
    """Solve with HiGHS; see `planner.solvers.placement.solve_placement`.

    Raises:
        SolverError: HiGHS failed, or its answer fails verification.
    """
    clock = Clock()
    name = ("highs", str(highspy.Highs().version()))
    at_once = trivial(program, name, clock)
    if at_once is not None:
        return at_once
    model = build(program)
    for tolerance in TOLERANCES:
        counts, ending = _search(program, model, (effort, name, clock), tolerance)
        if counts is None or not violations(program, counts):
            break
    return placed(program, counts, ending, clock)


def _search(
    program: PlacementProgram,
    model: ConcreteModel,
    how: tuple[Effort, tuple[str, str], Clock],
    tolerance: float,
) -> tuple[Counts | None, Ending]:
    """Run HiGHS once; what it has, and how it ended."""
    effort, name, clock = how
    transfer = Highs()
    transfer.set_instance(model)
    highs: highspy.Highs = transfer._solver_model
    set_options(highs, effort, spent_s=clock.elapsed_s(), tolerance=tolerance)
    for option, value in SEARCH.items():
        highs.setOptionValue(option, value)
    if highs.getNumCol() == 0:  # nothing binds and nothing counts: HiGHS calls that no model
        nothing = Counts(copies=(0,) * program.n_columns)
        return nothing, Ending(status=Status.OPTIMAL, bound=0.0, solver=name)
    stop, listener = listen(highs, effort, clock=clock)
    interrupted = run_interruptibly(lambda: run(highs), stop.set)
    listener.close()
    status, stopped_by = status_of(highs, interrupted=interrupted)
    counts = None
    if status in (Status.OPTIMAL, Status.FEASIBLE):
        position, values = transfer._pyomo_var_to_solver_var_map, highs.getSolution().col_value
        # a variable that stands in no row and not in the objective is not handed over
        where = [position.get(id(v)) for v in model.n.values()]
        counts = Counts(copies=tuple(0 if p is None else round(values[p]) for p in where))
    info = highs.getInfo()
    return counts, Ending(
        status=status,
        bound=float(info.mip_dual_bound),
        solver=name,
        n_nodes=max(0, int(info.mip_node_count)),
        stopped_by=stopped_by,
    )
