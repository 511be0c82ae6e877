"""Our models and pools in the records of the reference model, and what gets lost on the way.

Rates of collectives are half of what a device sends in one direction; the rate of
arithmetic goes by the bits of a weight alone; launches take what the published program
says of every GPU. Of our own calibration the attainable fractions, the memory and the price
are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.errors import Problem, RequestError
from planner.specs.economics.records import (
    EconomicsDevice,
    EconomicsModel,
    LatentAttention,
)
from planner.specs.ledger import ECONOMICS, timed_by
from planner.specs.records import FORMAT_BYTES, ClusterSpec, DeviceSpec, ModelSpec, NodesFabric

KERNEL_LAUNCH_S = 4e-6
"""Of one kernel, on every GPU. Source: [Erdil2025] §3.4 and the published program."""


def economics_model(model: ModelSpec, weights_format: str) -> EconomicsModel:
    """A model of identical layers; see `left_out` for what it is not.

    Shared experts are active experts that are always chosen, and first layers without
    experts do not exist, as in the published program's DeepSeek-V3.
    """
    moe, mla = model.moe, model.mla
    latent = None
    if mla:
        latent = LatentAttention(d_kv=mla.d_kv_latent, d_query=mla.d_q_latent or model.d_model)
    return EconomicsModel(
        name=model.name,
        title=model.title,
        n_layers=model.n_moe_layers if moe else model.n_layers,
        d_model=model.d_model,
        d_ff=moe.d_expert if moe else model.d_ff,
        n_ffn_in=model.n_ffn_inputs,
        n_ffn_out=model.n_ffn_matrices - model.n_ffn_inputs,
        n_experts=moe.n_experts if moe else 1,
        n_active_experts=moe.n_active_experts + moe.n_shared_experts if moe else 1,
        n_heads=model.n_heads_served,
        n_heads_per_group=1 if mla else model.n_heads_served / model.n_kv_heads,
        d_head=mla.d_nope if mla else model.d_head,
        vocab_size=model.vocab_size,
        weight_bytes=FORMAT_BYTES[weights_format],
        activation_bytes=FORMAT_BYTES[model.activation_format],
        is_parallel_block=model.is_parallel,
        latent=latent,
    )


def left_out(model: ModelSpec) -> tuple[str, ...]:
    """What the reference model cannot say of a model, one phrase each."""
    moe = model.moe
    facts = (
        (moe and moe.n_dense_layers, "first layers without experts"),
        (moe and moe.n_shared_experts, "shared experts apart from routed ones"),
        (model.mla, "the rotated part of latent attention"),
        (model.window, "windows of attention"),
        (model.tied_embeddings, "tied embeddings"),
        (model.is_parallel, "parallel blocks"),
        (model.kv_format != model.activation_format, "a cache in another format than activations"),
    )
    return tuple(phrase for holds, phrase in facts if holds)


def economics_device(cluster: ClusterSpec, weights_formats: Sequence[str]) -> EconomicsDevice:
    """A device of a pool of nodes, with a FLOP rate for each format of weights.

    Raises:
        RequestError: the pool is a torus, or a list of links.
    """
    timed_by(ECONOMICS)
    device, fabric = cluster.device, cluster.fabric
    if not isinstance(fabric, NodesFabric):
        fact = "is not made of nodes, and the reference model knows no other pools"
        remedy = "name a pool of nodes, like `h100-nvl8-x4`, or leave out `--engine`"
        raise RequestError(
            [Problem(where="--engine", value=cluster.name, fact=fact, remedy=remedy)]
        )
    rates = {8 * FORMAT_BYTES[name]: _peak_of(device, name) for name in weights_formats}
    return EconomicsDevice(
        name=device.name,
        title=device.title,
        peak_flop_per_s=rates,
        compute_fraction=device.compute_fraction,
        hbm_bytes=device.hbm_bytes - device.reserve_bytes,
        peak_hbm_bytes_per_s=device.hbm_bytes_per_s,
        hbm_fraction=device.hbm_fraction,
        scale_up_all_reduce_bytes_per_s=fabric.scale_up_bytes_per_s / 2,
        scale_out_all_reduce_bytes_per_s=fabric.scale_out_bytes_per_s / 2,
        n_devices_per_node=fabric.n_devices_per_node,
        usd_per_hour=cluster.usd_per_hour,
        kernel_launch_s=KERNEL_LAUNCH_S,
        tdp_w=device.tdp_w,
    )


def _peak_of(device: DeviceSpec, weights_format: str) -> float:
    """The rate of the narrowest numbers, of those no narrower than a weight, that it multiplies.

    Source: [Erdil2025], published program: four-bit weights at the rate of eight bits.
    """
    needed = int(8 * FORMAT_BYTES[weights_format])
    bits = {name: int(8 * FORMAT_BYTES[name]) for name in device.formats}
    wide = [name for name in device.formats if bits[name] >= needed] or list(device.formats)
    narrowest = min(bits[name] for name in wide)
    return max(device.peak_flop_per_s[name] for name in wide if bits[name] == narrowest)
