"""A placement program as rows: its linear relaxation, and what whole copies have besides.

All rows as sums that are at most something; s stands in a demand's row of a share only:

    Σ_j amount_rj n_j ≤ free_r                    ∀ r                 free
    s - Σ_{j of m} rate_j / demand_m n_j ≤ 0      (without s: ≤ -1)   demand
    Σ_{j of m} n_j ≤ most_m,   -Σ n_j ≤ -least_m                      replicas
    Σ_j column_j n_j ≤ at_most                                        limits
    s - Σ_j column_j n_j ≤ added   (without s: ≤ added - 1)           cuts

What prices of the rows prove, whoever found them, is said in `programs.mixed.priced`. A column
whose reduced cost is more than what is between that bound and a choice in hand is in no better
choice, and may be left out.
"""

import math
from collections import defaultdict

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.layout import RELATIVE_TOLERANCE, ceiling
from planner.programs.mixed import Hints, MixedBuilder, MixedProgram
from planner.programs.placement import (
    UNLIMITED,
    PlacementProgram,
    largest_share,
    most_copies,
    sizes,
)

MOST_COUNTS = 6
"""Ways of counting that are tried."""
MOST_COUNTED = 1e6
"""Of the least column, that another is worth."""


def relaxation(program: PlacementProgram) -> MixedProgram:
    """The rows of a program that can bind, over copies n and, last, the share s.

    Only copies are said to be whole; for what a linear program is solved that does not matter.
    """
    most = most_copies(program).astype(float)
    uses, n = program.uses, program.n_columns
    used = np.zeros(program.n_resources)
    np.add.at(used, uses.resource, np.maximum(uses.amount, 0) * most[uses.column])
    binds = np.flatnonzero(used > program.free)
    number = np.full(program.n_resources, -1, np.int32)
    number[binds] = np.arange(len(binds))
    stands = number[uses.resource] >= 0
    rows, names = [number[uses.resource[stands]]], [f"free[{r}]" for r in binds.tolist()]
    columns, values = [uses.column[stands]], [uses.amount[stands].astype(float)]
    right = [float(free) for free in program.free[binds]]
    for name, members, coefficients, most_of_row, share in _other_rows(program):
        names.append(name)
        rows.append(np.full(len(members) + (share > 0), len(right)))
        columns.append(np.append(members, n) if share else members)
        values.append(np.append(coefficients, share) if share else coefficients)
        right.append(most_of_row)
    return MixedProgram(
        name="relaxation",
        row=np.concatenate(rows, dtype=np.int32),
        column=np.concatenate(columns, dtype=np.int32),
        value=np.concatenate(values),
        low=np.full(len(right), -math.inf),
        high=np.array(right),
        cost=_objective(program),
        lower=np.zeros(n + 1),
        upper=np.append(most, largest_share(program)),
        is_whole=np.arange(n + 1) < n,
        rows=tuple(names),
    )


def _objective(program: PlacementProgram) -> FloatArray:
    if program.is_for_share:
        return np.append(np.zeros(program.n_columns), -1.0)
    return np.append(program.objective, 0.0)


_Row = tuple[str, IntArray, FloatArray, float, float]
"""Name, columns, coefficients, right side, coefficient of s."""


def _other_rows(program: PlacementProgram) -> list[_Row]:
    """Rows of models, limits and cuts."""
    rows: list[_Row] = []
    for m in range(len(program.models)):
        mine = np.flatnonzero(program.column_model == m)
        demand, ones = float(program.demand[m]), np.ones(len(mine))
        if demand > 0:
            share = 1.0 if program.is_for_share else 0.0
            # an answer may be short of a demand by rounding, and what it counts must be here too
            served = 0.0 if program.is_for_share else 1.0 - RELATIVE_TOLERANCE
            rows.append((f"demand[{m}]", mine, -program.rate[mine] / demand, -served, share))
        if program.most[m] < UNLIMITED:
            rows.append((f"most[{m}]", mine, ones, float(program.most[m]), 0.0))
        if program.least[m] > 0:
            rows.append((f"least[{m}]", mine, -ones, -float(program.least[m]), 0.0))
    everything = np.arange(program.n_columns)
    for limit in program.limits:
        if math.isfinite(limit.at_most):
            rows.append((limit.name, everything, limit.column, ceiling(limit.at_most), 0.0))
    return rows + _cut_rows(program)


def _cut_rows(program: PlacementProgram) -> list[_Row]:
    rows: list[_Row] = []
    for cut in program.cuts:
        members, needed = np.flatnonzero(cut.column), program.needed(cut)
        lost = RELATIVE_TOLERANCE * (needed or abs(cut.added))
        share = 0.0 if needed else 1.0
        rows.append((cut.name, members, -cut.column[members], cut.added - needed + lost, share))
    return rows


