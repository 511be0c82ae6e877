"""What follows from the constants of [Erdil2025]'s program equals what it derives itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from planner.equations.economics import transformer
from planner.equations.economics.collectives import ALL_REDUCE, ALL_TO_ALL, POINT_TO_POINT
from planner.specs.records.economics import EconomicsModel, TreeCollectives
from research.economics import facts

MODELS = tuple(facts.constants()["models"])
DEVICES = tuple(facts.constants()["gpus"])

DERIVED: Mapping[str, Callable[[EconomicsModel], float]] = {
    "sparsity_factor_floor_div": lambda model: model.sparsity,
    "num_kv_heads_counting_k_and_v": lambda model: model.n_kv_heads,
    "d_all_attn_heads": lambda model: model.d_qkv,
    "attn_params_per_layer": transformer.n_attention_params,
    "ff_params_per_layer_per_expert": lambda model: (
        transformer.n_ffn_params(model) / (model.n_layers * model.n_experts)
    ),
    "total_attn_params": lambda model: model.n_layers * transformer.n_attention_params(model),
    "total_ff_params": transformer.n_ffn_params,
    "embedding_params_in_plus_out": transformer.n_embedding_params,
    "total_params": transformer.n_params,
    "total_active_params": transformer.n_active_params,
    "kv_cache_bytes_per_token": transformer.kv_bytes_per_token,
}


@pytest.mark.parametrize("name", MODELS)
def test_every_derived_size_of_a_model_is_the_programs(name: str):
    stored = facts.constants()["models"][name]["derived"]
    found = {key: float(size(facts.model(name))) for key, size in DERIVED.items()}
    assert found == pytest.approx(stored, rel=1e-9)


@pytest.mark.parametrize("name", DEVICES)
def test_every_sustained_rate_of_a_gpu_is_the_programs(name: str):
    stored, device = facts.constants()["gpus"][name], facts.device(name)
    sustained = {
        str(int(bits)): rate * device.compute_fraction
        for bits, rate in device.peak_flop_per_s.items()
    }
    assert sustained == pytest.approx(stored["sustained_flop_per_s_by_weight_bits"])
    assert device.hbm_bytes_per_s == pytest.approx(stored["sustained_hbm_Bps"])


def test_protocols_and_phases_are_the_programs():
    stored = facts.constants()["collectives"]
    found = {
        protocol.name: {
            "intranode_hop_s": protocol.scale_up_hop_s,
            "internode_hop_s": protocol.scale_out_hop_s,
            "base_s": protocol.base_s,
            "bandwidth_factor": protocol.bandwidth_fraction,
        }
        for protocol in TreeCollectives().protocols
    }
    assert found == stored["protocols"]
    kinds = {"allreduce": ALL_REDUCE, "all-to-all": ALL_TO_ALL, "p2p": POINT_TO_POINT}
    assert {key: kind.n_phases for key, kind in kinds.items()} == stored["phases"]
    divisors = {key: 1 / kind.transfer_share for key, kind in kinds.items()}
    assert divisors == stored["bandwidth_time_divisor"]
