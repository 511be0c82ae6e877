"""Configurations that may serve a stream, and how much each serves: bounds first, then queues.

Of each shape and role there is one configuration. What it serves is known in steps, each no more
than the one before:

    fluid     no scheduler serves more on any of its deployments (`queues.rates.fluid_rate`)
    simulated what the best of its deployments carries within all percentiles (`capacity`)
    refuted   what the simulation of a whole fleet, that refuted that, has left of it

The program is solved with what is known, and what it chooses is looked at more closely: when
nothing is left to look at, nothing else can be better.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.estimates.queues.rates import fluid_rate
from planner.estimates.serving.deployments import has_experts
from planner.estimates.serving.memory import handed_bytes
from planner.estimates.serving.serving import Serving
from planner.estimates.serving.stations import RequestShape, stations
from planner.placing.engines import EngineSource, ServingEngine, configuration_of
from planner.placing.fabrics.domains import Domain
from planner.placing.fabrics.patterns import STAGE, NodeConfiguration
from planner.placing.fleets.streams import Stream
from planner.placing.standing import Sharding
from planner.placing.tori.slices import OfferedOnTorus
from planner.results.placements import AnyDeployment
from planner.runtimes.engine_requests import clock_of
from planner.specs.kernels import EngineTables
from planner.specs.records import DeviceSpec, Workload
from planner.specs.roles import PREFILL, TOGETHER
from planner.specs.stations import Station
from planner.specs.traffic.percentiles import ITL, TPOT
from planner.topology.openings import Openings

if TYPE_CHECKING:
    from planner.placing.fleets.accounts import Listed

BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Most sequences of a rank to choose from, where nobody says: two to each doubling."""

STAGES = tuple(1 << k for k in range(10))
"""Stages of a pipeline to choose from."""

CHUNKS = (2048, 8192)
"""Most tokens of a pass to choose from, where nobody says: those that vLLM takes by itself."""

