"""A model of a TOML file as layers, by the judge's own reading of its shape.

Sums over layers do not ask what a class of them is called, so classes have numbers for names.
"""

from __future__ import annotations

from collections import Counter

from planner.specs.architecture import Architecture, Experts, FeedForward, Ffn, LayerClass
from planner.specs.mixers import GroupedAttention, LatentAttention, Mixer
from planner.specs.models import ModelSpec

_Layer = tuple[Mixer, Ffn]


def layers_of(model: ModelSpec | Architecture) -> Architecture:
    """The model layer by layer, as it is served."""
    if isinstance(model, Architecture):
        return model
    n_windowed = model.window.n_layers if model.window else 0
    layers: list[_Layer] = []
    for i in range(model.n_layers):
        # windows are spread evenly, the first layer among them: `ceil` of each layer's share
        begun, ended = (-(-(i + k) * n_windowed // model.n_layers) for k in (0, 1))
        layers.append((_attention(model, windowed=ended > begun), _feed_forward(model, i)))
    of = {layer: i for i, layer in enumerate(dict.fromkeys(layers))}
    numbers = Counter(layers)
    last = LayerClass(
        name="predictor",
        n_layers=model.mtp.n_modules if model.mtp else 0,
        mixer=layers[-1][0],
        ffn=layers[-1][1],
        n_other_params=2 * model.d_model * model.d_model,  # joins an input to what was predicted
    )
    return Architecture(
        name=model.name,
        title=model.title,
        d_model=model.d_model,
        vocab_size=model.vocab_size,
        tied_embeddings=model.tied_embeddings,
        layers=tuple(
            LayerClass(name=str(i), n_layers=numbers[layer], mixer=layer[0], ffn=layer[1])
            for layer, i in of.items()
        ),
        order=tuple(of[layer] for layer in layers),
        published_weights=model.published_weights,
        weights_formats=model.weights_formats,
        kv_format=model.kv_format,
        kv_formats=model.kv_formats,
        quality_losses=model.quality_losses,
        kv_quality_losses=model.kv_quality_losses,
        n_context_tokens=model.n_context_tokens,
        activation_format=model.activation_format,
        predictors=last if model.mtp else None,
        n_params_published=model.n_params_published,
        provenance=model.provenance,
        is_parallel_block=model.block == "parallel",
        variant=model.variant,
        repository=model.repository,
        family=model.family,
        checkpoints=model.checkpoints,
    )


def _attention(model: ModelSpec, *, windowed: bool) -> Mixer:
    if model.mla is not None:
        return LatentAttention(
            n_heads=model.n_heads,
            d_kv_latent=model.mla.d_kv_latent,
            d_q_latent=model.mla.d_q_latent,
            d_rope=model.mla.d_rope,
            d_nope=model.mla.d_nope,
            d_value_head=model.mla.d_value,
        )
    return GroupedAttention(
        n_heads=model.n_heads,
        n_kv_heads=model.n_kv_heads,
        d_head=model.d_head,
        d_value_head=model.d_head,
        span="window" if windowed else "all",
        n_span_tokens=model.window.n_tokens if model.window and windowed else None,
        norms_heads=model.norms_heads,
    )


def _feed_forward(model: ModelSpec, i: int) -> Ffn:
    moe = model.moe
    if moe is None or i < moe.n_dense_layers:
        return FeedForward(d_ff=model.d_ff, n_matrices=model.n_ffn_matrices)
    return Experts(
        n_experts=moe.n_experts,
        n_active=moe.n_active_experts,
        d_expert=moe.d_expert,
        d_shared=moe.n_shared_experts * moe.d_expert,
        n_matrices=model.n_ffn_matrices,
        n_groups=moe.n_groups,
        n_active_groups=moe.n_active_groups,
    )
