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

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.placing.fabrics.patterns import NodeConfiguration
from planner.placing.fleets.chosen import Chosen, numbered, planned, usd_per_hour
from planner.placing.fleets.dividing import Part, divisions, parted, sizes_of
from planner.placing.fleets.fluid import on_devices, sort_key
from planner.placing.fleets.market import Market, for_stream
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.outcomes import Goal
from planner.placing.fleets.program import Pools
from planner.placing.fleets.searching import Allowed
from planner.placing.fleets.streams import MOST_SHARING, WHOLE
from planner.placing.fleets.targets import held_to
from planner.programs.mixed import MixedBuilder
from planner.running.deadlines import is_over
from planner.solvers.mixed import solve_mixed
from planner.solvers.solution import effort_of
from planner.specs.roles import TOGETHER

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

FEW, FAR = 0.25, 3.0
"""Of all requests, those that a pool is simulated with first, and the lateness at which it is left
at that."""

LESS = 1.0 - 1e-6
"""Of a rent, what is less for sure."""


def in_mixtures(chosen: Chosen) -> Iterator[tuple[Market, Allowed]]:
    """Markets with parts of classes that pools of a cheaper fleet carry, and what that is made of.

    Nothing promises that the whole fleet keeps its targets.
    """
    fleet = planned(chosen)
    market = replace(chosen.market, book=replace(chosen.market.book, pools=Pools()))
    for name in dict.fromkeys(one.stream.model.name for one in fleet.pools):
        pools = [it for it in fleet.pools if it.stream.model.name == name]
        rest = [it for it in fleet.pools if it.stream.model.name != name]
        n_free = Counter(market.book.n_free)
        for it in rest:
            n_free[it.configuration.pattern.kind_name] -= it.n_replicas * it.configuration.n_devices
        is_small = sum(it.n_replicas for it in pools) <= MOST_REPLICAS
        of_model = _of_model(market, name, n_free)
        if of_model is not None and is_small and all(it.role == TOGETHER for it in pools):
            stay = {id(chosen.origin(it.configuration)) for it in rest}
            for made in of_model.cheaper(usd_per_hour(pools)):
                yield made, partial(_is_of, mine=stay | made.book.pools.least.keys())


def _is_of(one: NodeConfiguration, mine: Collection[int]) -> bool:
    return id(one) in mine


def _of_model(market: Market, name: str, n_free: Mapping[str, int]) -> _Mixing | None:
    """Streams and sorts of replicas of a model; None where it has one class, or too many."""
    mine = [i for i, it in enumerate(market.streams) if it.model.name == name]
    mine = [i for i in mine if {*market.streams[i].parts} == {WHOLE}]
    units = sorted({unit for i in mine for unit in market.streams[i].units})
    if not 2 <= len(units) <= MOST_SHARING or len(mine) != 2 ** len(units) - 1:
        return None
    sorts: dict[object, dict[int, NodeConfiguration]] = {}
    for one in market.offered.configurations:
        if one.model in mine and one.role == TOGETHER:
            key = sort_key(one, market.streams[one.model])
            sorts.setdefault(key, {}).setdefault(one.model, one)  # within a node, if it can be
    whole = [it for it in sorts.values() if len(it) == len(mine)]
    if not whole:
        return None
    whole.sort(key=lambda it: min(_price(market, one) for one in it.values()))
    return _Mixing(
        market=market, streams=mine, units=units, sorts=whole[:MOST_SORTS], n_free=n_free
    )


def _replicas(market: Market, one: NodeConfiguration) -> float:
    """That carry all of a stream, as they are known."""
    rate = market.book.now(one).output_tokens_per_s
    return market.streams[one.model].tokens_per_s({}) / rate if rate > 0.0 else np.inf


def _price(market: Market, one: NodeConfiguration) -> float:
    """Of replicas that carry all of a stream [USD/h]."""
    return one.usd_per_hour * _replicas(market, one)


