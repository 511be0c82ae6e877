"""Families whose layers attend and keep states, side by side, in turn, or in shared blocks.

A layer with two mixers is two of the record, the second with the FFN: parameters, caches, states
and products are then those of the layer.
"""

from dataclasses import replace

from planner.specs.huggingface import parts, states
from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.layers import Body, Layer, stacked
from planner.specs.huggingface.parts import Traits, attending, dense, grouped
from planner.specs.records.architecture import FeedForward


def falcon_h1(f: Fields, traits: Traits) -> Body:
    """Falcon-H1: Mamba 2 and attention read one normed input, and what they make is added.

    Source: transformers, `modeling_falcon_h1.py`.
    """
    d_model = f.count("d_model")
    f.dismiss("attention_layers")
    mamba = states.mamba2_beside(f, is_normed=f.flag("norms_state", default=False))
    halves = (
        Layer(mixer=mamba, ffn=None, n_norm_params=d_model),
        Layer(mixer=grouped(f, traits), ffn=dense(f, traits), n_norm_params=d_model),
    )
    return Body(layers=halves * f.count("n_layers"), n_other_params=d_model)


def zamba2(f: Fields, traits: Traits) -> Body:
    """Zamba 2: before some of its Mamba 2 layers, one of a few blocks of attention and FFN.

    A block reads the residual beside the embedding, twice `d_model`. Of its own, each place has
    narrow additions to the block's projections, and a projection after it.
    Source: transformers, `modeling_zamba2.py`.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    words = f.words("block_types", n_layers, ("mamba", "hybrid"))
    if words is None and f.is_sound("block_types"):
        f.fault("block_types", "is missing", "it says which layers have a block before them")
    f.dismiss("attention_layers", "d_linear", "n_query_groups", "kv_channels")
    mamba = Layer(mixer=states.mamba2_beside(f), ffn=None, n_norm_params=d_model)
    block, n_block_params = _shared_block(f, traits)
    borrowed = replace(block, n_borrowed_params=n_block_params)
    n_blocks = f.count("n_shared_blocks", 1)
    layers, n_met = [], 0
    for word in words or ["mamba"] * n_layers:
        if word == "hybrid":
            layers.append(block if n_met < n_blocks else borrowed)
            n_met += 1
        layers.append(mamba)
    return Body(layers=tuple(layers), n_other_params=d_model)


def _shared_block(f: Fields, traits: Traits) -> tuple[Layer, int]:
    """A block at one of its places, and how many of its parameters all places share."""
    d_model, n_heads, rank = f.count("d_model"), f.count("n_heads"), f.count("adapter_rank", 128)
    if f.is_sound("n_heads", "d_model") and 2 * d_model % n_heads:
        f.fault("n_heads", f"does not divide twice hidden_size, {2 * d_model}")
    f.dismiss("n_kv_heads")  # as many as there are heads
    d_head = f.count("d_head", max(1, 2 * d_model // n_heads))
    attention = parts.attention((n_heads, n_heads, d_head))
    ffn = dense(f, traits)
    d_inputs = attention.d_queries + attention.d_keys_and_values
    embedding = d_model * d_inputs  # what the same projections read beside the residual
    shared = attention.n_params(d_model) + embedding + ffn.n_params(d_model) + 3 * d_model
    added = rank * (d_model + 2 * ffn.d_ff) if f.flag("adapts_ffn", default=True) else 0
    if f.flag("adapts_attention", default=False):
        embedding += rank * (3 * 2 * d_model + d_inputs)
    block = Layer(
        mixer=replace(attention, n_other_params=embedding),
        ffn=replace(ffn, n_other_params=ffn.n_other_params + added),
        n_norm_params=3 * d_model,
        n_other_params=d_model * d_model,
    )
    return block, shared


def lfm2(f: Fields, traits: Traits) -> Body:
    """LFM2: short convolutions, attention in the layers that are listed, an FFN in each.

    Source: transformers, `modeling_lfm2.py`.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    words = f.words("layer_types", n_layers, ("conv", "full_attention"))
    full = attending(f) if words is None else [word == "full_attention" for word in words]
    f.dismiss("attention_layers", "n_state_heads")
    attention, convolution = grouped(f, traits), states.recurrence(f, "convolution")
    ffn = dense(f, traits)
    if f.flag("adjusts_ffn", default=True):
        multiple = f.count("ffn_multiple_of", 256)
        width = int(2 * ffn.d_ff / 3) * f.count("ffn_multiplier", 1)
        ffn = replace(ffn, d_ff=-(-width // multiple) * multiple)
    mixers = [attention if attends else convolution for attends in full]
    return stacked(d_model, mixers, [ffn] * len(mixers))


_RWKV_EXPANSION = 3.5
_RWKV_MULTIPLE = 32


def rwkv6(f: Fields, traits: Traits) -> Body:
    """RWKV-6: time mixing, and channel mixing, of which a third matrix is square.

    Source: `modeling_rwkv6.py` of RWKV/v6-Finch-7B-HF.
    """
    d_model = f.count("d_model")
    d_usual = int(_RWKV_EXPANSION * d_model) // _RWKV_MULTIPLE * _RWKV_MULTIPLE
    receptances = d_model * d_model + 2 * d_model  # and what of the token before is mixed in
    ffn = FeedForward(d_ff=f.count("d_ff", d_usual), n_matrices=2, n_other_params=receptances)
    layer = Layer(mixer=states.rwkv6(f), ffn=ffn, n_norm_params=4 * d_model)
    # norms after the embedding and before the head
    return Body(layers=(layer,) * f.count("n_layers"), n_other_params=4 * d_model)
