"""Wishes of a placement that yield: by how little they can, as a program of its own.

A limit yields by a share of itself, and what is served of a demand by as much as makes the demand
`1 + share` times what is left, as `programs.relaxing` counts it: a least that is halved costs 1.
Columns are added that have no place and cost what they yield:

    of a limit      columns that take -step at_most of it, for each of a few steps
    of a demand     columns that serve it, each a part of what a share lets go: the shares of a
                    part are a chord of 1 / (1 + share), so the cheapest parts are taken first
    of replicas     columns that count as one, in rows in place of that of `replicas`

What is least is so within `RESOLUTION`; what wishes come to is read off the replicas.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from planner.equations.arrays import FloatArray
from planner.placing.program import KTOKEN
from planner.placing.searching import Task, mastered
from planner.placing.sites import SiteOffers
from planner.programs import handover
from planner.programs.handover import DEMAND, Handover
from planner.programs.placement import (
    UNLIMITED,
    Counts,
    Cut,
    PlacementLimit,
    PlacementProgram,
    most_copies,
    total_served,
)
from planner.programs.relaxing import ROUNDING
from planner.quantities.table import QUANTITIES

FINEST, FINER, MOST_STEPS = 1e-4, 100.0, 99
"""Least share by which a limit yields; by how much steps grow, and how often each may be."""

RATIO, OF_A_PART = 1.1, 100
"""From one part of a demand to the next `1 + share` grows by so much; copies that make a part."""

RESOLUTION = 5e-3
"""Share that a price may be off: a chord lies 0.22 % of `1 + share` above what it cuts off."""

REPLICAS = "replicas"


def wishes_of(task: Task) -> dict[str, float]:
    """What each wish of a task asks for, SI."""
    wished = {f"{DEMAND} {it.model.name}": it.demand_tokens_per_s for it in task.wanted}
    wished |= {f"{REPLICAS} {it.model.name}": it.replicas for it in task.wanted}
    wished |= task.request.limits
    return {name: float(wished[name] or 0.0) for name in task.wishes}


def least_change(
    task: Task, offers: SiteOffers, yields: Collection[str], *, without: Collection[str] = ()
) -> dict[str, float] | None:
    """What wishes come to where they yield by the least, SI; None where that is not enough.

    Args:
        yields: wishes that may; others are kept.
        without: wishes that are left out.

    Raises:
        OutOfTimeError: time ended before it was proved.
        UnsettledError: the provers do not agree on it.
    """
    demands = [f"{DEMAND} {it.model.name}" for it in task.wanted]
    of_shares = [name for name in demands if name not in task.wishes]
    posed = offers.posed(task.aim(without=[*without, *of_shares]))
    is_any = task.wishes == [*task.request.limits]
    given = replace(posed.program, most_sorts=task.options.most_sorts)
    program, network = yielding(given, posed.network, yields, is_any=is_any)
    exact = replace(task.options, gap=0.0)
    solution, flows = mastered(program, network, exact, most_direct=program.n_columns)
    if not solution.status.is_final:
        raise solution.unsettled()
    if solution.answer is None:
        return None
    totals = _totals(posed.program, posed.network, solution.answer, np.array(flows))
    wished, needed = wishes_of(task), {}
    for name in yields:
        quantity, value = QUANTITIES[name.partition(" ")[0]], totals[name]
        if name in task.request.limits:
            value = quantity.in_si(value)
        elif name in demands:  # as `capacity_for` has it
            wish = task.wanted[demands.index(name)]
            value *= (wish.targets or task.request.targets).max_utilisation / KTOKEN
        if not quantity.is_kept(value, wished[name], tolerance=ROUNDING):
            needed[name] = value
    return needed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A column that is added: what it costs, how often it may be, and what it does."""

    price: float
    most: int
    limit: str = ""
    model: int = 0
    rate: float = 0.0
    replicas: float = 0.0


def yielding(
    program: PlacementProgram, network: Handover | None, yields: Collection[str], *, is_any: bool
) -> tuple[PlacementProgram, Handover | None]:
    """The program in which some wishes may yield and nothing else counts, and its hand-overs.

    Args:
        yields: names of limits, `demand x` and `replicas x` of models.
        is_any: whether nothing is asked for, where no replica at all is no answer.
    """
    demands = program.demand if network is None else np.maximum(program.demand, network.demand)
    steps, n_models = list(_steps(program, demands, yields)), len(program.models)
    model = np.array([*program.column_model, *(it.model for it in steps)], np.int64)
    room = np.full(program.n_columns, UNLIMITED)
    own = room if program.column_most is None else program.column_most
    if network is not None:
        roles = [handover.TOGETHER if it.rate else handover.NO_PART for it in steps]
        network = replace(network, role=np.array([*network.role, *roles], np.int64), aim=DEMAND)
    changed = replace(
        program,
        column_model=model,
        objective=np.array([*[0.0] * program.n_columns, *(it.price for it in steps)]),
        rate=np.array([*program.rate, *(it.rate for it in steps)]),
        least=np.zeros(n_models, np.int64),
        most=np.full(n_models, UNLIMITED),
        limits=tuple(_limits(program, steps)),
        cuts=tuple(_cuts(program, network, steps, is_any=is_any)),
        column_most=np.array([*own, *(it.most for it in steps)], np.int64),
        sort=None if program.sort is None else np.array([*program.sort, *[-1] * len(steps)]),
        ties=(),
        is_for_share=False,
    )
    return changed, network


