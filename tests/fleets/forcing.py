"""The least rent of a small market by force: all counts of replicas, all ways to share classes out.

Counts of replicas go by ascending rent. Of each, every way to make pools of them and to share each
class out in parts among the pools is held against the time that requests take at least, then pool
by pool against all targets, and what is left is simulated as a whole; percentiles are of all
requests of a class, whichever pools served them. The first counts with a division that is within
all targets have the least rent. Nothing is shared with the product but the simulation and what is
drawn for it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
from scipy.optimize import linprog

from planner.equations.arrays import BoolArray, FloatArray
from planner.estimates.simulation.arrays import PoolOfReplicas, Routes, Sent, serve
from planner.estimates.simulation.drawing import merged, seeds_of
from planner.runtimes.simulation import simulate
from planner.specs.ask.fleet import FleetRequest
from planner.specs.records.roles import Station
from planner.specs.traffic.percentiles import TPOT, TTFT
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.fleets import WARM_UP_SHARE, WIND_DOWN_SHARE, simulate_steady
from planner.verifier.simulation.outcomes import FleetOutcome
from planner.verifier.simulation.pools import ClassLoad, Pool, Route
from tests.fleets.against_enumeration import SmallFleet
from tests.fleets.stationed import GivenKind
from tests.verifier.simulation.stations import station

MOST_REPLICAS = 8

N_PARTS = 200
"""In which classes are shared out as long as there are not too many ways; in larger parts then."""

STEPS = (1, 5, 10, 20, 40, 100, N_PARTS)
"""Of these parts, the least that is tried: 20 is a tenth of a class."""

MOST_DIVISIONS = 4400
"""Of one set of pools: tenths of two classes among three pools, or of three among two."""

FEW, FAR = 0.25, 4.0
"""Of all requests, those with which pools are looked at first, and times the late ones that may be
with which they are left at that: bursts come and go."""

TRIED = 6
"""Divisions of one set of pools that are simulated as a whole, those with most room first."""

Shares = tuple[int, ...]
"""Parts of each class that a pool gets, of `N_PARTS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """One deployment of an offer.

    Args:
        number: of the offer among all of its model.
        work_s: time that a replica takes for a request of each class at least (C,).
    """

    number: int
    station: Station
    work_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A pool of a model: replicas of a deployment, by number."""

    deployed: int
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """Pools, and the share of each class that each gets."""

    pools: tuple[Pool, ...]
    routes: Mapping[str, Mapping[str, float]]


def work_s(one: Station, of: TrafficClass) -> float:
    """Time that a replica takes for a request at least: in passes that are full."""
    assert one.decode is not None
    assert one.reading is not None
    cells = of.lengths.cells()
    n_input, n_output, weight = map(np.array, (cells.n_input, cells.n_output, cells.weight))
    n, chunk = one.most_running, one.chunk_tokens
    decode_s = np.interp(n, one.decode.n_sequences, [row[0] for row in one.decode.seconds]) / n
    read_s = [row[0] for row in one.reading.seconds[0]]
    read_s = np.interp(chunk, one.reading.prompt_tokens, read_s) / chunk
    return float(weight @ (n_input * read_s + (n_output - 1) * decode_s)) / one.n_ranks


class OfModel:
    """Classes of one model, and what replicas of it do with them.

    Args:
        classes: by number.
        most_s: of CPU time, from a start on.
    """

    def __init__(self, fleet: SmallFleet, model: str) -> None:
        self.request = request = fleet.request
        self.classes = [i for i, one in enumerate(request.classes) if one.model.name == model]
        mine = [request.classes[i] for i in self.classes]
        self.offers = fleet.offers[model]
        self.deployed = [
            Deployed(number=k, station=it, work_s=tuple(work_s(it, one) for one in mine))
            for k, offer in enumerate(self.offers)
            for it in offer.stations
        ]
        self.rates = np.array([one.rate_per_s for one in mine])
        self.targets = [(k, it) for k, one in enumerate(mine) for it in one.targets]
        self.kept: dict[tuple[int, ...], list[tuple[Part, Shares]] | None] = {}
        self._late: dict[tuple[int, int, Shares], FloatArray] = {}
        self._broken: dict[Part, list[Shares]] = {}
        self._draw()

    def _draw(self) -> None:
        """Requests of all classes, as every simulation has them."""
        n, classes = self.request.n_simulated, self.request.classes
        seeds = seeds_of(len(classes), random.Random(self.request.options.seed))
        at_s, tokens, number = merged(classes, [first for first, _ in seeds], n)
        rows = np.isin(number, self.classes)
        order = np.arange(n)
        counted = (order >= int(WARM_UP_SHARE * n)) & (order < n - int(WIND_DOWN_SHARE * n))
        self._at_s, self._tokens, self._counted = at_s[rows], tokens[:, rows], counted[rows]
        self._member = np.searchsorted(self.classes, number[rows])
        self._chance = np.random.default_rng(1).random(len(self._at_s)) * N_PARTS

    def may_serve(self, counts: Sequence[int]) -> bool:
        """Whether replicas have the time, each class shared out at will."""
        if not any(counts):
            return False
        best = np.array(
            [
                np.min([it.work_s for it in self.deployed if it.number == k], axis=0)
                for k, n in enumerate(counts)
                if n
            ]
        )
        n_kinds, n_classes = best.shape
        found = linprog(
            np.zeros(n_kinds * n_classes),
            A_ub=np.kron(np.eye(n_kinds), np.ones(n_classes)) * (best * self.rates).ravel(),
            b_ub=[float(n) for n in counts if n],
            A_eq=np.kron(np.ones(n_kinds), np.eye(n_classes)),
            b_eq=np.ones(n_classes),
        )
        return bool(found.status == 0)

    def sets_of_pools(self, counts: Sequence[int]) -> Iterator[tuple[Part, ...]]:
        """Every way to make pools of replicas, fewest first; no more of an offer than classes."""
        ways = []
        for k, n in enumerate(counts):
            mine = [i for i, it in enumerate(self.deployed) if it.number == k]
            ways.append(
                [
                    some
                    for sizes in _partitions(n, len(self.classes))
                    for some in {
                        tuple(sorted(zip(numbers, sizes, strict=True)))
                        for numbers in product(mine, repeat=len(sizes))
                    }
                ]
            )
        found = [tuple(Part(*it) for some in each for it in some) for each in product(*ways)]
        yield from sorted(found, key=lambda parts: (len(parts), repr(parts)))

    def divisions(self, parts: Sequence[Part]) -> list[list[Shares]]:
        """Every way to share classes out among pools that have the time, the evenest first."""
        n_parts, n_classes = len(parts), len(self.classes)
        step = next(
            it
            for it in STEPS
            if it == N_PARTS
            or math.comb(N_PARTS // it + n_parts - 1, n_parts - 1) ** n_classes <= MOST_DIVISIONS
        )
        each = [
            tuple(
                step * (b - a - 1) for a, b in pairwise((-1, *bars, N_PARTS // step + n_parts - 1))
            )
            for bars in _bars(N_PARTS // step + n_parts - 1, n_parts - 1)
        ]
        # of each class (D, P); together (D^C, C, P)
        shares = np.array(list(product(each, repeat=n_classes)), dtype=np.int64)
        work = np.array([self.deployed[it.deployed].work_s for it in parts]).T * self.rates[:, None]
        busy = (shares / N_PARTS * work).sum(axis=1) / [it.n for it in parts]
        real = (busy.max(axis=1) <= 1.0) & (shares.sum(axis=1) > 0).all(axis=1)
        for a, b in pairwise(range(n_parts)):  # pools that are alike in one order
            if parts[a] == parts[b]:
                order = shares @ np.eye(n_parts)[a], shares @ np.eye(n_parts)[b]
                weights = (N_PARTS + 1.0) ** np.arange(n_classes)
                real &= order[0] @ weights >= order[1] @ weights
        rows = np.flatnonzero(real)
        rows = rows[np.argsort(busy[rows].max(axis=1), kind="stable")]
        return [[tuple(it) for it in shares[row].T.tolist()] for row in rows.tolist()]

    def late(self, one: Part, shares: Shares) -> FloatArray:
        """Of each target, the share of all requests of its class that a pool is late with."""
        key = one.deployed, one.n, shares
        if key not in self._late:
            sent = self._chance < np.array(shares)[self._member]
            first = np.arange(len(sent)) < FEW * len(sent)
            late = self._served(one, sent, first)
            if not (late > FAR * self.allowed(first)).any():
                late = self._served(one, sent, np.ones_like(sent))
            self._late[key] = late
        return self._late[key]

    def _served(self, one: Part, sent: BoolArray, among: BoolArray) -> FloatArray:
        """What a pool is late with of the requests that are sent to it, among some of all."""
        rows = sent & among
        n, at_s, tokens = int(rows.sum()), self._at_s[rows], self._tokens[:, rows]
        pool = PoolOfReplicas(
            station=self.deployed[one.deployed].station,
            n_replicas=one.n,
            router=self.request.router,
            chances=np.zeros(0),
        )
        nothing = np.zeros(n, np.int64)
        requests = Sent(
            arrived_s=at_s, n_input=tokens[0], n_output=tokens[1], of_class=nothing, route=nothing
        )
        done = serve([pool], _ROUTE, requests, n_classes=1, edges=[0, n], counts_gaps=False)
        times = {
            TTFT: done.first_s - at_s,
            TPOT: (done.last_s - done.first_s) / np.maximum(tokens[1] - 1, 1),
        }
        found = []
        for (_, target), mine in zip(self.targets, self._of_target, strict=True):
            late = times[target.quantity][mine[rows]] > target.at_most_s
            found.append(late.sum() / max(1, (mine & among).sum()))
        return np.array(found)

    @cached_property
    def _of_target(self) -> list[BoolArray]:
        """Requests that each target is over."""
        return [
            self._counted
            & (self._member == k)
            & ((self._tokens[1] > 1) | (target.quantity != TPOT))
            for k, target in self.targets
        ]

    def allowed(self, among: BoolArray | None = None) -> FloatArray:
        """Late shares that a division is simulated as a whole with: a target's, and its chance."""
        late = np.array([1.0 - it.share for _, it in self.targets])
        n = [int((it if among is None else it & among).sum()) for it in self._of_target]
        return 1.2 * late + 2.0 * np.sqrt(late / np.maximum(1, n))

    def within(self, parts: Sequence[Part]) -> list[list[Shares]]:
        """Divisions whose pools keep all targets by themselves, those with most room first."""
        allowed, found = self.allowed(), []
        broken = [self._broken.setdefault(it, []) for it in parts]
        for division in self.divisions(parts):
            whole = np.zeros(len(allowed))
            for one, shares, mine in zip(parts, division, broken, strict=True):
                if any(all(a <= b for a, b in zip(it, shares, strict=True)) for it in mine):
                    whole[:] = np.inf
                    break
                late = self.late(one, shares)
                if (late > allowed).any():  # whatever the others do, and with more all the more
                    mine.append(shares)
                whole += late
                if (whole > allowed).any():
                    break
            if (whole <= allowed).all():
                limits = [1.0 - it.share for _, it in self.targets]
                found.append((float(np.max(whole / limits)), division))
        return [it for _, it in sorted(found, key=lambda it: it[0])]


@dataclass(slots=True, kw_only=True)
class Forced:
    """The least rent of a market, by force.

    Args:
        rent: inf where nothing of so few replicas serves all.
        is_closed: whether time was enough for all counts of less rent.
    """

    rent: float = math.inf
    is_closed: bool = True
    division: Division | None = None
    n_counts: int = 0
    n_pools: int = 0
    n_whole: int = 0
    cpu_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Search:
    """A search by force.

    Args:
        most_s: of CPU time.
        below: a rent from which on nothing is looked at.
    """

    fleet: SmallFleet
    most_s: float = math.inf
    below: float = math.inf
    found: Forced = field(default_factory=Forced)
    models: dict[str, OfModel] = field(default_factory=dict)

    def least(self) -> Forced:
        """The first counts by ascending rent that serve all."""
        began_s, found = time.process_time(), self.found
        self.models = {name: OfModel(self.fleet, name) for name in self.fleet.offers}
        self.models = {name: it for name, it in self.models.items() if it.classes}
        for rent, counts in self._counts():
            if rent > self.below:
                break
            if time.process_time() - began_s > self.most_s:
                found.is_closed = False
                break
            found.n_counts += 1
            if self._serve(counts):
                found.rent = rent
                break
        found.n_pools = sum(len(it._late) for it in self.models.values())
        found.cpu_s = time.process_time() - began_s
        return found

    def _counts(self) -> list[tuple[float, tuple[tuple[int, ...], ...]]]:
        """Counts of the offers of each model that fit together, by ascending rent."""
        kinds, request = {one.name: one for one in self.fleet.kinds}, self.fleet.request
        most = {name: request.counts.get(name, MOST_REPLICAS * 2) for name in kinds}
        offers = [it for one in self.models.values() for it in one.offers]
        ends = np.cumsum([0, *(len(one.offers) for one in self.models.values())]).tolist()
        rooms = [
            min(
                kinds[it.kind].n_nodes * (kinds[it.kind].per_node // it.n_devices),
                most[it.kind] // it.n_devices,
                MOST_REPLICAS,
            )
            for it in offers
        ]
        found = []
        for counts in product(*(range(it + 1) for it in rooms)):
            parts = tuple(counts[a:b] for a, b in pairwise(ends))
            if sum(counts) > MOST_REPLICAS or not all(map(any, parts)):
                continue
            used = [
                (it.kind, it.n_devices)
                for it, n in zip(offers, counts, strict=True)
                for _ in range(n)
            ]
            if all(
                _packs([n for k, n in used if k == name], kind, most[name])
                for name, kind in kinds.items()
            ):
                rent = math.fsum(n * kinds[kind].usd_per_hour for kind, n in used)
                found.append((rent, parts))
        return sorted(found)

    def _serve(self, counts: Sequence[tuple[int, ...]]) -> bool:
        """Whether some division of these is within all targets, by itself and as a whole."""
        chosen = {}
        for (name, one), mine in zip(self.models.items(), counts, strict=True):
            known = self._of_model(name, one, mine)
            if known is None:
                return False
            chosen[name] = known
        if len(self.models) == 1:
            self.found.division = self._division(chosen)
            return True
        whole = self._division(chosen)
        if self._keeps(whole):
            self.found.division = whole
            return True
        return False

    def _of_model(
        self, name: str, one: OfModel, counts: tuple[int, ...]
    ) -> list[tuple[Part, Shares]] | None:
        if counts in one.kept:
            return one.kept[counts]
        one.kept[counts] = None
        for other, kept in one.kept.items():
            no_fewer = all(a >= b for a, b in zip(counts, other, strict=True))
            if other != counts and kept is not None and no_fewer:
                return None  # without what is beyond those the rent is less
        if not one.may_serve(counts):
            return None
        for parts in one.sets_of_pools(counts):
            for division in one.within(parts)[:TRIED]:
                pairs = list(zip(parts, division, strict=True))
                if self._keeps(self._division({name: pairs})):
                    one.kept[counts] = pairs
                    return pairs
        return None

    def _division(self, chosen: Mapping[str, list[tuple[Part, Shares]]]) -> Division:
        """Pools and routes; classes of models that are not chosen go where nobody waits."""
        request, pools = self.fleet.request, []
        routes: dict[str, dict[str, float]] = {it.name: {} for it in request.classes}
        for model, pairs in chosen.items():
            one = self.models[model]
            for part, shares in pairs:
                name = f"pool{len(pools)}"
                station = one.deployed[part.deployed].station
                pools.append(
                    Pool(name=name, station=station, n_replicas=part.n, router=request.router)
                )
                for k, n_parts in zip(one.classes, shares, strict=True):
                    if n_parts:
                        routes[request.classes[k].name][name] = float(n_parts)
        if not all(routes.values()):
            pools.append(Pool(name="elsewhere", station=_ELSEWHERE, n_replicas=1))
            routes = {name: it or {"elsewhere": 1.0} for name, it in routes.items()}
        return Division(pools=tuple(pools), routes=routes)

    def _keeps(self, one: Division) -> bool:
        self.found.n_whole += 1
        return not misses(self.fleet.request, served(self.fleet.request, one), one)


def served(
    request: FleetRequest, one: Division, *, times: int = 1, seed: int | None = None
) -> FleetOutcome:
    """A fleet simulated as the product simulates its own.

    Args:
        times: as many requests.
        seed: another than that of the request.
    """
    loads = [
        ClassLoad(
            name=it.name,
            source=it,
            routes=tuple(Route(pool=to, share=part) for to, part in one.routes[it.name].items()),
        )
        for it in request.classes
    ]
    return simulate_steady(
        one.pools,
        loads,
        n_requests=times * request.n_simulated,
        seed=request.options.seed if seed is None else seed,
        shares=sorted({it.share for each in request.classes for it in each.targets} | {0.5}),
        simulation=simulate,
    )


def misses(request: FleetRequest, outcome: FleetOutcome, one: Division) -> list[str]:
    """Targets that are missed, of classes that pools of the fleet serve."""
    return [
        f"{it.name} {target.name} {outcome.of(it.name).of(target.quantity).at_s(target.share):.4g}"
        f" of {target.at_most_s:.4g}"
        for it in request.classes
        for target in it.targets
        if "elsewhere" not in one.routes[it.name] and not outcome.of(it.name).meets(target)
    ]


def _packs(sizes: list[int], kind: GivenKind, most: float) -> bool:
    """Whether replicas of one and two devices can be packed into nodes, the largest first."""
    free = [kind.per_node] * kind.n_nodes
    for size in sorted(sizes, reverse=True):
        at = next((i for i, n in enumerate(free) if n >= size), None)
        if at is None:
            return False
        free[at] -= size
    return sum(sizes) <= most


def _partitions(n: int, most: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Ways to write a number as a sum of few, descending."""
    if n == 0:
        yield ()
    elif most:
        for first in range(min(n, largest or n), 0, -1):
            for rest in _partitions(n - first, most - 1, first):
                yield (first, *rest)


def _bars(n: int, k: int) -> Iterator[tuple[int, ...]]:
    """Places of k bars among n, ascending."""
    for some in combinations_with_replacement(range(n - k + 1), k):
        yield tuple(it + i for i, it in enumerate(some))


_ROUTE = Routes(
    pool=np.zeros(1, np.int64),
    then=np.full(1, -1),
    links=np.full(1, -1),
    of_links=np.zeros((0, 5)),
)
_ELSEWHERE = station(step_s=1e-6, read_s=1e-9)
