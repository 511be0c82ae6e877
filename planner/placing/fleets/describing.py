"""A chosen fleet, tried, in the words of people: pools, classes, replicas, bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.placing.describing import Chosen as Placed
from planner.placing.describing import certificate_of, recipe_of, replica_of
from planner.placing.fabrics.locating import LocatedOnNodes
from planner.placing.fleets.choosing.searching import RENT
from planner.placing.fleets.choosing.simulating import handover_of
from planner.placing.fleets.chosen import PlannedFleet
from planner.placing.fleets.market import alike_names
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.streams import Stream
from planner.results.fleets import (
    FleetAlternative,
    FleetHandover,
    FleetPlan,
    FleetPool,
    Round,
    ServedClass,
)
from planner.results.placements import Replica
from planner.specs.ask.fleet import FleetRequest
from planner.verifier.fleets.trials import with_outcome
from planner.verifier.simulation.outcomes import FleetOutcome


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
    plan = FleetPlan(
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
    return with_outcome(plan, _outcome(one))


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
            utilisation=0.0,
            utilisation_half_width=0.0,
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
    """What serves each class, and how much of it; the account says what it gets and costs."""
    streams = reversed(one.fleet.streams)  # of several models the first one's counts
    models = {each.name: s.model.name for s in streams for each in s.classes}
    for asked, name in zip(one.asked.classes, _planned(one), strict=True):
        yield ServedClass(
            name=asked.name,
            model=models.get(name, asked.model.name),
            rate_per_s=asked.rate_per_s,
            served_fraction=one.served_fraction.get(name, 1.0) if name in models else 0.0,
            n_input_tokens=asked.lengths.mean_input_tokens,
            n_output_tokens=asked.lengths.mean_output_tokens,
            percentiles=(),
            curve_s=((), ()),
            goodput=None,
            usd_per_hour=0.0,
        )


def _outcome(one: Answered) -> FleetOutcome:
    """What became of each class that is served, by its own name."""
    had = {it.name: it for it in one.outcome.classes}
    pairs = zip(one.asked.classes, _planned(one), strict=True)
    mine = [replace(had[name], name=asked.name) for asked, name in pairs if name in had]
    return replace(one.outcome, classes=tuple(mine))


def _planned(one: Answered) -> Iterator[str]:
    """What each class is planned as, by name."""
    named = alike_names(one.asked.classes, sharing=one.asked.sharing)
    return (named[asked.name] for asked in one.asked.classes)
