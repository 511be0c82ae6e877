"""What a placement answers, as frozen records in SI units; devices are named as the user does."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from planner.quantities.table import QUANTITIES
from planner.quantities.units import show
from planner.results.engines import EngineDeployment
from planner.results.phase_deployments import LayoutDeployment, TableDeployment
from planner.results.records import AnswerRecord
from planner.specs.ask.placement import PlacementRequest
from planner.specs.files.tables import Provenance
from planner.specs.records.certificates import Certificate
from planner.specs.records.roles import TOGETHER
from planner.specs.validation.hints import computed

AnyDeployment = LayoutDeployment | EngineDeployment | TableDeployment
"""Of layouts, of a serving engine, or of a row of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One rank of a replica and the device that it is.

    Args:
        rank: number within the replica, stage by stage, node by node.
        device: as the user calls it.
        node, leaf: where it is; empty on a torus, and the leaf of a node that is on none.
        stage: pipeline stage; of devices that hold experts alone, the one after attention's.
        axes: coordinates within its stage's mesh: in the node, over nodes; on a torus x, y, z.
        coordinate: in the pool, on a torus.
    """

    rank: int
    device: str
    node: str
    leaf: str
    stage: int
    axes: tuple[int, ...]
    coordinate: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """The groups of one axis of a replica, and the narrowest link that any of them uses.

    Args:
        axis: `inside` a node, `across` nodes, or from one of the `stages` to the next.
        n_groups: groups along the axis.
        n_devices: of one group.
        devices: the group whose link is narrowest.
        link: the two ends of that link.
        bytes_per_s: of the link, the group's fair share, one way, as the graph has it.
        counted_bytes_per_s: what the estimate counts on, before the attainable fraction.
    """

    axis: str
    n_groups: int
    n_devices: int
    devices: tuple[str, ...]
    link: tuple[str, str]
    bytes_per_s: float
    counted_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """How replicas of one way run: their layout, and what it does.

    Args:
        model: name of the model.
        engine: that runs it, or `roofline`.
        kind: of the devices: a group of the pool, or a device.
        span: where the parts of a replica may lie: in one `node` or `leaf`, those of each `stage`
            in one leaf, anywhere in the `pool`, or `torus`: a slice.
        speed_fraction: of the nominal speed of the slowest device that it may have.
        counted_bytes_per_s: what its estimate counts on before the attainable fraction, one
            way: of `scale_up`, `nic` and `spine`; on a torus of the links along `x`, `y`, `z`.
        pieces: devices that lie in one node together, in the order of ranks; none on a torus.
        deployment: of one replica.
        role: what it does of a request, of `planner.specs.records.roles`.
    """

    model: str
    engine: str
    kind: str
    span: str
    speed_fraction: float
    counted_bytes_per_s: Mapping[str, float]
    pieces: tuple[int, ...]
    deployment: AnyDeployment
    role: str = TOGETHER

    @property
    def tpot_s(self) -> float:
        """What a placement counts on of a token; of an engine, what was planned against."""
        return self.deployment.planned_tpot_s

    @property
    def ttft_s(self) -> float:
        """The same of the first token."""
        return self.deployment.planned_ttft_s

    @property
    def weights_bytes(self) -> float:
        """Of the device that has the most."""
        return self.deployment.weights_bytes

    @property
    def n_expert_devices(self) -> int:
        """Of a replica, those that hold experts alone."""
        return getattr(self.deployment, "n_expert_devices", None) or 0

    @property
    def label(self) -> str:
        """How its devices are cut: the mesh, or the degrees of an engine."""
        return self.deployment.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica: a recipe, and where each of its ranks is.

    Args:
        name: of the replica, `deepseek-v3/0`.
        model: name of its model.
        recipe: number of its recipe.
        nodes, leaves: that it lies on, in the order of its ranks.
        ranks: in order.
        channels: of the axes along which devices talk.
    """

    name: str
    model: str
    recipe: int
    nodes: tuple[str, ...]
    leaves: tuple[str, ...]
    ranks: tuple[Rank, ...]
    channels: tuple[Channel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """Caches that one replica hands over to another.

    Args:
        source, target: names of the replicas, of one that reads prompts and one that answers.
        requests_per_s: whose caches go this way.
        request_bytes: of the cache of one request.
        seconds: that one takes: the connector's latency, and its bytes at the least of what the
            connector moves and the links of either replica do.
        ttft_s: of these requests: until the prompt is read, and handed over.
    """

    source: str
    target: str
    requests_per_s: float
    request_bytes: float
    seconds: float
    ttft_s: float

    @property
    def bytes_per_s(self) -> float:
        return self.requests_per_s * self.request_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What one model gets.

    Args:
        model: its name.
        demand_tokens_per_s: what was asked for; None where nothing was.
        output_tokens_per_s: of all its replicas, never idle; of those that do one phase, what is
            handed over.
        n_replicas, n_devices: that it has.
        usd_per_hour: rent of them.
    """

    model: str
    demand_tokens_per_s: float | None
    output_tokens_per_s: float
    n_replicas: int
    n_devices: int
    usd_per_hour: float

    @computed
    def share(self) -> float | None:
        """Of the demand; None without one."""
        demand = self.demand_tokens_per_s
        return self.output_tokens_per_s / demand if demand else None


@dataclass(frozen=True, slots=True, kw_only=True)
class KindUse:
    """Devices of one kind, by what they do."""

    kind: str
    device: str
    n_devices: int
    n_free: int
    n_used: int


class Placed(Protocol):
    """Replicas on the devices of a cluster, whatever else is known of them."""

    @property
    def title(self) -> str: ...
    @property
    def recipes(self) -> tuple[RunConfig, ...]: ...
    @property
    def replicas(self) -> tuple[Replica, ...]: ...
    @property
    def kinds(self) -> tuple[KindUse, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPlacement:
    """What would be placed if something else were believed of times.

    Args:
        objective: SI.
        loss_fraction: what it loses of the objective of the placement that it stands beside.
        recipes, replicas, served, handovers: as a placement has them.
    """

    objective: float
    loss_fraction: float
    recipes: tuple[RunConfig, ...]
    replicas: tuple[Replica, ...]
    served: tuple[ServedModel, ...]
    handovers: tuple[Handover, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement(AnswerRecord):
    """Which devices serve, and which rank is where.

    Args:
        request: what was asked.
        pool: name of the cluster.
        title: of the cluster, for people.
        recipes: the ways in which replicas run.
        replicas: all of them.
        served: by model, in the order asked for.
        kinds: devices by kind.
        certificate: the proof; of throughputs and shares, the most.
        provenance: of the inputs.
        further: what all replicas come to in limited quantities that no field tells, SI.
        handovers: which replicas hand caches over to which; none where each does both phases.
        inside, anywhere: the best of what was measured, and the best if all that is predicted
            held; None where a share of cases is asked for, or none is known.
    """

    request: PlacementRequest
    pool: str
    title: str
    recipes: tuple[RunConfig, ...]
    replicas: tuple[Replica, ...]
    served: tuple[ServedModel, ...]
    kinds: tuple[KindUse, ...]
    certificate: Certificate
    provenance: tuple[Provenance, ...] = ()
    further: Mapping[str, float] = field(default_factory=dict)
    handovers: tuple[Handover, ...] = ()
    inside: OtherPlacement | None = None
    anywhere: OtherPlacement | None = None

    def used(self, name: str) -> float:
        """What all replicas come to in a quantity that is limited of them together, SI."""
        if name in self.further:
            return self.further[name]
        return math.fsum(QUANTITIES[name].told(one) for one in self.served)

    @computed
    def n_used(self) -> int:
        """Devices in use."""
        return sum(kind.n_used for kind in self.kinds)

    @computed
    def n_free(self) -> int:
        """Devices that were free."""
        return sum(kind.n_free for kind in self.kinds)

    @computed
    def output_tokens_per_s(self) -> float:
        """Of all models."""
        return sum(one.output_tokens_per_s for one in self.served)

    def __str__(self) -> str:
        proof = self.certificate
        return (
            f"{len(self.replicas)} replicas on {self.n_used} of {self.n_free} free devices, "
            f"{show(self.output_tokens_per_s, 'token/s')}; {proof.status}, gap {proof.gap:.3g}"
        )
