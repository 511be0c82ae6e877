"""The placement program as an integer program, which a solver of rows solves.

How HiGHS is called, and why so, is said in `planner.solvers.highs_run`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.mixed import MixedBuilder, MixedProgram
from planner.programs.placement import Counts, PlacementProgram, violations
from planner.programs.relaxation import relaxation
from planner.solvers.highs_run import TOLERANCE, tolerances
from planner.solvers.mixed import highs as mixed_highs
from planner.solvers.mixed import scip as mixed_scip
from planner.solvers.placement import judged
from planner.solvers.solution import Clock, Effort, Word

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
    """State the placement program as an integer program: copies n, the share s, totals t, sorts y.

    Rows are those of the relaxation that can bind. Totals are of columns that count alike and say
    nothing new: places are many and alike, so that a branch on one of them moves no bound; one on
    how many there are together does. 4096 devices take half the time, 2048 a quarter.
    """
    relaxed, whole = relaxation(program), MixedBuilder()
    most, cost = relaxed.most.tolist(), relaxed.objective.tolist()
    for j, is_whole in enumerate([*[True] * program.n_columns, False]):
        whole.column(f"n[{j}]" if is_whole else "s", most[j], cost=cost[j], is_whole=is_whole)
    terms: list[dict[int, float]] = [{} for _ in range(relaxed.n_rows)]
    entries = (values.tolist() for values in (relaxed.row, relaxed.column, relaxed.value))
    for r, column, value in zip(*entries, strict=True):
        terms[r][column] = value
    for r, right in enumerate(relaxed.right.tolist()):
        whole.row(f"row[{r}]", terms[r], -math.inf, right)
    for g, members in enumerate(_alike(program)):
        t = whole.column(f"t[{g}]", float(relaxed.most[members].sum()), is_whole=True)
        whole.row(f"total[{g}]", {**dict.fromkeys(members, 1.0), t: -1.0}, 0.0, 0.0)
    sorts = []
    for k, columns in enumerate(program.limited_sorts):
        sorts.append(whole.column(f"y[{k}]", 1.0, is_whole=True))
        reach = float(relaxed.most[columns].sum())
        used = {**dict.fromkeys(columns.tolist(), 1.0), sorts[k]: -reach}
        whole.row(f"used[{k}]", used, -math.inf, 0.0)
    if sorts:
        whole.row("sorts", dict.fromkeys(sorts, 1.0), -math.inf, float(program.most_sorts or 0))
    return whole.program("placement")


def _alike(program: PlacementProgram) -> list[list[int]]:
    """Columns that count alike, of each group of two and more that counts at all."""
    alike: dict[tuple[float, ...], list[int]] = defaultdict(list)
    cuts = (cut.column for cut in program.cuts)
    columns = (program.column_model, program.objective, program.rate, *cuts)
    for j, key in enumerate(zip(*(values.tolist() for values in columns), strict=True)):
        if any(key[1:]):
            alike[key].append(j)
    return [members for members in alike.values() if len(members) > 1]


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
