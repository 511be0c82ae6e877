"""Which machine of a class stands where in a row of stages, so that links carry the most.

A row says how many machines of each class a stage has. Inside a region it does not matter which;
at the ends of the row and where it passes from region to region the links of each machine count.
A small mixed-integer program for HiGHS: seats are binary, flows over links continuous.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.machines import Classes, Held, Placement, Pool
from planner.programs.mixed_builder import MixedBuilder
from planner.programs.patterns import Patterns
from planner.solvers.mixed import highs
from planner.solvers.solution import Effort

MOST_NODES = 2_000
_SEATED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """Machines where they carry the most.

    Args:
        placement: None if no seats carry anything.
        share: of the rate that is tried, that links carry.
    """

    placement: Placement | None
    share: float


def seated(
    pool: Pool,
    alike: Classes,
    some: Patterns,
    stages: tuple[int, ...],
    *,
    ends: tuple[bool, bool] = (True, True),
) -> Seats:
    """The best seats of a row, or of a part of one.

    Args:
        stages: patterns along the layers, by index.
        ends: whether the first stage is fed by the coordinator, and the last one feeds it.
    """
    regions = [int(some.region[p]) for p in stages]
    last = len(stages) - 1
    passes = [s for s in range(last) if regions[s] != regions[s + 1]]
    touching = sorted({0, last, *passes, *(s + 1 for s in passes)})
    posed = MixedBuilder()
    whole = posed.column("flow", 1.0, cost=-1.0)  # the flow, in shares of the rate that is tried
    seats: dict[tuple[int, int], int] = {}
    flows: dict[tuple[int, int], int] = {}
    for s in touching:
        fed = (ends[0] and s == 0, ends[1] and s == last)
        _seat(posed, pool, alike, some, (s, stages[s]), fed, seats, flows)
        passed = {f: 1.0 for (at, _), f in flows.items() if at == s}
        posed.row(f"stage({s})", {**passed, whole: -1.0}, 0.0, 0.0)
    for machine in {m for _, m in seats}:
        mine = {z: 1.0 for (_, m), z in seats.items() if m == machine}
        posed.row(f"once({machine})", mine, 0.0, 1.0)
    for s in passes:
        _pass(posed, pool, some.rate, s, flows)
    values = _solved(posed)
    if values is None or values[whole] <= 0:
        return Seats(placement=None, share=0.0)
    chosen = {(s, m) for (s, m), z in seats.items() if values[z] > _SEATED}
    placed = _placement(alike, some, stages, chosen, set(touching))
    return Seats(placement=placed, share=float(values[whole]))


def _seat(
    posed: MixedBuilder,
    pool: Pool,
    alike: Classes,
    some: Patterns,
    stage: tuple[int, int],
    fed: tuple[bool, bool],
    seats: dict[tuple[int, int], int],
    flows: dict[tuple[int, int], int],
) -> None:
    """Seats and flows of one stage: as many of each class as its pattern has."""
    s, pattern = stage
    n_layers = int(some.n_layers[pattern])
    for c, n in enumerate(some.counts[pattern].tolist()):
        if not n:
            continue
        mine = {}
        for machine in alike.members[c]:
            most = min(pool.rate(machine, n_layers), some.rate)
            if fed[0]:
                most = min(most, float(pool.from_coordinator[machine]))
            if fed[1]:
                most = min(most, float(pool.to_coordinator[machine]))
            seats[s, machine] = z = posed.column(f"z({s},{machine})", 1.0, is_whole=True)
            flows[s, machine] = f = posed.column(f"f({s},{machine})", 1.0)
            mine[z] = 1.0
            posed.row(f"serve({s},{machine})", {f: 1.0, z: -most / some.rate}, -np.inf, 0.0)
        posed.row(f"class({s},{c})", mine, float(n), float(n))


def _pass(
    posed: MixedBuilder, pool: Pool, rate: float, s: int, flows: dict[tuple[int, int], int]
) -> None:
    """What leaves each machine of a stage comes to those of the next, over links."""
    here = {m: f for (at, m), f in flows.items() if at == s}
    there = {m: f for (at, m), f in flows.items() if at == s + 1}
    out = {m: {f: -1.0} for m, f in here.items()}
    into = {m: {f: -1.0} for m, f in there.items()}
    for m in here:
        for other in there:
            link = float(pool.links[m, other])
            if link > 0:
                e = posed.column(f"x({s},{m},{other})", min(1.0, link / rate))
                out[m][e] = into[other][e] = 1.0
    for name, side in (("out", out), ("into", into)):
        for m, terms in side.items():
            posed.row(f"{name}({s},{m})", terms, 0.0, 0.0)


def _solved(posed: MixedBuilder) -> FloatArray | None:
    """Values of all variables at the most flow that HiGHS finds; it is replayed, not believed."""
    word = highs.solve(posed.program("seats"), Effort(), options={"mip_max_nodes": MOST_NODES})
    if word.stopped_by == "interrupt":
        raise KeyboardInterrupt
    return word.answer


def _placement(
    alike: Classes,
    some: Patterns,
    stages: tuple[int, ...],
    chosen: set[tuple[int, int]],
    touching: set[int],
) -> Placement:
    """Those with a seat where links count; all others in their order."""
    taken = {machine for _, machine in chosen}
    free = [[m for m in members if m not in taken] for members in alike.members]
    placed: list[Held] = []
    first = 0
    for s, p in enumerate(stages):
        n_layers = int(some.n_layers[p])
        machines = sorted(m for at, m in chosen if at == s) if s in touching else []
        if s not in touching:
            for c, n in enumerate(some.counts[p].tolist()):
                machines += free[c][:n]
                free[c] = free[c][n:]
        placed += [Held(machine=m, first=first, n_layers=n_layers) for m in machines]
        first += n_layers
    return tuple(placed)
