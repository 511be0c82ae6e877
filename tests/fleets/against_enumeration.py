"""Small fleets by looking at every one of them: all ways to part the traffic, all counts.

    python -m tests.fleets.against_enumeration [--fleets 200] [--first 0]

Every set of streams that together serve all units, and for each of them every least set of
replicas that serves every stream, of those that can be packed into the nodes. Rates are of every
deployment by itself. Nothing is shared with the program but the streams and the simulations.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from unittest.mock import patch

import numpy as np

from planner.equations.arrays import FloatArray
from planner.placing.fleets.candidate_sets import CandidateSet
from planner.placing.fleets.capacity import PRECISION, PoolLoad
from planner.placing.fleets.choosing import searching
from planner.placing.fleets.choosing.rate_cache import RateEstimate
from planner.placing.fleets.choosing.searching import as_offered, settled
from planner.placing.fleets.outcomes import held_to
from planner.placing.fleets.request_classes import RequestClass, streams_of
from planner.placing.fleets.solutions import Solution
from planner.specs.ask.fleet import FleetRequest
from planner.specs.files.reading import load_model
from planner.specs.records.roles import LEAST_PRESENT, TOGETHER, Station
from planner.specs.traffic.arrivals import Trace, in_bursts
from planner.specs.traffic.lengths import IndependentLengths, Lengths, TraceLengths
from planner.specs.traffic.percentiles import TPOT, TTFT, PercentileTarget
from planner.specs.traffic.records import FREE_CUTS, TrafficClass
from planner.specs.traffic.texts import tokens_of
from tests.fleets.stationed import GivenKind, Offer, fluid_rate, given_market, pool_of_kinds
from tests.verifier.simulation.stations import station

MODELS = ("llama-3-8b", "llama-3-70b")
SIZES = (1, 2, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFleet:
    """A request, with the stations that may serve it."""

    request: FleetRequest
    kinds: tuple[GivenKind, ...]
    offers: Mapping[str, tuple[Offer, ...]]

    def market(self) -> CandidateSet:
        """As the product sees it, nothing known yet."""
        return given_market(self.request, self.offers)


def small_fleet(seed: int) -> SmallFleet:
    """One to three classes on one to three kinds."""
    draw = random.Random(seed)
    kinds = tuple(
        GivenKind(
            name=f"kind{i}",
            n_nodes=draw.randint(1, 4),
            per_node=draw.choice((2, 3, 4, 4)),
            usd_per_hour=round(draw.uniform(1.0, 5.0), 2),
        )
        for i in range(draw.randint(1, 3))
    )
    models = MODELS[: draw.randint(1, 2)]
    offers = {
        model: tuple(
            Offer(kind=kind.name, n_devices=size, stations=_stations(draw, size, slow))
            for kind in kinds
            for slow in [(1.0 + 2.0 * i) * draw.uniform(0.7, 1.5)]
            for size in SIZES
            if size <= kind.per_node and draw.random() < 0.8
        )
        for i, model in enumerate(models)
    }
    request = FleetRequest(
        site=pool_of_kinds(kinds),
        classes=tuple(_class(draw, i, models) for i in range(draw.randint(1, 3))),
        counts={
            one.name: draw.randint(1, one.n_nodes * one.per_node)
            for one in kinds
            if draw.random() < 0.3
        },
        sharing=draw.random() < 0.8,
    )
    return SmallFleet(request=request, kinds=kinds, offers=offers)


def _stations(draw: random.Random, size: int, slow: float) -> tuple:
    """One to three deployments: larger batches, shorter chunks, two ranks."""
    speed = slow / size**0.8
    return tuple(
        station(
            step_s=0.012 * speed * draw.uniform(0.8, 1.2),
            each_s=2e-4 * speed,
            pass_s=2e-3,
            read_s=3e-5 * speed * draw.uniform(0.8, 1.2),
            most_running=draw.choice((4, 16, 64)),
            chunk_tokens=draw.choice((512, 2048)),
            n_ranks=draw.choice((1, 1, 2)),
        )
        for _ in range(draw.choice((1, 1, 2)))
    )


model_named = cache(load_model)


def _class(draw: random.Random, number: int, models: Sequence[str]) -> TrafficClass:
    mine = [model_named(draw.choice(models))]
    if len(models) > 1 and draw.random() < 0.15:
        mine = [model_named(name) for name in models]
    targets = [
        PercentileTarget(quantity=TTFT, share=0.95, at_most_s=draw.uniform(0.3, 2.0)),
        PercentileTarget(quantity=TPOT, share=0.9, at_most_s=draw.uniform(0.02, 0.1)),
    ]
    return TrafficClass(
        name=f"class{number}",
        models=tuple(mine),
        rate_per_s=10.0 ** draw.uniform(-0.3, 1.4),
        lengths=few_lengths(draw),
        arrivals=in_bursts(draw.choice((1.0, 1.0, 4.0))),
        targets=tuple(targets[: draw.randint(1, 2)]),
        cuts=FREE_CUTS if draw.random() < 0.5 else (),
    )


def few_lengths(draw: random.Random) -> Lengths:
    """Few lengths of prompts, so that few cuts are free."""
    if draw.random() < 0.5:
        n_input, n_output = draw.randint(50, 1500), draw.randint(20, 300)
        return IndependentLengths(input=tokens_of(str(n_input)), output=tokens_of(str(n_output)))
    prompts = [int(10.0 ** draw.uniform(1.5, 3.7)) for _ in range(draw.randint(2, 3))]
    n = 6
    rows = [(draw.choice(prompts), draw.randint(2, 300)) for _ in range(n)]
    return TraceLengths(
        trace=Trace(
            name="few",
            arrival_s=array("d", [float(i) for i in range(n)]),
            n_input=array("q", [one for one, _ in rows]),
            n_output=array("q", [one for _, one in rows]),
        )
    )


class Enumeration:
    """All fleets of a request."""

    def __init__(self, fleet: SmallFleet) -> None:
        self.fleet = fleet
        request = fleet.request
        self.streams = streams_of(request.classes, sharing=request.sharing)
        self.price = {one.name: one.usd_per_hour for one in fleet.kinds}
        self._capacities = fleet.market().book.capacities
        self._ways: dict[int, list[tuple[Offer, FloatArray]]] = {}

    def least_rent(self, factor: float = 1.0) -> float:
        """The least rent for so many times the traffic; inf where nothing serves it."""
        best = math.inf
        for some in self._covers():
            best = self._with(list(some), Counter(), (0.0, best), factor)
        return best

    def ways(self, number: int) -> list[tuple[Offer, FloatArray]]:
        """Of each offer for a stream, requests a second of each of its deployments."""
        if number not in self._ways:
            stream = self.streams[number]
            self._ways[number] = [
                (
                    one,
                    np.array(
                        [
                            self._capacities.largest(_judged(stream, each), _bound(stream, each))
                            for each in one.stations
                        ]
                    ),
                )
                for one in self.fleet.offers[stream.model.name]
            ]
        return self._ways[number]

    def rates(self, number: int) -> list[tuple[Offer, float]]:
        """Of each offer that serves a stream, requests a second of its best deployment."""
        best = [(one, float(np.max(rates))) for one, rates in self.ways(number)]
        return [(one, rate) for one, rate in best if rate > 0.0]

    def _covers(self) -> set[frozenset[int]]:
        """Every set of streams of which each serves a unit that those before it leave."""
        units = {unit for one in self.streams for unit in one.units}
        found = set()

        def add(some: frozenset[int], left: frozenset[int]) -> None:
            if not left:
                found.add(some)
                return
            for i, one in enumerate(self.streams):
                if min(left) in one.units:
                    add(some | {i}, left - {*one.units})

        add(frozenset(), frozenset(units))
        return found

    def _with(
        self, left: list[int], used: Counter, spent: tuple[float, float], factor: float
    ) -> float:
        """The least rent with what is used already, of what is less than the best."""
        rent, best = spent
        if not left:
            return min(best, rent)
        first, *others = left
        for more, price in self._replicas(first, factor):
            whole = used + more
            if rent + price < best and self._fits(whole):
                best = self._with(others, whole, (rent + price, best), factor)
        return best

    @cache  # noqa: B019 of one request
    def _replicas(self, number: int, factor: float) -> tuple[tuple[Counter, float], ...]:
        """Every set of replicas that serves a stream, of which none can be left out."""
        offers = self.rates(number)
        demand = self.streams[number].rate_per_s * factor * (1.0 - 1e-9)
        found = []
        most = [math.ceil(demand / rate) for _, rate in offers]
        room = [self._room(one) for one, _ in offers]
        for counts in product(*(range(min(a, b) + 1) for a, b in zip(most, room, strict=True))):
            served = sum(n * rate for n, (_, rate) in zip(counts, offers, strict=True))
            spare = [rate for n, (_, rate) in zip(counts, offers, strict=True) if n]
            if served >= demand > served - min(spare, default=0.0):
                pairs = list(zip(counts, offers, strict=True))
                used = Counter({(one.kind, one.n_devices): n for n, (one, _) in pairs if n})
                if self._fits(used):
                    rent = sum(n * one.n_devices * self.price[one.kind] for n, (one, _) in pairs)
                    found.append((used, rent))
        return tuple(sorted(found, key=lambda one: one[1]))

    def _room(self, one: Offer) -> int:
        kind = next(each for each in self.fleet.kinds if each.name == one.kind)
        n_devices = self.fleet.request.counts.get(kind.name, kind.n_nodes * kind.per_node)
        return min(kind.n_nodes * (kind.per_node // one.n_devices), n_devices // one.n_devices)

    def _fits(self, used: Counter) -> bool:
        """Whether replicas can be packed into the nodes, the largest first.

        Exact where each size divides the next, and of 1, 2 and 3 in nodes of 3.
        """
        for kind in self.fleet.kinds:
            sizes = sorted((n for (name, n) in used.elements() if name == kind.name), reverse=True)
            most = self.fleet.request.counts.get(kind.name, kind.n_nodes * kind.per_node)
            free = [kind.per_node] * kind.n_nodes
            for size in sizes:
                at = next((i for i, n in enumerate(free) if n >= size), None)
                if at is None:
                    return False
                free[at] -= size
            if sum(sizes) > most:
                return False
        return True


def _judged(stream: RequestClass, station: Station) -> PoolLoad:
    """One replica, and the targets of each class."""
    goals = held_to(stream, TOGETHER)
    assert goals is not None
    return PoolLoad(stream=stream, station=station, goals=goals, router=LEAST_PRESENT, n_most=1)


def _bound(stream: RequestClass, station: Station) -> float:
    return fluid_rate(station, stream.load) * station.n_ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One small fleet, counted out and planned.

    Args:
        counted: least rent of all fleets; inf where there is none.
        roomy: the same, if each served as much more as rates are known to.
        planned: of the program; the same.
        known: of the program, all rates found before.
        fluid: bound of the program at fluid rates.
        by: who vouches for the program's rent.
        n_found, n_rates: rates that the search looked for, and all there are.
    """

    counted: float
    roomy: float
    planned: float
    known: float
    fluid: float
    by: tuple[str, ...]
    n_found: int
    n_rates: int

    @property
    def agrees(self) -> bool:
        """Whether all say the same, and the bound is one."""
        if math.isinf(self.counted):
            return math.isinf(self.planned) and math.isinf(self.known)
        same = math.isclose(self.counted, self.known, rel_tol=1e-6)
        within = self.roomy * (1.0 - 1e-6) <= self.planned <= self.counted * (1.0 + 1e-6)
        return same and within and self.fluid <= self.counted * (1.0 + 1e-9)


