"""Every `model_type` that is understood, and how its layers are read.

A new family is one line here: traits of a shape that exists, or a reader of its own.
Traits are those of the family's code in transformers, or in its repository.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.specs.huggingface import recurrent, softmax
from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.layers import Body, Layer
from planner.specs.huggingface.parts import Traits, ffns
from planner.specs.huggingface.softmax import joined
from planner.specs.records.mixers import Indexer, LatentAttention


def latent(f: Fields, traits: Traits) -> Body:
    """Latent attention, dense and sparse, over FFNs of experts but in the first layers."""
    d_model = f.count("d_model")
    f.dismiss("d_head", "n_kv_heads")  # keys are made of the latent, as many as there are heads
    indexers = _indexers(f)
    layers = tuple(
        Layer(mixer=_attention(f, indexer), ffn=ffn, n_norm_params=2 * d_model)
        for indexer, ffn in zip(indexers, ffns(f, traits), strict=True)
    )
    n_predictors = f.count("n_predictors", 0, least=0)
    return Body(
        layers=layers,
        predictor=joined(layers[-1], d_model) if n_predictors else None,
        n_predictors=n_predictors,
        n_other_params=d_model,
    )


def _attention(f: Fields, indexer: Indexer | None) -> LatentAttention:
    d_kv_latent, d_q_latent = f.count("d_kv_latent"), f.optional("d_q_latent")
    d_rope, d_nope = f.count("d_rope"), f.count("d_nope")
    d_query = f.count("d_query_head", d_rope + d_nope)
    if f.is_sound("d_query_head", "d_rope", "d_nope") and d_query != d_rope + d_nope:
        f.fault("d_query_head", f"is not its two parts together, {d_nope} + {d_rope}")
    if f.flag("has_attention_bias", default=False):
        f.fault("has_attention_bias", "is not understood with latent attention")
    return LatentAttention(
        n_heads=f.count("n_heads"),
        d_kv_latent=d_kv_latent,
        d_q_latent=d_q_latent,
        d_rope=d_rope,
        d_nope=d_nope,
        d_value_head=f.count("d_value_head"),
        indexer=indexer,
        n_other_params=d_kv_latent + (d_q_latent or 0),
    )


def _indexers(f: Fields) -> list[Indexer | None]:
    """What picks tokens in each layer; a layer may share the picks of one before it."""
    n_layers = f.count("n_layers")
    types = f.words("indexer_types", n_layers, ("full", "shared"))
    f.words("layer_types", n_layers, ("deepseek_sparse_attention",))
    if not any(f.has(key) for key in ("n_index_heads", "d_index_head", "n_index_tokens")):
        return [None] * n_layers
    d_head = f.count("d_index_head")

    def indexer(*, is_shared: bool) -> Indexer:
        return Indexer(
            n_heads=f.count("n_index_heads"),
            d_head=d_head,
            n_selected_tokens=f.count("n_index_tokens"),
            n_other_params=2 * d_head,
            is_shared=is_shared,
        )

    return [indexer(is_shared=kind == "shared") for kind in types or ["full"] * n_layers]


@dataclass(frozen=True, slots=True)
class Family:
    """A reader, and what it has to know of the family."""

    read: Callable[[Fields, Traits], Body]
    traits: Traits


_PLAIN = Traits()
_QWEN2 = Traits(qkv_bias=True, o_bias=False, window_default=False)
_QWEN2_MOE = Traits(qkv_bias=True, o_bias=False, window_default=False, shared_gate=True)
_QWEN3 = Traits(qk_norm="head", window_default=False)
_DELTA = Traits(qk_norm="head", shared_gate=True)
_GEMMA2 = Traits(n_norms=4, tied=True, full_every=2)
_GEMMA3 = Traits(
    n_norms=4,
    tied=True,
    full_every=6,
    qk_norm="head",
    vocab_size=262_208,
    n_context_tokens=131_072,
    stretches_context=False,
)
_GLM4_MOE = Traits(o_bias=False, router_bias=True)
_GPT_OSS = Traits(router_bias=True, expert_bias=True, sinks=True)
_MINIMAX_M2 = Traits(qk_norm="whole", router_bias=True)
_NEMOTRON = Traits(n_matrices=2, router_bias=True)
_TIED = Traits(tied=True)

FAMILIES: Mapping[str, Family] = {
    "llama": Family(softmax.decoder, _PLAIN),
    "mistral": Family(softmax.decoder, _PLAIN),
    "ministral": Family(softmax.decoder, _PLAIN),
    "mixtral": Family(softmax.decoder, _PLAIN),
    "phi3": Family(softmax.decoder, _PLAIN),
    "granite": Family(softmax.decoder, _TIED),
    "granitemoe": Family(softmax.decoder, _TIED),
    "granitemoeshared": Family(softmax.decoder, _TIED),
    "gemma": Family(softmax.decoder, _TIED),
    "gemma2": Family(softmax.decoder, _GEMMA2),
    "gemma3_text": Family(softmax.decoder, _GEMMA3),
    "gemma4_text": Family(softmax.gemma4, _TIED),
    "qwen2": Family(softmax.decoder, _QWEN2),
    "qwen2_5_vl_text": Family(softmax.decoder, _QWEN2),
    "qwen2_moe": Family(softmax.decoder, _QWEN2_MOE),
    "qwen3": Family(softmax.decoder, _QWEN3),
    "qwen3_moe": Family(softmax.decoder, _QWEN3),
    "qwen3_vl_text": Family(softmax.decoder, _QWEN3),
    "qwen3_vl_moe_text": Family(softmax.decoder, _QWEN3),
    "qwen3_next": Family(recurrent.qwen_delta, _DELTA),
    "qwen3_5_text": Family(recurrent.qwen_delta, _DELTA),
    "qwen3_5_moe_text": Family(recurrent.qwen_delta, _DELTA),
    "llama4_text": Family(softmax.llama4, _PLAIN),
    "glm4_moe": Family(softmax.decoder, _GLM4_MOE),
    "glm_moe_dsa": Family(latent, _PLAIN),
    "deepseek_v2": Family(latent, _PLAIN),
    "deepseek_v3": Family(latent, _PLAIN),
    "deepseek_v32": Family(latent, _PLAIN),
    "kimi_k2": Family(latent, _PLAIN),
    "gpt_oss": Family(softmax.decoder, _GPT_OSS),
    "minimax_m2": Family(softmax.minimax_m2, _MINIMAX_M2),
    "minimax_text_01": Family(recurrent.minimax, _PLAIN),
    "minimax": Family(recurrent.minimax, _PLAIN),
    "falcon": Family(softmax.falcon, Traits(n_context_tokens=2048)),
    "hunyuan": Family(softmax.hunyuan, Traits(qk_norm="head", tied=True)),
    "nemotron-nas": Family(softmax.nemotron_nas, _PLAIN),
    "nemotron_h": Family(recurrent.nemotron_h, _NEMOTRON),
    "jamba": Family(recurrent.jamba, _PLAIN),
    "mamba": Family(recurrent.mamba, _TIED),
    "falcon_mamba": Family(recurrent.mamba, _PLAIN),
    "mamba2": Family(recurrent.mamba2, _PLAIN),
    "granitemoehybrid": Family(recurrent.granite_hybrid, _TIED),
}
