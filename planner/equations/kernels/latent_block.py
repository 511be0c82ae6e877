"""Time of a whole layer's latent attention: projections, norms, rotation and the kernel between.

Engines fuse and overlap these, so that the sum of their parts measured apart is too long; tables
of whole blocks are therefore fitted whole:

    t = floor + products + attention
    products = (gᵖ + wᵖ)^(1/p), p = 3

g is the arithmetic of all projections of the tokens, w reads their weights once; attention is as
in `latent`. In decode the up-projections of the latent are absorbed: queries meet latents, and
two batched products in 16 bits stand for them; in prefill they make keys and values.

Peaks of attention are those of 16 bits whatever the cache.
Source: fitted to the tables of [AIConfigurator2026], `docs/decisions/0012-experts-and-blocks.md`.
"""

from typing import NotRequired, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.kernels.latent import latent_decode_s, latent_prefill_work
from planner.equations.roofline import smooth_roofline_s

ACTIVATION_BYTES = 2.0
"""Tokens, queries, keys and values are in 16 bits between kernels [B]."""

EXPONENT = 3.0
"""How far arithmetic and weights hide each other in products: chosen, not fitted [1]."""

D_LATENT, D_ROPE, D_NOPE, D_VALUE = 512.0, 64.0, 128.0, 128.0
"""Widths of DeepSeek-V2 and its followers, where none are given [1]. Source: [DeepSeek2024]."""

WIDTHS = ("n_heads", "d_model", "d_q_latent", "d_latent", "d_rope", "d_nope", "d_value")
"""Names of `Widths`."""


class Widths(TypedDict):
    """A layer's latent attention, as arrays that broadcast.

    n_heads: query heads of one device [1].
    d_model: numbers of a token [1].
    d_q_latent: latent that queries are made of; 0 makes them of the token itself [1].
    d_latent: compressed key and value of a token; 512 unless given [1].
    d_rope: part of a query and a key that positions rotate; 64 [1].
    d_nope: part of a query and a key without position; 128 [1].
    d_value: numbers of a value; 128 [1].
    """

    n_heads: ArrayLike
    d_model: ArrayLike
    d_q_latent: ArrayLike
    d_latent: NotRequired[ArrayLike]
    d_rope: NotRequired[ArrayLike]
    d_nope: NotRequired[ArrayLike]
    d_value: NotRequired[ArrayLike]


class Block(Widths):
    """Widths, and the rates of the products and of the device.

    weight_bytes: of one weight of a projection, scales included [B].
    product_flop_per_s: datasheet peak of the projections' format [FLOP/s].
    peak_flop_per_s: datasheet peak of 16 bits [FLOP/s].
    hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
    product_compute_fraction: share of the peak that projections attain [1].
    product_memory_fraction: share of the bandwidth that their weights are read at [1].
    """

    weight_bytes: ArrayLike
    product_flop_per_s: ArrayLike
    peak_flop_per_s: ArrayLike
    hbm_bytes_per_s: ArrayLike
    product_compute_fraction: ArrayLike
    product_memory_fraction: ArrayLike


class Core(TypedDict):
    """Format and constants of attention in decode, as in `latent.latent_decode_s`."""

    cache_bytes: ArrayLike
    floor_s: ArrayLike
    compute_fraction: ArrayLike
    memory_fraction: ArrayLike
    sequence_s: NotRequired[ArrayLike]
    sequence_head_s: NotRequired[ArrayLike]
    idle_sequences: NotRequired[ArrayLike]


class DecodeBlock(Block, Core):
    """All that a block of decode takes beside its sequences."""


def latent_block_decode_s(
    batch: ArrayLike, context: ArrayLike, **block: Unpack[DecodeBlock]
) -> FloatArray:
    """Time of one layer's attention with its projections, one new token a sequence [s].

    Args, broadcast together:
        batch: sequences of one device [1].
        context: tokens that each attends to [1].
        block: see `Block` and `Core`.
    """
    return np.asarray(products_s(batch, block) + core_s(batch, context, block))


def latent_block_prefill_s(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    floor_s: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    ramp_tokens: ArrayLike = 0.0,
    sequence_head_s: ArrayLike = 0.0,
    **block: Unpack[Block],
) -> FloatArray:
    """Time of one layer's causal attention with its projections [s].

    Args, broadcast together; those not here are as in `latent.latent_prefill_s`:
        tokens: new tokens of each sequence [1].
        past_tokens: of each, before those [1].
        ramp_tokens: keys that each token costs beyond its own [1].
        block: see `Block`.
    """
    new = np.multiply(batch, np.asarray(tokens, dtype=float))
    d_nope, d_rope, d_value = _heads(block)
    flop, _ = latent_prefill_work(
        batch,
        tokens,
        past_tokens,
        n_heads=block["n_heads"],
        d_nope=d_nope,
        d_rope=d_rope,
        d_value=d_value,
    )
    width = np.multiply(block["n_heads"], np.add(np.add(d_nope, d_rope), d_value))
    # A token meets itself too, which the causal half leaves out.
    flop = flop + new * (1.0 + np.asarray(ramp_tokens)) * width
    return np.asarray(
        np.asarray(floor_s)
        + products_s(new, block)
        + flop / np.multiply(block["peak_flop_per_s"], compute_fraction)
        + moved_bytes(new, block) / np.multiply(block["hbm_bytes_per_s"], memory_fraction)
        + np.multiply(batch, block["n_heads"]) * np.asarray(sequence_head_s, dtype=float)
    )


