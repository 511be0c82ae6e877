"""Parameters and caches that configs imply, against what publishers say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.specs.huggingface.layers import Layer, classes_of
from planner.specs.huggingface.reading import read_config
from planner.specs.records.architecture import Architecture, FeedForward, LayerClass
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Recurrence
from tests.specs.huggingface.published import (
    ACTIVE,
    BY_HAND,
    CACHES,
    COUNTS,
    Count,
    every_config,
    path_of,
    read,
)


def _counted(architecture: Architecture, row: Count) -> int:
    counted = architecture.n_params
    predictors = architecture.predictors
    if row.with_predictors:
        assert predictors is not None
        counted += predictors.n_layers * predictors.n_params(architecture.d_model)
    return counted + row.n_copies * architecture.vocab_size * architecture.d_model


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: row.config)
def test_the_parameters_of_a_config_are_those_published_within_half_a_percent(row: Count) -> None:
    assert _counted(read(row.config), row) == pytest.approx(row.n_params, rel=0.005)


@pytest.mark.parametrize(
    "config", ["Llama-3.1-8B", "Llama-3.1-70B", "Mistral-7B-v0.1", "Mamba-Codestral-7B-v0.1",
               "GLM-4.5", "GLM-4.5-Air", "GLM-5", "Kimi-Linear-48B-A3B-Instruct", "LFM2-1.2B",
               "Zamba2-1.2B",
               "phi-2", "SmolLM3-3B", "Olmo-3-32B-Think", "Seed-OSS-36B-Instruct"],
)  # fmt: skip
def test_where_the_publisher_gives_every_digit_the_count_has_them_all(config: str) -> None:
    row = next(row for row in COUNTS if row.config == config)
    assert _counted(read(config), row) == row.n_params


def test_more_than_25_published_counts_and_ten_caches_are_compared() -> None:
    assert len(COUNTS) >= 27
    assert len({config for config, _, _ in CACHES}) >= 10
    assert all(source for *_, source in CACHES)


@pytest.mark.parametrize(("config", "n_bytes", "source"), CACHES, ids=[row[0] for row in CACHES])
def test_a_token_leaves_as_many_bytes_as_published(
    config: str, n_bytes: float, source: str
) -> None:
    assert 2 * read(config).cached_numbers_per_token() == n_bytes, source


@pytest.mark.parametrize(
    ("config", "n_cached", "state_bytes"), BY_HAND, ids=[row[0] for row in BY_HAND]
)
def test_caches_and_states_are_those_counted_by_hand(
    config: str, n_cached: int, state_bytes: int
) -> None:
    architecture = read(config)
    assert architecture.cached_numbers_per_token() == n_cached
    assert architecture.state_bytes() == state_bytes


def test_sixty_families_have_a_config_each() -> None:
    assert len({read(config).family for config in every_config()}) >= 60


@pytest.mark.parametrize(("config", "n_active", "source"), ACTIVE, ids=[row[0] for row in ACTIVE])
def test_a_token_meets_as_many_parameters_as_published(
    config: str, n_active: float, source: str
) -> None:
    assert read(config).n_active_params == pytest.approx(n_active, rel=0.01), source


@pytest.mark.parametrize("config", every_config())
def test_every_kept_config_is_read_and_its_classes_make_up_its_layers(config: str) -> None:
    architecture = read(config)
    assert sum(layer.n_layers for layer in architecture.layers) == architecture.n_layers
    for i, layer in enumerate(architecture.layers):
        assert architecture.order.count(i) == layer.n_layers
    assert len({layer.name for layer in architecture.layers}) == len(architecture.layers)
    n_again = sum(layer.n_layers * layer.n_borrowed_params for layer in architecture.layers)
    assert architecture.n_active_params <= architecture.n_params + n_again


def _classes(config: str) -> dict[str, int]:
    return {layer.name: layer.n_layers for layer in read(config).layers}


@pytest.mark.parametrize(
    ("config", "classes"),
    [
        ("Llama-3.1-8B", {"full attention, FFN": 32}),
        ("Mistral-7B-v0.1", {"window of 4096, FFN": 32}),
        ("gemma-3-27b-it", {"window of 1024, FFN": 52, "full attention, FFN": 10}),
        ("gpt-oss-20b", {"window of 128, experts": 12, "full attention, experts": 12}),
        ("Llama-4-Maverick", {"chunk of 8192, FFN": 24, "chunk of 8192, experts": 12,
                              "full attention, experts": 12}),
        ("DeepSeek-V3", {"latent attention, FFN": 3, "latent attention, experts": 58}),
        ("GLM-5.2", {"sparse latent attention, FFN": 3,
                     "sparse latent attention, shared picks, experts": 57,
                     "sparse latent attention, experts": 18}),
        ("Qwen3-Next-80B-A3B", {"gated delta net, experts": 36, "full attention, experts": 12}),
        ("MiniMax-Text-01", {"lightning attention, experts": 70, "full attention, experts": 10}),
        ("AI21-Jamba-1.5-Mini", {"Mamba, FFN": 12, "Mamba, experts": 16,
                                 "full attention, FFN": 4}),
        ("granite-4.0-h-small", {"Mamba 2, experts": 36, "full attention, experts": 4}),
        ("Nemotron-3-Nano-30B-A3B", {"Mamba 2": 23, "experts": 23, "full attention": 6}),
        ("Mamba-Codestral-7B-v0.1", {"Mamba 2": 64}),
        ("Falcon-H1-7B-Base", {"Mamba 2": 44, "full attention, FFN": 44}),
        ("Zamba2-7B", {"Mamba 2": 81, "full attention, FFN": 2,
                       "full attention, FFN, shared": 11}),
        ("Kimi-Linear-48B-A3B-Instruct", {"Kimi delta attention, FFN": 1,
                                          "Kimi delta attention, experts": 19,
                                          "latent attention, experts": 7}),
        ("LFM2-1.2B", {"short convolution, FFN": 10, "full attention, FFN": 6}),
        ("c4ai-command-a-03-2025", {"window of 4096, FFN": 48, "full attention, FFN": 16}),
        ("Hunyuan-A52B-Instruct", {"full attention, experts": 32,
                                   "full attention, shared cache, experts": 32}),
    ],
)  # fmt: skip
def test_layers_of_different_kinds_are_different_classes(
    config: str, classes: dict[str, int]
) -> None:
    assert _classes(config) == classes


def test_a_window_keeps_its_own_tokens_only() -> None:
    """gpt-oss-20b at 1,000 tokens: 12 layers keep 1,000, 12 keep 128; 2 × 8 × 64 numbers each."""
    assert read("gpt-oss-20b").cached_numbers(1_000) == (12 * 1_000 + 12 * 128) * 2 * 8 * 64


def test_layers_that_share_a_cache_keep_half() -> None:
    """Hunyuan-Large: 32 of 64 layers cache 2 × 8 heads × 80 numbers."""
    assert read("Hunyuan-A52B-Instruct").cached_numbers_per_token() == 32 * 2 * 8 * 80


def test_a_gated_delta_net_keeps_a_state_and_the_inputs_of_its_convolution() -> None:
    """Qwen3.5-35B-A3B: 30 layers of 32 heads × 128 × 128 fp32, and 3 × 8,192 channels bf16."""
    state = 30 * 32 * 128 * 128 * 4
    convolution = 30 * 3 * (2 * 16 * 128 + 32 * 128) * 2
    assert read("Qwen3.5-35B-A3B").state_bytes() == state + convolution


def test_a_mamba_2_layer_keeps_a_state_and_the_inputs_of_its_convolution() -> None:
    """Codestral: 64 layers of 128 heads × 64 × 128 fp32, 3 × (8,192 + 2 × 8 × 128) bf16."""
    state = 64 * 128 * 64 * 128 * 4
    convolution = 64 * 3 * (8_192 + 2 * 8 * 128) * 2
    assert read("Mamba-Codestral-7B-v0.1").state_bytes() == state + convolution


def test_a_shared_block_is_held_once_and_met_at_each_of_its_places() -> None:
    """Zamba2-7B: 2 blocks at 13 places; queries, keys and values read 2 × 3,584 channels."""
    model = read("Zamba2-7B")
    block = 3 * 7_168 * 7_168 + 7_168 * 3_584 + 3 * 3_584 * 14_336 + 3 * 3_584
    assert model.n_active_params - model.n_params == 11 * block
    added = 128 * (3_584 + 2 * 14_336) + 3_584 * 3_584  # of each place's own
    held = [layer.n_params(3_584) for layer in model.layers if layer.ffn]
    assert sorted(held) == [added, block + added]


def test_mixers_side_by_side_are_both_counted() -> None:
    """Falcon-H1-7B: 44 layers of both, and of one FFN of 3 × 3,072 × 12,288."""
    mamba, attention = read("Falcon-H1-7B-Base").layers
    assert attention.n_params(3_072) == (
        3_072 * 128 * (2 * 12 + 2 * 2) + 3 * 3_072 * 12_288 + 3_072
    )
    assert mamba.n_params(3_072) == (
        3_072 * (2 * 3_072 + 2 * 256 + 24) + 3_072 * 3_072 + 5 * (3_072 + 512) + 3 * 24 + 3_072
    )


def test_sparse_attention_says_how_many_tokens_it_picks() -> None:
    mixer = read("DeepSeek-V3.2").layers[0].mixer
    assert isinstance(mixer, LatentAttention)
    assert mixer.indexer is not None
    assert (mixer.indexer.n_heads, mixer.indexer.n_selected_tokens) == (64, 2_048)


def test_picks_that_are_shared_have_no_weights_of_their_own() -> None:
    """GLM-5.2: the indexer has 2,048 × 32 × 128 + 6,144 × (128 + 32) + 2 × 128 parameters."""
    _, shared, own = read("GLM-5.2").layers
    weights = 2_048 * 32 * 128 + 6_144 * (128 + 32) + 2 * 128
    assert own.n_params(6_144) - shared.n_params(6_144) == weights


def test_a_pruned_model_has_layers_without_attention_and_narrow_ffns() -> None:
    layers = read("Llama-3_3-Nemotron-Super-49B-v1").layers
    bare = [layer for layer in layers if layer.mixer is None]
    assert sum(layer.n_layers for layer in bare) == 31
    widths = {layer.ffn.d_ff for layer in bare if isinstance(layer.ffn, FeedForward)}
    assert widths == {14_336, 17_920, 7_168, 28_672, 5_632, 2_816}


def test_experts_behind_a_projection_are_as_wide_as_the_projection() -> None:
    """Nemotron 3 Super: an expert is two matrices of 1,024 × 2,688."""
    layer = _with_experts(read("Nemotron-3-Super-120B-A12B-FP8"))
    assert layer.ffn is not None
    assert layer.ffn.n_params(4_096) == (
        512 * 2 * 1_024 * 2_688 + 4_096 * 512 + 512 + 2 * 4_096 * 5_376 + 2 * 4_096 * 1_024
    )


def _with_experts(architecture: Architecture) -> LayerClass:
    return next(layer for layer in architecture.layers if layer.name == "experts")


def test_the_full_layers_of_gemma_4_cache_values_though_keys_make_them() -> None:
    """2 heads of 512, keys normed and rotated, values not: both are cached, one is projected."""
    mixer = next(c.mixer for c in read("gemma-4-26B-A4B").layers if c.name.startswith("full"))
    assert isinstance(mixer, GroupedAttention)
    assert (mixer.d_cached, mixer.d_keys_and_values) == (2 * 2 * 512, 2 * 512)


def test_recurrences_cache_nothing() -> None:
    mixers = [layer.mixer for layer in read("AI21-Jamba-1.5-Mini").layers]
    assert [m.d_cached for m in mixers if isinstance(m, Recurrence)] == [0, 0]


@pytest.mark.parametrize(
    ("config", "formats"),
    [
        ("Llama-3.1-8B", (("bf16",), "bf16")),
        ("DeepSeek-V3", (("fp8",), "bf16")),
        ("gpt-oss-20b", (("mxfp4",), "bf16")),
        ("Kimi-K2.5", (("int4",), "bf16")),
        ("Nemotron-3-Super-120B-A12B-FP8", (("fp8",), "bf16")),
        ("gemma-2-27b", (("fp32",), "bf16")),
        ("MiniMax-Text-01", ((), "bf16")),
    ],
)
def test_formats_are_those_of_the_quantization_or_of_the_type_saved(
    config: str, formats: tuple[tuple[str, ...], str]
) -> None:
    architecture = read(config)
    assert (architecture.published_weights, architecture.activation_format) == formats


def test_values_say_whether_the_file_or_the_family_gave_them() -> None:
    sources = {value.key: value.source for value in read("gemma-3-27b-it").provenance}
    assert sources["hidden_size"] == "config.json of gemma-3-27b-it"
    assert sources["vocab_size"] == "default of `gemma3_text`"


@pytest.mark.parametrize("config", every_config())
def test_the_kinds_of_layers_of_a_config_have_names_of_their_own(config: str) -> None:
    names = [layer.name for layer in read(config).layers]
    assert len(set(names)) == len(names)


def test_kinds_that_differ_in_nothing_named_are_numbered_from_one() -> None:
    """Attention without an FFN, in heads of 8 and of 16."""
    narrow, wide = (
        Layer(
            mixer=GroupedAttention(n_heads=4, n_kv_heads=2, d_head=d, d_value_head=d),
            ffn=None,
            n_norm_params=1,
        )
        for d in (8, 16)
    )
    classes, order = classes_of([wide, narrow, wide, wide])
    assert [one.name for one in classes] == ["full attention (1)", "full attention (2)"]
    assert [one.n_layers for one in classes] == [3, 1]
    assert order == (0, 1, 0, 0)


@pytest.mark.parametrize(("n_heads", "width"), [(128, 64), (64, 128), (100, 81)])
def test_heads_of_a_state_that_are_left_to_the_family_share_its_width(
    n_heads: int, width: int, tmp_path: Path
) -> None:
    """2 × 4096 over the heads, rounded down, as transformers has it."""
    table = json.loads(path_of("granite-4.0-h-small").read_text())
    whole = tmp_path / "config.json"
    whole.write_text(json.dumps({**table, "mamba_d_head": "auto", "mamba_n_heads": n_heads}))
    found = [one.mixer for one in read_config(whole).layers if isinstance(one.mixer, Recurrence)]
    assert {(one.n_heads, one.d_value) for one in found} == {(n_heads, width)}
