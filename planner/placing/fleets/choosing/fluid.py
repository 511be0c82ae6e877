"""What no fleet of the offered deployments is cheaper than, however classes share their replicas.

A replica has only so much time. With y_i the share of it that goes into passes of kind i, which
decode n_i sequences of c_i cached tokens and read p_i tokens of prompts that attend to s_i in T_i,

    Σ_i y_i ≤ 1,   Σ_i y_i (n_i, p_i, n_i c_i, p_i s_i) / T_i ≥ Σ_u x_u (r_u, l_u, r_u c_u, l_u s_u)

where x_u requests a second of class u have on average r_u rounds, l_u tokens of prompts, and the
sums of what these attend to. Any prices q ≥ 0 of the four give a row of flows x and replicas n,

    Σ_u x_u q·w_u ≤ n max_i q·v_i / T_i

T is linear in each of n, c, p and s between the points of its tables, as are the v_i: so the
largest ratio is at these points and at the ends of what there may be, convex or not. Rows are added
where the solution breaks one, the dearest prices first [Kelley1960]; whichever there are, the least
rent is a bound. Nothing waits in it, and no percentile counts. Without whole replicas it is
recounted from multipliers; with them HiGHS and SCIP say it, where two proofs are wanted.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.estimates.fluid_rates import done_per_s
from planner.placing.fleets.candidate_sets import CandidateSet
from planner.placing.fleets.offering import sort_key, source_of
from planner.placing.fleets.request_classes import WHOLE, RequestClass
from planner.programs.mixed import MixedBuilder, MixedProgram
from planner.running.deadlines import is_over
from planner.solvers.mixed import solve_mixed
from planner.solvers.mixed.multipliers import multipliers_of
from planner.solvers.solution import Effort, Status, effort_of
from planner.specs.records.roles import DECODE, PREFILL, Station
from planner.specs.validation.hints import from_fields

MOST_WHOLE = 400
"""Sorts of replicas up to which their numbers are whole; of more, the bound is without."""

RELAXED = ("highs", "multipliers")
"""Who says what programs without whole replicas come to."""

MOST_ROUNDS = 12
BROKEN = 1.0 + 1e-4
"""Times what a replica can do, from where on a row is added."""

_N_EXTREME = 48
_PARTS, _WORK = (0.1, 0.3, 0.5, 0.7, 0.9), (0.0, 0.3, 0.7)
_NONE = 1e-9


@dataclass(slots=True, kw_only=True, eq=False)
class _Group:
    """Replicas that are alike, whatever they serve.

    Args:
        done: what kinds of pass do of the four in a second, on all ranks (P, 4).
        rows: prices, and how much of what they price a replica does (4,), 1.
    """

    usd_per_hour: float
    n_devices: int
    kind: str
    role: str
    stations: dict[int, Station] = field(default_factory=dict)
    units: set[int] = field(default_factory=set)
    done: FloatArray = field(default_factory=lambda: np.zeros((0, 4)))
    rows: list[FloatArray] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Unit:
    """One unit: its requests a second, and what each takes of the four."""

    rate_per_s: float
    each: FloatArray
    shortest: float
    longest: float


def fluid_bound(market: CandidateSet, rent: float) -> float:
    """The least rent, if no percentile counted [USD/h]; 0 where there is no time to say it.

    Args:
        rent: of a fleet, which the bound is not above.
    """
    streams = market.streams
    wanted = {it.units[0]: _unit_demand(it) for it in streams if it.parts == (WHOLE,)}
    sorts = [one for one in _sorts(market).values() if one.usd_per_hour <= rent * BROKEN]
    for group in sorts:
        if is_over():
            return 0.0
        some = [wanted[unit] for unit in group.units]
        low, high = min(it.shortest for it in some), max(it.longest for it in some)
        group.done = np.concatenate([done_per_s(it, low, high) for it in group.stations.values()])
        group.rows = _first_rows(group, some)
    relaxed = best = _bounded(market, sorts, wanted, RELAXED)
    if len(sorts) <= MOST_WHOLE:
        best = _bounded(market, sorts, wanted, ("highs",), relaxed)
    if best > relaxed and market.request.options.proof == "two":
        other = None if is_over() else _solved(market, sorts, wanted, ("scip",))
        best = relaxed if other is None else max(relaxed, min(best, other[0]))
    return min(best, rent)


def _bounded(
    market: CandidateSet,
    sorts: Sequence[_Group],
    wanted: Mapping[int, _Unit],
    by: Sequence[str],
    best: float = 0.0,
) -> float:
    """The largest bound of programs with more and more rows; of whole replicas until it stays."""
    for _ in range(MOST_ROUNDS):
        solved = None if is_over() else _solved(market, sorts, wanted, by)
        if solved is None:
            break
        bound, replicas, flows = solved
        is_still = by != RELAXED and bound <= best * BROKEN
        best = max(best, bound)
        if is_still or not _tightened(sorts, wanted, replicas, flows):
            break
    return best


def _sorts(market: CandidateSet) -> dict[Hashable, _Group]:
    groups: dict[Hashable, _Group] = {}
    for config in market.offered.configurations:
        source, stream = source_of(config), market.streams[config.model]
        key = sort_key(config, stream)
        if key not in groups:
            groups[key] = from_fields(_Group, config, kind=config.pattern.kind_name)
        mine = groups[key]
        mine.stations |= {id(it): it for it in source.ways.stations}  # rows are each source's own
        mine.units |= {*stream.units}
    return groups


def _unit_demand(stream: RequestClass) -> _Unit:
    load = stream.load
    cached = load.n_input + load.n_output / 2.0
    each = [
        load.mean_rounds,
        load.mean_input,
        load.mean(load.n_rounds * cached),
        load.mean(load.n_input**2) / 2.0,
    ]
    return _Unit(
        rate_per_s=stream.rate_per_s,
        each=np.array(each),
        shortest=float(load.n_input.min()),
        longest=float((load.n_input + load.n_output).max()),
    )


def _first_rows(group: _Group, wanted: Sequence[_Unit]) -> list[FloatArray]:
    """Prices of what is done one by one, and of all in several mixtures."""
    total = np.sum([it.rate_per_s * _work_of(group, it) for it in wanted], axis=0)
    parts = [[a, 1.0 - a, a * w, (1.0 - a) * w] for a in _PARTS for w in _WORK]
    prices = np.array([*np.eye(4), *parts]) / np.where(total > 0.0, total, np.inf)
    return _rows_at(group, prices)


def _rows_at(group: _Group, prices: FloatArray) -> list[FloatArray]:
    """Prices (Q, 4) at which a replica does no more than one in a second."""
    most = (group.done @ prices.T).max(axis=0)
    return [row / value for row, value in zip(prices, most.tolist(), strict=True) if value > 0.0]


Solved = tuple[float, FloatArray, Mapping[tuple[int, int], float]]
"""A bound, replicas of each sort, and flows by sort and unit."""


def _solved(
    market: CandidateSet, sorts: Sequence[_Group], wanted: Mapping[int, _Unit], by: Sequence[str]
) -> Solved | None:
    """The least rent within the rows so far, inf of none; None where nobody knows."""
    is_whole = by != RELAXED
    program, n_of, x_of = _program(market, sorts, wanted, is_whole=is_whole)
    effort = effort_of(market.request.options)
    solution = solve_mixed(program, effort, solvers=by, wanted="two" if len(by) > 1 else "one")
    if solution.answer is None:
        none = np.zeros(len(n_of)), dict[tuple[int, int], float]()
        return (np.inf, *none) if solution.status is Status.INFEASIBLE else None
    values = solution.answer
    flows = {key: float(values[j]) for key, j in x_of.items() if values[j] > _NONE}
    return solution.bound, values[n_of], flows


def _program(
    market: CandidateSet, sorts: Sequence[_Group], wanted: Mapping[int, _Unit], *, is_whole: bool
) -> tuple[MixedProgram, list[int], dict[tuple[int, int], int]]:
    build, n_free = MixedBuilder(), market.book.n_free
    n_of = []
    for k, one in enumerate(sorts):
        most = float(n_free.get(one.kind, 0) // one.n_devices)
        n_of.append(build.column(f"n{k}", most, cost=one.usd_per_hour, is_whole=is_whole))
    pairs = [(k, unit) for k, one in enumerate(sorts) for unit in one.units]
    x_of = {(k, unit): build.column(f"x{k}_{unit}", 1.0) for k, unit in pairs}
    for k, kin in enumerate(sorts):
        work = [(x_of[k, u], wanted[u].rate_per_s, _work_of(kin, wanted[u])) for u in kin.units]
        for i, prices in enumerate(kin.rows):
            terms = {j: rate * float(prices @ each) for j, rate, each in work}
            build.row(f"time{k}_{i}", {**terms, n_of[k]: -1.0}, -np.inf, 0.0)
    for does, other in ((PREFILL, DECODE), (DECODE, PREFILL)):
        able = [key for key in pairs if sorts[key[0]].role != other]
        for unit in wanted:
            mine = {x_of[key]: 1.0 for key in able if key[1] == unit}
            build.row(f"{does}{unit}", mine, 1.0, np.inf)
    devices: dict[str, dict[int, float]] = {}
    for one, j in zip(sorts, n_of, strict=True):
        devices.setdefault(one.kind, {})[j] = float(one.n_devices)
    on_devices(build, devices, n_free)
    return build.program("fluid"), n_of, x_of


def on_devices(
    build: MixedBuilder, devices: Mapping[str, Mapping[int, float]], n_free: Mapping[str, int]
) -> None:
    """Rows of the devices of each kind, by kind those of a replica of each column."""
    for kind, most in n_free.items():
        build.row(f"devices {kind}", devices.get(kind, {}), -np.inf, float(most))


def _work_of(group: _Group, wanted: _Unit) -> FloatArray:
    """Of the four what a replica of such a role has to do of a request."""
    does = {PREFILL: (0.0, 1.0, 0.0, 1.0), DECODE: (1.0, 0.0, 1.0, 0.0)}
    return np.asarray(wanted.each * np.array(does.get(group.role, (1.0, 1.0, 1.0, 1.0))))


def _tightened(
    sorts: Sequence[_Group],
    wanted: Mapping[int, _Unit],
    replicas: FloatArray,
    flows: Mapping[tuple[int, int], float],
) -> bool:
    """Add the rows that a solution breaks; whether there are any."""
    new = []
    for k, kin in enumerate(sorts):
        work = [
            share * wanted[u].rate_per_s * _work_of(kin, wanted[u])
            for (sort, u), share in flows.items()
            if sort == k
        ]
        if not work:
            continue
        prices = _dearest(kin, np.sum(work, axis=0))
        if prices is not None and prices @ np.sum(work, axis=0) > replicas[k] * BROKEN + _NONE:
            new.append(prices)
    for one in sorts if new else ():  # what is dear on one may be on others
        one.rows += _rows_at(one, np.array(new))
    return bool(new)


def _dearest(group: _Group, work: FloatArray) -> FloatArray | None:
    """Prices at which what is asked comes to most, and no pass does more than one in a second.

    They are the multipliers of the least time that it takes, of few kinds of pass at first.
    """
    scale = np.where(work > 0.0, work, 1.0)
    done = group.done / scale
    values = done @ (np.array([*group.rows[:_N_EXTREME], *group.rows[-1:]]) * scale).T
    some = {*np.argpartition(values, -4, axis=0)[-4:].ravel().tolist()}
    for _ in range(MOST_ROUNDS):
        listed = sorted(some)
        build = MixedBuilder()
        columns = [build.column(f"y{i}", 1e6, cost=1.0) for i in listed]
        for w in range(4):
            terms = {c: float(done[i, w]) for c, i in zip(columns, listed, strict=True)}
            build.row(f"w{w}", terms, 1.0 if work[w] > 0.0 else 0.0, np.inf)
        try:
            prices, _ = multipliers_of(build.program("time"), Effort())
        except SolverError:
            return None
        if prices is None:
            return None
        prices = np.where(work > 0.0, np.maximum(prices, 0.0), 0.0)
        values = done @ prices
        if values.max() <= BROKEN:
            return np.asarray(prices / scale / max(float(values.max()), _NONE))
        some |= {*np.argpartition(values, -_N_EXTREME)[-_N_EXTREME:].tolist()}
    return None
