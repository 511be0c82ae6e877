"""What a checkpoint is, read from the files that say so, by each way of quantizing that users meet.

Lists of modules and the names around them are those of published files: Qwen/Qwen3-32B-FP8,
nvidia/Llama-3.1-70B-Instruct-FP8, nvidia/DeepSeek-V3.1-NVFP4, nvidia/GLM-5.1-NVFP4,
nvidia/Qwen3.6-35B-A3B-NVFP4, moonshotai/Kimi-K2.5, openai/gpt-oss-120b, RedHatAI's FP8 checkpoints.
"""

import json
import shutil

import pytest

from planner.errors import SpecError
from planner.specs.files.reading import load_architecture
from planner.specs.huggingface.reading import read_config
from tests.specs.huggingface.published import path_of

DENSE, MIXTURE = "Qwen3-8B", "Qwen3-30B-A3B"
N_LAYERS = 48

FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3"}
SCALED = {"dynamic": False, "num_bits": 8, "type": "float"}
FOUR = {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16}


def compressed(weights, inputs, **rest):
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, **rest}


def of_attention(end):
    return [f"model.layers.{i}.self_attn{end}" for i in range(N_LAYERS)]


DYNAMIC = compressed({"num_bits": 8, "type": "float", "strategy": "channel"}, {"dynamic": True})
STATIC = compressed({"num_bits": 8, "type": "float"}, SCALED, kv_cache_scheme=SCALED)
GROUPED = compressed({"num_bits": 4, "type": "int", "group_size": 32}, None)
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": SCALED}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}

WAYS = {
    "fp8, dynamic": (DENSE, FP8, ("fp8", "fp8", "bf16")),
    "fp8, static": (DENSE, {**FP8, "activation_scheme": "static"}, ("fp8", "fp8_static", "bf16")),
    "fp8, blocks": (DENSE, {**FP8, "weight_block_size": [128, 128]}, ("fp8", "fp8_block", "bf16")),
    "fbgemm": (DENSE, {"quant_method": "fbgemm_fp8"}, ("fp8", "fp8", "bf16")),
    "compressed, dynamic": (DENSE, DYNAMIC, ("fp8", "fp8", "bf16")),
    "compressed, static": (DENSE, STATIC, ("fp8", "fp8_static", "fp8")),
    "compressed, four bits": (DENSE, compressed(FOUR, FOUR), ("fp4", "nvfp4_static", "bf16")),
    "modelopt, fp8": (
        DENSE,
        {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]},
        ("fp8", "fp8_static", "fp8"),
    ),
    "modelopt, nvfp4": (DENSE, NVFP4, ("fp4", "nvfp4_static", "fp8")),
    "modelopt, nvfp4, nothing cached": (
        DENSE,
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": None},
        ("fp4", "nvfp4_static", "bf16"),
    ),
    "awq": (DENSE, AWQ, ("int4", "int4", "bf16")),
    "gptq": (DENSE, {"quant_method": "gptq", "bits": 8}, ("int8", "int8", "bf16")),
    "bitsandbytes": (
        DENSE,
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        ("int4", "int4", "bf16"),
    ),
    "bitsandbytes, 8 bits": (
        DENSE,
        {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_threshold": 6.0},
        ("llm_int8", "llm_int8", "bf16"),
    ),
}


def folder_of(where, config, quantization=None, beside=None):
    table = json.loads(path_of(config).read_text())
    if quantization is not None:
        table["quantization_config"] = quantization
    (where / "config.json").write_text(json.dumps(table))
    if beside is not None:
        (where / "hf_quant_config.json").write_text(json.dumps(beside))
    return where


