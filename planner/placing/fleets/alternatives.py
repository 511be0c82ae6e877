"""What other fleets would cost, and how much more traffic the same rent serves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from planner.errors import OutOfTimeError
from planner.placing.fabrics.patterns import NodeConfiguration, Shape
from planner.placing.fleets.incumbents import more_looked_at
from planner.placing.fleets.market import Market
from planner.placing.fleets.refuting import n_devices, usd_per_hour
from planner.placing.fleets.searching import RENT, SHARE, Allowed, Chosen, as_offered, settled
from planner.placing.fleets.simulating import PlannedFleet, PlannedPool, planned
from planner.programs.layout import ceiling
from planner.results.fleets import FleetAlternative
from planner.specs.roles import TOGETHER

N_TOLD = 3
"""Alternatives that are told, the nearest first."""


def alternatives_of(fleet: PlannedFleet) -> tuple[FleetAlternative, ...]:
    """The nearest other fleets: without a kind, a shape, a role or a sharing of this one.

    Each is the cheapest of what was simulated by then, and of few more that seem cheapest.
    """
    found: list[FleetAlternative] = []
    with suppress(OutOfTimeError):
        parts = [(name, one, _fluid(fleet, one)) for name, one in _others(fleet)]
        for name, allowed, fluid in sorted(parts, key=lambda one: _bound(one[2])):
            if len(found) >= N_TOLD and _bound(fluid) >= _rent(found[N_TOLD - 1]):
                break
            found.append(_priced(name, _soon(fluid, allowed)))
            found.sort(key=_rent)
    return tuple(found[:N_TOLD])


def _fluid(fleet: PlannedFleet, allowed: Allowed) -> Chosen:
    return settled(fleet.chosen.market, allowed=allowed, now=as_offered)


def _bound(fluid: Chosen) -> float:
    return fluid.solution.objective if fluid.is_found else math.inf


def _rent(one: FleetAlternative) -> float:
    return math.inf if one.usd_per_hour is None else one.usd_per_hour


def _soon(fluid: Chosen, allowed: Allowed) -> Chosen:
    """The cheapest of what is known, and of few more where that is nothing."""
    market = fluid.market
    chosen = settled(market, allowed=allowed, now=market.book.sure)
    while fluid.is_found and not chosen.is_found and more_looked_at(fluid, allowed):
        chosen = settled(market, allowed=allowed, now=market.book.sure)
    return chosen


def _priced(name: str, chosen: Chosen) -> FleetAlternative:
    if not chosen.is_found:
        return FleetAlternative(name=name, usd_per_hour=None, n_devices=None)
    pools = planned(chosen).pools
    return FleetAlternative(
        name=f"{name}: {words_of(pools)}",
        usd_per_hour=usd_per_hour(pools),
        n_devices=n_devices(pools),
    )


def words_of(pools: Sequence[PlannedPool]) -> str:
    """Pools in short.

    >>> words_of(())
    ''
    """
    return ", ".join(
        f"{one.n_replicas} × {label_of(one.configuration)} for {one.stream.name}"
        + ("" if one.role == TOGETHER else f" ({one.role})")
        for one in pools
    )


def label_of(one: NodeConfiguration) -> str:
    """Kind and degrees of a configuration."""
    deployment = one.deployment(1)
    return f"{one.pattern.kind_name} {deployment.label}".rstrip()


def _others(fleet: PlannedFleet) -> Iterator[tuple[str, Allowed]]:
    """Names of alternatives, and the configurations that each may use."""
    used = [one.configuration for one in fleet.pools]
    offered = fleet.chosen.market.offered.configurations
    if len({one.pattern.kind_name for one in offered}) > 1:
        yield from _kinds(used)
    yield from _shapes(used, fleet.chosen.market)
    if len({one.role for one in offered}) > 1:
        is_together = any(one.role == TOGETHER for one in used)
        name = "apart" if is_together else "together"
        yield name, partial(_is_other, by=_does_both, left=is_together)
    yield from _sharing(used, fleet.chosen.market)


def _kinds(used: Sequence[NodeConfiguration]) -> Iterator[tuple[str, Allowed]]:
    for kind in dict.fromkeys(map(_kind, used)):
        yield f"without {kind}", partial(_is_other, by=_kind, left=kind)


def _shapes(used: Sequence[NodeConfiguration], market: Market) -> Iterator[tuple[str, Allowed]]:
    for sort in dict.fromkeys(map(_sort, used)):
        model, kind, (n_inside, n_across, n_stages) = sort
        words = f"TP {n_inside * n_across}" + (f" PP {n_stages}" if n_stages > 1 else "")
        whose = f" for {market.streams[model].name}" if len(market.streams) > 1 else ""
        yield f"without {words} on {kind}{whose}", partial(_is_other, by=_sort, left=sort)


def _sharing(used: Sequence[NodeConfiguration], market: Market) -> Iterator[tuple[str, Allowed]]:
    for model in dict.fromkeys(map(_model, used)):
        if len(market.streams[model].classes) > 1:
            name = f"without sharing by {market.streams[model].name}"
            yield name, partial(_is_other, by=_model, left=model)


def _is_other(
    one: NodeConfiguration, by: Callable[[NodeConfiguration], object], left: object
) -> bool:
    """Whether a configuration differs from what is left out."""
    return by(one) != left


def _kind(one: NodeConfiguration) -> str:
    return one.pattern.kind_name


def _sort(one: NodeConfiguration) -> tuple[int, str, Shape]:
    return one.model, one.pattern.kind_name, one.pattern.shape


def _does_both(one: NodeConfiguration) -> bool:
    return one.role == TOGETHER


def _model(one: NodeConfiguration) -> int:
    return one.model


def most_factor(fleet: PlannedFleet) -> float | None:
    """Times today's traffic, of all classes alike, that a fleet of the same rent serves.

    By the rates of replicas as they are known; None where that was not proved.
    """
    market = fleet.chosen.market
    rent = usd_per_hour(fleet.pools)
    with suppress(OutOfTimeError):
        return largest_factor(market, rent)
    return None


def largest_factor(market: Market, rent: float) -> float | None:
    """The same of any rent, as proved."""
    limits = dict(market.request.limits)
    limits[RENT] = min(ceiling(rent), limits.get(RENT, math.inf))
    chosen = settled(market, objective=SHARE, limits=limits)
    if not chosen.is_found:
        return None
    return -chosen.solution.objective


def at_factor(market: Market, factor: float) -> Chosen:
    """The cheapest fleet for so many times the traffic of all classes."""
    return settled(market, factors={one.name: factor for one in market.request.classes})