def whole_counts(program: PlacementProgram) -> list[FloatArray]:
    """What may be counted of a packing in whole numbers: in how many least columns' worth each is.

    Of all columns that gain anything, then of fewer and fewer, those of the most gain for what they
    count; (J,) each, and divided by what they have in common. That a sum of them is whole says more
    than the objective, of which columns have a little more or less.
    """
    gains = np.where(program.objective < 0, -program.objective, 0.0)
    if program.is_for_share or not gains.any():
        return []
    least = float(gains[gains > 0].min())
    count = np.rint(np.minimum(gains / least, MOST_COUNTED))
    worth = np.where(gains > 0, gains / np.maximum(count, 1.0), 0.0)
    counts = []
    for threshold in np.unique(np.round(worth[gains > 0], 9))[:MOST_COUNTS]:
        among = np.where(worth >= threshold - 1e-9, count, 0.0)
        counts.append(among / float(np.gcd.reduce(among[among > 0].astype(np.int64))))
    return counts


def even_bound(program: PlacementProgram) -> float:
    """What one price of every resource proves: no unit of it is worth more than the best column's.

    Prices at which no column is better than nothing (Farley), so that the bound is what all that
    is free comes to. Where columns differ in little but their places, nothing beats it.
    """
    uses = program.uses
    if program.is_for_share or (uses.amount < 0).any():
        return -math.inf
    size = sizes(program)
    gains = program.objective < 0
    if (size[gains] == 0).any():
        return -math.inf
    price = float((-program.objective[gains] / size[gains]).max(initial=0.0))
    price *= 1.0 + 4 * float(np.finfo(np.float64).eps)  # outward, so that none is better
    return -price * float(np.maximum(program.free, 0).sum())


PLACEMENT_HINTS: Hints = {
    # Few trials before a branch, and few dives: bounds of copies hardly differ, so that trying
    # them costs more than it tells. 4096 devices take half the time (8 s of CPU instead of 17).
    # Counts are whole, so a coarse tolerance lets nothing pass but in demands and limits.
    "highs": {
        "mip_pscost_minreliable": 1,
        "mip_heuristic_effort": 0.01,
        **{f"{kind}_feasibility_tolerance": 1e-7 for kind in ("mip", "primal", "dual")},
    },
    # Few trials for the same reason, and cuts at the root for as long as any moves the bound: 4096
    # devices are proved in 35 s of CPU, which otherwise keep a gap of 0.005 % after 100 s.
    "scip": {
        "branching/relpscost/minreliable": 1,
        "branching/relpscost/maxreliable": 1,
        "separating/maxroundsroot": -1,
        "separating/maxstallroundsroot": 100,
    },
}


def placement_rows(program: PlacementProgram) -> MixedProgram:
    """The placement program over copies n, the share s, totals t and sorts y.

    Rows are those of the relaxation that can bind. Totals are of columns that count alike and say
    nothing new: places are many and alike, so that a branch on one of them moves no bound; one on
    how many there are together does. 4096 devices take half the time, 2048 a quarter.
    """
    relaxed, rows = relaxation(program), MixedBuilder(hints=PLACEMENT_HINTS)
    rows.take(relaxed, [*(f"n[{j}]" for j in range(program.n_columns)), "s"])
    for g, members in enumerate(_alike(program)):
        t = rows.column(f"t[{g}]", float(relaxed.upper[members].sum()), is_whole=True)
        rows.row(f"total[{g}]", {**dict.fromkeys(members, 1.0), t: -1.0}, 0.0, 0.0)
    sorts = []
    for k, columns in enumerate(program.limited_sorts):
        sorts.append(rows.column(f"y[{k}]", 1.0, is_whole=True))
        reach = float(relaxed.upper[columns].sum())
        used = {**dict.fromkeys(columns.tolist(), 1.0), sorts[k]: -reach}
        rows.row(f"used[{k}]", used, -math.inf, 0.0)
    if sorts:
        rows.row("sorts", dict.fromkeys(sorts, 1.0), -math.inf, float(program.most_sorts or 0))
    return rows.program("placement")


def _alike(program: PlacementProgram) -> list[list[int]]:
    """Columns that count alike, of each group of two and more that counts at all."""
    alike: dict[tuple[float, ...], list[int]] = defaultdict(list)
    cuts = (cut.column for cut in program.cuts)
    columns = (program.column_model, program.objective, program.rate, *cuts)
    for j, key in enumerate(zip(*(values.tolist() for values in columns), strict=True)):
        if any(key[1:]):
            alike[key].append(j)
    return [members for members in alike.values() if len(members) > 1]
