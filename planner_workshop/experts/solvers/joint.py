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

For given copies the best shares that a router may choose are a linear program:

    minimise T   such that  Σ_g x_eg = load_e,   Σ_e x_eg ≤ T,   x ≥ 0 where there is a copy

It starts from placements with equal shares, which it can only improve, and exchanges copies of
full and of empty ranks for as long as that helps.
"""

import math
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.programs.mixed import MixedBuilder, MixedProgram
from planner.solvers.mixed import Formulation
from planner.solvers.mixed.highs import linear
from planner.solvers.solution import Effort
from planner_workshop.experts.program import (
    ExpertProgram,
    Placement,
    equal_placement,
    objective,
    violations,
)
from planner_workshop.experts.solvers.slots import Limits

CPSAT_EFFORT = 1.0  # CP-SAT's own measure of work: seconds, up to ten of them here
_Held: TypeAlias = dict[tuple[int, int], list[int]]
_Posed: TypeAlias = tuple[_Held, dict[int, dict[int, float]]]
"""Columns that are copies of each expert on each rank, and what each rank serves."""


def n_unknowns(program: ExpertProgram) -> int:
    """Whole numbers of the program: what it takes to state it."""
    n_counts = _most_copies(program) if program.split == "equal" else 1
    return program.n_experts * program.n_ranks * n_counts


def joint_rows(program: ExpertProgram) -> MixedProgram:
    """The program as rows, in mean loads, for solvers of rows.

    Args:
        program: with either way to split.
    """
    hints = {"cp_model_presolve": True, "max_deterministic_time": CPSAT_EFFORT}
    posed = MixedBuilder(hints={"cpsat": {**hints, "objective_bits": 34}})
    load = (program.load / program.mean_load).tolist()
    peak = posed.column("T", sum(load), cost=1.0)
    held, loads = (_equal_rows if program.split == "equal" else _weighted_rows)(
        posed, program, load
    )
    experts, ranks = range(program.n_experts), range(program.n_ranks)
    for g in ranks:
        copies = {j: 1.0 for e in experts for j in held[e, g]}
        posed.row(f"slots({g})", copies, -math.inf, program.n_slots)
        posed.row(f"load({g})", {**loads[g], peak: -1.0}, -math.inf, 0.0)
    if program.present is not None and program.move_price:
        for (e, g), mine in held.items():
            there = int(program.present[e, g])
            move = posed.column(f"m({e},{g})", program.n_slots, cost=program.move_price)
            terms = dict.fromkeys(mine, 1.0) | {move: -1.0}
            posed.row(f"moves({e},{g})", terms, -math.inf, there)
    if program.group is not None:
        _add_groups(posed, program.group, program, held)
    return posed.program("experts")


def split(program: ExpertProgram, copies: IntArray) -> Placement:
    """Copies [E, G] with shares as the program splits: the best, where there is a choice."""
    return equal_placement(copies) if program.split == "equal" else best_shares(program, copies)


def formulation(program: ExpertProgram, start: IntArray | None = None) -> Formulation[IntArray]:
    """The program as rows, of copies [E, G]; values in mean loads.

    Args:
        start: copies that CP-SAT begins at, which has the least time.
    """
    rows = joint_rows(program)
    if start is not None and program.split == "equal":
        hints = {**rows.hints["cpsat"], "start": _begun(rows.columns, start)}
        rows = replace(rows, hints={"cpsat": hints})

    def broken(copies: IntArray) -> dict[str, float]:
        return dict.fromkeys(violations(program, split(program, copies)), 1.0)

    return Formulation(
        rows=lambda: rows,
        answer=partial(_copies, program, rows.columns),
        violations=broken,
        value=lambda copies: objective(program, split(program, copies)) / program.mean_load,
    )


def _begun(columns: tuple[str, ...], copies: IntArray) -> FloatArray:
    """Copies [E, G] as values of the columns that they are of; of others nothing is said."""
    counts, values = copies.sum(axis=1), np.full(len(columns), np.nan)
    for j, column in enumerate(columns):
        if column.startswith("y("):
            n, e, g = (int(number) for number in column[2:-1].split(","))
            values[j] = copies[e, g] if counts[e] == n else 0
    return values


def _copies(program: ExpertProgram, columns: tuple[str, ...], values: FloatArray) -> IntArray:
    copies = np.zeros((program.n_experts, program.n_ranks), dtype=np.int64)
    for column, value in zip(columns, values.tolist(), strict=True):
        if column.startswith("y("):
            *_, e, g = column[2:-1].split(",")
            copies[int(e), int(g)] += round(value)
    return copies


def _equal_rows(posed: MixedBuilder, program: ExpertProgram, load: list[float]) -> _Posed:
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
    return held, loads


def _weighted_rows(posed: MixedBuilder, program: ExpertProgram, load: list[float]) -> _Posed:
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
    return held, loads


def _most_copies(program: ExpertProgram) -> int:
    """Copies that an expert can have while every other has one."""
    return program.n_all_slots - program.n_experts + 1


def _add_groups(posed: MixedBuilder, group: IntArray, program: ExpertProgram, held: _Held) -> None:
    """The node of each group, on whose ranks alone its experts are."""
    groups, nodes = range(int(group.max()) + 1), range(program.n_nodes)
    u = {(i, m): posed.column(f"u{(i, m)}", 1.0, is_whole=True) for i in groups for m in nodes}
    for i in groups:
        posed.row(f"group({i})", {u[i, m]: 1.0 for m in nodes}, 1.0, 1.0)
    node = program.node_of_rank.tolist()
    for (e, g), mine in held.items():
        terms = dict.fromkeys(mine, 1.0) | {u[int(group[e]), node[g]]: -float(program.n_slots)}
        posed.row(f"groups({e},{g})", terms, -math.inf, 0.0)


MOST_EXCHANGES = 150


def best_shares(program: ExpertProgram, copies: IntArray) -> Placement:
    """The shares of given copies [E, G] with the least load of the fullest rank.

    Raises:
        SolverError: HiGHS failed.
    """
    scale = program.mean_load or 1.0
    expert, rank = np.nonzero(copies)
    x = _solve(expert, rank, (program.load / scale, program.n_ranks))
    served = np.zeros(copies.shape)
    served[expert, rank] = np.maximum(x, 0.0)
    equal = (copies > 0) / np.maximum((copies > 0).sum(axis=1, keepdims=True), 1)
    total = served.sum(axis=1, keepdims=True)
    shares = np.where(total > 0.0, served / np.where(total > 0.0, total, 1.0), equal)
    return Placement(copies=copies, shares=shares)


def _solve(expert: IntArray, rank: IntArray, posed: tuple[FloatArray, int]) -> FloatArray:
    """What each copy serves, in mean loads [copies]."""
    (load, n_ranks), n = posed, len(expert)
    here, ranks = np.arange(n), len(load) + np.arange(n_ranks)
    shares = MixedProgram(
        name="shares",
        row=np.concatenate([expert, len(load) + rank, ranks]),
        column=np.concatenate([here, here, np.full(n_ranks, n)]),
        value=np.concatenate([np.ones(2 * n), -np.ones(n_ranks)]),
        low=np.append(load, np.full(n_ranks, -math.inf)),
        high=np.append(load, np.zeros(n_ranks)),
        cost=np.append(np.zeros(n), 1.0),
        lower=np.zeros(n + 1),
        upper=np.append(load[expert], load.sum()),
        is_whole=np.zeros(n + 1, np.bool_),
        hints={"highs": {"solver": "simplex"}},
    )
    vertex = linear(shares, Effort())
    if not vertex.is_optimal:
        raise SolverError(f"highs ended with: {vertex.status}")
    return vertex.values[:n]


def improve(
    program: ExpertProgram,
    starts: tuple[IntArray, ...],
    *,
    goal: float,
    limits: Limits,
) -> Placement:
    """The best placement found from starts [E, G]; no worse than the best shares of each.

    Args:
        program: with weighted shares.
        starts: copies to begin with.
        goal: load of the fullest rank that is good enough.
    """
    rng = np.random.default_rng(limits.seed)
    tried = [best_shares(program, copies) for copies in starts]
    peaks = [float((program.load @ one.shares).max()) for one in tried]
    best, least = tried[int(np.argmin(peaks))], min(peaks)
    for _ in range(MOST_EXCHANGES):
        if least <= goal or limits.are_over:
            break
        copies = _exchanged(program, best, rng)
        if copies is None:
            continue
        placement = best_shares(program, copies)
        peak = float((program.load @ placement.shares).max())
        if peak <= least:
            best, least = placement, peak
    return best


def _exchanged(program: ExpertProgram, at: Placement, rng: np.random.Generator) -> IntArray | None:
    """Copies of a full rank and of an emptier one, exchanged; within the groups' nodes."""
    loads = program.load @ at.shares
    full = rng.choice(np.flatnonzero(loads >= loads.max() * (1 - 1e-6)))
    other = rng.integers(program.n_ranks)
    node = program.node_of_rank
    if full == other or (program.group is not None and node[full] != node[other]):
        return None
    gives, takes = np.flatnonzero(at.copies[:, full]), np.flatnonzero(at.copies[:, other])
    if not len(gives) or not len(takes):
        return None
    copies = at.copies.copy()
    for e, leaves, enters in ((rng.choice(gives), full, other), (rng.choice(takes), other, full)):
        copies[e, leaves] -= 1
        copies[e, enters] += 1
    return copies
