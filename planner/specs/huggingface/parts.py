"""Attention, FFNs and experts as most families write them, and which layers have which."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.specs.huggingface.fields import Fields
from planner.specs.records.architecture import Experts, FeedForward, Ffn
from planner.specs.records.mixers import GroupedAttention, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a family's code does that its configs do not say.

    Args:
        qkv_bias: queries, keys and values have biases; None: as `attention_bias` says.
        o_bias: so has the output projection; None: as `attention_bias` says.
        qk_norm: norms of queries and keys: `head` has a weight a channel of a head, `whole` a
            weight a channel of all heads, `` none.
        qk_norm_default: whether there are such norms where the config does not say.
        biased: whether all projections have biases where neither `use_bias` nor a key of their own
            says; None: `use_bias` is of something else.
        n_norms: norms of `d_model` weights a layer.
        norm_width: numbers a channel of such a norm: 2 with a bias.
        n_matrices: FFN: 3 gated, 2 plain.
        expansion: widths of an FFN in `d_model`, of configs that leave it out.
        head_bias: so many numbers as words are added to the head's output.
        is_parallel: attention and FFN read the same input.
        is_diffusion: tokens are decoded by diffusion, in numbers of passes that no config says.
        tied: embeddings are tied unless the config says otherwise.
        full_every: of layers with a window, each so-many-th has none; None: all have one.
        window_default: whether `sliding_window` counts without `use_sliding_window`.
        router_bias: routing adds a number an expert.
        expert_bias: experts have biases.
        shared_gate: the shared expert's output is gated.
        sinks: attention has a sink a head.
        vocab_size: of configs that leave it out.
        n_context_tokens: likewise.
        stretches_context: positions are those before the rotary embedding stretches them.
    """

    qkv_bias: bool | None = None
    o_bias: bool | None = None
    qk_norm: str = ""
    qk_norm_default: bool = True
    biased: bool | None = None
    n_norms: int = 2
    norm_width: int = 1
    n_matrices: int = 3
    expansion: int | None = None
    head_bias: bool = False
    is_parallel: bool = False
    is_diffusion: bool = False
    tied: bool = False
    full_every: int | None = None
    window_default: bool = True
    router_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False
    sinks: bool = False
    vocab_size: int | None = None
    n_context_tokens: int | None = None
    stretches_context: bool = True


Reach = tuple[Span, int | None]
"""What a layer attends to, and the width of its window or chunk."""

_SPANS: Mapping[str, tuple[Span, str]] = {
    "full_attention": ("all", ""),
    "sliding_attention": ("window", "n_window_tokens"),
    "chunked_attention": ("chunk", "n_chunk_tokens"),
}
"""What words of layers stand for, and the field that says how wide it is."""