@dataclass(kw_only=True, eq=False)
class _Mixing:
    """Counts and shares of one model.

    Args:
        streams: in the mixture in which their classes come, by number.
        units: one of each class.
        sorts: of each sort of replicas its configurations, by stream.
        n_free: devices of each kind that other models leave.
        failed: counts of which no shares were found, (K,) each.
    """

    market: Market
    streams: Sequence[int]
    units: Sequence[int]
    sorts: Sequence[dict[int, NodeConfiguration]]
    n_free: Mapping[str, int]
    failed: list[IntArray] = field(default_factory=list)
    _late: dict[Part, FloatArray] = field(default_factory=dict)

    def cheaper(self, rent: float) -> Iterator[Market]:
        """Markets with streams that pools of less rent carry."""
        for _ in range(MOST_COUNTS):
            found = self._counts(rent) if not is_over() else None
            if found is None:
                return
            for pools in self._divided(*found):
                yield self._with(pools)
            self.failed.append(found[0])

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
            news = [self._is_less(one) for one in used]
            if any(news):
                continue
            shares = np.zeros((len(self.sorts), len(self.units)))
            for (k, i), j in x_of.items():
                shares[k, self._members(i)] += values[j]
            return np.rint(values[n_of]).astype(np.int64), shares / shares.sum(axis=0)

    def _members(self, stream: int) -> list[int]:
        """Numbers of the classes of a stream."""
        return [self.units.index(unit) for unit in self.market.streams[stream].units]

    def _is_less(self, one: NodeConfiguration) -> bool:
        """Whether a closer look finds less than a rate that was known."""
        book = self.market.book
        before = book.now(one).output_tokens_per_s
        book.look_at(one)
        return book.now(one).output_tokens_per_s < before * LESS

    def _program(self, rent: float) -> tuple[MixedBuilder, list[int], dict[tuple[int, int], int]]:
        """Likely counts of less rent; none that is within one that failed."""
        build, first = MixedBuilder(), [next(iter(it.values())) for it in self.sorts]
        kinds, sizes = [it.pattern.kind_name for it in first], [it.n_devices for it in first]
        most = [self.n_free[kind] // n for kind, n in zip(kinds, sizes, strict=True)]
        n_of = [
            build.column(f"n{k}", float(n), cost=it.usd_per_hour, is_whole=True)
            for k, (n, it) in enumerate(zip(most, first, strict=True))
        ]
        on_devices(build, kinds, sizes, n_of, self.n_free)
        usd = {j: it.usd_per_hour for j, it in zip(n_of, first, strict=True)}
        build.row("rent", usd, -np.inf, rent * LESS)
        asked = {
            (k, i): _replicas(self.market, one)
            for k, sort in enumerate(self.sorts)
            for i, one in sort.items()
        }
        pairs = [it for it, n in asked.items() if n < MOST_ASKED]
        x_of = {(k, i): build.column(f"x{k}_{i}", 1.0) for k, i in pairs}
        for k in range(len(first)):
            terms = {x_of[it]: asked[it] for it in pairs if it[0] == k}
            build.row(f"time{k}", {**terms, n_of[k]: -1.0 - MARGIN}, -np.inf, 0.0)
        for unit in self.units:
            mine = {x_of[k, i]: 1.0 for k, i in pairs if unit in self.market.streams[i].units}
            build.row(f"unit{unit}", mine, 1.0, np.inf)
        for i, failed in enumerate(self.failed):
            more = [build.column(f"more{i}_{k}", 1.0, is_whole=True) for k in range(len(n_of))]
            for j, column, n in zip(more, n_of, failed.tolist(), strict=True):
                build.row(f"more{i}_{j}", {column: 1.0, j: -(n + 1.0)}, 0.0, np.inf)
            build.row(f"other{i}", dict.fromkeys(more, 1.0), 1.0, np.inf)
        return build, n_of, x_of

    def _divided(self, counts: IntArray, shares: FloatArray) -> Iterator[list[Part]]:
        """Pools of such counts that share classes out within all goals; less and less late."""
        end = len(self._late) + MOST_SIMULATED

        def is_spent() -> bool:
            return len(self._late) >= end or is_over()

        for sizes in sizes_of(counts.tolist()):
            sorts, n = np.array(sizes).T
            even = shares[sorts] * (n / counts[sorts])[:, None]
            lateness = partial(self._lateness, sizes)
            for improved in divisions(even, self._work[sorts], lateness, is_spent):
                enough = iter(ENOUGH)
                most = next(enough)
                for parts, late in improved:
                    if late <= most:
                        yield [it for it in parted(sizes, parts) if any(it.parts)]
                        most = next(enough, 0.0)

    def _lateness(self, sizes: Sequence[tuple[int, int]], parts: IntArray) -> FloatArray:
        """Of each pool and goal, the late share of all of its class, of what may be (P, G)."""
        return np.array([self._late_of(it) for it in parted(sizes, parts)])

    @cached_property
    def _work(self) -> FloatArray:
        """Replicas of each sort that carry all of each class (K, U)."""
        alone = [next(i for i in self.streams if self._members(i) == [u]) for u in self._numbers]
        return np.array([[_replicas(self.market, it[i]) for i in alone] for it in self.sorts])

    @property
    def _numbers(self) -> range:
        return range(len(self.units))

    @cached_property
    def _goals(self) -> list[tuple[str, Goal]]:
        """Of all classes, each with the name of its own."""
        whole = next(i for i in self.streams if len(self._members(i)) == len(self.units))
        stream = self.market.streams[whole]
        return [(stream.classes[it.member].name, it) for it in held_to(stream, TOGETHER) or ()]

    def _late_of(self, part: Part) -> FloatArray:
        """Of each goal, what comes too late in a pool, in what may be late of its class (G,)."""
        if part not in self._late:
            found = self._simulated(part, FEW)
            self._late[part] = found if found.max() > FAR else self._simulated(part, 1.0)
        return self._late[part]

    def _simulated(self, part: Part, some: float) -> FloatArray:
        """The same of some of all requests."""
        found = np.zeros(len(self._goals))
        if any(part.parts):
            one, row = self._configuration(part)
            shares = source_of(one).stream.part_of
            late = iter(self.market.book.late(one, row, part.n, some))
            for g, (name, goal) in enumerate(self._goals):
                if name in shares:
                    found[g] = shares[name] * next(late) / (1.0 - goal.target.share)
        return found

    def _configuration(self, part: Part) -> tuple[NodeConfiguration, int]:
        """Of a pool, whose stream has its parts of classes; and the row of its way."""
        of_unit = dict(zip(self.units, part.parts, strict=True))
        some = {unit for unit, n in of_unit.items() if n}
        i = next(i for i in self.streams if {*self.market.streams[i].units} == some)
        stream, one = self.market.streams[i], self.sorts[part.sort][i]
        names = {stream.rate_of_unit[unit][0]: n for unit, n in of_unit.items() if n}
        source = replace(source_of(one), stream=stream.in_parts(names))
        return replace(one, source=source), self.market.book.now(one).choice

    def _with(self, pools: Sequence[Part]) -> Market:
        """The market with a stream for each pool, whose replicas are known to carry it."""
        market, made = self.market, [self._configuration(it) for it in pools]
        names = numbered([source_of(one).stream.name for one, _ in made])
        streams, new = [*market.streams], []
        for part, (one, row), name in zip(pools, made, names, strict=True):
            stream = replace(source_of(one).stream, name=name)
            new.append(for_stream(one, len(streams), stream))
            market.book.saw(new[-1], row, stream.rate_per_s / part.n)
            streams.append(stream)
        offered = replace(
            market.offered,
            configurations=(*market.offered.configurations, *new),
            several=np.ones(len(streams), dtype=np.bool_),
        )
        least = {id(one): part.n for one, part in zip(new, pools, strict=True)}
        book = replace(market.book, pools=Pools(least=least))
        return replace(market, streams=tuple(streams), offered=offered, book=book)
