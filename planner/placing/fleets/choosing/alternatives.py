"""What other fleets would cost, and how much more traffic the same rent serves."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter

from planner.errors import OutOfTimeError
from planner.placing.configurations import AnyConfiguration
from planner.placing.fleets import solutions
from planner.placing.fleets.candidate_sets import CandidateSet
from planner.placing.fleets.choosing.searching import RENT, SHARE, Allowed, as_offered, settled
from planner.programs.layout import ceiling
from planner.results.fleets import FleetAlternative
from planner.running.deadlines import check
from planner.specs.records.roles import TOGETHER

N_LOOKED, N_TIMES = 2, 6
"""Configurations of a stream and role that are looked at, the cheapest first; and how often."""

N_TOLD = 3
"""Alternatives that are told, the nearest first."""


def alternatives_of(fleet: solutions.PlannedFleet) -> tuple[FleetAlternative, ...]:
    """The nearest other fleets: without a kind, a shape, a role or a sharing of this one.

    Each is the cheapest of what was simulated by then, and of few more that seem cheapest.
    """
    alternatives: list[FleetAlternative] = []
    with suppress(OutOfTimeError):
        best_of = partial(settled, fleet.chosen.market, now=as_offered)
        parts = [(name, one, best_of(allowed=one)) for name, one in _restrictions(fleet)]
        for name, allowed, fluid in sorted(parts, key=lambda entry: _bound(entry[2])):
            if len(alternatives) >= N_TOLD and _bound(fluid) >= _rent(alternatives[N_TOLD - 1]):
                break
            chosen = _soon(fluid, allowed) if fluid.is_found else fluid
            alternatives.append(_priced(name, chosen))
            alternatives.sort(key=_rent)
    return tuple(alternatives[:N_TOLD])


def _soon(fluid: solutions.Solution, allowed: Allowed) -> solutions.Solution:
    """The cheapest of what is known to carry something, and of few more where that is nothing."""
    market, book = fluid.market, fluid.market.book
    some = [it for it in market.offered.configurations if allowed(it) and book.sure(it) is None]
    some.sort(key=lambda it: it.usd_per_hour / it.output_tokens_per_s)
    ranked = _of_roles(fluid, some)
    chosen = settled(market, allowed=allowed, now=book.sure)
    for k in range(0, N_TIMES * N_LOOKED, N_LOOKED):
        if chosen.is_found:
            break
        check()
        for config in (it for alike in ranked for it in alike[k : k + N_LOOKED]):
            stream = market.streams[config.model]
            most_per_s = config.output_tokens_per_s / stream.n_output_tokens
            book.narrow(config, stream.rate_per_s / math.ceil(stream.rate_per_s / most_per_s))
        chosen = settled(market, allowed=allowed, now=book.sure)
    return chosen


def _of_roles(
    fluid: solutions.Solution, some: Sequence[AnyConfiguration]
) -> list[list[AnyConfiguration]]:
    """Those of each stream and role that a solution uses."""
    keys = {(one.model, one.role) for one, _ in fluid.replicas}
    return [[it for it in some if (it.model, it.role) == key] for key in keys]


def _bound(fluid: solutions.Solution) -> float:
    return fluid.solution.objective if fluid.is_found else math.inf


def _rent(alternative: FleetAlternative) -> float:
    return math.inf if alternative.usd_per_hour is None else alternative.usd_per_hour


def _priced(name: str, chosen: solutions.Solution) -> FleetAlternative:
    if not chosen.is_found:
        return FleetAlternative(name=name, usd_per_hour=None, n_devices=None)
    pools = solutions.planned(chosen).pools
    return FleetAlternative(
        name=f"{name}: {words_of(pools)}",
        usd_per_hour=solutions.usd_per_hour(pools),
        n_devices=solutions.n_devices(pools),
    )


def words_of(pools: Sequence[solutions.PlannedPool]) -> str:
    """Pools in short.

    >>> words_of(())
    ''
    """
    return ", ".join(
        f"{pool.n_replicas} × {label_of(pool.configuration)} for {pool.stream.name}"
        + ("" if pool.role == TOGETHER else f" ({pool.role})")
        for pool in pools
    )


def label_of(config: AnyConfiguration) -> str:
    """Kind and degrees of a configuration."""
    deployment = config.deployment(1)
    return f"{config.pattern.kind_name} {deployment.label}".rstrip()


def _restrictions(fleet: solutions.PlannedFleet) -> Iterator[tuple[str, Allowed]]:
    """Names of alternatives, and the configurations that each may use."""
    used, market = [one.configuration for one in fleet.pools], fleet.chosen.market
    offered, streams = market.offered.configurations, market.streams
    if len({*map(_kind, offered)}) > 1:
        for kind in dict.fromkeys(map(_kind, used)):
            yield f"without {kind}", partial(_is_other, by=_kind, left=kind)
    yield from _shapes(used, market)
    if len({one.role for one in offered}) > 1:
        is_together = any(one.role == TOGETHER for one in used)
        name = "apart" if is_together else "together"
        yield name, partial(_is_other, by=lambda it: it.role == TOGETHER, left=is_together)
    for model in dict.fromkeys(map(_model, used)):
        if len(streams[model].classes) > 1:
            name = f"without sharing by {streams[model].name}"
            yield name, partial(_is_other, by=_model, left=model)


def _shapes(
    used: Sequence[AnyConfiguration], market: CandidateSet
) -> Iterator[tuple[str, Allowed]]:
    for sort in dict.fromkeys(map(_key, used)):
        model, kind, shape = sort
        words = f"{shape}"  # of a slice
        if isinstance(shape, tuple):
            n_inside, n_across, n_stages = shape
            words = f"TP {n_inside * n_across}" + (f" PP {n_stages}" if n_stages > 1 else "")
        whose = f" for {market.streams[model].name}" if len(market.streams) > 1 else ""
        yield f"without {words} on {kind}{whose}", partial(_is_other, by=_key, left=sort)


def _is_other(
    config: AnyConfiguration, by: Callable[[AnyConfiguration], object], left: object
) -> bool:
    """Whether a configuration differs from what is left out."""
    return by(config) != left


_kind, _model = attrgetter("pattern.kind_name"), attrgetter("model")
_key = attrgetter("model", "pattern.kind_name", "pattern.shape")


def most_factor(fleet: solutions.PlannedFleet) -> float | None:
    """Times today's traffic, of all classes alike, that a fleet of the same rent serves.

    By the rates of replicas as they are known; None where that was not proved. Streams that are to
    be shared out are whole or nothing in the program of the largest share, so the fleet itself may
    serve more than what it finds.
    """
    market = fleet.chosen.market
    rent = solutions.usd_per_hour(fleet.pools)
    with suppress(OutOfTimeError):
        factor = largest_factor(market, rent)
        if factor is not None:
            served = (fleet.carried_per_s(it) / it.replica_rate_per_s for it in fleet.pools)
            return max(factor, min(served))
    return None


def largest_factor(market: CandidateSet, rent: float) -> float | None:
    """The same of any rent, as proved."""
    limits = dict(market.request.limits)
    limits[RENT] = min(ceiling(rent), limits.get(RENT, math.inf))
    chosen = settled(market, objective=SHARE, limits=limits)
    if not chosen.is_found:
        return None
    return -chosen.solution.objective


def at_factor(market: CandidateSet, factor: float) -> solutions.Solution:
    """The cheapest fleet for so many times the traffic of all classes."""
    return settled(market, factors={one.name: factor for one in market.request.classes})
