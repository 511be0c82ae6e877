"""What a cut into stages and a placement of layers are: frozen, with their proof."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.results.records import AnswerRecord
from planner.specs.ask.stages import LayersRequest, StagesRequest
from planner.specs.files.tables import Provenance
from planner.specs.records.certificates import Certificate
from planner.specs.validation.hints import computed


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLine:
    """One stage of a pipeline.

    Args:
        kind: the kind of its group: `h100-sxm TP 8`.
        device: by name; `n_devices` of them share each layer.
        first_layer: from 0; of a stage without layers, the layer that would come next.
        n_layers: it may be 0, for a stage that has the embedding or the head only.
        layers: how many of each class, by the class's name.
        has_embedding, has_head: whether it has them.
        run_s: a micro-batch through it [s].
        hand_s: handing it on to the next stage; 0 of the last [s].
        weights_bytes, cache_bytes, fixed_bytes: of its fullest device; fixed are activations and
            the engine's own.
        limit_bytes: what the engine may take of a device.
    """

    kind: str
    device: str
    n_devices: int
    first_layer: int
    n_layers: int
    layers: Mapping[str, int]
    has_embedding: bool
    has_head: bool
    run_s: float
    hand_s: float
    weights_bytes: float
    cache_bytes: float
    fixed_bytes: float
    limit_bytes: float

    @computed
    def total_s(self) -> float:
        return self.run_s + self.hand_s

    @computed
    def held_bytes(self) -> float:
        return self.weights_bytes + self.cache_bytes + self.fixed_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUse:
    """A kind of group: how many there are, and how many have a stage.

    Args:
        kernels: version of the engine whose measured kernels time it, or `assumed`.
    """

    kind: str
    kernels: str
    n_groups: int
    n_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan(AnswerRecord):
    """A model cut into the stages of a pipeline.

    Args:
        request: what was asked, defaults filled in.
        stages: along the model.
        latency_s: one pass through all stages [s].
        bottleneck_s: time from one pass to the next in a full pipeline [s].
        tokens_per_s: that a full pipeline gives, of decode; read, of prefill.
        even_s: the objective of layers cut into equal numbers over all groups in the order in
            which they were given; None if that does not fit [s].
        groups: kinds of groups.
        provenance: sources of what the engine is said to be.
    """

    request: StagesRequest
    stages: tuple[StageLine, ...]
    latency_s: float
    bottleneck_s: float
    tokens_per_s: float
    even_s: float | None
    groups: tuple[GroupUse, ...]
    certificate: Certificate
    provenance: tuple[Provenance, ...]

    @computed
    def summary(self) -> str:
        """The cut in one line: layers and kind of each stage."""
        return " | ".join(f"{one.n_layers} on {one.kind}" for one in self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLine:
    """A machine and its layers: first_layer to first_layer + n_layers − 1.

    Args:
        tokens_per_s: that it serves while it holds so many.
    """

    machine: str
    type: str
    first_layer: int
    n_layers: int
    tokens_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlacement(AnswerRecord):
    """Layers placed on machines.

    Args:
        request: what was asked, defaults filled in.
        tokens_per_s: the maximum flow through the placement.
        machines: those that hold layers, along the model.
        idle: those that hold nothing.
        certificate: its bound holds for every placement, over the links that there are.
    """

    request: LayersRequest
    tokens_per_s: float
    machines: tuple[MachineLine, ...]
    idle: tuple[str, ...]
    certificate: Certificate

    @computed
    def summary(self) -> str:
        """What is placed, in one line."""
        layers, used = self.request.layers, len(self.machines)
        return f"{layers.n_layers} layers on {used} of {layers.n_machines} machines"

    @computed
    def n_stages(self) -> int:
        """Groups of machines that hold the same layers."""
        return len({(one.first_layer, one.n_layers) for one in self.machines})


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingConflict(AnswerRecord):
    """Why there is no cut or placement.

    Args:
        what: was asked: `llama-3.1-405b on h100-sxm TP 8 × 2`.
        facts: each reason, with what is missing.
        remedy: what would have an answer; empty if unknown.
    """

    what: str
    facts: tuple[str, ...]
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {'; '.join(self.facts)}"
