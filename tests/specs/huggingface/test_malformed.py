"""What is wrong with a config is said: file, field, value, remedy; all of it at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from planner.errors import SpecError
from planner.specs.huggingface.reading import read_config
from tests.specs.huggingface.published import every_config, path_of

Table = dict[str, Any]


def _table(config: str) -> Table:
    table: Table = json.loads(path_of(config).read_text())
    return table


def _written(folder: Path, table: object) -> Path:
    path = folder / "config.json"
    path.write_text(table if isinstance(table, str) else json.dumps(table))
    return path


def _faults(folder: Path, table: object) -> list[str]:
    """Key, value, fact and remedy of each fault, without the file's name."""
    path = _written(folder, table)
    with pytest.raises(SpecError) as raised:
        read_config(path)
    problems = raised.value.problems
    assert all(problem.where == str(path) for problem in problems)
    return [str(problem).removeprefix(str(path)).removeprefix(": ") for problem in problems]


def _but(config: str, **changed: object) -> Table:
    """A kept config with some fields changed; None takes one out."""
    table = _table(config) | changed
    return {key: value for key, value in table.items() if key not in changed or value is not None}


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ("", "  is empty"),
        ("?", "  is not JSON: expecting value at line 1, column 1"),
        ('{"model_type": "llama",}', "  is not JSON: "),
        ("[1, 2]", "  is not a JSON object"),
        ('{"model_type": "llama", "hidden_size": 1, "hidden_size": 2}',
         "hidden_size  is said twice"),
        ({}, "model_type  is missing"),
        ({"model_type": 3}, "model_type `3`  is not text"),
        ({"model_type": "lama"},
         "model_type `lama`  is a family that is not understood: did you mean `llama`?"),
        ({"model_type": "gptx", "text_config": {"model_type": "wholly_new"}},
         "text_config.model_type `wholly_new`  is a family that is not understood"),
        (_but("Qwen3-8B", hidden_size=None), "hidden_size  is missing"),
        (_but("Qwen3-8B", num_hidden_layers=-36),
         "num_hidden_layers `-36`  is negative: it is 1 or more"),
        (_but("Qwen3-8B", num_hidden_layers=0), "num_hidden_layers `0`  is zero: it is 1 or more"),
        (_but("Qwen3-8B", num_hidden_layers=10**8), "num_hidden_layers `100000000`  is out of"),
        (_but("Qwen3-8B", hidden_size="4096"), "hidden_size `4096`  is not a whole number"),
        (_but("Qwen3-8B", hidden_size=4096.5), "hidden_size `4096.5`  is not a whole number"),
        (_but("Qwen3-8B", vocab_size=True), "vocab_size `true`  is not a whole number"),
        (_but("Qwen3-8B", tie_word_embeddings="no"),
         "tie_word_embeddings `no`  is neither true nor false"),
        (_but("Qwen3-8B", num_key_value_heads=5),
         "num_key_value_heads `5`  does not divide num_attention_heads, 32: each key-value head"),
        (_but("Llama-3.1-8B", num_attention_heads=24),
         "num_attention_heads `24`  does not divide hidden_size, 4096: or give head_dim"),
        (_but("Qwen3-30B-A3B", num_experts_per_tok=129),
         "num_experts_per_tok `129`  is more than there are experts, 128"),
        (_but("Qwen3-30B-A3B", mlp_only_layers=[48]),
         "mlp_only_layers `[48]`  names layer 48, but there are 48"),
        (_but("gpt-oss-20b", num_hidden_layers=25),
         "has 24 entries, but there are 25 layers"),
        (_but("gpt-oss-20b", layer_types=["full_attention"] * 23 + ["dilated_attention"]),
         "holds `dilated_attention`, which is not understood: known are full_attention"),
        (_but("DeepSeek-V3", first_k_dense_replace=62),
         "first_k_dense_replace `62`  is more than there are layers, 61"),
        (_but("DeepSeek-V3", kv_lora_rank=None), "kv_lora_rank  is missing"),
        (_but("DeepSeek-V3", topk_group=9), "topk_group `9`  is more than there are groups, 8"),
        (_but("GLM-5", qk_head_dim=200),
         "qk_head_dim `200`  is not its two parts together, 192 + 64"),
        (_but("MiniMax-Text-01", attn_type_list=[0, 1, 2]), "holds other numbers than 0, linear"),
        (_but("Nemotron-H-56B-Base-8K", hybrid_override_pattern="M-M?"),
         "hybrid_override_pattern `M-M?`  holds `?`, which is not understood: `M` mamba"),
        (_but("Nemotron-H-56B-Base-8K", n_groups=7),
         "n_groups `7`  does not divide the heads of the state, 256"),
        (_but("Mamba-Codestral-7B-v0.1", num_heads=100), "times head_dim is not expand times"),
        (_but("Llama-3_3-Nemotron-Super-49B-v1", block_configs=[{"attention": 1, "ffn": {}}] * 80),
         "[0].attention is not a table"),
        (_but("gemma-4-26B-A4B", text_config=_table("gemma-4-26B-A4B")["text_config"]
              | {"num_kv_shared_layers": 4}),
         "text_config.num_kv_shared_layers `4`  is not understood: Gemma 4 without it is"),
        (_but("Qwen3-8B", torch_dtype="posit8"),
         "dtype `posit8`  is no type of weights that is understood: known are bfloat16"),
        (_but("Qwen3-8B", quantization_config={"quant_method": "magic"}),
         "quantization_config.quant_method `magic`  is no way of quantizing that is understood"),
        (_but("Qwen3-8B", quantization_config={"quant_method": "gptq", "bits": 3}),
         "quantization_config.bits `3`  is no number of bits that is understood: it is 4 or 8"),
        (_but("Hunyuan-A13B-Instruct", moe_topk=[8] * 31 + [4]),
         "moe_topk `[8, 8, 8, 8, 8, …]`  is not a whole number"),
        (_but("Bamba-9B-v2", attn_layer_indices=[9, 32]),
         "attn_layer_indices `[9, 32]`  names layer 32, but there are 32, from 0"),
        (_but("Bamba-9B-v2", attn_layer_indices=None),
         "layer_types  is missing: it says which layers attend"),
        (_but("LFM2-1.2B", full_attn_idxs=None),
         "attn_layer_indices  is missing: it says which layers attend"),
        (_but("Kimi-Linear-48B-A3B-Instruct", linear_attn_config={"full_attn_layers": [4, 28]}),
         "linear_num_heads  is missing"),
        (_but("Kimi-Linear-48B-A3B-Instruct", linear_attn_config={
            "full_attn_layers": [4, 28], "num_heads": 32, "head_dim": 128,
            "short_conv_kernel_size": 4}),
         "linear_attn_config.full_attn_layers `[4, 28]`  names layer 28, but there are 27, from 1"),
        (_but("Zamba2-7B", layers_block_type=None),
         "layers_block_type  is missing: it says which layers have a block before them"),
        (_but("Zamba2-7B", layers_block_type=["mamba"] * 80 + ["attention"]),
         "holds `attention`, which is not understood: known are mamba, hybrid"),
        (_but("dbrx-base", attn_config={"kv_n_heads": 7}),
         "attn_config.kv_n_heads `7`  does not divide num_attention_heads, 48"),
        (_but("dbrx-base", ffn_config={"ffn_hidden_size": 10752, "moe_num_experts": 16}),
         "num_experts_per_tok  is missing"),
        (_but("mpt-7b", attn_config={"attn_type": "grouped_query_attention"}),
         "attn_config.attn_type `grouped_query_attention`  is not understood"),
        (_but("mpt-7b", no_bias=False),
         "no_bias `false`  is not understood: MPT without biases is"),
        (_but("ERNIE-4.5-21B-A3B-PT", moe_layer_interval=2),
         "moe_layer_interval `2`  is not understood: experts in each layer are"),
        (_but("ERNIE-4.5-21B-A3B-PT", moe_layer_end_index=20),
         "moe_layer_end_index `20`  is not the last layer"),
        (_but("starcoder2-3b", mlp_type="gated"),
         "mlp_type `gated`  is not understood: `default` is"),
        (_but("v6-Finch-1B6-HF", head_size=96),
         "head_size `96`  does not divide the width of time mixing, 2048"),
        (_table("LLaDA-8B-Instruct"),
         "is decoded by diffusion, and nothing beside it says in how many passes: write"),
        (_but("gpt-oss-20b", experts_per_token=5),
         "`4`  is not what the same field says by another name: `experts_per_token` is 5"),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_malformed_config_is_an_error_that_names_the_field(
    tmp_path: Path, table: object, fault: str
) -> None:
    assert any(fault in found for found in _faults(tmp_path, table)), _faults(tmp_path, table)


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        *((family, "is an encoder-decoder: besides its own cache, each token that it writes reads")
          for family in ("t5", "mt5", "umt5", "t5gemma", "bart", "mbart", "pegasus", "marian",
                         "m2m_100", "whisper", "moonshine", "switch_transformers")),
        *((family, "is an encoder: it makes one vector of what it reads, and writes no tokens")
          for family in ("bert", "roberta", "distilbert", "modernbert", "siglip")),
        ("dream", "in layers that are not read yet: `llada` is read, with a `variant.toml`"),
        ("rwkv", "is an RWKV of another generation, with other states: `rwkv6` is read"),
        ("rwkv7", "is an RWKV of another generation, with other states: `rwkv6` is read"),
        ("zamba", "shares one block without additions of its own: `zamba2` is read"),
        ("gemma3n", "adds embeddings of its own in each layer"),
        ("deepseek_v4", "keeps caches that are compressed by several tokens"),
        ("longcat_flash", "has two attentions in a layer, and experts that compute nothing"),
        ("jetmoe", "routes tokens to heads of attention too"),
        ("recurrent_gemma", "has gated recurrences of one number a channel"),
        ("mllama", "attends to an image's keys in layers of its own"),
        ("cohere3", "is a family that is not understood: did you mean `cohere`?"),
    ],
)  # fmt: skip
def test_a_family_that_is_known_and_not_read_is_refused_with_the_reason(
    tmp_path: Path, family: str, sentence: str
) -> None:
    (fault,) = _faults(tmp_path, {"model_type": family})
    assert fault.startswith(f"model_type `{family}`")
    assert sentence in fault


