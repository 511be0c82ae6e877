"""The placement program as it stands in `tools.experts.program`, whole, for small instances.

Equal shares are a choice of the count: z_en is 1 if expert e has n copies, and y_eng of them are
on rank g. With weighted shares x_eg is what rank g serves of e.

    minimise   T + price Σ m_eg
    count      Σ_n z_en = 1                                       ∀ e
    placed     Σ_g y_eng = n z_en                                 ∀ e, n
    slots      Σ_en y_eng ≤ S                                     ∀ g
    load       Σ_en (load_e / n) y_eng ≤ T                        ∀ g      equal
    load       Σ_e x_eg ≤ T;  Σ_g x_eg = load_e;  x_eg ≤ load_e Σ_n y_eng    weighted
    moves      m_eg ≥ Σ_n y_eng - present_eg                      ∀ e, g
    groups     y_eng ≤ n u_(group of e, node of g),  Σ_node u = 1

It is stated twice: as rows, for HiGHS and SCIP, and (equal shares) for CP-SAT in integers, its
coefficients rounded down so that its bound holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from ortools.sat.python import cp_model

from planner.equations.arrays import IntArray
from planner.errors import SolverError
from planner.programs.mixed import MixedBuilder, MixedProgram
from planner.programs.proofs import refusal
from planner.solvers.cpsat import ask, prover, set_parameters
from planner.solvers.mixed import solver_of
from planner.solvers.solution import Clock, Effort, Word
from planner.tools.experts.program import ExpertProgram

CPSAT_EFFORT = 1.0  # CP-SAT's own measure of work: seconds, up to ten of them here
_SCALE = 2.0**34
_Held: TypeAlias = dict[tuple[int, int], list[int]]


def n_unknowns(program: ExpertProgram) -> int:
    """Whole numbers of the program: what it takes to state it."""
    n_counts = _most_copies(program) if program.split == "equal" else 1
    return program.n_experts * program.n_ranks * n_counts


def joint_rows(program: ExpertProgram) -> MixedProgram:
    """The program as rows, in mean loads, for solvers of rows.

    Args:
        program: with either way to split.
    """
    posed = MixedBuilder()
    load = (program.load / program.mean_load).tolist()
    peak = posed.column("T", sum(load), cost=1.0)
    held = (_equal_rows if program.split == "equal" else _weighted_rows)(posed, program, load, peak)
    experts, ranks = range(program.n_experts), range(program.n_ranks)
    for g in ranks:
        copies = {j: 1.0 for e in experts for j in held[e, g]}
        posed.row(f"slots({g})", copies, -math.inf, program.n_slots)
    if program.present is not None and program.move_price:
        for (e, g), mine in held.items():
            there = int(program.present[e, g])
            move = posed.column(f"m({e},{g})", program.n_slots, cost=program.move_price)
            terms = dict.fromkeys(mine, 1.0) | {move: -1.0}
            posed.row(f"moves({e},{g})", terms, -math.inf, there)
    for pairs, rows in _group_rows(program):
        u = {key: posed.column(f"u{key}", 1.0, is_whole=True) for key in pairs}
        for index, members in enumerate(rows):
            posed.row(f"group({index})", {u[key]: 1.0 for key in members}, 1.0, 1.0)
        for (e, g), mine in held.items():
            terms = dict.fromkeys(mine, 1.0) | {u[_pair(program, e, g)]: -float(program.n_slots)}
            posed.row(f"groups({e},{g})", terms, -math.inf, 0.0)
    return posed.program("experts")


def rows_word(name: str, program: ExpertProgram, effort: Effort) -> Word[IntArray]:
    """What a solver of rows, of `MIXED_SOLVERS`, says: copies [E, G], values in mean loads."""
    rows = joint_rows(program)
    word = solver_of(name)(rows, effort)
    copies = None
    if word.answer is not None:
        copies = np.zeros((program.n_experts, program.n_ranks), dtype=np.int64)
        for column, value in zip(rows.columns, word.answer.tolist(), strict=True):
            if column.startswith("y("):
                *_, e, g = column[2:-1].split(",")
                copies[int(e), int(g)] += round(value)
    return Word(answer=copies, proof=word.proof, n_nodes=word.n_nodes, stopped_by=word.stopped_by)


def _equal_rows(posed: MixedBuilder, program: ExpertProgram, load: list[float], peak: int) -> _Held:
    """Counts and copies of equal shares; the columns of each expert's copies on each rank."""
    ranks, counts = range(program.n_ranks), range(1, _most_copies(program) + 1)
    held: _Held = {}
    loads: dict[int, dict[int, float]] = {g: {} for g in ranks}
    for e in range(program.n_experts):
        z = {n: posed.column(f"z({e},{n})", 1.0, is_whole=True) for n in counts}
        posed.row(f"count({e})", dict.fromkeys(z.values(), 1.0), 1.0, 1.0)
        for n in counts:
            most = min(n, program.n_slots)
            y = {g: posed.column(f"y({n},{e},{g})", most, is_whole=True) for g in ranks}
            terms = dict.fromkeys(y.values(), 1.0) | {z[n]: -float(n)}
            posed.row(f"placed({e},{n})", terms, 0.0, 0.0)
            for g, j in y.items():
                held.setdefault((e, g), []).append(j)
                loads[g][j] = load[e] / n
    for g in ranks:
        posed.row(f"load({g})", {**loads[g], peak: -1.0}, -math.inf, 0.0)
    return held


