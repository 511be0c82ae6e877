"""The bar for layers on machines: one mixed program, machine by machine, as anybody would pose it.

z(m, s, k) is 1 if machine m holds layers s … s + k − 1; flows run through each machine at each
boundary and over each link that is usable there. It knows nothing of groups, regions or bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.programs.mixed import MixedProgram
from planner_workshop.staging.machines.program import MachineSpan, Placement, Pool


@dataclass
class Rows:
    """Columns and rows as they come."""

    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def column(self, upper, *, whole=False):
        self.upper.append(float(upper))
        self.whole.append(whole)
        return len(self.upper) - 1

    def row(self, terms, low, high):
        self.rows.append((terms, low, high))


def plain_flow(pool: Pool) -> tuple[MixedProgram, list[MachineSpan]]:
    """The program, and what each of its first columns holds."""
    posed, n_layers, n = Rows(), pool.n_layers, len(pool.names)
    held = [
        MachineSpan(machine=m, first=s, n_layers=k)
        for m in range(n)
        for k in range(1, min(n_layers, len(pool.rates[int(pool.type_of[m])])) + 1)
        for s in range(n_layers - k + 1)
    ]
    z = {one: posed.column(1.0, whole=True) for one in held}
    scale = max(float(rates.max()) for rates in pool.rates)
    spans = [[one for one in held if one.machine == m] for m in range(n)]
    most = [max(pool.rate(m, one.n_layers) for one in spans[m]) / scale for m in range(n)]
    came: list[dict[int, dict[int, float]]] = [{} for _ in range(n)]  # by boundary
    went: list[dict[int, dict[int, float]]] = [{} for _ in range(n)]
    for m in range(n):
        posed.row({z[one]: 1.0 for one in spans[m]}, 0.0, 1.0)
        _end(posed, came[m], 0, pool.from_coordinator[m] / scale, most[m],
             [z[one] for one in spans[m] if one.first == 0])  # fmt: skip
        _end(posed, went[m], n_layers, pool.to_coordinator[m] / scale, most[m],
             [z[one] for one in spans[m] if one.first + one.n_layers == n_layers])  # fmt: skip
    for m in range(n):
        for o in range(n):
            link = min(pool.links[m, o] / scale, most[m], most[o])
            for b in range(1, n_layers) if m != o and link > 0 else ():
                ends = [z[one] for one in spans[m] if one.first + one.n_layers == b]
                takes = [z[one] for one in spans[o] if _takes(pool, one, b)]
                flow = posed.column(link)
                posed.row({flow: 1.0, **dict.fromkeys(ends, -link)}, -np.inf, 0.0)
                posed.row({flow: 1.0, **dict.fromkeys(takes, -link)}, -np.inf, 0.0)
                went[m].setdefault(b, {})[flow] = 1.0
                came[o].setdefault(b, {})[flow] = 1.0
    for m in range(n):
        into = {f: 1.0 for flows in came[m].values() for f in flows}
        out = {f: -1.0 for flows in went[m].values() for f in flows}
        posed.row({**into, **out}, 0.0, 0.0)
        served = {z[one]: -pool.rate(m, one.n_layers) / scale for one in spans[m]}
        posed.row({**into, **served}, -np.inf, 0.0)
    gain = [f for m in range(n) for f in came[m].get(0, {})]
    return _mixed(posed, gain), held


def _end(posed, flows, boundary, rate, most, usable):
    flow = posed.column(min(rate, most))
    posed.row({flow: 1.0, **dict.fromkeys(usable, -min(rate, most))}, -np.inf, 0.0)
    flows.setdefault(boundary, {})[flow] = 1.0


def _takes(pool, one, boundary):
    if pool.enters_within:
        return one.first <= boundary < one.first + one.n_layers
    return one.first == boundary


def _mixed(posed, gain):
    n = len(posed.upper)
    cost = np.zeros(n)
    cost[gain] = -1.0
    entries = [(r, c, v) for r, row in enumerate(posed.rows) for c, v in row[0].items()]
    return MixedProgram(
        name="plain",
        cost=cost,
        row=np.array([one[0] for one in entries]),
        column=np.array([one[1] for one in entries]),
        value=np.array([one[2] for one in entries]),
        low=np.array([row[1] for row in posed.rows]),
        high=np.array([row[2] for row in posed.rows]),
        lower=np.zeros(n),
        upper=np.array(posed.upper),
        is_whole=np.array(posed.whole),
        columns=tuple(f"c{j}" for j in range(n)),
        rows=tuple(f"r{r}" for r in range(len(posed.rows))),
    )


def placement_of(values: np.ndarray, held: list[MachineSpan]) -> Placement:
    """What the columns say that machines hold."""
    return tuple(one for one, value in zip(held, values, strict=False) if value > 0.5)
