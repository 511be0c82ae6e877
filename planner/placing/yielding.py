"""A placement program whose wishes may yield: how much is what it minimises.

A limit yields by a share of itself, and what is served of a demand by as much as makes the demand
`1 + share` times what is left, as `programs.relaxing` counts it: a least that is halved costs 1.
Columns are added that have no place and cost what they yield:

    of a limit      columns that take -step at_most of it, for each of a few steps
    of a demand     columns that serve it, each a part of what a share lets go: the shares of a
                    part are a chord of 1 / (1 + share), so the cheapest parts are taken first
    of replicas     columns that count as one in place of the row of `replicas`

What is found is within `RESOLUTION` of the least; what it comes to is read off its replicas.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs import handover
from planner.programs.placement import (
    UNLIMITED,
    Counts,
    Cut,
    PlacementLimit,
    PlacementProgram,
    most_copies,
    total_served,
)

FINEST, FINER, MOST_STEPS = 1e-4, 100.0, 99
"""Least share by which a limit yields; by how much steps grow, and how often each may be."""

RATIO, OF_A_PART = 1.1, 100
"""From one part of a demand to the next `1 + share` grows by so much; copies that make a part."""

RESOLUTION = 5e-3
"""Share that a price may be off: a chord lies 0.22 % of `1 + share` above what it cuts off."""

DEMAND, REPLICAS, ANY = "demand", "replicas", "any"
"""What a model's wishes are called before its name; and that there is a replica at all."""


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
    program: PlacementProgram, network: handover.Handover | None, wishes: Collection[str]
) -> tuple[PlacementProgram, handover.Handover | None]:
    """The program in which some wishes may yield and nothing else counts, and its hand-overs.

    Args:
        wishes: names of limits, `demand x` and `replicas x` of models.
    """
    steps, n_models = list(_steps(program, network, wishes)), len(program.models)
    model = np.array([*program.column_model, *(one.model for one in steps)], np.int64)
    room = np.full(program.n_columns, UNLIMITED)
    own = room if program.column_most is None else program.column_most
    changed = replace(
        program,
        column_model=model,
        objective=np.array([*[0.0] * program.n_columns, *(one.price for one in steps)]),
        rate=np.array([*program.rate, *(one.rate for one in steps)]),
        least=np.zeros(n_models, np.int64),
        most=np.full(n_models, UNLIMITED),
        limits=(*_limits(program, steps), *_most_replicas(program, len(steps))),
        cuts=tuple(_least_replicas(program, network, steps, model)),
        column_most=np.array([*own, *(one.most for one in steps)], np.int64),
        sort=None,
        ties=(),
        is_for_share=False,
    )
    if network is None:
        return changed, None
    roles = [handover.TOGETHER if one.rate else handover.NO_PART for one in steps]
    return changed, replace(
        network,
        role=np.array([*network.role, *roles], np.int64),
        aim=handover.DEMAND,
    )


def _steps(
    program: PlacementProgram, network: handover.Handover | None, wishes: Collection[str]
) -> Iterator[_Step]:
    for limit in program.limits:
        if limit.name in wishes:
            most = float(np.maximum(limit.column, 0.0) @ most_copies(replace(program, limits=())))
            n_steps = _n_times(most / limit.at_most / FINEST, FINER)
            for price in (FINEST * FINER ** np.arange(n_steps)).tolist():
                yield _Step(price=price, most=MOST_STEPS, limit=limit.name)
    demands = _demands(program, network).tolist()
    for m, name in enumerate(program.models):
        if f"{DEMAND} {name}" in wishes:
            slowest = program.rate[(program.column_model == m) & (program.rate > 0)].min()
            kept = RATIO ** -np.arange(_n_times(demands[m] / slowest, RATIO) + 2.0)
            prices, serves = np.diff(1.0 / kept) / OF_A_PART, -np.diff(kept) / OF_A_PART
            for price, part in zip(prices.tolist(), serves.tolist(), strict=True):
                yield _Step(price=price, most=OF_A_PART, model=m, rate=part * demands[m])
        if f"{REPLICAS} {name}" in wishes:
            least = float(program.least[m])
            for price in np.diff(least / np.arange(least, 0.0, -1.0)).tolist():
                yield _Step(price=price, most=1, model=m, replicas=1.0)


def _n_times(ratio: float, factor: float) -> int:
    """How often a number has to grow by a factor until it is so many times as much."""
    return max(1, math.ceil(math.log(max(ratio, 1.0), factor)))


def _demands(program: PlacementProgram, network: handover.Handover | None) -> FloatArray:
    """What each model must serve, (M,), wherever it stands."""
    return program.demand if network is None else np.maximum(program.demand, network.demand)


def _limits(program: PlacementProgram, steps: Sequence[_Step]) -> Iterator[PlacementLimit]:
    for limit in program.limits:
        yields = [-limit.at_most * one.price * (one.limit == limit.name) for one in steps]
        yield replace(limit, column=np.array([*limit.column, *yields]))


def _most_replicas(program: PlacementProgram, added: int) -> Iterator[PlacementLimit]:
    """Exactly so many replicas are asked for, and more are no change."""
    for m in np.flatnonzero(program.most < UNLIMITED).tolist():
        mine = (program.column_model == m) * 1.0
        column = np.concatenate([mine, np.zeros(added)])
        yield PlacementLimit(
            name=f"most{m}", column=column, at_most=float(program.most[m]), unit="replicas"
        )


def _least_replicas(
    program: PlacementProgram,
    network: handover.Handover | None,
    steps: Sequence[_Step],
    model: IntArray,
) -> Iterator[Cut]:
    """The replicas that are asked for; where nothing is, one of whatever model."""
    counts = np.array([*(program.rate > 0), *(one.replicas for one in steps)], dtype=float)
    for m in np.flatnonzero(program.least > 0).tolist():
        yield Cut(name=f"least{m}", column=(model == m) * counts / float(program.least[m]))
    if not program.least.any() and not _demands(program, network).any():
        yield Cut(name=ANY, column=counts)


def comes_to(
    program: PlacementProgram,
    network: handover.Handover | None,
    counts: Counts,
    flows: FloatArray,
) -> Mapping[str, float]:
    """What the replicas of a choice come to, by wish, in the units of the program.

    Args:
        program: the one that does not yield, with its network.
        counts: of all columns of the one that does; those that were added come last.
        flows: what pairs of columns hand over.
    """
    copies = Counts(copies=counts.copies[: program.n_columns])
    each = np.array(copies.copies, dtype=float)
    served = total_served(program, copies)
    if network is not None:
        served = handover.served_with_flows(program, network, each, flows)
    n_replicas = np.bincount(program.column_model, each, minlength=len(program.models))
    return {
        **{limit.name: float(limit.column @ each) for limit in program.limits},
        **{f"{DEMAND} {name}": float(x) for name, x in zip(program.models, served, strict=True)},
        **{f"{REPLICAS} {m}": float(x) for m, x in zip(program.models, n_replicas, strict=True)},
    }
