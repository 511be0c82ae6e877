"""Families of latent attention: DeepSeek V2 to V3.2, Kimi K2, GLM-5."""

from __future__ import annotations

from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.layers import Body, Layer
from planner.specs.huggingface.parts import Traits, ffns
from planner.specs.huggingface.softmax import joined
from planner.specs.mixers import Indexer, LatentAttention


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