def _steps(
    program: PlacementProgram, demands: FloatArray, yields: Collection[str]
) -> Iterator[_Step]:
    most = most_copies(replace(program, limits=()))
    for limit in program.limits:
        if limit.name in yields:
            in_all = float(np.maximum(limit.column, 0.0) @ most)
            n_steps = _n_times(in_all / limit.at_most / FINEST, FINER)
            for price in (FINEST * FINER ** np.arange(n_steps)).tolist():
                yield _Step(price=price, most=MOST_STEPS, limit=limit.name)
    for m, name in enumerate(program.models):
        if f"{DEMAND} {name}" in yields:
            demand = float(demands[m])
            slowest = program.rate[(program.column_model == m) & (program.rate > 0)].min()
            kept = RATIO ** -np.arange(_n_times(demand / slowest, RATIO) + 2.0)
            prices, parts = np.diff(1.0 / kept) / OF_A_PART, -np.diff(kept) / OF_A_PART
            for price, part in zip(prices.tolist(), parts.tolist(), strict=True):
                yield _Step(price=price, most=OF_A_PART, model=m, rate=part * demand)
        if f"{REPLICAS} {name}" in yields:
            least, room = int(program.least[m]), most[program.column_model == m].sum()
            left = [least, *range(min(least - 1, max(1, int(room))), 0, -1)]
            for more, fewer in pairwise(left):
                yield _Step(
                    price=least / fewer - least / more, most=1, model=m, replicas=more - fewer
                )


def _cuts(
    program: PlacementProgram, network: Handover | None, steps: Sequence[_Step], *, is_any: bool
) -> Iterator[Cut]:
    """As many replicas as are asked for; where nothing is, one of each phase.

    Args:
        network: with the roles of all columns.
        is_any: whether nothing is asked for.
    """
    model = np.array([*program.column_model, *(it.model for it in steps)], np.int64)
    counts = np.array([*(program.rate > 0), *(it.replicas for it in steps)], dtype=float)
    for m in np.flatnonzero(program.least > 0).tolist():
        yield Cut(name=f"least{m}", column=(model == m) * counts / float(program.least[m]))
    if not is_any:
        return
    phases = ((handover.PREFILL, handover.TOGETHER), (handover.DECODE, handover.TOGETHER))
    sides = [counts > 0] if network is None else [np.isin(network.role, it) for it in phases]
    for k, side in enumerate(sides):
        yield Cut(name=f"any{k}", column=side.astype(float))


def _n_times(ratio: float, factor: float) -> int:
    """How often a number has to grow by a factor until it is so many times as much."""
    return max(1, math.ceil(math.log(max(ratio, 1.0), factor)))


def _limits(program: PlacementProgram, steps: Sequence[_Step]) -> Iterator[PlacementLimit]:
    """Those that yield, and of replicas: exactly so many are asked for, and more are no change."""
    for limit in program.limits:
        yields = [-limit.at_most * it.price * (it.limit == limit.name) for it in steps]
        yield replace(limit, column=np.array([*limit.column, *yields]))
    for m in np.flatnonzero(program.most < UNLIMITED).tolist():
        mine = [*(program.column_model == m) * 1.0, *[0.0] * len(steps)]
        yield PlacementLimit(
            name=f"most{m}", column=np.array(mine), at_most=float(program.most[m]), unit=REPLICAS
        )


def _totals(
    program: PlacementProgram, network: Handover | None, counts: Counts, flows: FloatArray
) -> Mapping[str, float]:
    """What replicas come to by wish, in units of the program; copies that were added come last."""
    copies = Counts(copies=counts.copies[: program.n_columns])
    each, served = np.array(copies.copies, dtype=float), total_served(program, copies)
    if network is not None:
        served = handover.served_with_flows(program, network, each, flows)
    n_replicas = np.bincount(program.column_model, each, minlength=len(program.models))
    of_models = ((DEMAND, served.tolist()), (REPLICAS, n_replicas.tolist()))
    return {
        **{limit.name: float(limit.column @ each) for limit in program.limits},
        **{
            f"{what} {m}": x
            for what, it in of_models
            for m, x in zip(program.models, it, strict=True)
        },
    }
