"""Memory as engines account for it: weights once, blocks whole, prefixes shared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.drafting import drafts_of, rounds_of
from planner.estimates.serving.memory import (
    activation_bytes,
    cache_bytes,
    drafter_bytes,
    handed_bytes,
    holding,
    state_bytes,
)
from planner.estimates.serving.passes import parameter_bytes
from planner.specs.files.engines import load_engine
from planner.specs.records.variants import Variant
from tests.estimates.serving.situations import BF16, model

CONFIGS = "tests/specs/huggingface/configs/"


@pytest.mark.parametrize(
    "name", ["Llama-3.1-70B", "Qwen3-235B-A22B", "DeepSeek-V3", "Jamba", "gemma-3-27b-it"]
)
def test_one_device_holds_every_parameter_once(name):
    name = "AI21-Jamba-1.5-Mini" if name == "Jamba" else name
    spec = model(f"{CONFIGS}{name}_config.json")
    held = parameter_bytes(spec, deployments(formats=BF16), BF16)[0]
    assert held == pytest.approx(2 * (spec.n_params + spec.n_encoder_params), rel=1e-3)


def test_all_devices_together_hold_every_expert_once():
    spec = model(f"{CONFIGS}Qwen3-235B-A22B_config.json")
    alone = parameter_bytes(spec, deployments(formats=BF16), BF16)[0]
    table = deployments(formats=BF16, n_data=8, n_expert_parallel=8)
    each = parameter_bytes(spec, table, BF16)[0]
    experts = sum(c.n_layers * 128 * c.ffn.expert_params(spec.d_model) * 2 for c in spec.layers)
    assert each == pytest.approx(alone - experts * 7 / 8, rel=1e-6)


def test_channels_of_a_state_are_cut_over_devices_as_engines_cut_them():
    """Jamba 1.5 Mini: 28 layers of 8192 channels, 16 numbers of 4 bytes and 3 inputs of 2 each."""
    spec = model(f"{CONFIGS}AI21-Jamba-1.5-Mini_config.json")
    held = state_bytes(spec, deployments(formats=BF16, n_tensor=[1, 8]))
    assert held.tolist() == [28 * 8192 * (16 * 4 + 3 * 2), 28 * 1024 * (16 * 4 + 3 * 2)]


def test_what_enters_and_leaves_a_state_is_as_wide_as_its_projections():
    """Qwen3-Next: 16 × 128 keys and queries, 32 × 128 values and gates, a decay and a write a head.

    With 4096 numbers that leave it, and the residual of 2048 twice, for each of 8 tokens; scores of
    151,936 words of one sequence.
    """
    spec = model(f"{CONFIGS}Qwen3-Next-80B-A3B_config.json")
    delta = replace(spec, layers=(replace(spec.layers[0], ffn=None),), order=(0,))
    table = deployments(formats=BF16, n_tensor=2, chunk_tokens=8.0, batch=1.0)
    width = (2 * 16 * 128 + 2 * 32 * 128 + 2 * 32 + 32 * 128) / 2
    assert activation_bytes(delta, table)[0] == 8 * 2 * (2 * 2048 + width) + 4 * 151936 / 2


def test_a_cache_is_made_of_whole_blocks():
    """Qwen3-8B keeps 36 × 2 × 8 × 128 numbers of 2 bytes a token: 147,456 bytes."""
    spec, table = model("qwen3-8b"), deployments(formats=BF16)
    assert cache_bytes(spec, table, BF16, 17, 16)[0] == 32 * 147_456
    assert cache_bytes(spec, table, BF16, 16, 16)[0] == 16 * 147_456


@pytest.mark.parametrize(
    ("name", "cache_format", "each_token"),
    [
        ("qwen3-8b", "bf16", 36 * 2 * 8 * 128 * 2),
        ("qwen3-8b", "fp8", 36 * 2 * 8 * 128),
        ("deepseek-v3", "bf16", 61 * (512 + 64) * 2),  # a latent and a rotated key
    ],
)
def test_what_is_handed_over_is_every_head_once_in_whole_blocks(name, cache_format, each_token):
    spec = model(name)
    assert handed_bytes(spec, cache_format, n_tokens=1000) == 1000 * each_token
    assert handed_bytes(spec, cache_format, n_tokens=1000, n_block_tokens=64) == 1024 * each_token


def test_states_are_handed_over_however_short_a_prompt_is():
    spec = model(f"{CONFIGS}AI21-Jamba-1.5-Mini_config.json")
    states = state_bytes(spec, deployments(formats=BF16))[0]
    short, long = (handed_bytes(spec, "bf16", n_tokens=n) - states for n in (1, 1000))
    assert long == pytest.approx(1000 * short)


def test_heads_fewer_than_devices_are_held_several_times():
    spec = model("qwen3-8b")
    table = deployments(formats=BF16, n_tensor=[8, 16])
    held = cache_bytes(spec, table, BF16, 160, 16)
    assert held[0] == held[1]


def test_a_window_keeps_its_own_tokens_only():
    spec = model(f"{CONFIGS}gemma-3-27b-it_config.json")
    table = deployments(formats=BF16)
    short, long = (cache_bytes(spec, table, BF16, n, 16)[0] for n in (1024, 131_072))
    whole = next(c for c in spec.layers if c.mixer.n_span_tokens is None)
    each = whole.mixer.d_cached * 2
    assert long - short == pytest.approx(whole.n_layers * each * (131_072 - 1024), rel=0.01)


def test_states_do_not_grow_with_the_context():
    spec = model(f"{CONFIGS}Qwen3-Next-80B-A3B_config.json")
    table = deployments(formats=BF16, n_tensor=[1, 2])
    held = state_bytes(spec, table)
    assert held[0] == pytest.approx(spec.state_bytes())
    assert held[1] == pytest.approx(held[0] / 2)


def test_a_shared_prefix_is_held_once():
    spec, engine = model("qwen3-8b"), load_engine("vllm")
    table = deployments(formats=BF16, batch=1)

    def fits(shared):
        return holding(
            spec, table, BF16, engine, hbm_bytes=80e9, n_tokens=4096, n_shared_tokens=shared
        )

    apart, together = fits(0), fits(2048)
    assert together.sequence_bytes[0] == apart.sequence_bytes[0] / 2
    assert together.largest_batch[0] == pytest.approx(2 * apart.largest_batch[0], abs=3)


def test_what_fits_leaves_the_engine_its_share():
    spec, engine = model("qwen3-32b"), load_engine("trtllm")
    table = deployments(formats=BF16, n_tensor=[1, 2, 4, 8], batch=8)
    held = holding(spec, table, BF16, engine, hbm_bytes=80e9, n_tokens=8192)
    used = held.weights_bytes + held.activation_bytes + held.workspace_bytes
    used = used + held.largest_batch * held.sequence_bytes
    assert np.all(used[1:] <= 80e9 * engine.memory_fraction)
    assert np.all(np.diff(held.largest_batch) > 0)


@pytest.mark.parametrize(
    ("name", "kind", "n_params"),
    [
        ("deepseek-v3", "mtp", 11.5e9),  # README_WEIGHTS.md of DeepSeek-V3: without embedding, head
        ("llama-3.1-70b", "eagle", 0.99e9),  # arXiv 2401.15077, of LLaMA2-Chat 70B, as wide
    ],
)
def test_a_drafter_has_as_many_parameters_as_published(name, kind, n_params):
    drafts = drafts_of(model(name), kind, 3, (0.7,))
    held = drafter_bytes(drafts, deployments(formats=BF16), BF16)
    assert held[0] / 2 == pytest.approx(n_params, rel=0.015)


def test_medusa_holds_a_block_and_a_head_for_each_token():
    spec = model("llama-3.1-8b")
    table = deployments(formats=BF16, n_tensor=[1, 4])
    held = drafter_bytes(drafts_of(spec, "medusa", 5, (0.7,)), table, BF16)
    assert held.tolist() == [10 * 4096 * (4096 + 128_256), 10 * 4096 * (4096 + 128_256) / 4]


def test_a_drafter_is_cut_over_ranks_but_not_over_stages():
    spec = model("qwen3-32b")
    table = deployments(formats=BF16, n_tensor=[1, 8, 8], n_stages=[1, 1, 4])
    alone, cut, staged = drafter_bytes(drafts_of(spec, "eagle", 3, (0.7,)), table, BF16)
    joined = 2 * spec.d_model**2 * 2
    assert cut - joined == pytest.approx((alone - joined) / 8, rel=1e-3)
    assert staged - cut == spec.vocab_size * spec.d_model * 2 / 8  # the first stage's embedding


@pytest.mark.parametrize("n_stages", [1, 8])
def test_a_drafter_with_attention_has_a_cache_of_its_own(n_stages):
    spec, engine = model("qwen3-32b"), load_engine("vllm")
    table = deployments(formats=BF16, n_stages=n_stages)

    def held(kind):
        drafts = drafts_of(spec, kind, 3, (0.7,)) if kind else None
        return holding(spec, table, BF16, engine, hbm_bytes=80e9, n_tokens=4096, drafts=drafts)

    plain, eagle, medusa = (held(kind).sequence_bytes[0] for kind in (None, "eagle", "medusa"))
    n_layers = 64 // n_stages
    assert eagle == pytest.approx(plain * (n_layers + 1) / n_layers)
    assert medusa == plain
    assert held("eagle").room_bytes[0] < held(None).room_bytes[0]


def test_what_decodes_in_blocks_holds_no_drafter():
    variant = Variant(
        of="qwen3-8b", how="diffusion", quality="none", n_denoising_steps=4, n_block_tokens=32
    )
    spec = replace(model("qwen3-8b"), variant=variant)
    assert not drafter_bytes(rounds_of(spec, None, 0, ()), deployments(formats=BF16), BF16).any()