def heads(f: Fields) -> tuple[int, int, int]:
    """Heads, key-value heads, and the width of a head."""
    n_heads = f.count("n_heads")
    n_kv_heads = f.count("n_kv_heads", n_heads)
    if f.is_sound("n_heads", "n_kv_heads") and n_heads % n_kv_heads:
        fact = f"does not divide num_attention_heads, {n_heads}"
        f.fault("n_kv_heads", fact, "each key-value head serves as many query heads")
    if f.has("d_head"):
        return n_heads, n_kv_heads, f.count("d_head")
    d_model = f.count("d_model")
    if f.is_sound("n_heads", "d_model") and d_model % n_heads:
        f.fault("n_heads", f"does not divide hidden_size, {d_model}", "or give head_dim")
    return n_heads, n_kv_heads, max(1, d_model // n_heads)


def attention(
    heads: tuple[int, int, int],
    reach: Reach = ("all", None),
    **more: Any,  # noqa: ANN401 fields of the record
) -> GroupedAttention:
    """Softmax attention with so many heads, key-value heads and channels of a head."""
    n_heads, n_kv_heads, d_head = heads
    return GroupedAttention(
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        d_head=d_head,
        d_value_head=d_head,
        span=reach[0],
        n_span_tokens=reach[1],
        **more,
    )


def grouped(f: Fields, traits: Traits, reach: Reach = ("all", None)) -> GroupedAttention:
    """Softmax attention of one layer."""
    n_heads, n_kv_heads, d_head = heads(f)
    has_bias = _is_biased(f, traits, "has_attention_bias")
    d_queries, d_keys = n_heads * d_head, n_kv_heads * d_head
    other = n_heads if traits.sinks else 0
    if has_bias if traits.qkv_bias is None else traits.qkv_bias:
        other += d_queries + 2 * d_keys
    if f.switch("has_output_bias", default=has_bias if traits.o_bias is None else traits.o_bias):
        other += f.count("d_model")
    norms_heads = f.flag("has_qk_norm", default=bool(traits.qk_norm) and traits.qk_norm_default)
    if norms_heads:
        other += d_queries + d_keys if traits.qk_norm == "whole" else 2 * d_head
    shape = n_heads, n_kv_heads, d_head
    return attention(shape, reach, n_other_params=other, norms_heads=norms_heads)


def _is_biased(f: Fields, traits: Traits, meaning: str) -> bool:
    if traits.biased is None:
        return f.flag(meaning, default=False)
    return f.flag(meaning, default=f.flag("has_projection_bias", default=traits.biased))


def attending(f: Fields, *, first: int = 0) -> list[bool]:
    """Whether each layer attends, by the list of those that do, counted from `first`."""
    n_layers, listed = f.count("n_layers"), f.numbers("attention_layers")
    if listed is None:
        f.fault("attention_layers", "is missing", "it says which layers attend")
    for i in listed or []:
        if not first <= i < n_layers + first and f.is_sound("n_layers"):
            fact = f"names layer {i}, but there are {n_layers}, from {first}"
            f.fault("attention_layers", fact)
    return [i + first in (listed or []) for i in range(n_layers)]


def reaches(f: Fields, traits: Traits) -> list[Reach]:
    """What each layer attends to."""
    n_layers = f.count("n_layers")
    listed = f.words("layer_types", n_layers, tuple(_SPANS))
    f.dismiss("full_every", "window_from_layer", "no_rope_layers", "no_rope_interval")
    if listed is not None:
        f.dismiss("n_window_tokens", "has_window", "n_chunk_tokens")
        return [_reach(f, word) for word in listed]
    if not f.flag("has_window", default=traits.window_default) or not f.has("n_window_tokens"):
        f.dismiss("n_window_tokens")
        return [("all", None)] * n_layers
    window: Reach = ("window", f.count("n_window_tokens"))
    if not traits.window_default:  # Qwen: layers below `max_window_layers` attend to everything
        first = f.count("window_from_layer", n_layers, least=0)
        return [window if i >= first else ("all", None) for i in range(n_layers)]
    every = f.count("full_every", traits.full_every) if traits.full_every else n_layers + 1
    return [("all", None) if (i + 1) % every == 0 else window for i in range(n_layers)]


def _reach(f: Fields, word: str) -> Reach:
    span, key = _SPANS[word]
    return span, f.count(key) if key else None


def dense(f: Fields, traits: Traits) -> FeedForward:
    """An FFN without experts."""
    d_model = f.count("d_model")
    d_ff = f.count("d_ff", traits.expansion and traits.expansion * d_model)
    if f.text("ffn_type", "default") != "default":
        f.fault("ffn_type", "is not understood", "`default` is")
    bias = (traits.n_matrices - 1) * d_ff + d_model
    has_bias = _is_biased(f, traits, "has_ffn_bias")
    return FeedForward(
        d_ff=d_ff, n_matrices=traits.n_matrices, n_other_params=bias if has_bias else 0
    )


def experts(f: Fields, traits: Traits) -> Experts:
    n_experts, n_active = f.count("n_experts"), f.count("n_active")
    d_model = f.count("d_model")
    if f.is_sound("n_experts", "n_active") and n_active > n_experts:
        f.fault("n_active", f"is more than there are experts, {n_experts}")
    d_expert = f.count("d_expert") if f.has("d_expert") else f.count("d_ff")
    d_shared = _d_shared(f, d_expert)
    # `noaux_tc` balances loads by a number an expert, and so do some families always
    is_usual = f.text("routing") == "noaux_tc" or traits.router_bias
    other = n_experts if f.flag("has_routing_bias", default=is_usual) else 0
    if traits.expert_bias:
        other += n_experts * ((traits.n_matrices - 1) * d_expert + d_model)
    if traits.shared_gate and d_shared:
        other += d_model
    n_groups, n_active_groups = _groups(f)
    return Experts(
        n_experts=n_experts,
        n_active=n_active,
        d_expert=d_expert,
        d_shared=d_shared,
        n_matrices=traits.n_matrices,
        n_groups=n_groups,
        n_active_groups=n_active_groups,
        n_other_params=other,
        d_latent=f.optional("d_expert_latent"),
    )


def _d_shared(f: Fields, d_expert: int) -> int:
    n_shared = f.optional("n_shared_experts")
    d_shared = f.optional("d_shared")
    if d_shared is not None:
        return d_shared * (n_shared or 1)
    return (n_shared or 0) * d_expert


def _groups(f: Fields) -> tuple[int, int]:
    n_groups = f.optional("n_expert_groups") or 1
    n_active = f.optional("n_active_groups") or n_groups
    if f.is_sound("n_expert_groups", "n_active_groups") and n_active > n_groups:
        f.fault("n_active_groups", f"is more than there are groups, {n_groups}")
    return n_groups, n_active


def ffns(f: Fields, traits: Traits) -> list[Ffn]:
    """The FFN of each layer: experts where the config has them, and where it says."""
    n_layers = f.count("n_layers")
    if (f.optional("n_experts") or 0) < 2:
        f.dismiss("n_active", "d_expert", "sparse_every", "dense_layers", "d_shared",
                  "n_shared_experts", "first_dense", "routing", "expert_period",
                  "expert_offset", "has_mixed_experts")  # fmt: skip
        return [dense(f, traits)] * n_layers
    sparse, is_sparse = experts(f, traits), sparse_layers(f)
    f.dismiss("d_ff", "has_ffn_bias")  # of layers that there are none of
    return [sparse if yes else dense(f, traits) for yes in is_sparse]


def sparse_layers(f: Fields) -> list[bool]:
    """Which layers have experts."""
    n_layers = f.count("n_layers")
    listed = f.words("ffn_types", n_layers, ("dense", "sparse"))
    first, every = f.count("first_dense", 0, least=0), f.count("sparse_every", 1)
    dense_ones = f.numbers("dense_layers") or []
    if f.is_sound("first_dense", "n_layers") and first > n_layers:
        f.fault("first_dense", f"is more than there are layers, {n_layers}")
    for i in dense_ones:
        if not 0 <= i < n_layers and f.is_sound("n_layers"):
            f.fault("dense_layers", f"names layer {i}, but there are {n_layers}")
    if listed is not None:
        return [word == "sparse" for word in listed]
    # `moe_layer_freq` counts from layer 0, `decoder_sparse_step` from layer 1
    phase = 0 if f.has("first_dense") else 1
    sparse = {*range(first + -(first + phase) % every, n_layers, every)}.difference(dense_ones)
    return [i in sparse for i in range(n_layers)]
