"""Small clusters to test on, written by hand, and random ones for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from planner.specs.records.devices import (
    ClusterSpec,
    DeviceSpec,
    Fabric,
    Link,
    LinkedFabric,
    NodesFabric,
    TorusFabric,
)

LINK_BYTES_PER_S = 45e9
HOP_S = 1e-6

DEVICE = DeviceSpec(
    name="chip",
    title="a chip",
    peak_flop_per_s={"bf16": 100e12},
    hbm_bytes=32e9,
    hbm_bytes_per_s=1e12,
    reserve_bytes=0.0,
    usd_per_hour=1.0,
    price_date="2025-01-01",
    compute_fraction=1.0,
    hbm_fraction=1.0,
    layer_overhead_s=0.0,
    roofline_exponent=3.0,
)


def cluster(fabric: Fabric) -> ClusterSpec:
    return ClusterSpec(name="pool", title="a pool", device=DEVICE, fabric=fabric, usd_per_hour=1.0)


def torus(x: int, y: int, z: int, *, wrap_multiple: int = 4) -> ClusterSpec:
    """TPU v4: cubes of four, links of 45 GB/s."""
    return cluster(torus_fabric(x, y, z, wrap_multiple=wrap_multiple))


def torus_fabric(
    x: int,
    y: int,
    z: int,
    *,
    wrap_multiple: int = 4,
    slice_dims: tuple[int, ...] = (1, 2, 4, 8, 12, 16),
) -> TorusFabric:
    return TorusFabric(
        shape=(x, y, z),
        link_bytes_per_s=LINK_BYTES_PER_S,
        hop_s=HOP_S,
        wrap_multiple=wrap_multiple,
        slice_dims=slice_dims,
        activation_network="ring",
        bulk_network="axis",
    )


def nodes(n_nodes: int, *, n_devices_per_node: int = 8) -> ClusterSpec:
    """DGX A100: 300 GB/s inside a node, 25 GB/s between nodes, of which half and 80 % attained."""
    fabric = NodesFabric(
        n_nodes=n_nodes,
        n_devices_per_node=n_devices_per_node,
        scale_up_bytes_per_s=300e9,
        scale_up_latency_s=2e-6,
        scale_up_fraction=0.5,
        scale_out_bytes_per_s=25e9,
        scale_out_latency_s=5e-6,
        scale_out_fraction=0.8,
        activation_network="tree",
        bulk_network="tree",
    )
    return cluster(fabric)


def linked(n_devices: int, *links: tuple[str, str, float], latency_s: float = 1e-6) -> ClusterSpec:
    """Devices `d0`, `d1`, … and links (a, b, GB/s)."""
    fabric = LinkedFabric(
        devices=tuple(f"d{i}" for i in range(n_devices)),
        links=tuple(Link(a=a, b=b, bytes_per_s=w * 1e9, latency_s=latency_s) for a, b, w in links),
        activation_network="tree",
        bulk_network="tree",
    )
    return cluster(fabric)


@st.composite
def linked_clusters(draw: st.DrawFn) -> ClusterSpec:
    """Up to six devices and a switch, any links of 1 to 4 GB/s; perhaps not connected."""
    n_devices = draw(st.integers(1, 6))
    ends = [*(f"d{i}" for i in range(n_devices)), "switch"]
    pairs = [(a, b) for i, a in enumerate(ends) for b in ends[i + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True))
    widths = draw(st.lists(st.integers(1, 4), min_size=len(chosen), max_size=len(chosen)))
    return linked(n_devices, *((a, b, w) for (a, b), w in zip(chosen, widths, strict=True)))


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSpec:
    """Any pool: a torus, servers, or links listed one by one."""
    dims, size = st.sampled_from([1, 2, 4, 8, 12]), st.integers(1, 9)
    kind = draw(st.sampled_from(["torus", "nodes", "linked"]))
    if kind == "torus":
        return torus(draw(dims), draw(dims), draw(dims))
    if kind == "nodes":
        return nodes(draw(size), n_devices_per_node=draw(size))
    return draw(linked_clusters())
