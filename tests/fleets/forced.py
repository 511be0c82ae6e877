"""Fleets as planned beside the least rent by force, on small markets at random.

    python -m tests.fleets.forced [markets] [--markets 100] [--first 0] [--seconds 10]
    python -m tests.fleets.forced splits|restricted [--markets 50] [--first 0]

`markets`: how much dearer the product's fleets are than the cheapest by force (`forcing`).
`splits`: a class that is divided at random into two that are alike moves neither rent nor bound.
`restricted`: where some of what there is to choose from is taken away, no rent falls.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.placing.fleets.candidate_sets import with_joint
from planner.placing.fleets.choosing.confirming import Tries, weighed
from planner.placing.fleets.choosing.fluid import fluid_bound
from planner.placing.fleets.choosing.searching import as_offered, settled
from planner.placing.fleets.solutions import PlannedFleet, planned, usd_per_hour
from planner.specs.ask.fleet import FleetRequest
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.roles import Station
from planner.specs.traffic.arrivals import in_bursts
from planner.specs.traffic.percentiles import TPOT, TTFT, PercentileTarget
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.pools import Pool
from tests.fleets.against_enumeration import MODELS, SmallFleet, few_lengths, model_named
from tests.fleets.forcing import MOST_REPLICAS, Division, Forced, Search, misses, served, work_s
from tests.fleets.stationed import GivenKind, Offer, pool_of_kinds
from tests.verifier.simulation.stations import station

LITTLE = 1e-9

OTHER_SEED = 77
"""With which fleets of other rents are simulated again: what is within its targets by luck is not
then."""


def small_market(seed: int) -> SmallFleet:
    """One to three classes on one or two kinds with few devices, 12 deployments at most."""
    draw = random.Random(seed)
    slow = [draw.uniform(0.5, 1.0), draw.uniform(0.8, 2.5)][: draw.choice((1, 2, 2))]
    kinds = tuple(
        GivenKind(
            name=f"kind{i}",
            n_nodes=2,
            per_node=draw.randint(2, 4),
            usd_per_hour=round(3.0 / it * draw.uniform(0.8, 1.25), 2),
        )
        for i, it in enumerate(slow)
    )
    n_classes = draw.choice((1, 2, 2, 3, 3))
    models = MODELS[: 1 if n_classes == 1 else draw.choice((1, 1, 2))]
    sizes = [draw.choice(((1,), (1,), (1, 2))) for _ in kinds]
    offers = {
        model: tuple(
            Offer(kind=kind.name, n_devices=size, stations=_stations(draw, size, (i + 1) * it))
            for kind, of_kind, it in zip(kinds, sizes, slow, strict=True)
            for size in of_kind
        )
        for i, model in enumerate(models)
    }
    classes = [_class(draw, i, models) for i in range(n_classes)]
    first = next(iter(offers.values()))[0].stations[0]
    weights = [draw.uniform(0.2, 1.0) for _ in classes]
    whole = draw.uniform(0.5, 4.0) / sum(weights)
    classes = [
        replace(it, rate_per_s=whole * part / work_s(first, it))
        for it, part in zip(classes, weights, strict=True)
    ]
    request = FleetRequest(
        site=pool_of_kinds(kinds),
        classes=tuple(classes),
        options=SolverOptions(sort_price=0.0),
    )
    return SmallFleet(request=request, kinds=kinds, offers=offers)


def _stations(draw: random.Random, size: int, slow: float) -> tuple[Station, ...]:
    """One or two deployments: larger batches, shorter chunks."""
    speed = slow / size**0.8
    return tuple(
        station(
            step_s=0.012 * speed * draw.uniform(0.8, 1.2),
            each_s=2e-4 * speed,
            pass_s=2e-3,
            read_s=3e-5 * speed * draw.uniform(0.8, 1.2),
            most_running=draw.choice((4, 16, 64)),
            chunk_tokens=draw.choice((512, 2048)),
        )
        for _ in range(draw.choice((1, 1, 2)))
    )


def _class(draw: random.Random, number: int, models: Sequence[str]) -> TrafficClass:
    targets = [
        PercentileTarget(quantity=TTFT, share=0.95, at_most_s=draw.uniform(0.3, 2.0)),
        PercentileTarget(quantity=TPOT, share=0.9, at_most_s=draw.uniform(0.02, 0.1)),
    ]
    return TrafficClass(
        name=f"class{number}",
        models=(model_named(models[number % len(models)]),),
        rate_per_s=1.0,
        lengths=few_lengths(draw),
        arrivals=in_bursts(draw.choice((1.0, 1.0, 4.0))),
        targets=tuple(targets[: draw.randint(1, 2)]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What the product plans.

    Args:
        rent, bound, fluid: of its fleet, inf where it has none; what the program vouches for; and
            what no fleet is cheaper than.
    """

    rent: float
    bound: float
    fluid: float
    fleet: PlannedFleet | None
    n_rounds: int
    cpu_s: float