N_BEYOND = 1
"""Batches that are looked at beyond the last that keeps a target of TPOT when it is full."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ways:
    """The deployments of one shape and role that may serve a stream.

    Args:
        rows: of the choices of their source, (W,).
        stations: of each.
        bounds: requests a second that no scheduler exceeds on a replica of each.
    """

    rows: IntArray
    stations: Sequence[Station]
    bounds: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueuedSource:
    """Where a configuration of a stream comes from: who timed it, and its ways.

    `choice` of its configurations is a row of the engine's choices, or the number of a replica.
    """

    made_by: EngineSource | Listed
    stream: Stream
    ways: Ways

    @property
    def n_candidates(self) -> int:
        return len(self.ways.rows)

    @property
    def device(self) -> DeviceSpec:
        return self.made_by.device

    def deployment(self, choice: int, n_alike: int) -> AnyDeployment:
        """One choice in words and figures, each replica by itself."""
        return self.made_by.deployment(choice, n_alike)

    def shard(self, choice: int, model: str) -> tuple[Sharding, float]:
        """How ranks share the weights."""
        return self.made_by.shard(choice, model)

    @property
    def engine(self) -> EngineSource:
        """Of a serving engine; who hands caches over is none else."""
        assert isinstance(self.made_by, EngineSource)
        return self.made_by

    @property
    def usual(self) -> Workload:
        """The request that figures are of."""
        made_by = self.made_by
        return made_by.request.workload if isinstance(made_by, EngineSource) else made_by.usual

    def station(self, choice: int) -> Station:
        """One choice as a queue sees it."""
        return self.ways.stations[int(np.flatnonzero(self.ways.rows == choice)[0])]


def source_of(one: NodeConfiguration) -> QueuedSource:
    """Where a configuration of a stream comes from."""
    assert isinstance(one.source, QueuedSource)
    return one.source


@dataclass(slots=True, kw_only=True)
class Stationed:
    """Deployments of an engine on a domain in one role, and those stations that were asked for."""

    source: EngineSource
    n_longest_tokens: int
    _made: dict[int, Station] = field(default_factory=dict)

    def stations(self, rows: IntArray) -> list[Station]:
        """Stations of choices, those of each pair of formats at once."""
        source, table = self.source, self.source.choices.table
        clock = clock_of(source.machines)
        new = np.array([row for row in rows.tolist() if row not in self._made], dtype=np.int64)
        for index in np.unique(table.format_index[new]).tolist():
            mine = new[table.format_index[new] == index]
            serving = Serving(
                model=source.model, formats=table.formats[index], engine=clock.engine, clock=clock
            )
            made = stations(
                serving,
                table.take(mine),
                RequestShape(
                    n_input_tokens=float(source.request.workload.n_input_tokens),
                    n_longest_tokens=float(self.n_longest_tokens),
                ),
                names=[""] * len(mine),
                hbm_bytes=clock.device.hbm_bytes,
                role=source.choices.role,
            )
            beyond = source.choices.beyond
            slower, later = (
                1.0 + (beyond * errors)[mine]
                for errors in (source.choices.tpot_error, source.choices.ttft_error)
            )
            self._made |= {
                int(row): one.slowed(decode=decode, reading=reading)
                for row, one, decode, reading in zip(mine, made, slower, later, strict=True)
            }
        return [self._made[row] for row in rows.tolist()]


@dataclass(slots=True, kw_only=True, eq=False)
class ModelOffers:
    """One engine for one model: what all streams of the model have in common.

    Args:
        n_longest_tokens: of the longest request of any of them.
    """

    serving: ServingEngine
    n_longest_tokens: int
    _known: dict[Hashable, Stationed] = field(default_factory=dict)

    def on(self, domain: Domain, role: str) -> Stationed:
        """Deployments of a role on a domain, timed once."""
        size = domain.n_nodes, domain.per_node, domain.n_devices
        key = (role, domain.kind, domain.span, domain.need, size)
        if key not in self._known:
            source = self.serving.source(domain, role)
            self._known[key] = Stationed(source=source, n_longest_tokens=self.n_longest_tokens)
        return self._known[key]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueuedEngine:
    """An engine that may serve a stream; see `planner.placing.runtimes.Runtime`.

    Configurations have the fluid rate of their shape.
    """

    offers: ModelOffers
    stream: Stream

    @property
    def tables(self) -> tuple[EngineTables, ...]:
        return self.offers.serving.tables

    def on_nodes(
        self, model: int, domain: Domain, beaten: object, *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        """Every shape and role on a domain."""
        del beaten, whole  # by rates of which none is known yet; and no fleet is repaired
        serving = self.offers.serving
        if domain.kind not in serving.machines or domain.span == STAGE:
            return
        for role in serving.roles:
            here = self.offers.on(domain, role)
            for ways in _ways(here, self.stream):
                most = max(ways.bounds)
                if most > 0.0:
                    found = configuration_of(here.source, model, domain, int(ways.rows[0]))
                    yield self._queued(found, here.source, ways, most)

    def _queued(
        self, one: NodeConfiguration, source: EngineSource, ways: Ways, rate_per_s: float
    ) -> NodeConfiguration:
        """A configuration for the stream, at a rate of requests."""
        n_bytes = 0.0
        if one.role != TOGETHER:
            n_bytes = handed_bytes(
                source.model,
                one.kv_format,
                n_tokens=self.stream.load.mean_input,
                n_block_tokens=source.machines.engine.n_block_tokens,
            )
        return replace(
            one,
            output_tokens_per_s=rate_per_s * self.stream.n_output_tokens,
            ttft_s=0.0,  # what is left of the target after it is what the queue is held to
            handed_bytes=n_bytes,
            source=QueuedSource(made_by=source, stream=self.stream, ways=ways),
        )

    def on_torus(self, model: int, openings: Openings, *, whole: bool = False) -> OfferedOnTorus:
        """Never asked: `serving_engine` refuses a torus."""
        raise AssertionError(openings)


def _ways(here: Stationed, stream: Stream) -> Iterator[Ways]:
    """Deployments of each shape, whose longest request has room; caches of a format if apart."""
    choices = here.source.choices
    table, role = choices.table, choices.role
    rows = np.flatnonzero(_worth_a_look(here.source, stream))
    of_row = here.stations(rows)
    kept = [i for i, one in enumerate(of_row) if _holds(one, stream, role)]
    alike = [table.n_tensor, table.n_data, table.n_stages]
    if role != TOGETHER:
        caches = np.array([one.cache for one in table.formats])
        alike.append(np.unique(caches, return_inverse=True)[1][table.format_index])
    keys = np.stack(alike, axis=1)[rows]
    for key in np.unique(keys[kept], axis=0):
        mine = [i for i in kept if (keys[i] == key).all()]
        yield ways_of(rows[mine], [of_row[i] for i in mine], stream)


def ways_of(rows: IntArray, stations: Sequence[Station], stream: Stream) -> Ways:
    """Choices with what no scheduler exceeds on each."""
    bounds = [fluid_rate(one, stream.load) * one.n_ranks for one in stations]
    return Ways(rows=rows, stations=stations, bounds=bounds)


def _worth_a_look(source: EngineSource, stream: Stream) -> BoolArray:
    """Choices that others of their shape do not stand for.

    Copies of a dense model behind one router are replicas. Of choices that differ in nothing but
    the most sequences there may be, the one with most serves no less where no TPOT is asked for;
    where one is, also the last that keeps it when it is full, and the next.
    """
    choices, table = source.choices, source.choices.table
    kept = np.isin(table.n_stages, STAGES)
    if not len(table):
        return kept
    if not has_experts(source.model):
        kept &= table.n_data == 1
    limits = [one.target.at_most_s for one in stream.targets if one.target.quantity in (TPOT, ITL)]
    degrees = [table.n_tensor, table.n_data, table.n_stages, table.n_expert_parallel]
    alike = np.stack([*degrees, table.format_index, table.chunk_tokens], axis=1)
    order = np.lexsort([table.batch, *alike.T[::-1]])
    fits = choices.tpot_s <= max(limits, default=np.inf)
    found = np.zeros(len(table), dtype=np.bool_)
    starts = np.flatnonzero(np.any(np.diff(alike[order], axis=0), axis=1)) + 1
    for rows in np.split(order, starts):  # by ascending batch
        n_fitting = int(np.sum(fits[rows]))
        found[rows[-1]] = True
        if limits and choices.role != PREFILL:
            found[rows[max(0, n_fitting - 1) : n_fitting + N_BEYOND]] = True
    return np.asarray(kept & found)


def _holds(station: Station, stream: Stream, role: str) -> bool:
    """Whether the longest request has room."""
    n_tokens = stream.n_longest_input if role == PREFILL else stream.n_longest_tokens
    return station.held_bytes(n_tokens) <= station.room_bytes
