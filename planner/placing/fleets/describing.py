"""A chosen fleet, tried, in the words of people: pools, classes, replicas, bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.placing.describing import Chosen as Placed
from planner.placing.describing import certificate_of, recipe_of, replica_of
from planner.placing.fabrics.locating import LocatedOnNodes
from planner.placing.fleets.choosing.searching import RENT
from planner.placing.fleets.choosing.simulating import handover_of
from planner.placing.fleets.chosen import PlannedFleet, PlannedPool
from planner.placing.fleets.market import alike_names
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.streams import Stream
from planner.results.arrivals import Percentile
from planner.results.fleets import (
    CURVE,
    FleetAlternative,
    FleetHandover,
    FleetPlan,
    FleetPool,
    Goodput,
    Round,
    ServedClass,
)
from planner.results.placements import Replica
from planner.specs.ask.fleet import FleetRequest
from planner.specs.traffic.percentiles import TPOT, TTFT, PercentileTarget
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.outcomes import ClassOutcome, FleetOutcome

TOLD_SHARES = (0.5, 0.95, 0.99)
"""Percentiles that people ask for, beside targets."""

_TOLD = tuple(
    PercentileTarget(quantity=name, share=share, at_most_s=math.inf)
    for name in (TTFT, TPOT)
    for share in TOLD_SHARES
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answered:
    """All that an answer is made of.

    Args:
        asked: the request, its classes at their full rates.
        served_fraction: of each class, by name.
    """

    asked: FleetRequest
    fleet: PlannedFleet
    outcome: FleetOutcome
    rounds: tuple[Round, ...]
    served_fraction: Mapping[str, float]
    fluid_usd_per_hour: float | None
    alternatives: tuple[FleetAlternative, ...]
    most_factor: float | None
    began_s: float


def fleet_plan(one: Answered) -> FleetPlan:
    """The answer."""
    fleet, chosen = one.fleet, one.fleet.chosen
    located, n_columns = chosen.posed.located(chosen.counts), chosen.program.n_columns
    order = [pool.configuration for pool in fleet.pools]
    recipes = tuple(
        recipe_of(pool.configuration, pool.stream.model.name, pool.n_replicas)
        for pool in fleet.pools
    )
    numbers = [next(i for i, c in enumerate(order) if c is it.configuration) for it in located]
    replicas = tuple(_replicas(fleet, located, numbers))
    return FleetPlan(
        request=one.asked,
        title="",
        recipes=recipes,
        replicas=replicas,
        pools=tuple(_pools(one, numbers)),
        handovers=tuple(_handovers(fleet)),
        classes=tuple(_classes(one)),
        kinds=(),
        certificate=certificate_of(
            Placed(
                located=located,
                solution=chosen.solution,
                considered=chosen.offered.considered(n_columns),
                n_solved=n_columns,
                steps=chosen.steps,
            ),
            RENT,
            began_s=one.began_s,
            options=one.asked.options,
        ),
        fluid_usd_per_hour=one.fluid_usd_per_hour,
        simulated=one.outcome.simulated,
        rounds=one.rounds,
        alternatives=one.alternatives,
        most_factor=one.most_factor,
        provenance=(),
    )


def _replicas(
    fleet: PlannedFleet, located: Sequence[LocatedOnNodes], numbers: Sequence[int]
) -> Iterator[Replica]:
    pools = fleet.pools
    seen = [0] * len(pools)
    for one, recipe in zip(located, numbers, strict=True):
        pool = pools[recipe]
        yield replica_of(one, f"{pool.name}/{seen[recipe]}", pool.stream.model.name, recipe)
        seen[recipe] += 1


def _pools(one: Answered, numbers: Sequence[int]) -> Iterator[FleetPool]:
    fleet, named = one.fleet, alike_names(one.asked.classes, sharing=one.asked.sharing)
    then = {way.pool: way.then for way in fleet.ways if way.then is not None}
    for i, pool in enumerate(fleet.pools):
        used = one.outcome.pool(pool.name).utilisation
        after = then.get(i)
        yield FleetPool(
            name=pool.name,
            recipe=i,
            replicas=tuple(k for k, number in enumerate(numbers) if number == i),
            classes=tuple(name for name, planned in named.items() if planned in pool.rates_per_s),
            above_tokens=pool.stream.above_tokens,
            upto_tokens=pool.stream.upto_tokens,
            then="" if after is None else fleet.pools[after].name,
            share=pool.share,
            parts=_parts(pool.stream, named),
            rate_per_s=pool.rate_per_s,
            replica_rate_per_s=fleet.chosen.market.book.most_per_s(
                fleet.chosen.origin(pool.configuration),
                pool.configuration.choice,
                pool.n_replicas,
                pool.replica_rate_per_s,
            ),
            utilisation=used.value,
            utilisation_half_width=used.half_width,
            usd_per_hour=pool.n_replicas * pool.configuration.usd_per_hour,
            station=replace(pool.station, name=pool.name),
            usual=source_of(pool.configuration).usual,
        )


def _parts(stream: Stream, named: Mapping[str, str]) -> tuple[float, ...]:
    """Of the requests of each class those that are of a stream; empty where all are."""
    part_of = stream.part_of
    if set(part_of.values()) == {1.0}:
        return ()
    return tuple(part_of[planned] for planned in named.values() if planned in part_of)


def _handovers(fleet: PlannedFleet) -> Iterator[FleetHandover]:
    for way in fleet.ways:
        handover, source = handover_of(fleet, way), fleet.pools[way.pool]
        if handover is None or way.then is None:
            continue
        yield FleetHandover(
            source=source.name,
            target=fleet.pools[way.then].name,
            requests_per_s=way.share / source.share * source.rate_per_s,
            sequence_bytes=handover.sequence_bytes,
            token_bytes=handover.token_bytes,
            latency_s=handover.latency_s,
            bytes_per_s=handover.bytes_per_s,
            wire_bytes_per_s=handover.wire_bytes_per_s,
        )


def _classes(one: Answered) -> Iterator[ServedClass]:
    served = {each.name: each for s in one.fleet.streams for each in s.classes}
    named = alike_names(one.asked.classes, sharing=one.asked.sharing)
    alike_per_s: dict[str, float] = {}
    for asked in one.asked.classes:
        name = named[asked.name]
        alike_per_s[name] = alike_per_s.get(name, 0.0) + asked.rate_per_s
    for asked in one.asked.classes:
        name = named[asked.name]
        if name not in served:
            yield _unserved(asked)
            continue
        outcome, pools = one.outcome.of(name), [*one.fleet.pools_of(served[name])]
        rent = math.fsum(_part(pool, name) for pool in pools)
        yield ServedClass(
            name=asked.name,
            model=pools[0].stream.model.name,
            rate_per_s=asked.rate_per_s,
            served_fraction=one.served_fraction.get(name, 1.0),
            n_input_tokens=asked.lengths.mean_input_tokens,
            n_output_tokens=asked.lengths.mean_output_tokens,
            percentiles=tuple(_percentiles(asked, outcome)),
            curve_s=(_curve(outcome, TTFT), _curve(outcome, TPOT)),
            goodput=_goodput(asked, outcome),
            usd_per_hour=rent * asked.rate_per_s / alike_per_s[name],
        )


def _unserved(asked: TrafficClass) -> ServedClass:
    return ServedClass(
        name=asked.name,
        model=asked.model.name,
        rate_per_s=asked.rate_per_s,
        served_fraction=0.0,
        n_input_tokens=asked.lengths.mean_input_tokens,
        n_output_tokens=asked.lengths.mean_output_tokens,
        percentiles=(),
        curve_s=((), ()),
        goodput=None,
        usd_per_hour=0.0,
    )


def _part(pool: PlannedPool, name: str) -> float:
    """Rent of a pool that is of one class: shared by requests, as they come."""
    whole = pool.n_replicas * pool.configuration.usd_per_hour
    return whole * pool.rates_per_s[name] / pool.rate_per_s


def _percentiles(asked: TrafficClass, outcome: ClassOutcome) -> Iterator[Percentile]:
    said = {(one.quantity, one.share) for one in asked.targets}
    more = [one for one in _TOLD if (one.quantity, one.share) not in said]
    for target in (*asked.targets, *more):
        simulated = outcome.of(target.quantity).percentiles_s[target.share]
        yield Percentile(
            quantity=target.quantity,
            share=target.share,
            at_most_s=target.at_most_s if math.isfinite(target.at_most_s) else None,
            simulated_s=simulated.value,
            half_width_s=simulated.half_width,
        )


def _curve(outcome: ClassOutcome, quantity: str) -> tuple[float, ...]:
    return tuple(outcome.of(quantity).at_s(share) for share in CURVE)


def _goodput(asked: TrafficClass, outcome: ClassOutcome) -> Goodput | None:
    if asked.goodput is None or outcome.goodput is None:
        return None
    had = outcome.goodput
    return Goodput(asked=asked.goodput.share, simulated=had.value, half_width=had.half_width)
