"""Models of TOML files as classes of layers, and configs as models that layouts shard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import SpecError
from planner.specs.files.listing import list_files
from planner.specs.files.places import Kind
from planner.specs.files.reading import load_model
from planner.specs.records.correspondence import architecture_of, model_spec_of
from tests.specs.huggingface.published import read

SHIPPED = [listing.name for listing in list_files(Kind.MODEL)]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_model_has_as_many_parameters_and_cached_bytes_as_classes_of_layers(
    name: str,
) -> None:
    model = load_model(name)
    architecture = architecture_of(model)
    assert architecture.n_params == model.n_params
    assert architecture.n_active_params == model.n_params_active
    assert architecture.cached_numbers_per_token() == model.n_layers * model.d_cached
    if model.kv_format == "bf16":
        assert 2 * architecture.cached_numbers(10_000) == model.kv_bytes(10_000)


@pytest.mark.parametrize("name", SHIPPED)
def test_classes_of_layers_give_the_shipped_model_back(name: str) -> None:
    model = load_model(name)
    back = model_spec_of(architecture_of(model))
    shape = ("name", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "vocab_size",
             "n_ffn_matrices", "block", "tied_embeddings", "norms_heads", "moe", "mla", "window",
             "n_params_published")  # fmt: skip
    assert {key: getattr(back, key) for key in shape} == {key: getattr(model, key) for key in shape}
    assert back.n_params == model.n_params


@pytest.mark.parametrize(
    ("config", "shipped"),
    [
        ("Llama-3.1-8B", "llama-3.1-8b"),
        ("Llama-3.1-70B", "llama-3.1-70b"),
        ("Llama-3.1-405B", "llama-3.1-405b"),
        ("Qwen3-8B", "qwen3-8b"),
        ("Qwen3-32B", "qwen3-32b"),
        ("Qwen3-30B-A3B", "qwen3-30b-a3b"),
        ("Qwen3-235B-A22B", "qwen3-235b-a22b"),
        ("Mixtral-8x7B-v0.1", "mixtral-8x7b"),
        ("Mixtral-8x22B-v0.1", "mixtral-8x22b"),
        ("Mistral-Large-Instruct-2407", "mistral-large-2"),
        ("DeepSeek-V3", "deepseek-v3"),
        ("Kimi-K2-Instruct", "kimi-k2"),
        ("gpt-oss-120b", "gpt-oss-120b"),
        ("falcon-180B", "falcon-180b"),
    ],
)
def test_a_config_gives_the_shape_that_the_shipped_file_says(config: str, shipped: str) -> None:
    """Mixtral 8x22B was also published with 32,768 words; counts agree to a tenth of a percent."""
    ours, theirs = model_spec_of(read(config)), load_model(shipped)
    shape = ("n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "n_ffn_matrices", "block",
             "moe", "mla", "window")  # fmt: skip
    assert {key: getattr(ours, key) for key in shape} == {
        key: getattr(theirs, key) for key in shape
    }
    assert ours.kv_bytes_per_token == theirs.kv_bytes_per_token
    assert ours.n_params == pytest.approx(theirs.n_params, rel=0.006)


def test_a_shipped_predictor_is_that_of_the_config_but_for_its_norms() -> None:
    """DeepSeek-V3: one module, a layer of experts behind a matrix of 2 · 7168 · 7168."""
    ours, theirs = architecture_of(load_model("deepseek-v3")), read("DeepSeek-V3")
    shipped, config = ours.predictors, theirs.predictors
    assert shipped is not None
    assert config is not None
    assert (shipped.name, shipped.n_layers) == (config.name, config.n_layers)
    norms = 2 * 7168 + 512 + 1536 + 3 * 7168 + 256  # and a bias for each expert
    assert config.n_params(7168) - shipped.n_params(7168) == norms
    assert load_model("deepseek-v3").mtp_params == shipped.n_params(7168)
    assert load_model("deepseek-v3").n_params == pytest.approx(671.03e9, rel=1e-3)


def test_norms_and_biases_are_all_that_the_layouts_leave_out() -> None:
    """Llama 3.1 8B: two norms of 4,096 in each of 32 layers, and one at the end."""
    architecture = read("Llama-3.1-8B")
    assert architecture.n_params - model_spec_of(architecture).n_params == (2 * 32 + 1) * 4_096


@pytest.mark.parametrize(
    ("name", "published", "others"),
    [
        ("DeepSeek-V3", "fp8", ("bf16", "int4", "fp4")),
        ("Qwen3-8B", "bf16", ("fp8", "int8", "llm_int8", "int4", "fp4")),
        ("gemma-2-27b", "bf16", ("fp8", "int8", "llm_int8", "int4", "fp4")),  # saved in fp32
        ("gpt-oss-20b", "mxfp4", ("bf16", "int4", "fp4")),
    ],
)
def test_a_checkpoint_is_served_as_published_and_unpacked_or_rounded_where_asked(
    name: str, published: str, others: tuple[str, ...]
) -> None:
    found = model_spec_of(read(name))
    assert found.published_weights == (published,)
    assert found.weights_formats == (published, *others)
    kept = {"llm_int8"} & {*others}  # 16 bits only are rounded so
    assert found.quality_losses == dict.fromkeys((published, "bf16", *kept), 0.0)


@pytest.mark.parametrize(
    "config",
    [
        *("Qwen3-Next-80B-A3B", "MiniMax-Text-01", "AI21-Jamba-1.5-Mini", "DeepSeek-V3.2"),
        *("Mamba-Codestral-7B-v0.1", "Llama-4-Scout", "Hunyuan-A52B-Instruct", "Zamba2-7B"),
        *("gemma-4-26B-A4B", "Llama-3_3-Nemotron-Super-49B-v1", "v6-Finch-1B6-HF"),
    ],
)
def test_layers_unlike_each_other_stay_classes_with_all_that_they_keep(
    config: str,
) -> None:
    """What belongs to no layer, norms at the end and the like, is all that is left out."""
    architecture = read(config)
    model = model_spec_of(architecture)
    assert (model.layers, model.order) == (architecture.layers, architecture.order)
    assert architecture.n_params - model.n_params == architecture.n_other_params
    assert architecture.n_active_params - model.n_params_active == architecture.n_other_params
    kept = architecture.cached_numbers(10_000) * 2 + architecture.state_bytes()
    keys = 61 * 128 * 2 * 10_000 if config == "DeepSeek-V3.2" else 0
    assert model.kv_bytes(10_000) == kept + keys
    side_by_side = replace(architecture, is_parallel_block=True)
    for one in (architecture, side_by_side):
        back = architecture_of(model_spec_of(one))
        assert (back.layers, back.is_parallel_block) == (one.layers, one.is_parallel_block)


@pytest.mark.parametrize(
    ("config", "token_bytes", "fixed_bytes"),
    [
        # 12 of 48 layers attend: 2 KV heads, key and value of 256; states of 32 heads of 128 × 128
        # in 4 bytes, and 3 inputs of 8,192 channels
        ("Qwen3-Next-80B-A3B", 12 * 2 * 2 * 256 * 2, 36 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)),
        # 4 of 32 layers attend: 8 KV heads of 128; states of 16 for each of 8,192 channels
        ("AI21-Jamba-1.5-Mini", 4 * 2 * 8 * 128 * 2, 28 * (16 * 8192 * 4 + 3 * 8192 * 2)),
        # each second of 64 layers reads the cache of the one before: 8 KV heads of 80
        ("Hunyuan-A52B-Instruct", 32 * 2 * 8 * 80 * 2, 0),
        # a latent of 512, a rotated key of 64, and a key of the indexer of 128
        ("DeepSeek-V3.2", 61 * (512 + 64 + 128) * 2, 0),
        # 24 layers: 32 heads of 64 × 64, and what two mixings of 2,048 keep of the token before
        ("v6-Finch-1B6-HF", 0, 24 * (32 * 64 * 64 * 4 + 2 * 2048 * 2)),
    ],
)
def test_what_a_sequence_keeps_by_hand(config: str, token_bytes: int, fixed_bytes: int) -> None:
    model = model_spec_of(read(config))
    assert model.kv_bytes_per_token == token_bytes
    assert model.kv_bytes(1000.0) == fixed_bytes + 1000 * token_bytes


def test_chunks_keep_their_own_tokens_by_hand() -> None:
    """Llama 4 Scout: 36 of 48 layers keep 8,192 tokens at most, of 8 KV heads of 128."""
    model, layer_bytes = model_spec_of(read("Llama-4-Scout")), 2 * 8 * 128 * 2
    assert model.kv_bytes(100_000.0) == layer_bytes * (36 * 8192 + 12 * 100_000)


def test_experts_behind_narrower_projections_are_an_error_that_says_who_knows_them() -> None:
    config = "Nemotron-3-Super-120B-A12B-FP8"
    with pytest.raises(SpecError, match="has experts behind narrower projections") as raised:
        model_spec_of(read(config), written=f"org/{config}")
    assert "`--engine vllm`" in raised.value.hint
    assert f"`plan models org/{config}`" in raised.value.hint


def test_layers_that_differ_in_width_only_are_classes() -> None:
    """Two FFN widths, and experts before an FFN, are more than one kind of layers."""
    wide = read("Llama-3.1-8B")
    layer = wide.layers[0]
    assert layer.ffn is not None
    narrow = replace(layer, n_layers=1, ffn=replace(layer.ffn, d_ff=256), name="narrow")
    mixed = replace(wide, layers=(replace(layer, n_layers=31), narrow), order=(0,) * 31 + (1,))
    assert len(model_spec_of(mixed).layers) == 2
    assert model_spec_of(wide).layers == ()
    moe = read("DeepSeek-V3")
    assert len(model_spec_of(replace(moe, order=moe.order[::-1])).layers) == 2
    assert model_spec_of(moe).layers == ()