@pytest.mark.parametrize("way", WAYS)
def test_a_dense_checkpoint_is_what_its_file_says(tmp_path, way):
    config, quantization, (word, weights, cache) = WAYS[way]
    model = read_config(folder_of(tmp_path, config, quantization))
    (checkpoint,) = model.checkpoints
    assert model.published_weights == (checkpoint.format,) == (word,)
    assert (checkpoint.weights, model.kv_format) == (weights, cache)
    assert cache in model.kv_formats


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        (NVFP4, ("fp4", "nvfp4_static", "nvfp4")),
        ({**NVFP4, "ignore": of_attention("*")}, ("fp4", "bf16", "nvfp4")),
        ({**NVFP4, "exclude_modules": of_attention(".q_proj")}, ("fp4", "bf16", "nvfp4")),
        ({**NVFP4, "ignore": of_attention(".k_norm")}, ("fp4", "nvfp4_static", "nvfp4")),
        ({**NVFP4, "ignore": of_attention("*")[:20]}, ("fp4", "nvfp4_static", "nvfp4")),
        ({**NVFP4, "ignore": ["model.layers.*.mlp.gate"]}, ("fp4", "nvfp4_static", "nvfp4")),
        ({**GROUPED, "ignore": ["lm_head", "re:.*self_attn.*"]}, ("int4", "bf16", "int4")),
        (
            {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
            ("mxfp4", "bf16", "mxfp4"),
        ),
        (
            {**FP8, "weight_block_size": [128, 128], "modules_to_not_convert": ["gate", "lm_head"]},
            ("fp8", "fp8_block", "fp8_block"),
        ),
        ({**FP8, "ignored_layers": ["re:.*mlp[.]experts.*"]}, ("fp8", "fp8", "bf16")),
    ],
)
def test_attention_or_experts_of_a_mixture_may_be_left_as_they_were(
    tmp_path, quantization, expected
):
    (one,) = read_config(folder_of(tmp_path, MIXTURE, quantization)).checkpoints
    assert (one.format, one.weights, one.experts) == expected


def test_formats_that_are_said_layer_by_layer_are_counted(tmp_path):
    """Attention in FP8, experts in NVFP4, and a head that is no layer."""
    layers = {f"model.layers.{i}.self_attn.q_proj": {"quant_algo": "FP8"} for i in range(N_LAYERS)}
    layers |= {f"model.layers.{i}.mlp.experts": {"quant_algo": "NVFP4"} for i in range(N_LAYERS)}
    said = {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    (one,) = read_config(folder_of(tmp_path, MIXTURE, said)).checkpoints
    assert (one.format, one.weights, one.experts) == ("fp4", "fp8_static", "nvfp4")


def test_the_file_beside_says_how_keys_and_values_are_cached(tmp_path):
    """Some configs leave it out (nvidia/Qwen3.6-35B-A3B-NVFP4); others have it there alone."""
    beside = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    said = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    assert read_config(folder_of(tmp_path, DENSE, said, beside)).kv_format == "fp8"
    assert read_config(folder_of(tmp_path, DENSE, None, beside)).kv_format == "fp8"
    bare = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}
    model = read_config(folder_of(tmp_path, DENSE, None, bare))
    assert (model.published_weights, model.kv_format) == (("fp8",), "fp8")


def test_a_config_without_quantization_has_no_checkpoint_to_load(tmp_path):
    shutil.copy(path_of(DENSE), tmp_path / "config.json")
    model = read_config(tmp_path)
    assert (model.checkpoints, model.kv_format) == ((), "bf16")


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        ({**NVFP4, "kv_cache_scheme": {"num_bits": 3}}, r"kv_cache_scheme `\{'num_bits': 3\}`"),
        ({**FP8, "kv_cache_quant_algo": "FP9"}, "no format of a cache that is understood"),
        ({**FP8, "ignore": ["re:(a+)+b"]}, "no expression that is understood"),
        ({**FP8, "ignore": ["re:["]}, "no expression that is understood"),
        ({**FP8, "ignore": [3]}, "ignore `3`  is no name of a module"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path, quantization, message):
    with pytest.raises(SpecError, match=message):
        read_config(folder_of(tmp_path, DENSE, quantization))


@pytest.mark.parametrize(
    ("name", "word", "expected"),
    [
        ("deepseek-v3", "fp8", ("fp8_block", "fp8_block")),
        ("deepseek-r1", "fp4", ("bf16", "nvfp4")),
        ("kimi-k2", "fp8", ("fp8_block", "fp8_block")),
        ("qwen3-32b", "fp8", ("fp8_block", "fp8_block")),
        ("qwen3-235b-a22b", "fp4", ("nvfp4_static", "nvfp4")),
        ("gpt-oss-120b", "mxfp4", ("bf16", "mxfp4")),
    ],
)
def test_files_of_models_say_what_their_checkpoints_are(name, word, expected):
    found = {one.format: one for one in load_architecture(name).checkpoints}
    assert (found[word].weights, found[word].experts) == expected
    assert found[word].source


@pytest.mark.parametrize("block", ["x", [], [128], [128, 0], [128, True], 128])
def test_a_block_that_is_none_is_refused(tmp_path, block):
    """`[128, 128]` in quotes is no longer taken for blocks, nor an empty list for none."""
    with pytest.raises(SpecError, match="is no block of rows and columns"):
        read_config(folder_of(tmp_path, DENSE, {**FP8, "weight_block_size": block}))
