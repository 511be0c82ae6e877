"""What a pool of replicas carries within targets: simulated, and nothing else.

All simulations serve the same requests, drawn once for all classes, closer together or further
apart: so rates differ by what replicas do, not by chance. A run is cut short where a target is
kept or broken for sure: of shorter runs, where the share of requests that are late is beyond what
a target allows by more than its interval (`outcomes.ERROR`). Time passed never decides.

What is kept at a rate is taken to be kept at lower ones, and at the same rate of a replica in a
larger pool: so the largest rate is looked for by halving.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.estimates.simulation.arrays import PoolOfReplicas, Routes, Sent, SimulatedRun, serve
from planner.estimates.simulation.core import NOBODY
from planner.estimates.simulation.drawing import merged, seeds_of
from planner.placing.fleets.outcomes import Goal, Run, Sample, edges_of
from planner.placing.fleets.request_classes import RequestClass
from planner.running.deadlines import is_over
from planner.specs.records.roles import AT_RANDOM, DECODE, Station
from planner.specs.traffic.percentiles import ITL
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.fleets import (
    MOST_REQUESTS,
    N_STAYS,
    WARM_UP_SHARE,
    WIND_DOWN_SHARE,
)

PRECISION = 0.01
"""Of a rate, as a share of it; what is found is within the targets."""

SHORTER = (1.0 / 16.0, 1.0 / 4.0, 1.0)
"""Shares of all requests that are served until a target is kept or broken."""

MOST_POOLED = 16
"""Replicas that are simulated together: more pool hardly better, and cost as many times more."""

FEWEST = 100
"""Requests of a stream among those of all traffic, below which it is simulated by itself."""

_FIRST, _STEP = 0.7, 1.04
"""Of a bound, where the largest rate is looked for first, and how much further next."""

_NEARLY_NONE = 1e-4
_MOST_RUNS = 4
_N_ALONE, _ALONE_S = 300, 1e5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolLoad:
    """Replicas that are alike, what is sent to them, and what they are held to.

    Args:
        goals: of each class of the stream.
        router: before several of them.
        n_most: replicas together at most.
    """

    stream: RequestClass
    station: Station
    goals: Sequence[Goal]
    router: str
    n_most: int = MOST_POOLED

    def pool(self, rate_per_s: float) -> int:
        """Replicas that serve the stream where each has such a rate."""
        n = math.ceil(self.stream.rate_per_s / rate_per_s * (1.0 - 1e-9))
        return max(1, min(n, self.n_most))


@dataclass(slots=True, kw_only=True, eq=False)
class Capacities:
    """Simulations of the classes of a request.

    Args:
        n_requests: of all classes together, at least.
        seed: of all that is drawn.
        n_asked: rates of a way that were asked for: the largest, or whether it carries one.
    """

    classes: Sequence[TrafficClass]
    n_requests: int
    seed: int
    n_asked: int = 0
    _shares: dict[tuple[str, str], float] = field(default_factory=dict)
    _samples: dict[tuple[str, int, int], Sample] = field(default_factory=dict)

    def largest(self, pool: PoolLoad, most: float, least: float = 0.0) -> float | None:
        """Requests a second of a replica within all goals, between two rates; None out of time.

        It is looked for where the last of the stream was, as a share of what no scheduler exceeds,
        in wider and wider steps, and then by halving.

        Args:
            most: that no scheduler exceeds.
            least: 0, or a rate at which it keeps its goals.
        """
        low, high, step = least, most, _STEP
        key = pool.stream.name, pool.station.role
        at = self._shares.get(key, _FIRST) * most
        while high - low > PRECISION * high and high > _NEARLY_NONE * most:
            at = min(max(at, low + PRECISION * high / 2.0), high * (1.0 - PRECISION / 2.0))
            carried = self.carries(pool, at)
            if carried is None:
                return None
            low, high = (at, high) if carried else (low, at)
            is_between = high < most and low > least
            at = (low + high) / 2.0 if is_between else at * (step if carried else 1.0 / step)
            step *= step
        if low > 0.0:
            self._shares[key] = low / most
        return low

    def carries(self, pool: PoolLoad, rate_per_s: float) -> bool | None:
        """Whether replicas that each get so many requests a second keep all goals."""
        n = pool.pool(rate_per_s)
        spread = pool.stream.rate_per_s / (n * rate_per_s)
        for share in SHORTER:
            if is_over():
                return None
            n_requests = self.n_requests if share == 1.0 else int(share * self.n_requests)
            verdict = self._verdict(pool, n, spread, n_requests, is_whole=share == 1.0)
            if verdict is not None:
                return verdict
        return True

    def _verdict(
        self, pool: PoolLoad, n: int, spread: float, n_requests: int, *, is_whole: bool
    ) -> bool | None:
        """Whether goals are kept in a run of so many requests; None where it is not sure."""
        n_first, n_last = int(WARM_UP_SHARE * n_requests), int(WIND_DOWN_SHARE * n_requests)
        n_counted = n_requests - n_first - n_last
        for _ in range(_MOST_RUNS):
            sample = self._sample(pool.stream, n_first, n_counted, n_last, pool.station.role)
            if not sample.counted.any():
                return True if is_whole else None
            run = Run(pool.goals, sample, self._served(pool, sample, n, spread), spread)
            verdict = run.kept() if is_whole else run.surely_kept()
            if not verdict:
                return verdict
            n_stay = run.stay_s / spread * n_requests / max(sample.arrived_s[-1], 1e-300)
            fills, whole = math.ceil(N_STAYS * n_stay), math.ceil(3.0 * n_stay) + n_counted
            if n_first >= fills or (is_whole and whole > MOST_REQUESTS):
                return True
            if not is_whole:
                return None
            n_first, n_last = fills, math.ceil(n_stay)
            n_requests = n_first + n_counted + n_last
        return True

    def late(self, pool: PoolLoad, some: float) -> list[float]:
        """Of each goal, the share of its requests that is late where a pool gets its stream.

        Args:
            some: of all requests, as a share.
        """
        n = int(some * self.n_requests)
        n_first, n_last = (int(it * n) for it in (WARM_UP_SHARE, WIND_DOWN_SHARE))
        sample = self._sample(pool.stream, n_first, n - n_first - n_last, n_last, pool.station.role)
        run = Run(pool.goals, sample, self._served(pool, sample, pool.n_most, 1.0), 1.0)
        return [run.late_share(it) for it in pool.goals]

    def alone_s(self, stream: RequestClass, station: Station, quantity: str, share: float) -> float:
        """A percentile of requests of which each is alone [s]."""
        goals: list[Goal] = []
        pool = PoolLoad(stream=stream, station=station, goals=goals, router=AT_RANDOM, n_most=1)
        n_last = int(WIND_DOWN_SHARE * self.n_requests)
        sample = self._sample(stream, 0, self.n_requests - n_last, n_last, station.role)
        first = sample.only(np.arange(len(sample.arrived_s)) < _N_ALONE)
        apart = Sample(
            arrived_s=np.arange(len(first.arrived_s), dtype=np.float64) * _ALONE_S,
            tokens=first.tokens,
            member=first.member,
            counted=np.ones_like(first.counted),
        )
        served = self._served(pool, apart, 1, 1.0, counts_gaps=quantity == ITL)
        run = Run((), apart, served, 1.0)
        return run.percentile_s(quantity, share)

    def _served(
        self,
        judged: PoolLoad,
        sample: Sample,
        n: int,
        spread: float,
        *,
        counts_gaps: bool = False,
    ) -> SimulatedRun:
        """A pool serves a sample, spread over so many times its time."""
        pool = PoolOfReplicas(
            station=judged.station,
            n_replicas=n,
            router=judged.router,
            chances=np.random.default_rng(self.seed).random(len(sample.arrived_s)),
        )
        sent = Sent(
            arrived_s=sample.arrived_s * spread,
            n_input=sample.tokens[0],
            n_output=sample.tokens[1],
            of_class=sample.member,
            route=np.zeros(len(sample.arrived_s), np.int64),
        )
        return serve(
            [pool],
            _ROUTE,
            sent,
            n_classes=len(judged.stream.classes),
            edges=edges_of(sample.counted).tolist(),
            counts_gaps=counts_gaps or any(it.quantity == ITL for it in judged.goals),
        )

    def _sample(
        self, stream: RequestClass, n_first: int, n_counted: int, n_last: int, role: str
    ) -> Sample:
        """Requests of a stream among so many of all traffic; where they are few, by themselves."""
        n = n_first + n_counted + n_last
        key = stream.name + role, n_first, n
        if key not in self._samples:
            names = [it.name for it in self.classes]
            mine = [names.index(it.name) for it in stream.classes]
            part = stream.rate_per_s / sum(it.rate_per_s for it in self.classes)
            among = range(len(names)) if part * n >= FEWEST else mine
            chance = random.Random(self.seed)
            seeds = [first for first, _ in seeds_of(len(names), chance)]
            at_s, tokens, number = merged(
                [self.classes[i] for i in among], [seeds[i] for i in among], n
            )
            place = np.full(len(among), NOBODY)
            place[[list(among).index(i) for i in mine]] = np.arange(len(mine))
            counted = np.zeros(len(at_s), np.bool_)
            counted[n_first : n_first + n_counted] = True
            whole = Sample(arrived_s=at_s, tokens=tokens, member=place[number], counted=counted)
            read = (tokens[0] > stream.above_tokens) & (tokens[0] <= stream.upto_tokens)
            several = (tokens[1] > 1) | (role != DECODE)
            sample = whole.only((whole.member >= 0) & read & several)
            parts = np.array([*stream.part_of.values()])
            chances = np.random.default_rng(self.seed).random(len(sample.member))
            self._samples[key] = sample.only(chances < parts[sample.member])
        return self._samples[key]


_ROUTE = Routes(
    pool=np.zeros(1, np.int64),
    then=np.full(1, NOBODY),
    links=np.full(1, NOBODY),
    of_links=np.zeros((0, 5)),
)