def plan(fleet: SmallFleet) -> Planned:
    """The product's fleet for all traffic, confirmed by its simulation."""
    began_s, asked = time.process_time(), fleet.request
    classes = with_joint(asked.classes, sharing=asked.sharing)
    market = replace(fleet, request=replace(asked, classes=classes)).market()
    market.book.router = asked.router
    fluid = settled(market, now=as_offered)
    tries = Tries(on_round=lambda _: None)
    chosen = tries.confirmed(weighed(market)) if fluid.is_found else None
    found = None if chosen is None else planned(chosen)
    rent = math.inf if found is None else usd_per_hour(found.pools)
    return Planned(
        rent=rent,
        bound=math.inf if chosen is None else chosen.solution.vouched.bound,
        fluid=fluid_bound(market, rent),
        fleet=found,
        n_rounds=len(tries.rounds),
        cpu_s=time.process_time() - began_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A market planned and forced.

    Args:
        again: which of both misses which target with another seed, where rents differ.
    """

    seed: int
    planned: Planned
    forced: Forced
    n_replicas: int
    again: tuple[tuple[str, str], ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether nothing serves it."""
        return min(self.planned.rent, self.forced.rent) == math.inf and self.forced.is_closed

    @property
    def is_decided(self) -> bool:
        """Whether force had time for all counts that may be cheaper, and for as many replicas."""
        is_within = self.forced.is_closed and self.n_replicas <= MOST_REPLICAS
        return is_within and not self.is_none

    @property
    def is_below(self) -> bool:
        """Whether force finds less than what the product says that nothing is cheaper than."""
        return self.forced.rent < self.planned.fluid * (1.0 - LITTLE)

    @property
    def is_news(self) -> bool:
        """Whether both say something else."""
        if self.is_none:
            return False
        return not self.is_decided or abs(self.loss) > LITTLE or self.is_below

    @property
    def loss(self) -> float:
        """Rent over the least by force; negative where less."""
        return self.planned.rent / self.forced.rent - 1.0 if self.planned.rent < math.inf else 1.0

    def __str__(self) -> str:
        it, one = self.planned, self.forced
        return (
            f"market {self.seed}: planned {it.rent:.2f} (bound {it.bound:.2f}, fluid"
            f" {it.fluid:.2f}, {self.n_replicas} replicas, {it.n_rounds} rounds, {it.cpu_s:.1f} s),"
            f" forced {one.rent:.2f}{'' if one.is_closed else ' so far'} ({one.n_counts} counts,"
            f" {one.n_pools} pools, {one.n_whole} fleets, {one.cpu_s:.1f} s)"
            + "".join(f"; with seed {OTHER_SEED} {name} misses {it}" for name, it in self.again)
        )


def compared(seed: int, most_s: float) -> Compared:
    """A market planned, and its least rent by force."""
    fleet = small_market(seed)
    found = plan(fleet)
    pools = [] if found.fleet is None else found.fleet.pools
    forced = Search(fleet=fleet, most_s=most_s, below=1.5 * found.rent).least()
    one = Compared(
        seed=seed, planned=found, forced=forced, n_replicas=sum(it.n_replicas for it in pools)
    )
    if not one.is_news:
        return one
    both = {"planned": found.fleet and division_of(found.fleet), "forced": forced.division}
    again = [
        (name, missed)
        for name, it in both.items()
        if it is not None
        for missed in misses(fleet.request, served(fleet.request, it, seed=OTHER_SEED), it)
    ]
    return replace(one, again=tuple(again))


def division_of(fleet: PlannedFleet) -> Division:
    """Pools and shares of a fleet that was planned."""
    routes: dict[str, dict[str, float]] = {}
    for pool in fleet.pools:
        for name, rate in pool.rates_per_s.items():
            routes.setdefault(name, {})[pool.name] = rate
    return Division(
        pools=tuple(
            Pool(name=it.name, station=it.station, n_replicas=it.n_replicas, router=it.router)
            for it in fleet.pools
        ),
        routes=routes,
    )


def split(fleet: SmallFleet, draw: random.Random) -> tuple[SmallFleet, SmallFleet]:
    """A market with a class that comes at random, whole and divided at random in two."""
    at = draw.randrange(len(fleet.request.classes))
    before, whole, after = _around(fleet.request.classes, at)
    whole = replace(whole, arrivals=in_bursts(1.0))
    part = draw.uniform(0.2, 0.8)
    two = [
        replace(whole, name=f"{whole.name}{name}", rate_per_s=whole.rate_per_s * share)
        for name, share in (("a", part), ("b", 1.0 - part))
    ]
    return _of_classes(fleet, *before, whole, *after), _of_classes(fleet, *before, *two, *after)


def _around(
    classes: Sequence[TrafficClass], at: int
) -> tuple[Sequence[TrafficClass], TrafficClass, Sequence[TrafficClass]]:
    return classes[:at], classes[at], classes[at + 1 :]


def _of_classes(fleet: SmallFleet, *classes: TrafficClass) -> SmallFleet:
    return replace(fleet, request=replace(fleet.request, classes=classes))


def restricted(fleet: SmallFleet, draw: random.Random) -> tuple[str, SmallFleet]:
    """A market with less to choose from, and what it lacks."""
    request = fleet.request
    ways: dict[str, SmallFleet] = {}
    if len(request.classes) > 1:
        ways["sharing"] = replace(fleet, request=replace(request, sharing=False))
    kind = draw.choice(fleet.kinds)
    most = draw.randint(1, kind.n_nodes * kind.per_node - 1)
    counts = {kind.name: most}
    ways[f"all but {most} of {kind.name}"] = replace(fleet, request=replace(request, counts=counts))
    if len(fleet.kinds) > 1:
        ways[kind.name] = _with_offers(fleet, lambda it: () if it.kind == kind.name else (it,))
    if any(it.n_devices > 1 for each in fleet.offers.values() for it in each):
        ways["replicas of two"] = _with_offers(fleet, lambda it: (it,) if it.n_devices == 1 else ())
    if any(len(it.stations) > 1 for each in fleet.offers.values() for it in each):
        at = draw.randrange(2)
        ways[f"deployments but the {('first', 'last')[at]}"] = _with_offers(
            fleet, lambda it: (replace(it, stations=(it.stations[-at],)),)
        )
    return draw.choice(sorted(ways.items(), key=lambda it: it[0]))


def _with_offers(fleet: SmallFleet, left: Callable[[Offer], tuple[Offer, ...]]) -> SmallFleet:
    offers = {
        name: tuple(it for one in each for it in left(one)) for name, each in fleet.offers.items()
    }
    return replace(fleet, offers=offers)


def same_when_split(seed: int) -> str | None:
    """What a class that is divided at random changes; None for nothing."""
    one, other = map(plan, split(small_market(seed), random.Random(seed)))
    if math.isclose(one.rent, other.rent) and math.isclose(one.fluid, other.fluid):
        return None
    return (
        f"market {seed}: whole {one.rent:.2f} (fluid {one.fluid:.2f}), "
        f"divided {other.rent:.2f} (fluid {other.fluid:.2f}), {other.rent / one.rent - 1.0:+.1%}"
    )


def no_cheaper_restricted(seed: int) -> str | None:
    """What less to choose from makes cheaper; None for nothing."""
    fleet = small_market(seed)
    lacks, less = restricted(fleet, random.Random(seed))
    one, other = plan(fleet), plan(less)
    if other.rent >= one.rent * (1.0 - LITTLE) and other.fluid >= one.fluid * (1.0 - LITTLE):
        return None
    return (
        f"market {seed}: {one.rent:.2f} (fluid {one.fluid:.2f}); "
        f"without {lacks} {other.rent:.2f} (fluid {other.fluid:.2f}), "
        f"{other.rent / one.rent - 1.0:+.1%}"
    )


CHECKS = {"splits": same_when_split, "restricted": no_cheaper_restricted}


def main(argv: Sequence[str] | None = None) -> None:
    """Force markets, and say how much dearer the product's fleets are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="markets", choices=("markets", *CHECKS))
    parser.add_argument("--markets", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU time, of each")
    asked = parser.parse_args(argv)
    seeds = range(asked.first, asked.first + asked.markets)
    if asked.what in CHECKS:
        differ = [it for it in map(CHECKS[asked.what], seeds) if it]
        print("\n".join([*differ, f"{len(seeds) - len(differ)} of {len(seeds)} hold"]))
        return
    found = []
    for seed in seeds:
        found.append(compared(seed, asked.seconds))
        one = found[-1]
        if one.is_news:
            print(one, flush=True)
    some = [one for one in found if one.is_decided]
    losses = [one.loss for one in some]
    print(
        f"{len(found)} markets, {len(some)} decided, "
        f"{sum(one.is_none for one in found)} that nothing serves; "
        f"loss {np.mean(losses):.3%} on average, {max(losses):.2%} at most; "
        f"dearer {sum(it > LITTLE for it in losses)}, "
        f"cheaper {sum(it < -LITTLE for it in losses)}; "
        f"below the fluid bound {sum(it.is_below for it in some)}; "
        f"{sum(it.planned.cpu_s for it in found):.0f} s and "
        f"{sum(it.forced.cpu_s for it in found):.0f} s of CPU time"
    )


if __name__ == "__main__":
    main()
