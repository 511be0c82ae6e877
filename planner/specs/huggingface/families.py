"""Every `model_type` that is understood, and how its layers are read.

A new family is one line of `families.toml`: traits of a shape that exists, or a reader of its own.
Traits are those of the family's code in transformers, or in its repository.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from planner.quantities.tables import packaged_table
from planner.specs.huggingface import softmax, states
from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.layers import Body, stacked
from planner.specs.huggingface.parts import Traits, attending, ffns
from planner.specs.huggingface.softmax import predicting
from planner.specs.records.mixers import Indexer, LatentAttention, Mixer


def latent(f: Fields, traits: Traits) -> Body:
    """Latent attention, dense and sparse, over FFNs of experts but in the first layers.

    Kimi Linear: Kimi delta attention in all layers but those that are listed.
    """
    d_model = f.count("d_model")
    f.dismiss("d_head", "n_kv_heads")  # keys are made of the latent, as many as there are heads
    indexers, feeds = _indexers(f), ffns(f, traits)
    mixers: list[Mixer] = [_attention(f, indexer) for indexer in indexers]
    if f.has("attention_layers"):
        f.dismiss("linear_layers")
        delta = states.recurrence(f, "kda")
        mixers = [mixers[0] if full else delta for full in attending(f, first=1)]
    body = stacked(d_model, mixers, feeds)
    return predicting(f, body, lambda: body.layers[-1])


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


def side_by_side(f: Fields, traits: Traits) -> Body:
    """Attention and FFN in turn, or on one input, as the config says: StableLM.

    Source: transformers, `modeling_stablelm.py`: in parallel there is one norm a layer.
    """
    is_parallel = f.flag("is_parallel", default=False)
    has_bias = f.flag("has_qkv_bias", default=False)
    said = replace(traits, is_parallel=is_parallel, qkv_bias=has_bias)
    return softmax.decoder(f, replace(said, n_norms=1) if is_parallel else said)


def mpt(f: Fields, traits: Traits) -> Body:
    """MPT: plain FFNs of some widths of the model; source: transformers, `modeling_mpt.py`."""
    if not f.flag("is_unbiased", default=True):
        f.fault("is_unbiased", "is not understood", "MPT without biases is")
    if f.text("attention_type", "multihead_attention") != "multihead_attention":
        f.fault("attention_type", "is not understood", "`multihead_attention` is")
    return softmax.decoder(f, replace(traits, expansion=f.count("ffn_ratio", 4)))


def ernie_moe(f: Fields, traits: Traits) -> Body:
    """ERNIE 4.5: experts from one layer to the last; transformers, `modeling_ernie4_5_moe.py`."""
    if f.count("expert_interval", 1) != 1:
        f.fault("expert_interval", "is not understood", "experts in each layer are")
    if f.raw("last_sparse") not in (None, -1, f.count("n_layers") - 1):
        f.fault("last_sparse", "is not the last layer", "experts up to the last are understood")
    return softmax.decoder(f, traits)


@dataclass(frozen=True, slots=True)
class Family:
    """A reader, and what it has to know of the family."""

    read: Callable[[Fields, Traits], Body]
    traits: Traits


def _family(row: Mapping[str, Any]) -> Family:
    module, _, name = row.get("read", "softmax.decoder").partition(".")
    read = getattr(import_module(f"{__package__}.{module}"), name)
    traits = {key: value for key, value in row.items() if key not in ("names", "read")}
    return Family(read, Traits(**traits))


FAMILIES: Mapping[str, Family] = {
    name: _family(row)
    for row in packaged_table("specs/huggingface/families.toml")["families"]
    for name in row["names"].split()
}
