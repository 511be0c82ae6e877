"""Prefill and decode on replicas of their own: what is handed over, and rows that say so.

A replica of prefill hands the KV cache of each request over to one of decode. Of given copies
n the best hand-over is a linear program, f the rate of each permitted pair of columns:

    maximise   t
    such that  t demand_m ≤ Σ_{together j of m} rate_j n_j + Σ_{pairs of m} f_pd     ∀ m   served
               Σ_d f_pd ≤ rate_p n_p                                       ∀ prefill p
               Σ_p f_pd ≤ rate_d n_d                                       ∀ decode d
               Σ_{pairs over l} gbytes_pd f_pd ≤ capacity_l                ∀ link l

For throughput t is the sum of what is served of all models, and each demand is a bound below.

The placement program knows nothing of f. It has cuts instead: multipliers π of what is served, v of
the columns and γ of the links, all ≥ 0, of which v_p + v_d + Σ_l γ_l gbytes_pd ≥ π_m for every
pair, and Σ π_m demand_m = 1, prove for all copies whatever (weak duality)

    t ≤ Σ_m π_m Σ_{together j of m} rate_j n_j + Σ_j v_j rate_j n_j + Σ_l γ_l capacity_l.

For throughput π_m = 1 + μ_m, and Σ μ_m demand_m is taken off. Whoever finds multipliers is believed
nothing: they are raised until the condition holds of every pair (`lifted`), also of those of which
no copy was there. Every such row holds of all copies, and those of all vertices are the program
([Benders1962]).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.programs.layout import RELATIVE_TOLERANCE
from planner.programs.placement import Cut, PlacementProgram

NO_PART, TOGETHER, PREFILL, DECODE = range(4)
"""Roles of columns."""

DEMAND, SHARE, THROUGHPUT = "demand", "share", "throughput"
AIMS = (DEMAND, SHARE, THROUGHPUT)

MOST_FIRST = 16
"""Rows to begin with, of one model or of all: one for each side of each part of the pairs."""

OUTWARD = 1e-12
"""Share by which the rows are wider than the multipliers say: rounding of their sums is less."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Handover:
    """Which columns of a placement program hand over to which, over what: E pairs, L links.

    Args:
        role: of each column, (J,).
        prefill, decode: the columns of each permitted pair, of one model, (E,).
        gbytes: what a unit of rate of a pair puts on each link that it uses, (E,).
        use_pair, use_link: which pair uses which link, (U,); no two alike.
        links: name of each link, (L,).
        capacity: what it carries, in the unit of `gbytes` times that of rates, (L,).
        demand: that each model must serve, or a share of it, (M,); 0 is none.
        aim: `demand`; the largest `share` of them; or `throughput`, the most that all models
            serve together, each its demand at least.

    Raises:
        ValueError: arrays of different lengths, entries out of range or negative, or no such aim.
    """

    role: IntArray
    prefill: IntArray
    decode: IntArray
    gbytes: FloatArray
    use_pair: IntArray
    use_link: IntArray
    links: tuple[str, ...]
    capacity: FloatArray
    demand: FloatArray
    aim: str = DEMAND

    def __post_init__(self) -> None:
        pairs = (self.prefill, self.decode, self.gbytes)
        if len({array.shape for array in pairs}) > 1 or self.use_pair.shape != self.use_link.shape:
            raise ValueError("the arrays over pairs, or those over uses, differ in length")
        if self.capacity.shape != (len(self.links),):
            raise ValueError(f"{len(self.links)} links have {len(self.capacity)} capacities")
        if any((values < 0).any() for values in (self.gbytes, self.capacity, self.demand)):
            raise ValueError("bytes, capacities and demands are not negative")
        if self.aim not in AIMS:
            raise ValueError(f"no aim `{self.aim}`: there are {', '.join(AIMS)}")
        self._check_numbers()

    def _check_numbers(self) -> None:
        numbers = (
            (self.prefill, len(self.role), "a column"),
            (self.decode, len(self.role), "a column"),
            (self.use_pair, self.n_pairs, "a pair"),
            (self.use_link, len(self.links), "a link"),
        )
        for indices, length, what in numbers:
            if indices.size and not (indices.min() >= 0 and indices.max() < length):
                raise ValueError(f"an index of {what} is out of range")
        sides = ((self.prefill, PREFILL), (self.decode, DECODE))
        if any((self.role[columns] != role).any() for columns, role in sides):
            raise ValueError("a pair is not of a column of prefill and one of decode")

    @property
    def n_pairs(self) -> int:
        return len(self.gbytes)


