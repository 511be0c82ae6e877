"""Configurations that may serve a stream, and how much each serves: bounds first, then queues.

Of each shape and role there is one configuration. What it serves is known in steps, each no more
than the one before:

    fluid     no scheduler serves more on any of its deployments (`estimates.fluid_rates`)
    simulated what the best of its deployments carries within all percentiles (`capacity`)
    refuted   what the simulation of a whole fleet, that refuted that, has left of it

The program is solved with what is known, and what it chooses is looked at more closely: when
nothing is left to look at, nothing else can be better.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.estimates.serving.memory import handed_bytes
from planner.placing.configurations import AnyConfiguration, Offers
from planner.placing.engines import EngineOffers, ServingEngine
from planner.placing.fabrics.domains import Domain
from planner.placing.fabrics.patterns import STAGE, Beaten, NodeConfiguration
from planner.placing.fleets.request_classes import RequestClass
from planner.placing.fleets.shape_offers import Key, ShapeOffers, Stationed
from planner.placing.runtimes import Runtime
from planner.results.placements import AnyDeployment
from planner.specs.records.devices import DeviceSpec, Workload
from planner.specs.records.kernels import EngineTables
from planner.specs.records.roles import TOGETHER, Station
from planner.specs.region import INSIDE

BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Most sequences of a rank to choose from, where nobody says: two to each doubling."""

CHUNKS = (2048, 8192)
"""Most tokens of a pass to choose from, where nobody says: those that vLLM takes by itself."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed(Offers):
    """Replicas of one shape; `choice` is the number of one of them.

    Args:
        usual: the request that figures are of.
    """

    replicas: Sequence[AnyConfiguration]
    usual: Workload

    @property
    def n_candidates(self) -> int:
        return sum(one.source.n_candidates for one in self.replicas)

    @property
    def device(self) -> DeviceSpec:
        return self.replicas[0].source.device

    def deployment(self, choice: int, n_alike: int) -> AnyDeployment:
        return self.replicas[choice].deployment(n_alike)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueuedOffers(Offers):
    """Where a configuration of a stream comes from: who timed it, and its ways.

    `choice` of its configurations is a row of the engine's choices, or the number of a replica.

    Args:
        stationed: of an engine, what makes stations of its choices.
        key: of its ways.
    """

    made_by: EngineOffers | Listed
    stream: RequestClass
    ways: ShapeOffers
    stationed: Stationed | None = None
    key: Key = ()

    @property
    def n_candidates(self) -> int:
        return len(self.ways.rows)

    @property
    def device(self) -> DeviceSpec:
        return self.made_by.device

    def deployment(self, choice: int, n_alike: int) -> AnyDeployment:
        """One choice in words and figures, each replica by itself."""
        return self.made_by.deployment(choice, n_alike)

    @property
    def engine(self) -> EngineOffers:
        """Of a serving engine; who hands caches over is none else."""
        assert isinstance(self.made_by, EngineOffers)
        return self.made_by

    @property
    def usual(self) -> Workload:
        """The request that figures are of."""
        made_by = self.made_by
        return made_by.request.workload if isinstance(made_by, EngineOffers) else made_by.usual

    def station(self, choice: int) -> Station:
        """One choice as a queue sees it."""
        return self.ways.stations[int(np.flatnonzero(self.ways.rows == choice)[0])]


def source_of(config: AnyConfiguration) -> QueuedOffers:
    """Where a configuration of a stream comes from."""
    assert isinstance(config.source, QueuedOffers)
    return config.source


def sort_key(offer: AnyConfiguration, stream: RequestClass) -> tuple[Hashable, ...]:
    """What configurations of replicas that are alike have in common, whatever they serve."""
    name, shape, model = offer.pattern.kind_name, offer.pattern.shape, stream.model.name
    return (name, shape, offer.engine, offer.role, offer.usd_per_hour, model, source_of(offer).key)


@dataclass(slots=True, kw_only=True, eq=False)
class ModelOffers:
    """One engine for one model, and all streams of it."""

    serving: ServingEngine
    streams: tuple[RequestClass, ...]
    _known: dict[Hashable, Stationed] = field(default_factory=dict)

    def on(self, domain: Domain, role: str) -> Stationed:
        """Deployments of a role on a domain, timed once."""
        size = domain.n_nodes, domain.per_node, domain.n_devices
        key = (role, domain.kind, domain.span, domain.need, size)
        if key not in self._known:
            source = self.serving.source(domain, role)
            self._known[key] = Stationed(source=source, domain=domain, streams=self.streams)
        return self._known[key]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueuedEngine(Runtime):
    """An engine that may serve a stream; see `planner.placing.runtimes.Runtime`.

    Configurations have the fluid rate of their shape.
    """

    offers: ModelOffers
    stream: RequestClass

    @property
    def tables(self) -> tuple[EngineTables, ...]:
        return self.offers.serving.tables

    def on_nodes(
        self, model: int, domain: Domain, beaten: Beaten, *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        """Every shape and role on a domain."""
        del beaten, whole  # by rates of which none is known yet; and no fleet is repaired
        serving = self.offers.serving
        if domain.kind not in serving.machines or domain.span == STAGE:
            return
        for role in serving.roles:
            here = self.offers.on(domain, role)
            for key, ways in here.ways(self.stream).items():
                if max(ways.bounds) > 0.0:
                    yield self._queued(model, here, ways, key)

    def _queued(
        self, model: int, here: Stationed, ways: ShapeOffers, key: Key
    ) -> NodeConfiguration:
        """A configuration for the stream, at the rate of requests that none of its ways exceeds."""
        n_bytes, source = 0.0, here.source
        config = here.configuration(int(ways.rows[0]))
        if config.role != TOGETHER:
            n_bytes = handed_bytes(
                source.model,
                config.kv_format,
                n_tokens=self.stream.load.mean_input,
                n_block_tokens=source.machines.engine.n_block_tokens,
            )
        return replace(
            config,
            model=model,
            output_tokens_per_s=max(ways.bounds) * self.stream.n_output_tokens,
            ttft_s=0.0,  # what is left of the target after it is what the queue is held to
            handed_bytes=n_bytes,
            source=QueuedOffers(
                made_by=source, stream=self.stream, ways=ways, stationed=here, key=key
            ),
        )


def is_measured(config: AnyConfiguration, rows: IntArray | int | None = None) -> BoolArray:
    """Whether ways of a configuration are inside of the measured region; or else its choice."""
    rows = config.choice if rows is None else rows
    return np.asarray(source_of(config).engine.choices.outside_error[rows] == 0.0)


def believing(config: AnyConfiguration, belief: str) -> AnyConfiguration | None:
    """A configuration as a belief has it: itself, if all of it was measured; None without a way."""
    source, here = source_of(config), source_of(config).stationed
    if here is None or is_measured(config, source.ways.rows).all():
        return config
    if belief == INSIDE:
        ways = here.ways(source.stream, measured=True).get(source.key)
    else:  # what is worth a look is said by what is predicted: it is the same
        here = here.at_median()
        ways = here.ways(source.stream).get(source.key)
    if ways is None or max(ways.bounds) <= 0.0:
        return None
    return replace(
        config,
        choice=int(ways.rows[0]),
        output_tokens_per_s=max(ways.bounds) * source.stream.n_output_tokens,
        source=replace(source, made_by=here.source, ways=ways, stationed=here),
    )
