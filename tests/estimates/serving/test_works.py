"""The work of a pass: three times the sequences are three times the work, whatever mixes tokens.

Times follow from what kernels are called with; FLOP and bytes are only told, so that no time
shows it where they are wrong.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.passes import pass_operations
from tests.estimates.serving.situations import FP8, model

CONFIGS = "tests/specs/huggingface/configs/"
KINDS = {
    "grouped": "qwen3-8b",
    "windows, sinks and experts": "gpt-oss-120b",
    "latents": "deepseek-v3",
    "latents with an indexer": f"{CONFIGS}DeepSeek-V3.2_config.json",
    "linear attention": f"{CONFIGS}Qwen3.5-35B-A3B_config.json",
    "states": f"{CONFIGS}Nemotron-H-56B-Base-8K_config.json",
}
"""A model of each kind of layer."""

WEIGHTLESS = (
    "decode_attention",
    "prefill_attention",
    "latent_decode",
    "latent_prefill",
    "recurrence_decode",
    "scores",
    "sampling",
)
"""Kernels that read what belongs to sequences, and no weights."""
N = 3.0
DECODING = PassShape(n_decoding=np.array([5.0]), context=np.array([700.0]), n_positions=2.0)
READING = PassShape(
    n_prompts=np.array([2.0]), prompt_tokens=np.array([300.0]), past_tokens=np.array([40.0])
)


def told(name, work, **degrees):
    table = deployments(formats=FP8, **degrees)
    found = pass_operations(model(name), table, work, FP8, families=("experts",), n_small_kernels=3)
    return {(one.layer, one.part, one.name): one for one in found}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("work", "more"),
    [
        (DECODING, replace(DECODING, n_decoding=N * DECODING.n_decoding)),
        (READING, replace(READING, n_prompts=N * READING.n_prompts)),
    ],
    ids=["decoding", "reading"],
)
def test_more_sequences_are_as_much_more_work(kind, work, more):
    few, many = told(KINDS[kind], work), told(KINDS[kind], more)
    assert few.keys() == many.keys()
    for key, one in few.items():
        assert many[key].flop == pytest.approx(N * np.asarray(one.flop)), key
        if one.family in WEIGHTLESS:
            assert many[key].hbm_bytes == pytest.approx(N * np.asarray(one.hbm_bytes)), key
            assert np.all(np.asarray(one.hbm_bytes) > 0), key


@pytest.mark.parametrize("kind", ["grouped", "latents"])
def test_a_prompt_is_read_as_a_count_token_by_token_gives(kind):
    """A token is scored against all before it and itself, then their values are summed."""
    spec, found = model(KINDS[kind]), told(KINDS[kind], READING)
    (mixer,) = {one.mixer for one in spec.layers}
    d_value = getattr(mixer, "d_value_head", mixer.d_head)
    first, past = int(READING.prompt_tokens[0]), int(READING.past_tokens[0])
    met = sum(past + i for i in range(1, first + 1))
    flop = 2.0 * READING.n_prompts[0] * mixer.n_heads * (mixer.d_head + d_value) * met
    read = [one for (_, _, name), one in found.items() if name == "prefill attention"]
    assert read
    assert [one.flop.item() for one in read] == pytest.approx([flop] * len(read))


@pytest.mark.parametrize("n_stages", [1, 2, 5, 12])
def test_what_is_handed_on_is_handed_on_once_less_than_there_are_stages(n_stages):
    """Each device of a stage sends its part of all residuals, in 16 bits."""
    spec = model("qwen3-8b")
    one = told("qwen3-8b", READING, n_stages=n_stages, n_tensor=2)[
        "model", "model", "hand-over between stages"
    ]
    part = 2 * 300 * spec.d_model * 2.0 / 2
    assert one.arguments["n_bytes"].item() == part
    assert one.arguments["n_sends"].item() == n_stages - 1
    assert one.arguments["n_group"].item() == 2
    assert one.sent_bytes.item() == part * (n_stages - 1)
