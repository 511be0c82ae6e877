"""The placement program as it stands in `programs.experts`, whole, for small instances.

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

Two solvers state it: HiGHS in floats, CP-SAT (equal shares) in integers, its coefficients
rounded down so that its bound holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import highspy  # type: ignore[import-untyped]
import numpy as np
from ortools.sat.python import cp_model

from planner.equations.arrays import IntArray
from planner.errors import SolverError
from planner.programs.experts import ExpertProgram
from planner.solvers.cpsat_run import run_cpsat
from planner.solvers.scheduler import use_threads

CPSAT_EFFORT = 1.0  # CP-SAT's own measure of work: seconds, up to ten of them here
_SCALE = 2.0**34
_GAP = 1e-9
_FEASIBLE_POINT = 2  # kSolutionStatusFeasible
_Held: TypeAlias = dict[tuple[int, int], Any]


def n_unknowns(program: ExpertProgram) -> int:
    """Whole numbers of the program: what it takes to state it."""
    n_counts = _most_copies(program) if program.split == "equal" else 1
    return program.n_experts * program.n_ranks * n_counts


def solve_highs(
    program: ExpertProgram, *, time_limit_s: float = math.inf
) -> tuple[IntArray | None, float]:
    """Copies [E, G] of the best placement found, or None, and a bound in units of load.

    Args:
        program: with either way to split.
        time_limit_s: wall time.

    Raises:
        SolverError: HiGHS failed.
    """
    use_threads(1)
    highs = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "presolve": "off", "mip_rel_gap": _GAP}
    for name, value in (options | {"time_limit": time_limit_s}).items():
        highs.setOptionValue(name, value)
    unit = program.mean_load
    peak = highs.addVariable(obj=1.0)
    held = (
        _add_equal(highs, program, peak)
        if program.split == "equal"
        else _add_weighted(highs, program, peak)
    )
    for g in range(program.n_ranks):
        highs.addConstr(sum(held[e, g] for e in range(program.n_experts)) <= program.n_slots)
    price = program.move_price
    if program.present is not None and price:
        for (e, g), total in held.items():
            move = highs.addVariable(lb=0, obj=price)
            highs.addConstr(total - move <= int(program.present[e, g]))
    for pairs, rows in _group_rows(program):
        u = {key: highs.addBinary() for key in pairs}
        for members in rows:
            highs.addConstr(sum(u[key] for key in members) == 1)
        for (e, g), total in held.items():
            highs.addConstr(total - program.n_slots * u[_pair(program, e, g)] <= 0)
    highs.run()
    ends = highspy.HighsModelStatus
    if highs.getModelStatus() not in (ends.kOptimal, ends.kTimeLimit):
        raise SolverError(f"highs ended with: {highs.getModelStatus()}")
    bound = max(0.0, float(highs.getInfo().mip_dual_bound)) * unit * (1.0 - _GAP)
    if highs.getInfo().primal_solution_status != _FEASIBLE_POINT:
        return None, bound
    copies = np.zeros((program.n_experts, program.n_ranks), dtype=np.int64)
    for (e, g), total in held.items():
        copies[e, g] = round(float(highs.val(total)))
    return copies, bound


def _add_equal(highs: highspy.Highs, program: ExpertProgram, peak: Any) -> _Held:  # noqa: ANN401
    """Counts and copies of equal shares, the fullest rank in mean loads; copies by rank."""
    load = (program.load / program.mean_load).tolist()
    ranks, counts = range(program.n_ranks), range(1, _most_copies(program) + 1)
    y: dict[tuple[int, int, int], Any] = {}
    for e in range(program.n_experts):
        z = {n: highs.addBinary() for n in counts}
        highs.addConstr(sum(z.values()) == 1)
        for n in counts:
            for g in ranks:
                y[e, n, g] = highs.addIntegral(lb=0, ub=min(n, program.n_slots))
            highs.addConstr(sum(y[e, n, g] for g in ranks) - n * z[n] == 0)
    for g in ranks:
        terms = [load[e] / n * v for (e, n, rank), v in y.items() if rank == g]
        highs.addConstr(sum(terms) - peak <= 0)
    return _held(program, y)


def _add_weighted(highs: highspy.Highs, program: ExpertProgram, peak: Any) -> _Held:  # noqa: ANN401
    """Copies and what they serve, in mean loads; a second copy on a rank would serve no more."""
    load = (program.load / program.mean_load).tolist()
    experts, ranks = range(program.n_experts), range(program.n_ranks)
    held = {(e, g): highs.addBinary() for e in experts for g in ranks}
    x = {key: highs.addVariable(lb=0) for key in held}
    for e in experts:
        highs.addConstr(sum(x[e, g] for g in ranks) == load[e])
        highs.addConstr(sum(held[e, g] for g in ranks) >= 1)
        for g in ranks:
            highs.addConstr(x[e, g] - load[e] * held[e, g] <= 0)
    for g in ranks:
        highs.addConstr(sum(x[e, g] for e in experts) - peak <= 0)
    return held


def solve_cpsat(
    program: ExpertProgram,
    *,
    hint: IntArray | None = None,
    seed: int = 0,
    time_limit_s: float = math.inf,
) -> tuple[IntArray | None, float]:
    """Copies [E, G] of equal shares, or None where none were found, and a bound.

    Args:
        program: with equal shares.
        hint: copies [E, G] to begin with.
        seed: of CP-SAT.
        time_limit_s: wall time, beside CP-SAT's own measure of work.

    Raises:
        SolverError: CP-SAT does not take the model.
    """
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
    held = _held(program, y)
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
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = CPSAT_EFFORT
    if time_limit_s < math.inf:
        solver.parameters.max_time_in_seconds = max(0.0, time_limit_s)
    status = run_cpsat(solver, model)
    if status == cp_model.MODEL_INVALID:
        raise SolverError(f"cpsat does not take the model: {model.validate()}")
    bound = max(0.0, solver.best_objective_bound / scale) * (1.0 - 1e-12)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, bound
    return _copies(program, {key: solver.value(v) for key, v in y.items()}), bound


def _most_copies(program: ExpertProgram) -> int:
    """Copies that an expert can have while every other has one."""
    return program.n_all_slots - program.n_experts + 1


def _held(program: ExpertProgram, y: dict[tuple[int, int, int], Any]) -> _Held:
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
