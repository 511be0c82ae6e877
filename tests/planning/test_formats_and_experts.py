"""Number formats and experts as decisions of the one program, on real models."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import (
    NoPlanError,
    RequestError,
    SolverOptions,
    Targets,
    Workload,
    load_architecture,
    load_cluster,
    load_model,
    plan,
)
from tests.report.rendering import report_text

WORKLOAD = Workload(n_input_tokens=1024, n_output_tokens=128)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def solve(model, cluster, targets=None, **choices):
    filled = {"workload": WORKLOAD, "batches": BATCHES, "prefill": "latency"} | choices
    pool = load_cluster(cluster)
    return plan(load_model(model), pool, "roofline", targets=targets or Targets(), **filled)


def test_a_cheaper_format_is_chosen_where_it_is_allowed():
    """Half the bytes, twice the peak: eight bits win over sixteen when both may be had."""
    wide = solve("llama-3.1-70b", "h100-nvl8-x1", weights_formats=["bf16"]).deployment
    free = solve("llama-3.1-70b", "h100-nvl8-x1", weights_formats=["bf16", "fp8"]).deployment
    assert free.weights_format == "fp8"
    assert free.usd_per_token < wide.usd_per_token


def test_a_smaller_cache_format_is_chosen_where_the_cache_is_what_binds():
    long = Workload(n_input_tokens=32768, n_output_tokens=128)
    wide = solve("llama-3.1-70b", "h100-nvl8-x1", workload=long, weights_formats=["fp8"])
    free = solve(
        "llama-3.1-70b",
        "h100-nvl8-x1",
        workload=long,
        weights_formats=["fp8"],
        kv_formats=["bf16", "fp8"],
    )
    assert free.deployment.kv_format == "fp8"
    assert free.deployment.usd_per_token < wide.deployment.usd_per_token


def test_a_format_that_the_device_does_not_multiply_saves_bytes_but_no_arithmetic():
    """fp8 on A100: weights are read in eight bits, products are those of sixteen."""
    a100 = solve("llama-3.1-8b", "a100-nvl8-x1", weights_formats=["fp8"], batches=(256,))
    b16 = solve("llama-3.1-8b", "a100-nvl8-x1", weights_formats=["bf16"], batches=(256,))
    same = a100.deployment.prefill.step, b16.deployment.prefill.step
    assert same[0].compute_s == pytest.approx(same[1].compute_s, rel=0.05)
    assert a100.deployment.memory.weights_bytes == pytest.approx(
        b16.deployment.memory.weights_bytes / 2
    )


def test_the_report_says_in_what_such_weights_are_multiplied():
    on_a100 = solve("llama-3.1-8b", "a100-nvl8-x1", weights_formats=["fp8"], batches=(8,))
    assert "bf16: NVIDIA A100" in " ".join(report_text(on_a100, 100).split())
    on_h100 = solve("llama-3.1-8b", "h100-nvl8-x1", weights_formats=["fp8"], batches=(8,))
    assert "arithmetic" not in report_text(on_h100, 100).partition("\nphases")[0]


def test_a_device_that_multiplies_nothing_of_16_bits_is_refused():
    """Activations cannot be made narrower, nor can four bits be widened to 16."""
    pool = load_cluster("h100-nvl8-x1")
    device = replace(pool.device, peak_flop_per_s={"fp8": 2e15})
    pool = replace(pool, device=device)
    with pytest.raises(RequestError) as caught:
        plan(load_model("llama-3.1-8b"), pool, "roofline", weights_formats=["fp8"])
    (problem,) = caught.value.problems
    assert (problem.where, problem.value) == ("--topology", "h100-nvl8-x1")
    assert "multiplies fp8 alone, and activations are in bf16" in problem.fact


def test_four_bits_of_a_model_are_those_of_engines():
    """Kernel tables call them nvfp4: the same bytes, kernels and times."""
    asked = {"targets": Targets(tpot_s=0.04), "batches": (8, 64), "chunks": (8192,)}
    pool = load_cluster("b200-nvl8-x1")
    model = load_architecture("qwen3-32b")
    found = [
        plan(model, pool, "vllm", weights_formats=[name], **asked).deployment
        for name in ("fp4", "nvfp4")
    ]
    assert found[0].tpot_s == found[1].tpot_s
    assert found[0].used_bytes == found[1].used_bytes


@pytest.mark.parametrize("solver", ["highs", "cpsat"])
@pytest.mark.parametrize(("cluster", "n_devices"), [("h200-nvl8-x2", 8), ("gb200-nvl72-x1", 8)])
def test_deepseek_is_planned_with_proof_and_both_solvers_agree(cluster, n_devices, solver):
    found = solve(
        "deepseek-v3",
        cluster,
        Targets(tpot_s=0.030),
        batches=None,
        options=SolverOptions(solver=solver),
    )
    assert found.certificate.gap == 0
    assert found.certificate.status == "optimal"
    mesh = found.deployment.mesh
    assert (mesh.label, mesh.n_devices) == ("in one group", n_devices)
    assert found.deployment.tpot_s <= 0.030
    assert "EP" in found.deployment.decode.layout


def test_data_parallel_attention_wins_where_the_latent_cache_would_be_copied():
    """One latent per token: tensor parallel devices hold copies of it, data parallel ones not."""
    long = Workload(n_input_tokens=32768, n_output_tokens=128)
    found = solve("deepseek-v3", "h200-nvl8-x2", workload=long, weights_formats=["fp8"])
    decode = found.deployment.decode
    assert decode.layout.startswith("DP") or decode.attention == "batch"
    assert decode.n_kv_ways > 1


def test_a_model_of_experts_too_large_for_a_server_says_so():
    with pytest.raises(NoPlanError) as caught:
        solve("kimi-k2", "h100-nvl8-x1", weights_formats=["fp8"])
    assert [obstacle.name for obstacle in caught.value.conflict.obstacles] == ["hbm"]
