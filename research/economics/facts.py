"""The models and GPUs of [Erdil2025], out of `tests/data/epoch_constants.json`."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from planner.specs.records.economics import (
    DecodePass,
    EconomicsDevice,
    EconomicsModel,
    LatentAttention,
    RingCollectives,
    TreeCollectives,
)

FILE = Path(__file__).parents[2] / "tests" / "data" / "epoch_constants.json"

NO_BASE = tuple(replace(protocol, base_s=0.0) for protocol in TreeCollectives().protocols)
COLLECTIVES = {
    "nccl": TreeCollectives(),
    "nccl_zero_base_latency": TreeCollectives(protocols=NO_BASE),
    "tpu_ring": RingCollectives(),
}


@cache
def constants() -> dict[str, Any]:
    """The file as it is."""
    return json.loads(FILE.read_text(encoding="utf-8"))


@cache
def model(name: str) -> EconomicsModel:
    """A model by its key in the file."""
    raw = constants()["models"][name]
    n_in, n_out = raw["ff_matrix_count_in_out"]
    latent = LatentAttention(
        d_kv=raw["mla_kv_compression_dim"], d_query=raw["mla_query_compression_dim"]
    )
    return EconomicsModel(
        name=name,
        title=raw["label"],
        n_layers=raw["layers"],
        d_model=raw["d_model"],
        d_ff=raw["d_ff"],
        n_ffn_in=n_in,
        n_ffn_out=n_out,
        n_experts=raw["n_experts"],
        n_active_experts=raw["n_active_experts"],
        n_heads=raw["num_query_heads"],
        n_heads_per_group=raw["group_size"],
        d_head=raw["d_head"],
        vocab_size=raw["vocab_size"],
        weight_bytes=raw["weight_precision_bytes"],
        activation_bytes=raw["activation_precision_bytes"],
        is_parallel_block=raw["parallel_attention"],
        latent=latent if raw["mla"] else None,
    )


@cache
def device(name: str) -> EconomicsDevice:
    """A GPU by its key in the file."""
    raw = constants()["gpus"][name]
    by_bits = raw["peak_flop_per_s_by_weight_bits"]
    return EconomicsDevice(
        name=name,
        title=raw["label"],
        peak_flop_per_s={float(bits): rate for bits, rate in by_bits.items()},
        compute_fraction=raw["arithmetic_utilization_cap"],
        hbm_bytes=raw["hbm_size_bytes"],
        peak_hbm_bytes_per_s=raw["peak_hbm_Bps"],
        hbm_fraction=raw["hbm_utilization_cap"],
        scale_up_all_reduce_bytes_per_s=float(raw["intranode_allreduce_Bps"]),
        scale_out_all_reduce_bytes_per_s=float(raw["internode_allreduce_Bps"]),
        n_devices_per_node=raw["node_size"],
        usd_per_hour=raw["price_usd_per_hour"],
        kernel_launch_s=raw["kernel_launch_latency_s"],
        collectives=COLLECTIVES[raw["collective_model"]],
    )


def decode(
    model_name: str,
    device_name: str = "H100",
    *,
    n_context_tokens: float = 0.0,
    n_scored_tokens: float = 1.0,
) -> DecodePass:
    """A pass of one of the models on one of the GPUs."""
    return DecodePass(
        model=model(model_name),
        device=device(device_name),
        n_context_tokens=n_context_tokens,
        n_scored_tokens=n_scored_tokens,
    )