def test_an_encoder_decoder_of_an_unknown_family_is_refused_as_one(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, {"model_type": "wholly_new", "is_encoder_decoder": True})
    assert "is an encoder-decoder" in fault


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_memory_layers", 4),
        ("n_extra_heads", 2),
        ("ffn_low_rank", 64),
        ("conv_pattern", "M*"),
        ("cross_layer_types", ["a"]),
        ("use_hyper_connections", True),
        ("num_experts", 8),  # of other families, and of none that is called `qwen3`
        ("linear_num_value_heads", 8),
        ("kv_lora_rank", 512),
        ("attn_type_list", [0, 1]),
    ],
)
def test_a_key_that_could_change_the_shape_is_never_passed_over(
    tmp_path: Path, key: str, value: object
) -> None:
    table = _but("Qwen3-8B", **{key: value})
    if key == "num_experts":  # a dense family that is given experts needs all about them
        assert _faults(tmp_path, table) == ["num_experts_per_tok  is missing"]
        return
    (fault,) = _faults(tmp_path, table)
    assert fault.startswith(key)
    assert "is not understood in a config of `qwen3`, and could change its shape" in fault


@pytest.mark.parametrize(
    ("key", "value"), [("num_memory_layers", 0), ("use_hyper_connections", False),
                       ("ffn_low_rank", None), ("cross_layer_types", []), ("my_note", "hello"),
                       ("bos_token_id", 7), ("rope_scaling", {"type": "yarn"})],
)  # fmt: skip
def test_a_key_that_is_off_or_changes_no_shape_is_passed_over(
    tmp_path: Path, key: str, value: object
) -> None:
    plain = read_config(path_of("Qwen3-8B"))
    read = read_config(_written(tmp_path, _table("Qwen3-8B") | {key: value}))
    assert (read.n_params, read.layers) == (plain.n_params, plain.layers)


