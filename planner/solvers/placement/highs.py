"""The placement program as an integer program, which a solver of rows solves.

How HiGHS is called, and why so, is said in `planner.solvers.highs_run`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np

from planner.programs.layout import FloatArray
from planner.programs.mixed import MixedProgram
from planner.programs.mixed_builder import MixedBuilder
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
from planner.solvers.solution import Effort

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


def build(program: PlacementProgram) -> MixedProgram:
    """State the placement program as an integer program, with the names of its module.

    Demands are in shares of themselves, so that the tolerance is one of a share.
    """
    rows, most = MixedBuilder(), most_copies(program).tolist()
    costs = np.zeros_like(program.objective) if program.is_for_share else program.objective
    for j, cost in enumerate(costs.tolist()):
        rows.column(f"n[{j}]", most[j], cost=cost, is_whole=True)
    share = rows.column("s", largest_share(program), cost=-1.0) if program.is_for_share else -1
    _add_totals(rows, program, most)
    _add_resources(rows, program, most)
    _add_demands(rows, program, share)
    _add_replicas(rows, program, most)
    _add_limits(rows, program, share)
    _add_sorts(rows, program, most)
    return rows.program("placement")


def _add_limits(rows: MixedBuilder, program: PlacementProgram, share: int) -> None:
    """Upper bounds on what all copies add up to, and lower ones."""
    for limit in program.limits:
        terms = _terms(limit.column)
        if math.isfinite(limit.at_most) and terms:  # without any, `is_hopeless` has looked at it
            rows.row(limit.name, terms, -math.inf, limit.at_most)
    for cut in program.cuts:
        terms = _terms(cut.column)
        if not program.needed(cut):
            rows.row(cut.name, {**terms, share: -1.0}, -cut.added, math.inf)
        elif terms and cut.added < 1:  # without any, `is_hopeless` has looked at it
            rows.row(cut.name, terms, 1 - cut.added, math.inf)


def _terms(values: FloatArray) -> dict[int, float]:
    """Of copies, without the zeros."""
    return {j: value for j, value in enumerate(values.tolist()) if value}


def _add_sorts(rows: MixedBuilder, program: PlacementProgram, most: list[int]) -> None:
    """Which sorts of replicas are used, and how many of them may be."""
    sorts = [rows.column(f"y[{k}]", 1.0, is_whole=True) for k in range(len(program.limited_sorts))]
    for y, members in zip(sorts, program.limited_sorts, strict=True):
        mine = members.tolist()
        terms = {**dict.fromkeys(mine, 1.0), y: -float(sum(most[j] for j in mine))}
        rows.row(f"used[{y - sorts[0]}]", terms, -math.inf, 0.0)
    if sorts and program.most_sorts is not None:
        rows.row("sorts", dict.fromkeys(sorts, 1.0), -math.inf, program.most_sorts)


def _add_totals(rows: MixedBuilder, program: PlacementProgram, most: list[int]) -> None:
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
    for g, members in enumerate(groups):
        total = rows.column(f"t[{g}]", sum(most[j] for j in members), is_whole=True)
        rows.row(f"total[{g}]", {**dict.fromkeys(members, 1.0), total: -1.0}, 0.0, 0.0)


def _add_resources(rows: MixedBuilder, program: PlacementProgram, most: list[int]) -> None:
    """What is free of each resource that copies may exceed."""
    used: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    uses = program.uses
    entries = zip(uses.resource.tolist(), uses.column.tolist(), uses.amount.tolist(), strict=True)
    for r, j, amount in entries:
        used[r][j] += float(amount)
    for r, free in enumerate(program.free.tolist()):
        if sum(max(amount, 0.0) * most[j] for j, amount in used[r].items()) > int(free):
            rows.row(f"free[{r}]", used[r], -math.inf, int(free))


def _add_demands(rows: MixedBuilder, program: PlacementProgram, share: int) -> None:
    """Shares of what is demanded of each model that its replicas serve.

    Args:
        share: the column of the share of all demands, where it is chosen.
    """
    for k, asked in enumerate(program.demand.tolist()):
        if asked <= 0:
            continue
        terms = _terms(np.where(program.column_model == k, program.rate / asked, 0.0))
        if program.is_for_share:
            rows.row(f"demand[{k}]", {**terms, share: -1.0}, 0.0, math.inf)
        else:
            rows.row(f"demand[{k}]", terms, 1.0, math.inf)


def _add_replicas(rows: MixedBuilder, program: PlacementProgram, most: list[int]) -> None:
    """Replicas of each model, where their number may be wrong."""
    for k in range(len(program.models)):
        low, high = int(program.least[k]), int(program.most[k])
        members = np.flatnonzero(program.column_model == k).tolist()
        if members and (low > 0 or sum(most[j] for j in members) > high):
            rows.row(f"replicas[{k}]", dict.fromkeys(members, 1.0), low, high)


def solve(program: PlacementProgram, effort: Effort) -> Word[Counts]:
    """What HiGHS says of the program."""
    clock = Clock()
    rows = build(program)
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
    word = mixed_scip.solve(build(program), effort, options=SCIP_SEARCH)
    counts = _counts(program, word.answer)
    return judged(program, word, counts, wall_s=clock.elapsed_s())


def _counts(program: PlacementProgram, values: FloatArray | None) -> Counts | None:
    """Copies of each column: the first of the values."""
    if values is None:
        return None
    return Counts(copies=tuple(int(n) for n in np.rint(values[: program.n_columns])))
