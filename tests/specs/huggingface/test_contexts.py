"""The longest context of a config, stretched as its rotary embedding says, and as vLLM reads it."""

import json

import pytest

from planner.errors import SpecError
from planner.specs.huggingface.reading import read_config
from tests.specs.huggingface.published import path_of

PUBLISHED = {
    "Llama-3.1-8B": 131_072,  # llama3: the stretched length
    "DeepSeek-V3": 163_840,  # yarn: 40 × 4096
    "Kimi-K2.5": 262_144,  # yarn in the decoder's part: 64 × 4096
    "Qwen3-8B": 40_960,
    "Hunyuan-A52B-Instruct": 131_072,  # dynamic by a factor of one
    "Llama-4-Scout": 10_485_760,
    "gemma-3-27b-it": 131_072,  # the family's own, of which the factor is part
    "falcon-180B": 2048,  # the family's own
    "phi-4": 16_384,
    "c4ai-command-r-plus": 131_072,  # `model_max_length`, beside 8,192 positions
    "Kimi-Linear-48B-A3B-Instruct": 1_048_576,
    "Olmo-3-32B-Think": 65_536,  # yarn, by 8 of 8,192
    "dbrx-base": 32_768,
    "v6-Finch-1B6-HF": None,
}


@pytest.mark.parametrize(("name", "longest"), PUBLISHED.items())
def test_published_configs_say_what_their_cards_say(name, longest):
    assert read_config(path_of(name)).n_context_tokens == longest


def test_a_recurrence_without_attention_has_no_limit():
    path = path_of("Mamba-Codestral-7B-v0.1")
    assert read_config(path).n_context_tokens is None


def context(folder, **changed):
    """Of a Qwen3 of 40960 positions with other fields."""
    table = json.loads(path_of("Qwen3-8B").read_text()) | changed
    path = folder / "config.json"
    path.write_text(json.dumps({key: value for key, value in table.items() if value is not ...}))
    return read_config(path).n_context_tokens


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("kind", ["rope_type", "type"])
@pytest.mark.parametrize(
    ("rope", "longest"),
    [
        (("yarn", {"factor": 4.0, "original_max_position_embeddings": 32_768}), 131_072),
        (("yarn", {"factor": 4.0}), 163_840),
        (("linear", {"factor": 2}), 81_920),
        (("dynamic", {"factor": 2.5}), 102_400),
        (("llama3", {"factor": 8.0}), 40_960),
        (("longrope", {"factor": 8.0}), 40_960),
        (("default", {}), 40_960),
        (("linear", {"factor": None}), 40_960),
    ],
)
def test_a_rotary_embedding_stretches_positions(tmp_path, key, kind, rope, longest):
    name, values = rope
    said = {"rope_scaling": None, key: {kind: name, **values}}
    assert context(tmp_path, **said) == longest


@pytest.mark.parametrize(
    "values",
    [
        {"factor": "4.0"},
        {"factor": 0.5},
        {"factor": 1e9},
        {"factor": True},
        {"factor": 4.0, "original_max_position_embeddings": "many"},
        {"factor": 4.0, "original_max_position_embeddings": -1},
        {"factor": 4.0, "original_max_position_embeddings": 1_000_000},
    ],
)
def test_a_stretch_that_cannot_be_is_refused(tmp_path, values):
    with pytest.raises(SpecError, match="rope_scaling"):
        context(tmp_path, rope_scaling={"rope_type": "yarn", **values})


def test_falcon_with_alibi_has_no_positions(tmp_path):
    table = json.loads(path_of("falcon-7b").read_text()) | {"alibi": True}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(table))
    assert read_config(path).n_context_tokens is None
