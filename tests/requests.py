"""Small machines and models whose plans can be checked by enumeration or by hand."""

from __future__ import annotations

from dataclasses import replace

from planner.specs.ask.defaults import make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.request import Request, Workload
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.records.devices import (
    ClusterSpec,
    DeviceSpec,
    ModelSpec,
    NodesFabric,
    TorusFabric,
)

DEVICE = DeviceSpec(
    name="toy",
    title="Toy accelerator",
    peak_flop_per_s={"bf16": 100e12},
    hbm_bytes=16e9,
    hbm_bytes_per_s=1e12,
    reserve_bytes=1e9,
    usd_per_hour=1.0,
    price_date="2026-01",
    compute_fraction=0.8,
    hbm_fraction=0.9,
    layer_overhead_s=50e-6,
    roofline_exponent=3.0,
)

MODEL = ModelSpec(
    name="toy-8b",
    title="Toy 8B",
    n_layers=16,
    d_model=4096,
    d_ff=16384,
    n_heads=32,
    n_heads_served=32,
    n_kv_heads=4,
    d_head=128,
    vocab_size=32000,
    n_ffn_matrices=3,
    block="parallel",
    tied_embeddings=True,
    n_params_published=4e9,
    weights_formats=("bf16", "int8"),
    published_weights=("bf16", "int8"),
    kv_format="bf16",
    activation_format="bf16",
)

WORKLOAD = Workload(n_input_tokens=256, n_output_tokens=32)


def torus(*shape: int, device: DeviceSpec = DEVICE) -> ClusterSpec:
    """A torus pool of toy devices."""
    a, b, c = shape
    fabric = TorusFabric(
        shape=(a, b, c),
        link_bytes_per_s=40e9,
        hop_s=1e-6,
        wrap_multiple=4,
        slice_dims=(1, 2, 4, 8),
        activation_network="ring",
        bulk_network="axis",
    )
    return ClusterSpec(
        name=f"toy-{a}x{b}x{c}",
        title="Toy torus",
        device=device,
        fabric=fabric,
        usd_per_hour=device.usd_per_hour,
    )


def nodes(n_nodes: int, *, per_node: int = 4) -> ClusterSpec:
    """Servers of toy devices behind switches."""
    fabric = NodesFabric(
        n_nodes=n_nodes,
        n_devices_per_node=per_node,
        scale_up_bytes_per_s=200e9,
        scale_up_latency_s=2e-6,
        scale_up_fraction=0.8,
        scale_out_bytes_per_s=25e9,
        scale_out_latency_s=5e-6,
        scale_out_fraction=0.8,
        activation_network="tree",
        bulk_network="tree",
    )
    return ClusterSpec(
        name=f"toy-x{n_nodes}", title="Toy servers", device=DEVICE, fabric=fabric, usd_per_hour=1.0
    )


def request(
    cluster: ClusterSpec,
    *,
    model: ModelSpec = MODEL,
    workload: Workload = WORKLOAD,
    targets: Targets | None = None,
    objective: str = "cost",
    **choices: object,
) -> Request:
    """A request with small choices of batches."""
    filled = {
        "weights_formats": None,
        "batches": (1, 3, 8, 21, 64),
        "prefill_batches": (1, 4, 16),
        "prefill": None,
        "options": SolverOptions(),
    } | choices
    return make_request(
        model,
        cluster,
        PlanOptions(workload=workload, targets=targets or Targets(), objective=objective, **filled),  # type: ignore[arg-type]
    )


def with_memory(cluster: ClusterSpec, hbm_bytes: float) -> ClusterSpec:
    """The same pool with another memory on each device."""
    return replace(cluster, device=replace(cluster.device, hbm_bytes=hbm_bytes))