def compared(fleet: SmallFleet) -> Compared:
    """A fleet counted out, planned lazily, and planned with all rates known; streams are whole."""
    counted, market = Enumeration(fleet), fleet.market()
    with patch.object(searching, "N_PARTS", 1):
        fluid, chosen = settled(market, now=as_offered), settled(market)
        known = settled(_known(fleet, counted))
    return Compared(
        counted=counted.least_rent(),
        roomy=counted.least_rent(1.0 / (1.0 + PRECISION)),
        planned=_rent(chosen),
        known=_rent(known),
        fluid=fluid.solution.vouched.bound if fluid.is_found else math.inf,
        by=chosen.solution.vouched.by,
        n_found=market.book.capacities.n_asked,
        n_rates=sum(
            len(rates) for i in range(len(counted.streams)) for _, rates in counted.ways(i)
        ),
    )


def _known(fleet: SmallFleet, counted: Enumeration) -> CandidateSet:
    """The market in which nothing is left to look for."""
    market = fleet.market()
    for one in market.offered.configurations:
        size = one.pattern.kind_name, one.pattern.n_devices
        rates = next(
            rates
            for offer, rates in counted.ways(one.model)
            if (offer.kind, offer.n_devices) == size
        )
        market.book.looked[id(one), 1] = RateEstimate(rates=rates.copy(), lows=rates.copy())
    return market


def _rent(chosen: Solution) -> float:
    if not chosen.is_found:
        return math.inf
    return math.fsum(n * one.usd_per_hour for one, n in chosen.replicas)


def main(argv: Sequence[str] | None = None) -> None:
    """Compare fleets, and say how many agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args(argv)
    began_s, found = time.perf_counter(), []
    for seed in range(asked.first, asked.first + asked.fleets):
        found.append(compared(small_fleet(seed)))
        if not found[-1].agrees:
            print(f"fleet {seed}: {found[-1]}")
    some = [one for one in found if math.isfinite(one.counted)]
    gaps = sorted(one.counted / one.fluid - 1.0 for one in some)
    print(
        f"{sum(one.agrees for one in found)} of {len(found)} agree, {len(some)} of them feasible; "
        f"two provers in {sum(len(one.by) > 1 for one in some)}; "
        f"{sum(one.n_found for one in found)} of {sum(one.n_rates for one in found)} rates looked "
        f"for; rent over the fluid bound {gaps[len(gaps) // 2]:.1%} in the median, "
        f"{gaps[-1]:.1%} at most; {time.perf_counter() - began_s:.0f} s"
    )


if __name__ == "__main__":
    main()
