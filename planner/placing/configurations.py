"""A configuration: one complete way to run one replica, with what a placement wants of it.

Within a pattern of devices everything but speed is fixed: devices, rent, power. Targets hold for
each replica by itself. So the best configuration of a pattern is all that a placement can want of
it, whatever else is placed. Which deployments there are, and what each does, is the matter of
whoever times them; a placement reads the quantities and the pattern.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from planner.results.engines import EngineDeployment
from planner.results.phase_deployments import TableDeployment
from planner.results.placements import AnyDeployment, Placement
from planner.specs.ask.engine import PredictionRequest
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import DeviceSpec
from planner.specs.records.engine_rules import EngineRule
from planner.specs.records.roles import TOGETHER
from planner.specs.region import BELIEFS
from planner.specs.validation.hints import from_fields


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Sharding:
    """What says which part of the weights each rank has; ranks of equal ones have equal parts.

    Args:
        storage: how weights rest: along which axes they are cut, or as which engine does it.
        axes: of the mesh, or degrees of an engine.
    """

    model: str
    weights_format: str
    storage: str
    axes: tuple[int, int, int]
    n_stages: int
    copied_axes: str = ""
    sliced_axes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentReplica:
    """A replica that stands.

    Args:
        devices: by rank.
        shard_bytes: weights of the busiest rank.
    """

    name: str
    sharding: Sharding
    devices: tuple[str, ...]
    shard_bytes: float


def sharding_of(model: str, engine: str, layout: AnyDeployment | PredictionRequest) -> Sharding:
    """How the ranks of a deployment share its weights: each engine cuts and packs them as its own.

    Ranks of rows of a table share them as others of the row's name, one of each.
    """
    if isinstance(layout, EngineDeployment | PredictionRequest):
        return Sharding(
            model=model,
            weights_format=f"{layout.formats.weights}, experts {layout.formats.experts}",
            storage=engine if not layout.n_expert_devices else f"{engine}, experts apart",
            axes=(layout.n_tensor, layout.n_data, layout.n_expert_parallel),
            n_stages=layout.n_stages,
        )
    if isinstance(layout, TableDeployment):
        storage, axes = f"{engine}: {layout.name}", (layout.n_devices, 1, 1)
        return from_fields(Sharding, layout, model=model, storage=storage, axes=axes, n_stages=1)
    mesh = layout.mesh
    return from_fields(Sharding, layout, model=model, axes=mesh.axes, n_stages=mesh.n_stages)


def current_replicas(placement: Placement) -> tuple[CurrentReplica, ...]:
    """The replicas of a placement as a repair sees them."""
    return tuple(
        CurrentReplica(
            name=replica.name,
            sharding=sharding_of(replica.model, recipe.engine, recipe.deployment),
            devices=tuple(rank.device for rank in replica.ranks),
            shard_bytes=recipe.weights_bytes,
        )
        for replica in placement.replicas
        for recipe in [placement.recipes[replica.recipe]]
    )


class Pattern(Protocol):
    """The devices that a replica needs, wherever they are: parts of nodes, or a slice."""

    @property
    def kind_name(self) -> str:
        """The kind of the devices, as people call it."""

    @property
    def span(self) -> str:
        """Where the parts of a replica may lie, see `placement_results.Recipe`."""

    @property
    def speed_fraction(self) -> float:
        """Of the nominal speed of the slowest device that it may have."""

    @property
    def counted_bytes_per_s(self) -> Mapping[str, float]:
        """What is counted on of each sort of link, one way, before the attainable fraction."""

    @property
    def n_devices(self) -> int:
        """Of the whole replica."""

    @property
    def pieces(self) -> tuple[int, ...]:
        """Devices that lie in one node together, in the order of ranks; none on a torus."""

    @property
    def shape(self) -> Hashable:
        """What a planner would choose that does not know what is free; equal ones are alike."""

    @property
    def simplicity(self) -> tuple[int, ...]:
        """Devices, then what they are cut into: the least is the simplest."""


class Offers:
    """Who timed the deployments that a configuration was chosen from.

    Args:
        n_candidates: how many there were.
        device: of which they are.
    """

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def n_candidates(self) -> int: ...
        @property
        def device(self) -> DeviceSpec: ...

    def deployment(self, choice: Any, n_alike: int) -> AnyDeployment:  # noqa: ANN401
        """One of them in words and figures, of which so many replicas are placed."""
        raise NotImplementedError

    def shard(self, choice: Any, model: str, engine: str) -> tuple[Sharding, float]:  # noqa: ANN401
        """How the ranks of one of them share the weights, and bytes of the most that one has."""
        deployment = self.deployment(choice, 1)
        return sharding_of(model, engine, deployment), deployment.weights_bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairing:
    """What an engine's rules of pairs are asked of, where a replica does one phase."""

    rules: tuple[EngineRule, ...]
    model: Architecture
    n_tensor: int
    n_data: int
    n_stages: int


P = TypeVar("P", bound=Pattern, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Configuration(Generic[P]):
    """One way to run a replica, the best of its pattern and role.

    Of a pattern there is one that does both phases, one of decode for each format of the cache, and
    several of prefill: none of those that read more prompts a second has a first token as soon.

    Args:
        model: number of the model among those asked for.
        engine: that runs it, or `roofline`.
        pattern: the devices that it needs.
        output_tokens_per_s: of the replica, never idle; of one that reads prompts, those that
            are written after the prompts that it reads.
        tpot_s: of an output token; 0 where it writes none.
        usd_per_hour: rent of its devices.
        source, choice: where it comes from, and which of that it is.
        role: of `planner.specs.records.roles`.
        ttft_s: until a prompt is read, before it is handed over; 0 where none is read.
        kv_format, handed_bytes: of the cache of one request that is handed over; empty and 0
            where a replica does both phases.
        handover_s: that its own links and the connector take for that.
        pairing: of an engine's; None where any may hand over to any.
        n_cache_devices: that hold the cache, where others of the replica do not; 0 where all do.
        beliefs: by which it may be taken, of `specs.region`.
    """

    model: int
    engine: str
    pattern: P
    output_tokens_per_s: float
    tpot_s: float
    usd_per_hour: float
    source: Offers
    choice: Any
    role: str = TOGETHER
    ttft_s: float = 0.0
    kv_format: str = ""
    handed_bytes: float = 0.0
    handover_s: float = 0.0
    pairing: Pairing | None = None
    beliefs: tuple[str, ...] = BELIEFS
    n_cache_devices: int = 0

    @property
    def n_devices(self) -> int:
        return self.pattern.n_devices

    @property
    def n_handing(self) -> int:
        """Devices over whose links caches come and go."""
        return self.n_cache_devices or self.n_devices

    def deployment(self, n_alike: int = 1) -> AnyDeployment:
        """What it is in words and figures, of which so many replicas are placed."""
        return self.source.deployment(self.choice, n_alike)

    def shard(self, model: str) -> tuple[Sharding, float]:
        """How its ranks share the weights of its model, and bytes of the most that one has."""
        return self.source.shard(self.choice, model, self.engine)


AnyConfiguration = Configuration[Pattern]

ConfigKey = tuple[int, str, str, str, Hashable]
"""Model, engine, role, kind and shape of configurations that are alike to who does not know what
is free."""


def config_key(config: AnyConfiguration) -> ConfigKey:
    return config.model, config.engine, config.role, config.pattern.kind_name, config.pattern.shape
