"""What files of devices and clusters say: where each value of their records stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from planner.specs.patterns import fill
from planner.specs.records import (
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
from planner.specs.tables import Table
from planner.specs.validation.layouts import Section, lay_out, provenance, record_of
from planner.specs.validation.values import NOT_EMPTY, Date


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


lay_out(
    DeviceFile,
    Section("device", "name title description", sourced=False),
    Section("", "peak_flop_per_s"),
    Section("memory", "hbm_bytes hbm_bytes_per_s reserve_bytes"),
    Section("price", "on_demand=usd_per_hour"),
    Section("price.on_demand", "date=price_date", sourced=False),
    Section("power", "tdp_w"),
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
lay_out(
    LinkedEntry,
    Section("", "devices switches", sourced=False),
    Section("", _NETWORKS),
)
lay_out(Link, Section("", "a b", sourced=False), Section("", "bytes_per_s latency_s"))


def build_device(file: DeviceFile, table: Table) -> DeviceSpec:
    return record_of(DeviceSpec, file, provenance=tuple(provenance(DeviceFile, table)))


def build_cluster(file: ClusterFile, table: Table, device: DeviceSpec) -> ClusterSpec:
    fabric = _fabric(file)
    return ClusterSpec(
        name=file.name,
        title=fill(file.title, {"n_devices": fabric.n_devices}),
        device=device,
        fabric=fabric,
        usd_per_hour=file.price.usd_per_hour if file.price else device.usd_per_hour,
        provenance=tuple(provenance(ClusterFile, table)),
    )


def _fabric(file: ClusterFile) -> Fabric:
    if file.linked is not None:
        return record_of(LinkedFabric, file.linked, links=file.link)
    fabric = file.torus or file.nodes
    assert fabric is not None  # coherence.cluster_faults
    return fabric
