"""Pools of small fleets that get each class in a part of its own.

Programs know what replicas carry of sets of classes, in the mixture in which these come. Between
them replicas of a sort carry about what they do of each in proportion, and somewhat more where
several wait together: so counts n are likely that with shares x of streams g, at the rates ρ that
are known, keep

    Σ_g x_kg λ_g / ρ_kg ≤ (1 + m) n_k   ∀ sorts k,     Σ_k Σ_{g of u} x_kg ≥ 1   ∀ units u

The cheapest of them are tried: pools are simulated one by one, each with its part of each class,
and what is late in one goes to another in smaller and smaller parts, until of no target too many
requests are late, whichever pools they came to. What is found is a further stream of each pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.placing.configurations import AnyConfiguration
from planner.placing.fleets.candidate_sets import CandidateSet, for_stream
from planner.placing.fleets.choosing.dividing import Part, PoolTrials, divisions, parted, sizes_of
from planner.placing.fleets.choosing.fluid import on_devices
from planner.placing.fleets.choosing.program import Pools
from planner.placing.fleets.choosing.searching import Allowed
from planner.placing.fleets.offering import sort_key, source_of
from planner.placing.fleets.request_classes import MOST_SHARING, WHOLE
from planner.placing.fleets.solutions import (
    PlannedPool,
    Solution,
    numbered,
    planned,
    usd_per_hour,
)
from planner.programs.mixed import MixedBuilder
from planner.running.deadlines import is_over
from planner.solvers.mixed import solve_mixed
from planner.solvers.solution import effort_of
from planner.specs.records.roles import TOGETHER

MOST_REPLICAS = 12
"""Of one model, of fleets whose pools may have parts: in larger ones a whole replica matters less
than the search takes."""

MOST_SORTS, MOST_COUNTS = 6, 24
"""Sorts of replicas that are counted, and counts that are tried, the cheapest first."""

MOST_SIMULATED = 400
"""Pools that are simulated for the same counts."""

MOST_ASKED = 1000.0
"""Replicas for all of a stream, beyond which a sort is not for it."""

MARGIN = 0.15
"""Beyond its proportion, that a mixture may carry."""

ENOUGH = (1.0, 0.9, 0.75)
"""Of the requests that may be late: at which a whole fleet is tried, and tried again."""

LESS = 1.0 - 1e-6
"""Of a rent, what is less for sure."""


def in_mixtures(chosen: Solution) -> Iterator[tuple[CandidateSet, Allowed]]:
    """Markets with parts of classes that pools of a cheaper fleet carry, and what that is made of.

    Nothing promises that the whole fleet keeps its targets.
    """
    fleet = planned(chosen)
    market = replace(chosen.market, book=replace(chosen.market.book, pools=Pools()))
    for name in dict.fromkeys(one.stream.model.name for one in fleet.pools):
        pools = [it for it in fleet.pools if it.stream.model.name == name]
        rest = [it for it in fleet.pools if it not in pools]
        of_model = _of_model(market, name, rest) if _is_small(pools) else None
        stay = {id(chosen.origin(it.configuration)) for it in rest}
        for made in of_model.cheaper(usd_per_hour(pools)) if of_model else ():
            yield made, partial(_is_of, mine=stay | made.book.pools.least.keys())


def _is_of(config: AnyConfiguration, mine: Collection[int]) -> bool:
    return id(config) in mine


def _is_small(pools: Sequence[PlannedPool]) -> bool:
    """Whether pools are few replicas, each of both phases."""
    is_together = all(it.role == TOGETHER for it in pools)
    return is_together and sum(it.n_replicas for it in pools) <= MOST_REPLICAS


def _of_model(market: CandidateSet, name: str, rest: Sequence[PlannedPool]) -> _Mixing | None:
    """Streams and sorts of replicas of a model; None where it has one class, or too many.

    Args:
        rest: pools of other models.
    """
    mine = [
        i for i, it in enumerate(market.streams) if it.model.name == name and {*it.parts} == {WHOLE}
    ]
    units = sorted({*chain(*(market.streams[i].units for i in mine))})
    # programs choose among all sets of classes: each of them has to be a stream
    if not 2 <= len(units) <= MOST_SHARING or len(mine) != 2 ** len(units) - 1:
        return None
    sorts = _sorts(market, mine)[:MOST_SORTS]
    n_free = Counter(market.book.n_free)
    for it in rest:
        n_free[it.configuration.pattern.kind_name] -= it.n_replicas * it.configuration.n_devices
    made = _Mixing(market=market, streams=mine, units=units, sorts=sorts, n_free=n_free)
    return made if sorts else None


def _sorts(market: CandidateSet, streams: Sequence[int]) -> list[dict[int, AnyConfiguration]]:
    """Of each sort of replicas that serve all streams its configurations, the cheapest first."""
    by_sort: dict[object, dict[int, AnyConfiguration]] = {}
    for config in market.offered.configurations:
        if config.model in streams and config.role == TOGETHER:
            key = sort_key(config, market.streams[config.model])
            by_sort.setdefault(key, {}).setdefault(
                config.model, config
            )  # within a node, if it can be
    whole = [it for it in by_sort.values() if len(it) == len(streams)]

    def usd(sort: dict[int, AnyConfiguration]) -> float:
        return min(one.usd_per_hour * _replicas(market, one) for one in sort.values())

    return sorted(whole, key=usd)


def _beyond(build: MixedBuilder, name: str, n_of: Sequence[int], counts: IntArray) -> None:
    """Rows that let one count at least be larger."""
    # of what is no more than counts that failed all fail: z_k = 1 asks for n_k > n, one z is 1
    more = [build.column(f"{name}_{k}", 1.0, is_whole=True) for k in range(len(n_of))]
    for j, column, n in zip(more, n_of, counts.tolist(), strict=True):
        build.row(f"{name}_{j}", {column: 1.0, j: -(n + 1.0)}, 0.0, np.inf)
    build.row(name, dict.fromkeys(more, 1.0), 1.0, np.inf)


def _replicas(market: CandidateSet, config: AnyConfiguration) -> float:
    """That carry all of a stream, as they are known."""
    rate = market.book.now(config).output_tokens_per_s
    return market.streams[config.model].tokens_per_s({}) / rate if rate > 0.0 else np.inf


@dataclass(kw_only=True, eq=False)
class _Mixing(PoolTrials):
    """Counts and shares of one model.

    Args:
        n_free: devices of each kind that other models leave.
        failed: counts of which no shares were found, (K,) each.
    """

    n_free: Mapping[str, int]
    failed: list[IntArray] = field(default_factory=list)

    def cheaper(self, rent: float) -> Iterator[CandidateSet]:
        """Markets with streams that pools of less rent carry."""
        for _ in range(MOST_COUNTS):
            counts = self._counts(rent) if not is_over() else None
            if counts is None:
                return
            for pools in self._divided(*counts):
                yield self._with(pools)
            self.failed.append(counts[0])

    def _counts(self, rent: float) -> tuple[IntArray, FloatArray] | None:
        """The cheapest that were not tried, and the part of each class of each sort (K, U).

        Rates that they rest on are looked at, until nothing is left to look at.
        """
        while True:
            build, n_of, x_of = self._program(rent)
            program = build.program("mixtures")
            effort = effort_of(self.market.request.options)
            values = solve_mixed(program, effort, solvers=("highs",), wanted="one").answer
            if values is None:
                return None
            used = [self.sorts[k][i] for (k, i), j in x_of.items() if values[j] > 1.0 / WHOLE]
            if sum(self._is_less(one) for one in used):  # all of them are looked at
                continue
            # a class may be given out more than once: its parts are made to add up to one
            shares = np.zeros((len(self.sorts), len(self.units)))
            for (k, i), j in x_of.items():
                shares[k, self.members(i)] += values[j]
            return np.rint(values[n_of]).astype(np.int64), shares / shares.sum(axis=0)

    def _is_less(self, config: AnyConfiguration) -> bool:
        """Whether a closer look finds less than a rate that was known."""
        book = self.market.book
        before = book.now(config).output_tokens_per_s
        book.look_at(config)
        return book.now(config).output_tokens_per_s < before * LESS

    def _program(self, rent: float) -> tuple[MixedBuilder, list[int], dict[tuple[int, int], int]]:
        """Likely counts of less rent; none that is within one that failed."""
        build, n_of, x_of = MixedBuilder(), list[int](), dict[tuple[int, int], int]()
        devices, usd = dict[str, dict[int, float]](), dict[int, float]()
        for k, sort in enumerate(self.sorts):
            first = next(iter(sort.values()))
            kind, n_devices = first.pattern.kind_name, first.n_devices
            most, price = float(self.n_free[kind] // n_devices), first.usd_per_hour
            n_of.append(build.column(f"n{k}", most, cost=price, is_whole=True))
            devices.setdefault(kind, {})[n_of[k]], usd[n_of[k]] = float(n_devices), price
            replicas = {i: _replicas(self.market, one) for i, one in sort.items()}
            some = [i for i, n in replicas.items() if n < MOST_ASKED]
            x_of |= {(k, i): build.column(f"x{k}_{i}", 1.0) for i in some}
            terms = {x_of[k, i]: replicas[i] for i in some}
            build.row(f"time{k}", {**terms, n_of[k]: -1.0 - MARGIN}, -np.inf, 0.0)
        for unit in self.units:
            mine = {j: 1.0 for (_, i), j in x_of.items() if unit in self.market.streams[i].units}
            build.row(f"unit{unit}", mine, 1.0, np.inf)
        on_devices(build, devices, self.n_free)
        build.row("rent", usd, -np.inf, rent * LESS)
        for i, failed in enumerate(self.failed):
            _beyond(build, f"beyond{i}", n_of, failed)
        return build, n_of, x_of

    def _divided(self, counts: IntArray, shares: FloatArray) -> Iterator[list[Part]]:
        """Pools of such counts that share classes out within all goals; less and less late."""
        end = len(self.late) + MOST_SIMULATED

        def is_spent() -> bool:
            return len(self.late) >= end or is_over()

        for sizes in sizes_of(counts.tolist()):
            sorts, n = np.array(sizes).T
            # to begin with, pools of a sort have of its share what they have of its replicas
            even = shares[sorts] * (n / counts[sorts])[:, None]
            lateness = partial(self.lateness, sizes)
            for improved in divisions(even, self._work[sorts], lateness, is_spent):
                enough = iter(ENOUGH)
                most = next(enough)
                for parts, late in improved:
                    if late <= most:
                        yield [it for it in parted(sizes, parts) if any(it.parts)]
                        most = next(enough, 0.0)

    @cached_property
    def _work(self) -> FloatArray:
        """Replicas of each sort that carry all of each class (K, U)."""
        numbers = range(len(self.units))
        alone = [next(i for i in self.streams if self.members(i) == [u]) for u in numbers]
        return np.array([[_replicas(self.market, it[i]) for i in alone] for it in self.sorts])

    def _with(self, pools: Sequence[Part]) -> CandidateSet:
        """The market with a stream for each pool, whose replicas are known to carry it."""
        market, made = self.market, [self.configuration(it) for it in pools]
        names = numbered([source_of(one).stream.name for one, _ in made])
        streams, new = [*market.streams], []
        for part, (config, row), name in zip(pools, made, names, strict=True):
            stream = replace(source_of(config).stream, name=name)
            new.append(for_stream(config, len(streams), stream))
            market.book.saw(new[-1], row, stream.rate_per_s / part.n)
            streams.append(stream)
        offered = market.offered.taking([*market.offered.configurations, *new], len(streams))
        least = {id(one): part.n for one, part in zip(new, pools, strict=True)}
        book = replace(market.book, pools=Pools(least=least))
        return replace(market, streams=tuple(streams), offered=offered, book=book)