def check(program: PlacementProgram, network: Handover) -> None:
    """That a network is one over the columns of a program.

    Raises:
        ValueError: it is not; or both ask for one model's demand; or there is no demand.
    """
    if network.role.shape != (program.n_columns,):
        raise ValueError(f"{len(network.role)} roles of {program.n_columns} columns")
    if network.demand.shape != program.demand.shape:
        raise ValueError(f"{len(network.demand)} demands of {len(program.demand)} models")
    model = program.column_model
    if (model[network.prefill] != model[network.decode]).any():
        raise ValueError("a pair is of two models")
    if ((network.demand > 0) & (program.demand > 0)).any():
        raise ValueError("a demand stands in the program and in what hands over")
    if network.aim == THROUGHPUT and (program.demand > 0).any():
        raise ValueError("of a throughput all demands stand in what hands over")
    is_served = (network.demand > 0) | (program.demand > 0)
    if network.aim == SHARE and not is_served.any():
        raise ValueError("there is no demand of which a share could be served")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Multipliers:
    """What proves a row.

    Args:
        model: of what is served of each model, π, (M,).
        column: of what each column of prefill or decode serves, v, (J,).
        link: of each link, γ, (L,).
        of_sum: whether the row bounds the sum of what is served, and no share.
    """

    model: FloatArray
    column: FloatArray
    link: FloatArray
    of_sum: bool


def lifted(
    program: PlacementProgram, network: Handover, given: Multipliers, present: BoolArray
) -> list[Multipliers]:
    """Multipliers that prove a row, from any: raised as little as can be where there are copies.

    Where there are none, raising costs nothing there: one column's multiplier may then be small
    where that of the other side is large. Both ways are returned, that of prefill first.

    Args:
        given: whoever found them.
        present: columns that have copies, (J,).

    Returns:
        none where nothing is asked, so that multipliers of it prove nothing.
    """
    link = np.where(np.isfinite(network.capacity), _not_negative(given.link), 0.0)
    model = _not_negative(given.model)
    if given.of_sum:
        # π = 1 + μ with μ ≥ 0 on demands; what nothing is asked of counts in the sum alone
        model = np.where(network.demand > 0, np.maximum(model, 1.0), 1.0)
    else:
        model = np.where(network.demand > 0, model, 0.0)
        demand = float(model @ network.demand)
        if demand <= 0:
            return []
        model, link = model / demand, link / demand
        given = replace(given, column=given.column / demand)
    least = _least(program, network, model, link)
    of_copies = np.where(present, _not_negative(given.column), 0.0)
    is_there = present[network.prefill] & present[network.decode]
    of_these = np.where(is_there, least, 0.0)
    # where both sides have copies the row is to be tight, so little is raised; what is without
    # copies is raised for free, first as little as the other side allows, then all that lacks
    begun = _raised(of_copies, network.prefill, network.decode, of_these)
    multipliers = []
    for small, large in ((network.prefill, network.decode), (network.decode, network.prefill)):
        column = _raised(begun, large, small, np.where(present[small], least, 0.0))
        column = _raised(column, small, large, least)
        multipliers.append(Multipliers(model=model, column=column, link=link, of_sum=given.of_sum))
    return multipliers


def _not_negative(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), np.maximum(values, 0.0), 0.0)


def _least(
    program: PlacementProgram, network: Handover, model: FloatArray, link: FloatArray
) -> FloatArray:
    """What the two columns of each pair have to come to, (E,)."""
    used = np.bincount(network.use_pair, link[network.use_link], minlength=network.n_pairs)
    return np.asarray(model[program.column_model[network.prefill]] - used * network.gbytes)


def _raised(column: FloatArray, which: IntArray, other: IntArray, least: FloatArray) -> FloatArray:
    """One side of each pair raised to what the other leaves of the least."""
    raised = column.copy()
    np.maximum.at(raised, which, least - column[other])
    return raised


def is_proof(program: PlacementProgram, network: Handover, given: Multipliers) -> bool:
    """Whether multipliers prove their row, but for rounding of sums."""
    least = _least(program, network, given.model, given.link)
    held = given.column[network.prefill] + given.column[network.decode]
    off = OUTWARD / 2 * (1.0 + float(given.model.max(initial=0.0)))
    values = (given.model, given.column, given.link)
    return bool((held >= least - off).all()) and all((each >= 0).all() for each in values)


def cut_of(program: PlacementProgram, network: Handover, given: Multipliers, name: str) -> Cut:
    """The row that multipliers prove."""
    of_model = given.model[program.column_model]
    worth = np.where(network.role == TOGETHER, of_model, given.column)
    worth[network.role == NO_PART] = 0.0
    # a row that is too wide by rounding allows more and proves less; one too narrow would lie
    outward = 1.0 + OUTWARD
    priced = given.link > 0
    added = float(given.link[priced] @ network.capacity[priced]) * outward
    if given.of_sum:
        added -= float((given.model - 1.0) @ network.demand)
    return Cut(
        name=name,
        column=worth * program.rate * outward,
        added=added,
        is_of_share=given.of_sum or network.aim != THROUGHPUT,
    )


