"""What files of models, devices, clusters, connectors say: where values of their records stand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from planner.specs.files.patterns import fill
from planner.specs.files.tables import Provenance
from planner.specs.records import models
from planner.specs.records.devices import (
    ClusterSpec,
    DeviceSpec,
    Fabric,
    Link,
    LinkedFabric,
    Network,
    NodesFabric,
    TorusFabric,
)
from planner.specs.records.served_formats import Checkpoint, RunFormat
from planner.specs.records.variants import Variant
from planner.specs.validation.hints import from_fields
from planner.specs.validation.values import NOT_EMPTY, Date, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFile(DeviceSpec):
    """A device as its file has it."""

    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Rent of a device, and when it was asked."""

    usd_per_hour: float
    price_date: Date


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedEntry:
    """Devices and switches that a file lists."""

    devices: Annotated[tuple[str, ...], NOT_EMPTY]
    switches: tuple[str, ...] = ()
    activation_network: Network
    bulk_network: Network


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFile:
    """A cluster as its file has it: of one of three kinds of networks.

    Args:
        like: the topology that assumed values are from.
    """

    name: str
    title: str
    device: str
    description: str = ""
    examples: tuple[str, ...] = ()
    like: str = ""
    price: Price | None = None
    torus: TorusFabric | None = None
    nodes: NodesFabric | None = None
    linked: LinkedEntry | None = None
    link: tuple[Link, ...] = ()
    provenance: tuple[Provenance, ...] = ()


def build_cluster(file: ClusterFile, device: DeviceSpec) -> ClusterSpec:
    fabric = _fabric(file)
    return ClusterSpec(
        name=file.name,
        title=fill(file.title, {"n_devices": fabric.n_devices}),
        device=device,
        fabric=fabric,
        usd_per_hour=file.price.usd_per_hour if file.price else device.usd_per_hour,
        provenance=file.provenance,
    )


def _fabric(file: ClusterFile) -> Fabric:
    if file.linked is not None:
        return from_fields(LinkedFabric, file.linked, links=file.link)
    fabric = file.torus or file.nodes
    assert fabric is not None  # coherence.cluster_faults
    return fabric


DEFAULT_TOLERANCE = 0.02
"""Relative difference between parameters counted and published; of active ones always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEntry:
    """What the checkpoint of a format holds, as a file has it."""

    weights: RunFormat
    experts: RunFormat | None = None
    repository: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another checkpoint of the same shape."""

    repository: str
    source: str
    published: models.Format | None = None
    weights: RunFormat | None = None
    kv: models.Format | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile(models.ModelSpec):
    """A model as its file has it."""

    description: str = ""
    n_heads_served: int | None = None  # type: ignore[assignment]
    checkpoints: Mapping[models.Format, CheckpointEntry] = field(default_factory=dict)  # type: ignore[assignment]
    alias: tuple[Alias, ...] = ()
    tolerance: Share = DEFAULT_TOLERANCE


def with_source(variant: Variant, provenance: Iterable[Provenance]) -> Variant:
    """A variant that says where its quality is from, of a file that does."""
    source = next(one.source for one in provenance if one.key == "variant.quality")
    return replace(variant, quality=f"{variant.quality} ({source})")


def build_model(file: ModelFile) -> models.ModelSpec:
    said_by = {one.key: one.source for one in file.provenance}
    return from_fields(
        models.ModelSpec,
        file,
        n_heads_served=file.n_heads_served or file.n_heads,
        variant=file.variant and with_source(file.variant, file.provenance),
        checkpoints=tuple(
            from_fields(
                Checkpoint,
                checkpoint,
                format=name,
                experts=checkpoint.experts or checkpoint.weights,
                source=said_by[f"checkpoints.{name}.weights"],
            )
            for name, checkpoint in file.checkpoints.items()
        ),
    )