def _weighted_rows(
    posed: MixedBuilder, program: ExpertProgram, load: list[float], peak: int
) -> _Held:
    """Copies and what they serve; a second copy on a rank would serve no more."""
    experts, ranks = range(program.n_experts), range(program.n_ranks)
    held: _Held = {}
    loads: dict[int, dict[int, float]] = {g: {} for g in ranks}
    for e in experts:
        y = {g: posed.column(f"y({e},{g})", 1.0, is_whole=True) for g in ranks}
        x = {g: posed.column(f"x({e},{g})", load[e]) for g in ranks}
        posed.row(f"share({e})", dict.fromkeys(x.values(), 1.0), load[e], load[e])
        posed.row(f"placed({e})", dict.fromkeys(y.values(), 1.0), 1.0, math.inf)
        for g in ranks:
            posed.row(f"serves({e},{g})", {x[g]: 1.0, y[g]: -load[e]}, -math.inf, 0.0)
            held[e, g] = [y[g]]
            loads[g][x[g]] = 1.0
    for g in ranks:
        posed.row(f"load({g})", {**loads[g], peak: -1.0}, -math.inf, 0.0)
    return held


def solve_cpsat(
    program: ExpertProgram,
    *,
    hint: IntArray | None = None,
    seed: int = 0,
    time_limit_s: float = math.inf,
) -> Word[IntArray]:
    """What CP-SAT says: copies [E, G] of equal shares, the bound in mean loads.

    Args:
        program: with equal shares.
        hint: copies [E, G] to begin with.
        seed: of CP-SAT.
        time_limit_s: wall time, beside CP-SAT's own measure of work.
    """
    clock = Clock()
    model = cp_model.CpModel()
    scale = _SCALE / max(float(program.load.sum()), 1e-300)
    peak = model.new_int_var(0, math.ceil(_SCALE), "T")
    y: dict[tuple[int, int, int], cp_model.IntVar] = {}
    for e in range(program.n_experts):
        counts = range(1, _most_copies(program) + 1)
        z = {n: model.new_bool_var(f"z{e},{n}") for n in counts}
        model.add_exactly_one(z.values())
        for n in counts:
            for g in range(program.n_ranks):
                y[e, n, g] = model.new_int_var(0, min(n, program.n_slots), f"y{e},{n},{g}")
            model.add(sum(y[e, n, g] for g in range(program.n_ranks)) == n * z[n])
    held = _totals(program, y)
    for g in range(program.n_ranks):
        model.add(sum(t for (_, rank), t in held.items() if rank == g) <= program.n_slots)
        terms = [
            (v, math.floor(float(program.load[e]) / n * scale))
            for (e, n, rank), v in y.items()
            if rank == g
        ]
        total = cp_model.LinearExpr.weighted_sum([v for v, _ in terms], [c for _, c in terms])
        model.add(total <= peak)
    moves = []
    if program.present is not None and program.move_price:
        for (e, g), total_held in held.items():
            move = model.new_int_var(0, program.n_slots, f"m{e},{g}")
            model.add(move >= total_held - int(program.present[e, g]))
            moves.append(move)
    for groups, rows in _group_rows(program):
        u = {key: model.new_bool_var(f"u{key}") for key in groups}
        for members in rows:
            model.add_exactly_one([u[key] for key in members])
        for (e, g), total_held in held.items():
            model.add(total_held <= program.n_slots * u[_pair(program, e, g)])
    price = math.floor(program.move_price * program.mean_load * scale)
    model.minimize(peak + price * sum(moves))
    if hint is not None:
        counts_hint = hint.sum(axis=1)
        for (e, n, g), v in y.items():
            model.add_hint(v, int(hint[e, g]) if counts_hint[e] == n else 0)
    solver = cp_model.CpSolver()
    limit_s = None if time_limit_s == math.inf else time_limit_s
    effort = Effort(seed=seed, time_limit_s=limit_s)
    set_parameters(solver, effort, spent_s=0.0)
    solver.parameters.cp_model_presolve = True
    solver.parameters.max_deterministic_time = CPSAT_EFFORT
    steps = scale * program.mean_load  # of one mean load
    try:
        word = ask(solver, model, effort, scale=steps, clock=clock)
    except SolverError as error:
        return Word(answer=None, proof=refusal(prover(), str(error), clock.elapsed_s()))
    copies = None
    if word.answer is not None:
        copies = _copies(program, {key: solver.value(v) for key, v in y.items()})
    return Word(answer=copies, proof=word.proof, n_nodes=word.n_nodes, stopped_by=word.stopped_by)


def _most_copies(program: ExpertProgram) -> int:
    """Copies that an expert can have while every other has one."""
    return program.n_all_slots - program.n_experts + 1


def _totals(
    program: ExpertProgram, y: dict[tuple[int, int, int], Any]
) -> dict[tuple[int, int], Any]:
    """Copies of each expert on each rank, whatever its count, as expressions."""
    counts = range(1, _most_copies(program) + 1)
    return {
        (e, g): sum(y[e, n, g] for n in counts)
        for e in range(program.n_experts)
        for g in range(program.n_ranks)
    }


def _group_rows(
    program: ExpertProgram,
) -> Iterator[tuple[list[tuple[int, int]], list[list[tuple[int, int]]]]]:
    """The pairs of a group and a node, and those of each group; nothing without groups."""
    if program.group is None:
        return
    groups, nodes = range(int(program.group.max()) + 1), range(program.n_nodes)
    yield [(i, m) for i in groups for m in nodes], [[(i, m) for m in nodes] for i in groups]


def _pair(program: ExpertProgram, e: int, g: int) -> tuple[int, int]:
    """Group of an expert and node of a rank."""
    assert program.group is not None
    return int(program.group[e]), int(program.node_of_rank[g])


def _copies(program: ExpertProgram, values: dict[tuple[int, int, int], int]) -> IntArray:
    copies = np.zeros((program.n_experts, program.n_ranks), dtype=np.int64)
    for (e, _, g), count in values.items():
        copies[e, g] += count
    return copies
