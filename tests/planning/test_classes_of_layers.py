"""Models of layers unlike each other, planned as layouts on a roofline from request to verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner import verify
from planner.errors import RequestError
from planner.placing.layouts import handed_bytes
from planner.planning.plans import plan
from planner.report.as_json import answer_json
from planner.specs.ask.targets import Degrees, Layouts, PhaseLayout, Speculation, Targets
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.correspondence import model_spec_of
from planner.specs.records.devices import Workload
from tests.specs.huggingface.published import read

WORKLOAD = Workload(n_input_tokens=2048, n_output_tokens=256)
BATCHES = (1, 8, 64, 256)
CONFIGS = (
    *("AI21-Jamba-1.5-Mini", "Bamba-9B-v2", "Falcon-H1-7B-Base", "Zamba2-7B", "LFM2-1.2B"),
    *("Kimi-Linear-48B-A3B-Instruct", "Qwen3-Next-80B-A3B", "v6-Finch-1B6-HF", "GLM-5"),
    *("Hunyuan-A52B-Instruct", "Llama-4-Scout", "DeepSeek-V3.2", "Mamba-Codestral-7B-v0.1"),
    *("Nemotron-3-Nano-30B-A3B", "Llama-3_3-Nemotron-Super-49B-v1", "gemma-4-26B-A4B"),
)


def planned(config: str, topology: str = "h200-nvl8-x2", **choices):
    filled = {"workload": WORKLOAD, "batches": BATCHES, "prefill_batches": (1, 8)} | choices
    return plan(model_spec_of(read(config)), load_cluster(topology), "roofline", **filled)


@pytest.mark.parametrize("config", CONFIGS)
def test_every_kind_of_layers_is_planned_and_verified(config):
    answer = planned(config)
    assert verify(json.loads(json.dumps(answer_json(answer)))).is_true
    assert answer.deployment.memory.decode_kv_bytes > 0


@pytest.mark.parametrize("config", ["Bamba-9B-v2", "Zamba2-7B", "Mamba-Codestral-7B-v0.1"])
@pytest.mark.parametrize("name", ["WS 2D", "WG XYZ"])
def test_weights_cut_in_two_dimensions_or_gathered_are_timed_of_all_of_them(config, name):
    layouts = Layouts(decode=PhaseLayout(name=name, attention="batch"))
    answer = planned(config, "tpu-v4-4x4x4", targets=Targets(layouts=layouts))
    assert answer.deployment.decode.layout == name
    assert verify(json.loads(json.dumps(answer_json(answer)))).is_true


def test_a_pipeline_of_layers_unlike_each_other_is_verified():
    answer = planned("AI21-Jamba-1.5-Mini", targets=Targets(degrees=Degrees(pipeline=4)))
    assert answer.deployment.mesh.n_stages == 4
    assert verify(json.loads(json.dumps(answer_json(answer)))).is_true


@pytest.mark.parametrize(("kv_format", "n_bytes"), [("bf16", 2), ("fp8", 1)])
def test_states_are_handed_over_in_their_own_format_by_hand(kv_format, n_bytes):
    """Falcon-H1 7B: 44 layers of 2 KV heads of 128, and of states of 24 heads of 256 × 128 in 4
    bytes, with 3 inputs of 3,072 + 2 · 256 channels."""
    model = model_spec_of(read("Falcon-H1-7B-Base"))
    cache, states = 44 * 2 * 2 * 128 * 2048, 44 * (24 * 256 * 128 * 4 + 3 * (3072 + 512) * 2)
    assert handed_bytes(model, WORKLOAD, kv_format) == cache * n_bytes + states


def test_the_reference_model_refuses_more_than_one_kind_of_layers():
    jamba, pool = model_spec_of(read("AI21-Jamba-1.5-Mini")), load_cluster("h100-nvl8-x1")
    with pytest.raises(RequestError, match="has layers unlike each other, Mamba, FFN; ") as error:
        plan(jamba, pool, "erdil2025")
    assert "write `--engine roofline`" in str(error.value)
    target = load_model("llama-3-70b")
    draft = replace(jamba, vocab_size=target.vocab_size)
    drafted = Speculation(draft=draft, acceptance=0.7, lookaheads=(2,))
    with pytest.raises(RequestError, match=r"--draft `AI21-Jamba-1[.]5-Mini`  has layers unlike"):
        plan(target, pool, "erdil2025", speculation=drafted)
