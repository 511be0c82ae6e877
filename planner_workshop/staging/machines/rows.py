"""Rows of stages of the highest rate: bisection, what carries each row, where machines stand."""

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.mixed import MixedBuilder
from planner.solvers.mixed import highs
from planner.solvers.solution import Effort
from planner_workshop.staging.machines.incumbents import Incumbent
from planner_workshop.staging.machines.patterns import Patterns, patterns
from planner_workshop.staging.machines.program import Classes, MachineSpan, Placement, Pool
from planner_workshop.staging.machines.stages import Clashes, stage_row

NOTHING = 1e-6
"""Share of the first bound below which a rate is none."""

SAME_RATE = 1e-6
"""Relative difference that rounding of flows may make."""

QUICK, COARSE = 0.1, 2e-3
"""Relative step of the bisection: at first, before the bound comes down; and where each rate
takes many programs."""

MOST_ROWS = 30
"""Rows that are tried at a rate where it depends on the machines what links carry."""


def best_row(
    known: Incumbent, alike: Classes, *, deadline_s: float, quick: bool = False, hopes: bool = False
) -> None:
    """Bisect the rate between what is reached and the bound; each row that is found is offered.

    That no row is found at a rate proves nothing, whoever says so: it ends this search only.

    Args:
        quick: stop within a tenth: the bound comes down before the rest is worth its while.
        hopes: links are those of the best machines, which are then to be found.

    Raises:
        SolverError: a solver failed.
    """
    low, high = known.rate, known.bound
    step = QUICK if quick else max(known.tries.gap / 2, hopes * COARSE)
    # the bound itself first: where it is reached, that is all
    trying, nothing = high, high * NOTHING
    while time.perf_counter() < deadline_s and trying > nothing:
        known.n_solves += 1
        if _tried(known, alike, trying, hopes=hopes) < trying * (1.0 - SAME_RATE):
            high = trying
        low = max(low, known.rate)
        if high - low <= step * high:
            break
        trying = (low + high) / 2


def _tried(known: Incumbent, alike: Classes, rate: float, *, hopes: bool) -> float:
    """Look for a row of stages that reaches a rate; what the best that was found serves.

    With hopes the best of a few rows, which may be below the rate.
    """
    pool, tries = known.pool, known.tries
    some = patterns(alike, rate)
    refused, best = Clashes(), 0.0
    for _ in range(MOST_ROWS if hopes else 1):
        row = stage_row(alike, some, n_visits=tries.n_visits, seed=tries.seed, refused=refused)
        if row is None:
            break
        placed = seated(pool, alike, some, row).placement if hopes else _placed(alike, some, row)
        best = max(best, known.offer(placed))
        if best >= rate * (1.0 - SAME_RATE) or known.is_late:
            break
        if not _refuse(pool, alike, some, row, refused):
            break
    return best


def _refuse(
    pool: Pool, alike: Classes, some: Patterns, stages: tuple[int, ...], refused: Clashes
) -> bool:
    """Find what of a row carries too little by itself, or what to do without; whether any."""

    def carries(part: tuple[int, ...], ends: tuple[bool, bool]) -> bool:
        return seated(pool, alike, some, part, ends=ends).share >= 1.0 - SAME_RATE

    pairs = {
        pair
        for pair in pairwise(stages)
        if some.region[pair[0]] != some.region[pair[1]] and not carries(pair, (False, False))
    }
    first = set() if carries(stages[:1], (True, False)) else {stages[0]}
    last = set() if carries(stages[-1:], (False, True)) else {stages[-1]}
    if not (pairs or first or last):  # all parts carry it, but not together
        crossed = [p for p in pairwise(stages) if some.region[p[0]] != some.region[p[1]]]
        if carries(stages, (False, True)):
            first = {stages[0]}
        elif carries(stages, (True, False)):
            last = {stages[-1]}
        else:
            n_machines = some.counts.sum(axis=1)
            pairs = set(sorted(crossed, key=lambda p: (n_machines[p[0]] * n_machines[p[1]], p))[:1])
    refused.pairs.update(pairs)
    refused.first.update(first)
    refused.last.update(last)
    return bool(pairs or first or last)


def _placed(alike: Classes, some: Patterns, stages: tuple[int, ...]) -> Placement:
    """Machines, class by class in their order, to the stages; layers from the first on."""
    free = [list(members) for members in alike.members]
    placed: list[MachineSpan] = []
    first = 0
    for p in stages:
        n_layers = int(some.n_layers[p])
        for c, n in enumerate(some.counts[p].tolist()):
            taken, free[c] = free[c][:n], free[c][n:]
            placed += [MachineSpan(machine=m, first=first, n_layers=n_layers) for m in taken]
        first += n_layers
    return tuple(placed)


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

    A row says how many machines of each class a stage has. Inside a region it does not matter
    which; at the ends of the row and where it passes from region to region the links of each
    machine count. A small mixed-integer program for HiGHS: seats are binary, flows over links
    continuous.

    Args:
        stages: patterns along the layers, by index.
        ends: whether the first stage is fed by the coordinator, and the last one feeds it.
    """
    regions = [int(some.region[p]) for p in stages]
    last = len(stages) - 1
    passes = [s for s in range(last) if regions[s] != regions[s + 1]]
    touching = sorted({0, last, *passes, *(s + 1 for s in passes)})
    posed = MixedBuilder(hints={"highs": {"mip_max_nodes": MOST_NODES}})
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
    word = highs.solve(posed.program("seats"), Effort())
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
    placed: list[MachineSpan] = []
    first = 0
    for s, p in enumerate(stages):
        n_layers = int(some.n_layers[p])
        machines = sorted(m for at, m in chosen if at == s) if s in touching else []
        if s not in touching:
            for c, n in enumerate(some.counts[p].tolist()):
                machines += free[c][:n]
                free[c] = free[c][n:]
        placed += [MachineSpan(machine=m, first=first, n_layers=n_layers) for m in machines]
        first += n_layers
    return tuple(placed)
