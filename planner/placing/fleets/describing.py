"""A chosen fleet, tried, in the words of people: pools, classes, replicas, bounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from planner.placing.describing import Outcome as Placed, certificate_of, replicas_of, run_config
from planner.placing.fleets.candidate_sets import joint_names
from planner.placing.fleets.choosing.confirming import Confirmed
from planner.placing.fleets.choosing.searching import RENT
from planner.placing.fleets.choosing.simulating import handover_of
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.request_classes import RequestClass
from planner.placing.fleets.solutions import PlannedFleet
from planner.results import fleets
from planner.specs.ask.fleet import FleetRequest
from planner.specs.validation.hints import from_fields
from planner.verifier.fleets.trials import with_outcome
from planner.verifier.simulation.outcomes import FleetOutcome


def fleet_plan(request: FleetRequest, confirmed: Confirmed, began_s: float) -> fleets.FleetPlan:
    """The answer.

    Args:
        request: the request, its classes at their full rates.
        confirmed: what serves it.
    """
    fleet, chosen = confirmed.fleet, confirmed.fleet.chosen
    located, n_columns = chosen.posed.located(chosen.counts), chosen.program.n_columns
    order = [pool.configuration for pool in fleet.pools]
    recipes = tuple(
        run_config(pool.configuration, pool.stream.model.name, pool.n_replicas)
        for pool in fleet.pools
    )
    numbers = [next(i for i, c in enumerate(order) if c is it.configuration) for it in located]
    whose = [(pool.name, pool.stream.model.name) for pool in fleet.pools]
    plan = fleets.FleetPlan(
        request=request,
        title="",
        recipes=recipes,
        replicas=tuple(replicas_of(located, numbers, whose)),
        pools=tuple(_pools(request, fleet, numbers)),
        handovers=tuple(_handovers(fleet)),
        classes=tuple(_classes(request, confirmed)),
        kinds=(),
        certificate=certificate_of(
            Placed(
                located=located,
                solution=chosen.solution,
                candidate_counts=chosen.offered.candidate_counts(n_columns),
                n_solved=n_columns,
                steps=chosen.steps,
            ),
            RENT,
            began_s=began_s,
            options=request.options,
        ),
        fluid_usd_per_hour=None,
        simulated=confirmed.outcome.simulated,
        rounds=confirmed.rounds,
    )
    return with_outcome(plan, _outcome(request, confirmed))


def _pools(
    request: FleetRequest, fleet: PlannedFleet, numbers: Sequence[int]
) -> Iterator[fleets.FleetPool]:
    named = joint_names(request.classes, sharing=request.sharing)
    then = {way.pool: way.then for way in fleet.ways if way.then is not None}
    for i, pool in enumerate(fleet.pools):
        after = then.get(i)
        yield from_fields(
            fleets.FleetPool,
            pool,
            recipe=i,
            replicas=tuple(k for k, number in enumerate(numbers) if number == i),
            classes=tuple(name for name, planned in named.items() if planned in pool.rates_per_s),
            above_tokens=pool.stream.above_tokens,
            upto_tokens=pool.stream.upto_tokens,
            then="" if after is None else fleet.pools[after].name,
            parts=_parts(pool.stream, named),
            replica_rate_per_s=fleet.carried_per_s(pool),
            utilisation=0.0,
            utilisation_half_width=0.0,
            usd_per_hour=pool.n_replicas * pool.configuration.usd_per_hour,
            station=replace(pool.station, name=pool.name),
            usual=source_of(pool.configuration).usual,
        )


def _parts(stream: RequestClass, named: Mapping[str, str]) -> tuple[float, ...]:
    """Of the requests of each class those that are of a stream; empty where all are."""
    part_of = stream.part_of
    if set(part_of.values()) == {1.0}:
        return ()
    return tuple(part_of[planned] for planned in named.values() if planned in part_of)


def _handovers(fleet: PlannedFleet) -> Iterator[fleets.FleetHandover]:
    for way in fleet.ways:
        handover, source = handover_of(fleet, way), fleet.pools[way.pool]
        if handover is None or way.then is None:
            continue
        yield from_fields(
            fleets.FleetHandover,
            handover,
            source=source.name,
            target=fleet.pools[way.then].name,
            requests_per_s=way.share / source.share * source.rate_per_s,
        )


def _classes(request: FleetRequest, confirmed: Confirmed) -> Iterator[fleets.ServedClass]:
    """What serves each class, and how much of it; the account says what it gets and costs."""
    streams = reversed(confirmed.fleet.streams)  # of several models the first one's counts
    models = {each.name: s.model.name for s in streams for each in s.classes}
    named = joint_names(request.classes, sharing=request.sharing)
    for it in request.classes:
        name = named[it.name]
        yield fleets.ServedClass(
            name=it.name,
            model=models.get(name, it.model.name),
            rate_per_s=it.rate_per_s,
            served_fraction=confirmed.served.get(name, 1.0) if name in models else 0.0,
            n_input_tokens=it.lengths.mean_input_tokens,
            n_output_tokens=it.lengths.mean_output_tokens,
            percentiles=(),
            curve_s=((), ()),
            goodput=None,
            usd_per_hour=0.0,
        )


def _outcome(request: FleetRequest, confirmed: Confirmed) -> FleetOutcome:
    """What became of each class that is served, by its own name."""
    had = {it.name: it for it in confirmed.outcome.classes}
    named = joint_names(request.classes, sharing=request.sharing)
    mine = [replace(had[alike], name=own) for own, alike in named.items() if alike in had]
    return replace(confirmed.outcome, classes=tuple(mine))
