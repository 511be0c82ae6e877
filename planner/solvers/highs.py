"""The layout program as a mixed-integer program, which a solver of rows solves.

The tolerances of such solvers are absolute, so they are set far below the 1e-3 that a program's
values may be, and what they still let pass is cut off and solved again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.layout import Assignment, LayoutProgram, violations
from planner.programs.mixed import MixedBuilder, MixedProgram
from planner.solvers.answers import judged
from planner.solvers.mixed import highs as mixed_highs
from planner.solvers.mixed import scip as mixed_scip
from planner.solvers.solution import Clock, Effort, Word

MOST_REPAIRS = 100
LET_PASS = 1e-8
"""Excess of a row that a solver's absolute tolerance may let pass; for a right side far below 1
that is coarser than the 1e-9 of `violations`."""


def build(program: LayoutProgram) -> MixedProgram:
    """State the layout program as an integer program.

    minimise   Σ_k objective_k z_k + Σ_j objective_j x_j
    such that  Σ_k z_k = 1                                            one_context
               Σ_{j in (k, s)} x_j = z_k                       ∀ k,s  one_layout
               Σ_{j in k} bytes_j x_j - (capacity_k - bytes_k) z_k ≤ 0  ∀ k  hbm
               Σ_k context_k z_k + Σ_j column_j x_j ≤ at_most  ∀ limit  the limit's name
               x, z ∈ {0, 1}

    An infinite capacity or limit is no row.
    """
    rows, n_contexts = MixedBuilder(), program.n_contexts
    for letter, costs in (("z", program.context_objective), ("x", program.column_objective)):
        for i, cost in enumerate(costs.tolist()):
            rows.column(f"{letter}[{i}]", 1.0, cost=cost, is_whole=True)
    rows.row("one_context", dict.fromkeys(range(n_contexts), 1.0), 1.0, 1.0)
    of_place: dict[tuple[int, int], dict[int, float]] = defaultdict(
        dict
    )  # columns of each context and slot
    pairs = zip(program.column_context.tolist(), program.column_slot.tolist(), strict=True)
    for j, place in enumerate(pairs, start=n_contexts):
        of_place[place][j] = 1.0
    for k, s in product(range(n_contexts), range(program.n_slots)):
        rows.row(f"one_layout[{k},{s}]", {**of_place[k, s], k: -1.0}, 0.0, 0.0)
    _add_memory(rows, program)
    for limit in program.limits:
        terms = dict(enumerate([*limit.context.tolist(), *limit.column.tolist()]))
        if math.isfinite(limit.at_most) and (any(terms.values()) or limit.at_most < 0):
            rows.row(limit.name, terms, -math.inf, limit.at_most)
    return rows.program("layout")


def _add_memory(rows: MixedBuilder, program: LayoutProgram) -> None:
    """What columns of each context hold, beside what the context does."""
    held: dict[int, dict[int, float]] = defaultdict(dict)
    pairs = zip(program.column_context.tolist(), program.column_bytes.tolist(), strict=True)
    for j, (k, each) in enumerate(pairs, start=program.n_contexts):
        held[k][j] = each
    for k, free in enumerate((program.capacity_bytes - program.context_bytes).tolist()):
        if math.isfinite(free):
            rows.row(f"hbm[{k}]", {**held[k], k: -free}, -math.inf, 0.0)


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
    rows = build(program)
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
