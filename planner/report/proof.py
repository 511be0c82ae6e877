"""Why a plan is the best, and which constants it rests on."""

from __future__ import annotations

import re
from collections import Counter

from planner.report.lines import labelled, percent, wrapped
from planner.report.words import limit_label, plural
from planner.results import LEAST_MOVED, Certificate, Plan
from planner.units import show

_NO_GAP = 1e-9
_INDEX = re.compile(r"\[\d+\]")  # of one entry of many: `link[7].latency`


def certificate_lines(proof: Certificate, width: int) -> list[str]:
    """Status, bound, what was considered and rejected, what was verified."""
    objective, bound = (show(value, proof.dimension) for value in (proof.objective, proof.bound))
    solve_s, wall_s = show(proof.solve_s, "s"), show(proof.wall_s, "s")
    head = [
        ("status", _status_text(proof)),
        (
            "objective",
            f"{proof.objective_name} {objective}, bound {bound}, gap {percent(proof.gap)}",
        ),
        ("solver", f"{proof.solver}, {solve_s} of {wall_s}"),
        (
            "candidates",
            f"{proof.n_candidates:,} in {plural(proof.n_contexts, 'way')} to use the pool",
        ),
    ]
    tail = [("verified", "; ".join(proof.verified))]
    return [*labelled(head, width), *_screen_lines(proof, width), *labelled(tail, width)]


def _status_text(proof: Certificate) -> str:
    if proof.status == LEAST_MOVED:
        return "least moved: no plan within the loss asked for moves fewer bytes"
    if proof.status != "optimal":
        return f"{proof.status}: not proven to be the best"
    if proof.gap > _NO_GAP:
        return f"within {percent(proof.gap)} of the best, as the gap allows"
    return "optimal: no plan with the batches offered is better"


def _screen_lines(proof: Certificate, width: int) -> list[str]:
    """What each screen rejected and why, and what reached the solver."""
    rows = [
        (f"− {screen.n_candidates:,}", limit_label(screen.name), screen.reason)
        for screen in proof.screens
    ]
    rows.append((f"= {proof.n_solved:,}", "solver", "reached it"))
    number, name = (max(len(row[i]) for row in rows) for i in (0, 1))
    room = max(20, width - 2 - 2 - number - 2 - name - 2)
    lines = []
    for row in rows:
        first, *rest = wrapped(row[2], room)
        lines.append(f"  {row[0]:>{number}}  {row[1]:<{name}}  {first}")
        lines += [" " * (2 + number + 2 + name + 2) + line for line in rest]
    return lines


def constant_lines(plan: Plan, width: int) -> list[str]:
    """How many values the inputs hold, and which of them nobody published."""
    keys = Counter(_INDEX.sub("", v.key) for v in plan.provenance if v.is_assumed)
    assumed = ", ".join(f"{n} × {key}" if n > 1 else key for key, n in keys.items())
    rows = [
        ("in all", str(len(plan.provenance))),
        ("assumed", f"{plan.n_assumed}: {assumed}" if assumed else "none"),
    ]
    return labelled(rows, width)
