"""The choice of a fleet: solve with what is known, look closer at what is chosen, solve again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.fleets.book import Book
from planner.fleets.market import Market
from planner.fleets.program import with_choice_of_streams, with_counts
from planner.placing.configurations import AnyConfiguration
from planner.placing.fabrics.patterns import NodeConfiguration, NodePattern
from planner.placing.fabrics.posing import PosedOnNodes
from planner.placing.program import Aim, Wanted
from planner.placing.searching import mastered
from planner.programs.handover import Handover
from planner.programs.placement import Counts, PlacementProgram
from planner.running.deadlines import is_over
from planner.solvers.placement import PlacementSolution
from planner.specs.request import SolverOptions

RENT, SHARE = "rent", "share"

MOST_SHARE = 64.0
"""Times its traffic that a share is looked for."""

N_BESIDE = 2
"""Configurations that are looked at beside the chosen ones, where they seem as cheap."""

Allowed = Callable[[NodeConfiguration], bool]


def on_nodes(one: AnyConfiguration) -> NodeConfiguration:
    """A configuration, that is on nodes."""
    assert isinstance(one.pattern, NodePattern)
    return one  # type: ignore[return-value] # its pattern is


def everything(one: NodeConfiguration) -> bool:
    """No configuration is left out."""
    del one
    return True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """A solution.

    Args:
        counts: copies of the posed columns; None where there is no fleet.
        origins: the configuration as it was offered, of each one that is posed, by identity.
    """

    market: Market
    posed: PosedOnNodes
    program: PlacementProgram
    network: Handover | None
    solution: PlacementSolution
    flows: tuple[float, ...]
    origins: dict[int, NodeConfiguration]

    @property
    def is_found(self) -> bool:
        return self.solution.answer is not None

    @property
    def counts(self) -> Counts:
        """Copies of the columns that places know of."""
        assert self.solution.answer is not None
        return Counts(copies=self.solution.answer.copies[: self.posed.program.n_columns])

    @property
    def replicas(self) -> list[tuple[NodeConfiguration, int]]:
        """Configurations that are used, as they are known, with their replicas."""
        used: dict[int, int] = {}
        columns = self.posed.columns
        for j, n in columns.replicas(self.counts.copies):
            i = int(columns.which[j])
            used[i] = used.get(i, 0) + n
        return [(on_nodes(columns.configurations[i]), n) for i, n in sorted(used.items())]

    def origin(self, one: NodeConfiguration) -> NodeConfiguration:
        return self.origins[id(one)]


def settled(
    market: Market,
    *,
    objective: str = RENT,
    factors: Mapping[str, float] | None = None,
    limits: dict[str, float] | None = None,
    allowed: Allowed = everything,
    fluid: bool = False,
) -> Chosen:
    """The best fleet, at rates of which each that it rests on is known.

    What is not known is taken at its bounds, which no queue exceeds: so an optimum in which all is
    known is the optimum.

    Args:
        objective: the least `rent`, or the largest `share` of all demands.
        factors: times the traffic of classes by name; that of others is as it is.
        limits: of all replicas together, in place of those of the request.
        allowed: configurations that may be used, as they were offered.
        fluid: take every configuration at its fluid rate.
    """
    aim = _aim(market, objective, factors or {}, limits)
    options, book = market.request.options, None if fluid else market.book
    quick = replace(options, proof="one")
    while True:
        chosen = _solved(market, aim, allowed, book, quick)
        if not fluid and _bounded(chosen):
            continue
        new = [] if fluid else _unknown(chosen)
        if not new and not is_over():  # ties are broken, and the proof is asked for, last
            chosen = _solved(market, aim, allowed, book, options, tied=not fluid)
            if not fluid and _bounded(chosen):
                continue
            new = [] if fluid else _unknown(chosen)
        if fluid or not new or is_over():
            return chosen
        for one in new:
            market.book.look_at(one)


def _bounded(chosen: Chosen) -> bool:
    """Bound all configurations of what is used and was never looked at; whether there were any."""
    market, book = chosen.market, chosen.market.book
    used = [chosen.origin(one) for one, _ in chosen.replicas] if chosen.is_found else []
    new = {(one.model, one.role) for one in used if not book.is_bounded(one)}
    for one in market.offered.configurations if new else ():
        if (one.model, one.role) in new:
            book.bound(one)
    return bool(new)


def _aim(
    market: Market, objective: str, factors: Mapping[str, float], limits: dict[str, float] | None
) -> Aim:
    return Aim(
        wanted=tuple(
            Wanted(
                name=one.name,
                demand_tokens_per_s=one.tokens_per_s(factors),
                n_output_tokens=one.n_output_tokens,
            )
            for one in market.streams
        ),
        objective=objective,
        limits=dict(market.request.limits) if limits is None else limits,
    )


def _solved(
    market: Market,
    aim: Aim,
    allowed: Allowed,
    book: Book | None,
    options: SolverOptions,
    *,
    tied: bool = False,
) -> Chosen:
    """One program, solved."""
    base = [one for one in market.offered.configurations if allowed(one)]
    now = [one if book is None else book.now(one) for one in base]
    origins = {id(b): a for a, b in zip(base, now, strict=True)}
    serving = tuple(one for one in now if one.output_tokens_per_s > 0.0)
    posed = replace(market.offered, configurations=serving).posed(aim)
    columns = posed.columns
    of_column = [columns.configurations[i] for i in columns.which.tolist()]
    n_parts = [0.0] * columns.n_parts
    stages = np.array([*n_parts, *(float(one.pattern.n_stages - 1) for one in of_column)])
    program = replace(posed.program, ties=(stages, *posed.program.ties) if tied else ())
    program = with_counts(
        program,
        [""] * columns.n_parts + [one.pattern.kind_name for one in of_column],
        np.array([*n_parts, *(float(one.n_devices) for one in of_column)]),
        market.request.counts,
    )
    most_share = MOST_SHARE if program.is_for_share else 1.0
    program, network = with_choice_of_streams(
        program, posed.network, market.streams, most_share=most_share
    )
    solution, flows = mastered(program, network, options)
    return Chosen(
        market=market,
        posed=posed,
        program=program,
        network=network,
        solution=solution,
        flows=flows,
        origins=origins,
    )


def _unknown(chosen: Chosen) -> list[NodeConfiguration]:
    """Configurations to look at: those that are chosen, and some that seem no dearer."""
    if not chosen.is_found:
        return []
    book = chosen.market.book
    used = [chosen.origin(one) for one, _ in chosen.replicas]
    found = [one for one in used if not book.is_known(one)]
    if not found:
        return []
    in_use = {(one.model, one.role) for one in found}
    price = {id(one): _price(book.now(one)) for one in chosen.market.offered.configurations}
    dearest = {
        key: max(price[id(one)] for one in used if (one.model, one.role) == key) for key in in_use
    }
    beside = [
        one
        for one in chosen.market.offered.configurations
        if (one.model, one.role) in in_use
        and not book.is_known(one)
        and all(one is not other for other in found)
        and price[id(one)] <= dearest[one.model, one.role]
    ]
    beside.sort(key=lambda one: price[id(one)])
    return [*found, *beside[:N_BESIDE]]


def _price(one: NodeConfiguration) -> float:
    """Of what it serves; without end where it serves nothing."""
    rate = one.output_tokens_per_s
    return one.usd_per_hour / rate if rate > 0.0 else float("inf")
