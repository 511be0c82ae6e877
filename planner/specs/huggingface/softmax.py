"""Families of softmax attention: full, with windows or chunks, or with a shared cache."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from planner.specs.huggingface import parts
from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.layers import Body, Layer, stacked
from planner.specs.records.architecture import Experts, FeedForward
from planner.specs.records.mixers import GroupedAttention

_LLAMA4_FULL_EVERY = 4  # Llama4TextConfig: `no_rope_layers` of each fourth layer
_FALCON_EXPANSION = 4


def decoder(f: Fields, traits: parts.Traits) -> Body:
    """Attention and an FFN, or experts, in every layer: most families."""
    norms = traits.n_norms * traits.norm_width * f.count("d_model")
    layers = tuple(
        Layer(mixer=parts.grouped(f, traits, reach), ffn=ffn, n_norm_params=norms)
        for reach, ffn in zip(parts.reaches(f, traits), parts.ffns(f, traits), strict=True)
    )
    body = Body(
        layers=layers,
        n_other_params=traits.norm_width * f.count("d_model"),
        is_parallel_block=traits.is_parallel,
    )
    return _with_predictor(f, body)


def _with_predictor(f: Fields, body: Body) -> Body:
    """With the predictor of GLM-4.5 and MiniMax-M2: a layer as the last, and what joins it."""
    n_predictors = f.optional("n_predictors") or 0
    n_each = f.optional("n_predictor_layers") or 1
    if not f.flag("has_predictors", default=True) or not n_predictors:
        return body
    predictor = joined(body.layers[-1], f.count("d_model"))
    return replace(body, predictor=predictor, n_predictors=n_predictors * n_each)


def joined(layer: Layer, d_model: int) -> Layer:
    """A predictor: a layer after the projection of a state and an embedding, both normed.

    Source: DeepSeek-V3 technical report, arXiv 2412.19437, section 2.2.
    """
    return replace(layer, n_other_params=2 * d_model * d_model + 3 * d_model)


def predicting(f: Fields, body: Body, last: Callable[[], Layer]) -> Body:
    """With as many predictors as the config says, each like a layer that is read for them only."""
    n_predictors = f.count("n_predictors", 0, least=0)
    predictor = joined(last(), f.count("d_model")) if n_predictors else None
    return replace(body, predictor=predictor, n_predictors=n_predictors)


def minimax_m2(f: Fields, traits: parts.Traits) -> Body:
    """MiniMax-M2: attention to everything, norms as wide as all heads."""
    if set(f.numbers("mixer_codes") or [1]) != {1}:
        f.fault("mixer_codes", "has layers without full attention, which are not understood")
    if f.text("qk_norm_type", "per_layer") != "per_layer":
        f.fault("qk_norm_type", "is not understood", "`per_layer` is")
    return decoder(f, traits)


def llama4(f: Fields, traits: parts.Traits) -> Body:
    """Chunks in three layers of four, experts in each `interleave_moe_layer_step`-th.

    `intermediate_size` is of experts, `intermediate_size_mlp` of other FFNs. Norms of queries
    and keys have no weights. Source: transformers, `modeling_llama4.py`.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    f.flag("has_qk_norm", default=True)
    f.flag("has_attention_bias", default=False)
    sparse = parts.experts(f, traits)
    sparse = replace(sparse, d_shared=sparse.d_expert)
    plain = FeedForward(d_ff=f.count("d_ff_dense"), n_matrices=3)
    every = f.count("sparse_every", 1)
    usual = [i for i in range(n_layers) if (i + 1) % every == 0]
    with_experts = set(f.numbers("sparse_layers") or usual)
    mixers = [parts.attention(parts.heads(f), reach) for reach in _llama4_reaches(f)]
    ffns = [sparse if i in with_experts else plain for i in range(len(mixers))]
    return stacked(d_model, mixers, ffns)


