"""What files of models, devices, clusters, connectors say: where values of their records stand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from planner.specs.files.patterns import fill
from planner.specs.files.tables import Provenance
from planner.specs.records import models, shapes
from planner.specs.records.devices import (
    ClusterSpec,
    DeviceSpec,
    Fabric,
    Link,
    LinkedFabric,
    NcclProtocol,
    Network,
    NodesFabric,
    TorusFabric,
    TwoRegimes,
)
from planner.specs.records.roles import Client, Connector
from planner.specs.records.served_formats import Checkpoint, RunFormat
from planner.specs.records.variants import Variant
from planner.specs.validation.hints import from_fields
from planner.specs.validation.layouts import Section, lay_out
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
    """A cluster as its file has it: of one of three kinds of networks."""

    name: str
    title: str
    device: str
    description: str = ""
    examples: tuple[str, ...] = ()
    price: Price | None = None
    torus: TorusFabric | None = None
    nodes: NodesFabric | None = None
    linked: LinkedEntry | None = None
    link: tuple[Link, ...] = ()
    provenance: tuple[Provenance, ...] = ()


lay_out(
    DeviceFile,
    Section("device", "name title description", sourced=False),
    Section("", "peak_flop_per_s"),
    Section("memory", "hbm_bytes hbm_bytes_per_s reserve_bytes"),
    Section("price", "on_demand=usd_per_hour"),
    Section("price.on_demand", "date=price_date", sourced=False),
    Section("power", "tdp_w"),
    Section("host", "bandwidth=host_bytes_per_s"),
    Section("attainable", "compute_fraction hbm_fraction layer_overhead_s roofline_exponent"),
)
lay_out(
    Price,
    Section("", "on_demand=usd_per_hour"),
    Section("on_demand", "date=price_date", sourced=False),
)
lay_out(
    ClusterFile,
    Section("cluster", "name title device description examples", sourced=False),
    Section("", "price torus nodes linked link", sourced=False),
)
_NETWORKS = "activation_network bulk_network"
lay_out(
    TorusFabric,
    Section("", "shape", sourced=False),
    Section("", "link_bytes_per_s hop_s wrap_multiple slice_dims wraps_each_axis"),
    Section("", _NETWORKS),
)
lay_out(
    NodesFabric,
    Section("", "n_nodes", sourced=False),
    Section("", f"n_devices_per_node {_NETWORKS}"),
    Section("scale_up", "bandwidth=scale_up_bytes_per_s latency=scale_up_latency_s"),
    Section("scale_up", "attainable_fraction=scale_up_fraction"),
    Section("scale_up", "pair_bandwidth=scale_up_pair_bytes_per_s"),
    Section("scale_up", "measured=scale_up_measured", sourced=False),
    Section("scale_out", "bandwidth=scale_out_bytes_per_s latency=scale_out_latency_s"),
    Section("scale_out", "attainable_fraction=scale_out_fraction"),
    Section("", "protocol=protocols", sourced=False),
    Section("host", "memory=host_bytes"),
)
lay_out(
    TwoRegimes,
    Section("", "n_devices short_latency_s short_bytes_per_s long_latency_s long_bytes_per_s"),
)
lay_out(
    NcclProtocol,
    Section("", "name", sourced=False),
    Section("", "algorithm scale_up_hop_s scale_out_hop_s base_s bandwidth_fraction"),
)
lay_out(LinkedEntry, Section("", "devices switches", sourced=False), Section("", _NETWORKS))
lay_out(Link, Section("", "a b", sourced=False), Section("", "bytes_per_s latency_s"))
lay_out(
    Connector,
    Section("connector", "name title", sourced=False),
    Section("transfer", "latency_s bytes_per_s=bytes_per_s"),
)
lay_out(
    Client,
    Section("client", "name title described=is_described", sourced=False),
    Section("requests", "request_s request_token_s mean_length waves=n_waves"),
)


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


lay_out(
    ModelFile,
    Section("model", "name title repository family description", sourced=False),
    Section("", "variant", sourced=False),
    Section("shape", "n_layers d_model d_ff n_heads n_heads_served n_kv_heads d_head vocab_size"),
    Section("shape", "n_ffn_matrices block tied_embeddings norms_heads context=n_context_tokens"),
    Section("", "moe mla window mtp", sourced=False),
    Section("formats.published", "weights=published_weights kv=kv_format"),
    Section("formats", "weights=weights_formats kv=kv_formats activation=activation_format"),
    Section("", "checkpoints alias", sourced=False),
    Section("", "quality=quality_losses kv_quality=kv_quality_losses"),
    Section("", "activation_quality=activation_losses"),
    Section("check", "n_params=n_params_published n_params_active=n_active_params_published"),
    Section("check", "tolerance", sourced=False),
)
lay_out(
    Variant,
    Section("", "of how quality quality_loss=quality_loss_fraction"),
    Section("", "n_denoising_steps n_block_tokens"),
)
lay_out(
    shapes.MoeShape,
    Section("", "n_experts n_active_experts n_shared_experts d_expert n_dense_layers"),
    Section("", "n_groups n_active_groups"),
)
lay_out(shapes.MlaShape, Section("", "d_kv_latent d_q_latent d_rope d_nope d_value"))
lay_out(shapes.WindowShape, Section("", "n_tokens n_layers"))
lay_out(shapes.MtpShape, Section("", "n_modules n_params=n_params_published"))
lay_out(CheckpointEntry, Section("", "repository", sourced=False), Section("", "weights experts"))


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
            Checkpoint(
                format=name,
                weights=checkpoint.weights,
                experts=checkpoint.experts or checkpoint.weights,
                repository=checkpoint.repository,
                source=said_by[f"checkpoints.{name}.weights"],
            )
            for name, checkpoint in file.checkpoints.items()
        ),
    )