def core_s(batch: ArrayLike, context: ArrayLike, block: DecodeBlock) -> FloatArray:
    """Time of the attention between a block's products, in decode [s]."""
    return latent_decode_s(
        batch,
        context,
        n_heads=block["n_heads"],
        d_latent=block.get("d_latent", D_LATENT),
        d_rope=block.get("d_rope", D_ROPE),
        cache_bytes=block["cache_bytes"],
        peak_flop_per_s=block["peak_flop_per_s"],
        hbm_bytes_per_s=block["hbm_bytes_per_s"],
        floor_s=block["floor_s"],
        compute_fraction=block["compute_fraction"],
        memory_fraction=block["memory_fraction"],
        sequence_s=block.get("sequence_s", 0.0),
        sequence_head_s=block.get("sequence_head_s", 0.0),
        idle_sequences=block.get("idle_sequences", 0.0),
    )


def products_s(tokens: ArrayLike, block: Block, *, n_more: ArrayLike = 0.0) -> FloatArray:
    """Time of all projections of one layer's attention [s].

    Args, broadcast together:
        tokens: that are projected [1].
        block: see `Block`.
        n_more: weights of further projections, as an indexer has [1].
    """
    d_nope, _, d_value = _heads(block)
    dense = projection_weights(block) + np.asarray(n_more)
    latent = block.get("d_latent", D_LATENT)
    made = np.multiply(block["n_heads"], latent) * np.add(d_nope, d_value)
    flop_s = dense / np.asarray(block["product_flop_per_s"])
    flop_s = flop_s + made / np.asarray(block["peak_flop_per_s"])
    share = np.asarray(block["product_compute_fraction"])
    compute = 2.0 * np.asarray(tokens, dtype=float) * flop_s / share
    traffic = dense * np.asarray(block["weight_bytes"]) + made * ACTIVATION_BYTES
    memory = traffic / np.multiply(block["hbm_bytes_per_s"], block["product_memory_fraction"])
    return smooth_roofline_s(compute, memory, exponent=EXPONENT)


def projection_weights(widths: Widths) -> FloatArray:
    """Weights to latents, from queries' latents, and of the output; without the absorbed ones [1].

    >>> float(projection_weights({"n_heads": 128, "d_model": 7168, "d_q_latent": 1536}))
    170328064.0
    """
    d_nope, d_rope, d_value = _heads(widths)
    model = np.asarray(widths["d_model"], dtype=float)
    queries = np.multiply(widths["n_heads"], np.add(d_nope, d_rope))
    latent = np.asarray(widths["d_q_latent"], dtype=float)
    made = np.where(latent > 0, latent * (model + queries), model * queries)
    output = np.multiply(widths["n_heads"], d_value) * model
    return np.asarray(made + model * np.add(widths.get("d_latent", D_LATENT), d_rope) + output)


def moved_bytes(tokens: ArrayLike, widths: Widths) -> FloatArray:
    """The token in and out, its queries, keys and values written and read by heads [B]."""
    d_nope, d_rope, d_value = _heads(widths)
    each = 2.0 * np.add(d_nope, d_rope) + 2.0 * np.asarray(d_value)
    heads = np.multiply(widths["n_heads"], each)
    numbers = 2.0 * np.asarray(widths["d_model"]) + heads
    return np.asarray(ACTIVATION_BYTES * np.multiply(tokens, numbers))


def latent_block_work(
    batch: ArrayLike, tokens: ArrayLike = 1.0, *, weight_bytes: ArrayLike, **given: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """(FLOP, bytes) that no block avoids: its projections' weights, read once.

    No FLOP: projections run in another format than the peak that bounds attention. No cache:
    that of few short sequences stays on the device. `given` holds the widths; what else it
    holds, as in `DecodeBlock` and in `sparse_block`, gives the answer its shape.
    """
    widths = {name: given[name] for name in WIDTHS if name in given}
    weights = projection_weights(cast("Widths", widths))
    shape = np.broadcast_shapes(*map(np.shape, (weights, weight_bytes, batch, tokens)))
    shape = np.broadcast_shapes(shape, *map(np.shape, given.values()))
    traffic = np.broadcast_to(weights * np.asarray(weight_bytes), shape)
    return np.zeros(shape), np.asarray(traffic)


def _heads(widths: Widths) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
    """(d_nope, d_rope, d_value)."""
    return (
        widths.get("d_nope", D_NOPE),
        widths.get("d_rope", D_ROPE),
        widths.get("d_value", D_VALUE),
    )