def test_a_misspelt_key_is_one_fault_with_the_key_that_was_meant(tmp_path: Path) -> None:
    table = _but("Qwen3-8B", hidden_size=None) | {"hiden_size": 4096}
    (fault,) = _faults(tmp_path, table)
    assert fault.startswith("hiden_size `4096`")
    assert fault.endswith("did you mean `hidden_size`?")


def test_all_faults_are_said_at_once(tmp_path: Path) -> None:
    table = _but(
        "Qwen3-30B-A3B", vocab_size=None, num_key_value_heads=3, num_experts_per_tok=500,
        num_hidden_layers="many", torch_dtype="posit8", n_extra_heads=2,
    )  # fmt: skip
    assert {fault.split()[0] for fault in _faults(tmp_path, table)} == {
        "vocab_size",
        "num_key_value_heads",
        "num_hidden_layers",
        "num_experts_per_tok",
        "n_extra_heads",
        "dtype",
    }


def test_an_unknown_family_is_answered_with_those_that_are_understood(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        read_config(_written(tmp_path, {"model_type": "rwkv7"}))
    assert "deepseek_v3" in raised.value.hint
    assert "nemotron_h" in raised.value.hint


@pytest.mark.parametrize("text", ['{"a": ' * 100_000, '{"a": ' + "9" * 10_000 + "}"])
def test_json_that_python_refuses_is_an_error_like_any_other(tmp_path: Path, text: str) -> None:
    assert _faults(tmp_path, text)


def test_a_file_that_is_no_text_is_an_error_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(SpecError, match="is not text"):
        read_config(path)


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 300) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_whatever_a_config_says_it_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Values of any type in any field: an architecture, or an error that says what is wrong."""
    table = _table(data.draw(st.sampled_from(every_config())))
    inner = table.get("text_config", table)
    for key in data.draw(st.lists(st.sampled_from(sorted(inner)), min_size=1, max_size=3)):
        inner[key] = data.draw(_ANYTHING)
    path = _written(tmp_path, table)
    try:
        architecture = read_config(path)
    except SpecError as error:
        facts = [problem.fact for problem in error.problems]
    else:
        facts = ["read"] * (architecture.n_params > 0)
    assert facts
    assert all(facts)