def _llama4_reaches(f: Fields) -> list[parts.Reach]:
    n_layers = f.count("n_layers")
    if f.has("layer_types"):
        return parts.reaches(f, parts.Traits())
    every = f.count("no_rope_interval", _LLAMA4_FULL_EVERY)
    rotated = f.numbers("no_rope_layers") or [int((i + 1) % every > 0) for i in range(n_layers)]
    if len(rotated) != n_layers and f.is_sound("n_layers"):
        f.fault("no_rope_layers", f"has {len(rotated)} entries, but there are {n_layers} layers")
    if not f.has("n_chunk_tokens"):
        return [("all", None)] * n_layers
    chunk: parts.Reach = ("chunk", f.count("n_chunk_tokens"))
    return [chunk if yes else ("all", None) for yes in rotated[:n_layers]]


def falcon(f: Fields, traits: parts.Traits) -> Body:
    """Falcon: attention and FFN in parallel, all heads on one key, or few.

    Source: transformers, `modeling_falcon.py`.
    """
    n_layers, n_heads, d_model = f.count("n_layers"), f.count("n_heads"), f.count("d_model")
    is_new = f.flag("has_new_block", default=False)
    has_bias = f.flag("has_bias", default=False)
    is_parallel = f.flag("is_parallel", default=True) or is_new
    multi_query = f.flag("is_multi_query", default=True)
    n_kv_heads = f.count("n_kv_heads", n_heads) if is_new else 1 if multi_query else n_heads
    f.dismiss("n_kv_heads")
    d_head = f.count("d_head", max(1, d_model // n_heads))
    if f.is_sound("n_heads", "d_model") and d_model % n_heads:
        f.fault("n_heads", f"does not divide hidden_size, {d_model}")
    d_ff = f.count("d_ff", _FALCON_EXPANSION * d_model)
    d_queries = n_heads * d_head
    biases = (d_queries + 2 * n_kv_heads * d_head + d_model) if has_bias else 0
    attention = parts.attention((n_heads, n_kv_heads, d_head), n_other_params=biases)
    ffn = FeedForward(d_ff=d_ff, n_matrices=2, n_other_params=d_ff + d_model if has_bias else 0)
    n_norms = f.count("n_block_norms", 2) if is_new else 1 if is_parallel else 2
    layer = Layer(mixer=attention, ffn=ffn, n_norm_params=n_norms * 2 * d_model)
    return Body(
        layers=(layer,) * n_layers,
        n_other_params=2 * d_model,
        is_parallel_block=is_parallel,
    )


def hunyuan(f: Fields, traits: parts.Traits) -> Body:
    """Hunyuan: of `cla_share_factor` layers, the first one's cache serves all.

    Source: [Hunyuan-Large], arXiv 2411.02265, section 2.2.2.
    """
    body = decoder(f, traits)
    f.flag("has_mixed_experts", default=False)
    n_sharing = f.count("n_sharing_layers", 1)
    if not f.flag("has_shared_cache", default=False):
        return body
    layers = tuple(
        layer if i % n_sharing == 0 else _without_keys(layer) for i, layer in enumerate(body.layers)
    )
    return replace(body, layers=layers)


def _without_keys(layer: Layer) -> Layer:
    """The layer as one that reads an earlier layer's cache."""
    attention = layer.mixer
    assert isinstance(attention, GroupedAttention)
    # Of the norms of queries and keys, it has the first.
    other = attention.n_other_params // 2
    return replace(layer, mixer=replace(attention, makes_keys=False, n_other_params=other))


def gemma4(f: Fields, traits: parts.Traits) -> Body:
    """Gemma 4: keys that are values too in full attention, experts beside an FFN.

    Source: transformers, `modeling_gemma4.py`.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    for meaning in ("d_layer_input", "n_late_sharing_layers"):
        if f.optional(meaning):
            f.fault(meaning, "is not understood", "Gemma 4 without it is")
    if f.flag("is_double_wide", default=False):
        f.fault("is_double_wide", "is not understood", "Gemma 4 without it is")
    has_experts = f.flag("has_experts_beside", default=False)
    f.dismiss("n_experts", "n_active", "d_expert")
    ffn = _gemma4_experts(f, traits) if has_experts else parts.dense(f, traits)
    # norms before and after attention and FFN, of the experts three more, and one scalar
    norms = (7 if has_experts else 4) * d_model + 1
    layers = tuple(
        Layer(mixer=_gemma4_attention(f, reach), ffn=ffn, n_norm_params=norms)
        for reach in parts.reaches(f, traits)
    )
    return Body(layers=layers[:n_layers], n_other_params=d_model)


def _gemma4_experts(f: Fields, traits: parts.Traits) -> Experts:
    sparse = parts.experts(f, traits)
    routing = f.count("d_model") + sparse.n_experts  # a scale a channel, and one an expert
    return replace(sparse, d_shared=f.count("d_ff"), n_other_params=routing)


def _gemma4_attention(f: Fields, reach: parts.Reach) -> GroupedAttention:
    n_heads, n_kv_heads, d_head = parts.heads(f)
    f.flag("has_attention_bias", default=False)
    shares = f.flag("values_are_keys", default=False) and reach[0] == "all"
    d_global, n_global = f.count("d_head_global", d_head), f.optional("n_kv_heads_global")
    if reach[0] == "all":
        d_head, n_kv_heads = d_global, (n_global or n_kv_heads) if shares else n_kv_heads
    said = {"shares_projection": shares, "norms_heads": True, "n_other_params": 2 * d_head}
    return parts.attention((n_heads, n_kv_heads, d_head), reach, **said)


_MULTIPLE = 256
_NO_ATTENTION_OF = ("replace_with_linear", "sparsify", "num_sink_tokens", "unshifted_sink",
                    "use_prefill_window_in_sink_attention", "window_length")  # fmt: skip


def nemotron_nas(f: Fields, traits: parts.Traits) -> Body:
    """Llama layers, some without attention, with fewer keys, or with a narrower FFN.

    FFN widths are two thirds of a multiple of `hidden_size`, rounded up to 256.
    Source: `modeling_decilm.py` of nvidia/Llama-3_3-Nemotron-Super-49B-v1.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    f.dismiss("d_ff", "n_kv_heads", "has_attention_bias", "has_ffn_bias")
    blocks = f.raw("blocks")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        f.fault("blocks", "is not a list of tables", "it says what is left of each layer")
        blocks = []
    elif len(blocks) != n_layers and f.is_sound("n_layers"):
        f.fault("blocks", f"has {len(blocks)} entries, but there are {n_layers} layers")
    return Body(
        layers=tuple(_layer(f, block, i) for i, block in enumerate(blocks)), n_other_params=d_model
    )


def _layer(f: Fields, block: dict[str, Any], i: int) -> Layer:
    attention, ffn = (_attention(f, block.get("attention"), i), _ffn(f, block.get("ffn"), i))
    n_norms = (attention is not None) + (ffn is not None)
    return Layer(mixer=attention, ffn=ffn, n_norm_params=n_norms * f.count("d_model"))


def _attention(f: Fields, table: Any, i: int) -> GroupedAttention | None:  # noqa: ANN401 as JSON
    table = _checked(f, table, f"[{i}].attention")
    if table.get("no_op"):
        return None
    n_heads, d_model = f.count("n_heads"), f.count("d_model")
    n_sharing = table.get("n_heads_in_group", 1)
    if not isinstance(n_sharing, int) or n_sharing < 1 or n_heads % n_sharing:
        f.fault("blocks", f"[{i}].attention.n_heads_in_group does not divide {n_heads} heads")
        n_sharing = 1
    return parts.attention((n_heads, n_heads // n_sharing, max(1, d_model // n_heads)))


def _ffn(f: Fields, table: Any, i: int) -> FeedForward | None:  # noqa: ANN401 as JSON has it
    table = _checked(f, table, f"[{i}].ffn")
    if table.get("no_op"):
        return None
    multiple = table.get("ffn_mult")
    if not isinstance(multiple, int | float) or not 0 < multiple < 1_000:
        f.fault("blocks", f"[{i}].ffn.ffn_mult is not a positive number")
        multiple = 1
    width = int(2 * multiple * f.count("d_model") / 3)
    return FeedForward(d_ff=-(-width // _MULTIPLE) * _MULTIPLE, n_matrices=3)


def _checked(f: Fields, table: Any, where: str) -> dict[str, Any]:  # noqa: ANN401 as JSON has it
    """The table, or an empty one; what is not understood in it is a fault."""
    if not isinstance(table, dict):
        f.fault("blocks", f"{where} is not a table")
        return {"no_op": True}
    for key in _NO_ATTENTION_OF:
        if table.get(key):
            f.fault("blocks", f"{where}.{key} is not understood", "layers without it are")
    return table
