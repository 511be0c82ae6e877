"""Layouts and placements as rows: the one statement of each that every solver of rows reads."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import product

from planner.programs.layout import RELATIVE_TOLERANCE, LayoutProgram
from planner.programs.mixed import Hints, MixedBuilder, MixedProgram
from planner.programs.placement import PlacementProgram
from planner.programs.relaxation import relaxation


def layout_rows(program: LayoutProgram) -> MixedProgram:
    """The layout program over z of its contexts, then x of its columns.

    minimise   Σ_k objective_k z_k + Σ_j objective_j x_j
    such that  Σ_k z_k = 1                                            one_context
               Σ_{j in (k, s)} x_j = z_k                       ∀ k,s  one_layout
               Σ_{j in k} bytes_j x_j - (capacity_k - bytes_k) z_k ≤ 0  ∀ k  hbm
               Σ_k context_k z_k + Σ_j column_j x_j ≤ at_most  ∀ limit  the limit's name
               x, z ∈ {0, 1}

    An infinite capacity or limit is no row.
    """
    rows, n_contexts = MixedBuilder(rounding=RELATIVE_TOLERANCE), program.n_contexts
    for letter, costs in (("z", program.context_objective), ("x", program.column_objective)):
        for i, cost in enumerate(costs.tolist()):
            rows.column(f"{letter}[{i}]", 1.0, cost=cost, is_whole=True)
    rows.row("one_context", dict.fromkeys(range(n_contexts), 1.0), 1.0, 1.0)
    of_place: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    held: dict[int, dict[int, float]] = defaultdict(dict)
    columns = (program.column_context, program.column_slot, program.column_bytes)
    each = zip(*(values.tolist() for values in columns), strict=True)
    for j, (k, s, n_bytes) in enumerate(each, start=n_contexts):
        of_place[k, s][j], held[k][j] = 1.0, n_bytes
    for k, s in product(range(n_contexts), range(program.n_slots)):
        rows.row(f"one_layout[{k},{s}]", {**of_place[k, s], k: -1.0}, 0.0, 0.0)
    for k, free in enumerate((program.capacity_bytes - program.context_bytes).tolist()):
        if math.isfinite(free):
            rows.row(f"hbm[{k}]", {**held[k], k: -free}, -math.inf, 0.0)
    for limit in program.limits:
        terms = dict(enumerate([*limit.context.tolist(), *limit.column.tolist()]))
        if math.isfinite(limit.at_most) and (any(terms.values()) or limit.at_most < 0):
            rows.row(limit.name, terms, -math.inf, limit.at_most)
    return rows.program("layout")


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