def first_cuts(program: PlacementProgram, network: Handover) -> list[Cut]:
    """Rows that need no linear program: on each part of the pairs all prefill, or all decode.

    A *part* is what pairs connect. Where each prefill of a part may hand over to each decode of it,
    and no link binds, these rows are all there is, if there are few enough parts to combine.
    """
    parts = _parts(program, network)
    cuts = []
    for model in np.flatnonzero(network.demand > 0).tolist():
        weight = np.zeros(len(program.models))
        weight[model] = 1.0 / float(network.demand[model])
        mine = [part for part in parts if program.column_model[part[0]] == model]
        cuts += [(weight, column, False) for column in _sides(program, network, mine, weight)]
    if network.aim == THROUGHPUT:
        ones = np.ones(len(program.models))
        cuts += [(ones, column, True) for column in _sides(program, network, parts, ones)]
    link = np.zeros(len(network.links))
    return [
        cut_of(
            program,
            network,
            Multipliers(model=model, column=column, link=link, of_sum=of_sum),
            f"handover{number}",
        )
        for number, (model, column, of_sum) in enumerate(cuts)
    ]


def _sides(
    program: PlacementProgram, network: Handover, parts: list[IntArray], weight: FloatArray
) -> Iterator[FloatArray]:
    """Multipliers of the columns, (J,): of each part one side, in all ways if they are few."""
    n_ways = 2 ** len(parts)
    sides = (PREFILL, DECODE)
    ways = product(sides, repeat=len(parts))
    if n_ways > MOST_FIRST:
        ways = ((side,) * len(parts) for side in sides)  # type: ignore[assignment]
    for way in ways:
        column = np.zeros(program.n_columns)
        for part, side in zip(parts, way, strict=True):
            members = part[network.role[part] == side]
            column[members] = weight[program.column_model[members]]
        yield column


def _parts(program: PlacementProgram, network: Handover) -> list[IntArray]:
    """Columns that pairs connect."""
    label = np.arange(program.n_columns)
    while True:
        before = label.copy()
        # the least number spreads over pairs, a step a round, until each part has one
        least = np.minimum(label[network.prefill], label[network.decode])
        np.minimum.at(label, network.prefill, least)
        np.minimum.at(label, network.decode, least)
        if (label == before).all():
            break
    paired = np.unique(np.concatenate([network.prefill, network.decode]))
    return [paired[label[paired] == one] for one in np.unique(label[paired])]


def served_together(program: PlacementProgram, network: Handover, copies: FloatArray) -> FloatArray:
    """What copies that do both phases serve of each model, (M,)."""
    alone = network.role == TOGETHER
    total = np.zeros(len(program.models))
    np.add.at(total, program.column_model[alone], (program.rate * copies)[alone])
    return total


def served_with_flows(
    program: PlacementProgram, network: Handover, copies: FloatArray, flows: FloatArray
) -> FloatArray:
    """What copies serve of each model, (M,), with flows of the pairs, (E,)."""
    model = program.column_model[network.prefill]
    of_pairs = np.bincount(model, flows, minlength=len(program.models))
    return np.asarray(served_together(program, network, copies) + of_pairs)


def share_of(network: Handover, served_of_models: FloatArray) -> float:
    """The share of its demand that the worst served model gets; inf without any demand."""
    demanded = network.demand > 0
    shares = served_of_models[demanded] / network.demand[demanded]
    return float(shares.min(initial=math.inf))


def flow_violations(
    program: PlacementProgram, network: Handover, copies: FloatArray, flows: FloatArray
) -> dict[str, float]:
    """Every bound that flows break, by name, and by how much; {} means verified.

    It reads the arrays and nothing else, one scalar sum a row.
    """
    left = [float(rate) * float(n) for rate, n in zip(program.rate, copies, strict=True)]
    allowed, what = list(left), served_together(program, network, copies).tolist()
    broken = {f"flow({e})": -flow for e, flow in enumerate(flows.tolist()) if flow < 0}
    pairs = zip(network.prefill.tolist(), network.decode.tolist(), flows.tolist(), strict=True)
    for p, d, flow in pairs:
        left[p] -= flow
        left[d] -= flow
        what[int(program.column_model[p])] += flow
    for j, (rest, rate) in enumerate(zip(left, allowed, strict=True)):
        if -rest > RELATIVE_TOLERANCE * rate:
            broken[f"rate({j})"] = -rest
    broken |= _overloaded(network, flows)
    if network.aim != SHARE:
        for name, has, asked in zip(program.models, what, network.demand.tolist(), strict=True):
            if asked - has > 2 * RELATIVE_TOLERANCE * asked:
                broken[f"demand({name})"] = asked - has
    return broken


def _overloaded(network: Handover, flows: FloatArray) -> dict[str, float]:
    """Links that carry more than they do."""
    room = network.capacity.tolist()
    for pair, link in zip(network.use_pair.tolist(), network.use_link.tolist(), strict=True):
        room[link] -= float(network.gbytes[pair]) * float(flows[pair])
    each = zip(network.links, room, network.capacity.tolist(), strict=True)
    return {
        f"link({name})": -rest
        for name, rest, capacity in each
        if -rest > RELATIVE_TOLERANCE * capacity
    }
