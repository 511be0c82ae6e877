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

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.kernels.latent import (
    latent_decode_s,
    latent_prefill_work,
)
from planner.equations.roofline import smooth_roofline_s

ACTIVATION_BYTES = 2.0
"""Tokens, queries, keys and values are in 16 bits between kernels [B]."""

EXPONENT = 3.0
"""How far arithmetic and weights hide each other in products: chosen, not fitted [1]."""


def latent_block_decode_s(
    batch: ArrayLike,
    context: ArrayLike,
    *,
    n_heads: ArrayLike,
    d_model: ArrayLike,
    d_q_latent: ArrayLike,
    d_latent: ArrayLike = 512.0,
    d_rope: ArrayLike = 64.0,
    d_nope: ArrayLike = 128.0,
    d_value: ArrayLike = 128.0,
    weight_bytes: ArrayLike,
    cache_bytes: ArrayLike,
    product_flop_per_s: ArrayLike,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    product_compute_fraction: ArrayLike,
    product_memory_fraction: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    sequence_s: ArrayLike = 0.0,
    sequence_head_s: ArrayLike = 0.0,
    idle_sequences: ArrayLike = 0.0,
) -> FloatArray:
    """Time of one layer's attention with its projections, one new token a sequence [s].

    Args, broadcast together; those not here are as in `latent.latent_decode_s`:
        d_model: numbers of a token [1].
        d_q_latent: latent that queries are made of; 0 makes them of the token itself [1].
        d_nope: part of a query without position [1].
        d_value: numbers of a value [1].
        weight_bytes: of one weight of a projection, scales included [B].
        product_flop_per_s: datasheet peak of the projections' format [FLOP/s].
        peak_flop_per_s: datasheet peak of 16 bits [FLOP/s].
        product_compute_fraction: share of the peak that projections attain [1].
        product_memory_fraction: share of the bandwidth that their weights are read at [1].
    """
    products = products_s(
        batch,
        n_heads=n_heads,
        d_model=d_model,
        d_q_latent=d_q_latent,
        d_latent=d_latent,
        d_rope=d_rope,
        d_nope=d_nope,
        d_value=d_value,
        weight_bytes=weight_bytes,
        product_flop_per_s=product_flop_per_s,
        peak_flop_per_s=peak_flop_per_s,
        hbm_bytes_per_s=hbm_bytes_per_s,
        compute_fraction=product_compute_fraction,
        memory_fraction=product_memory_fraction,
    )
    core = latent_decode_s(
        batch,
        context,
        n_heads=n_heads,
        d_latent=d_latent,
        d_rope=d_rope,
        cache_bytes=cache_bytes,
        peak_flop_per_s=peak_flop_per_s,
        hbm_bytes_per_s=hbm_bytes_per_s,
        floor_s=floor_s,
        compute_fraction=compute_fraction,
        memory_fraction=memory_fraction,
        sequence_s=sequence_s,
        sequence_head_s=sequence_head_s,
        idle_sequences=idle_sequences,
    )
    return np.asarray(products + core)


def latent_block_prefill_s(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    n_heads: ArrayLike,
    d_model: ArrayLike,
    d_q_latent: ArrayLike,
    d_latent: ArrayLike = 512.0,
    d_rope: ArrayLike = 64.0,
    d_nope: ArrayLike = 128.0,
    d_value: ArrayLike = 128.0,
    weight_bytes: ArrayLike,
    product_flop_per_s: ArrayLike,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    product_compute_fraction: ArrayLike,
    product_memory_fraction: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    ramp_tokens: ArrayLike = 0.0,
    sequence_head_s: ArrayLike = 0.0,
) -> FloatArray:
    """Time of one layer's causal attention with its projections [s].

    Args, broadcast together; those not here are as in `latent_block_decode_s`:
        tokens: new tokens of each sequence [1].
        past_tokens: of each, before those [1].
        ramp_tokens: keys that each token costs beyond its own [1].
        sequence_head_s: for each sequence and head [s].
    """
    new = np.multiply(batch, np.asarray(tokens, dtype=float))
    products = products_s(
        new,
        n_heads=n_heads,
        d_model=d_model,
        d_q_latent=d_q_latent,
        d_latent=d_latent,
        d_rope=d_rope,
        d_nope=d_nope,
        d_value=d_value,
        weight_bytes=weight_bytes,
        product_flop_per_s=product_flop_per_s,
        peak_flop_per_s=peak_flop_per_s,
        hbm_bytes_per_s=hbm_bytes_per_s,
        compute_fraction=product_compute_fraction,
        memory_fraction=product_memory_fraction,
    )
    widths = {"n_heads": n_heads, "d_nope": d_nope, "d_rope": d_rope, "d_value": d_value}
    flop, _ = latent_prefill_work(batch, tokens, past_tokens, **widths)
    width = np.multiply(n_heads, np.add(np.add(d_nope, d_rope), d_value))
    # A token meets itself too, which the causal half leaves out.
    flop = flop + new * (1.0 + np.asarray(ramp_tokens)) * width
    return np.asarray(
        np.asarray(floor_s)
        + products
        + flop / np.multiply(peak_flop_per_s, compute_fraction)
        + moved_bytes(new, d_model=d_model, **widths)
        / np.multiply(hbm_bytes_per_s, memory_fraction)
        + np.multiply(batch, n_heads) * np.asarray(sequence_head_s, dtype=float)
    )


def products_s(
    tokens: ArrayLike,
    *,
    n_heads: ArrayLike,
    d_model: ArrayLike,
    d_q_latent: ArrayLike,
    d_latent: ArrayLike,
    d_rope: ArrayLike,
    d_nope: ArrayLike,
    d_value: ArrayLike,
    weight_bytes: ArrayLike,
    product_flop_per_s: ArrayLike,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    d_indexer: ArrayLike = 0.0,
) -> FloatArray:
    """Time of all projections of one layer's attention [s].

    Args as in `latent_block_decode_s`, and:
        d_indexer: weights of an indexer's projections, as a count [1].
    """
    dense = projection_weights(
        n_heads=n_heads,
        d_model=d_model,
        d_q_latent=d_q_latent,
        d_latent=d_latent,
        d_rope=d_rope,
        d_nope=d_nope,
        d_value=d_value,
    )
    dense = dense + np.asarray(d_indexer)
    made = np.multiply(n_heads, d_latent) * np.add(d_nope, d_value)
    flop_s = dense / np.asarray(product_flop_per_s) + made / np.asarray(peak_flop_per_s)
    compute = 2.0 * np.asarray(tokens, dtype=float) * flop_s / np.asarray(compute_fraction)
    traffic = dense * np.asarray(weight_bytes) + made * ACTIVATION_BYTES
    memory = traffic / np.multiply(hbm_bytes_per_s, memory_fraction)
    return smooth_roofline_s(compute, memory, exponent=EXPONENT)


def projection_weights(
    *,
    n_heads: ArrayLike,
    d_model: ArrayLike,
    d_q_latent: ArrayLike,
    d_latent: ArrayLike = 512.0,
    d_rope: ArrayLike = 64.0,
    d_nope: ArrayLike = 128.0,
    d_value: ArrayLike = 128.0,
) -> FloatArray:
    """Weights to latents, from queries' latents, and of the output; without the absorbed ones [1].

    >>> float(projection_weights(n_heads=128, d_model=7168, d_q_latent=1536))
    170328064.0
    """
    model = np.asarray(d_model, dtype=float)
    queries = np.multiply(n_heads, np.add(d_nope, d_rope))
    latent = np.asarray(d_q_latent, dtype=float)
    made = np.where(latent > 0, latent * (model + queries), model * queries)
    output = np.multiply(n_heads, d_value) * model
    return np.asarray(made + model * np.add(d_latent, d_rope) + output)


def moved_bytes(
    tokens: ArrayLike,
    *,
    d_model: ArrayLike,
    n_heads: ArrayLike,
    d_nope: ArrayLike,
    d_rope: ArrayLike,
    d_value: ArrayLike,
) -> FloatArray:
    """The token in and out, its queries, keys and values written and read by heads [B]."""
    heads = np.multiply(n_heads, 2.0 * np.add(d_nope, d_rope) + 2.0 * np.asarray(d_value))
    return np.asarray(ACTIVATION_BYTES * np.multiply(tokens, 2.0 * np.asarray(d_model) + heads))


def latent_block_work(
    batch: ArrayLike,
    tokens: ArrayLike = 1.0,
    *,
    n_heads: ArrayLike,
    d_model: ArrayLike,
    d_q_latent: ArrayLike,
    d_latent: ArrayLike = 512.0,
    d_rope: ArrayLike = 64.0,
    d_nope: ArrayLike = 128.0,
    d_value: ArrayLike = 128.0,
    weight_bytes: ArrayLike,
    product_flop_per_s: ArrayLike = 0.0,
    context: ArrayLike = 0.0,
    past_tokens: ArrayLike = 0.0,
    cache_bytes: ArrayLike = 0.0,
    n_index_heads: ArrayLike = 0.0,
    d_index: ArrayLike = 0.0,
    n_selected: ArrayLike = 0.0,
    index_flop_per_s: ArrayLike = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """(FLOP, bytes) that no block avoids: its projections' weights, read once.

    No FLOP: projections run in another format than the peak that bounds attention. No cache:
    that of few short sequences stays on the device. Arguments as in `latent_block_decode_s` and
    in `sparse_block`; those that only the rest depends on give the answer its shape.
    """
    weights = projection_weights(
        n_heads=n_heads,
        d_model=d_model,
        d_q_latent=d_q_latent,
        d_latent=d_latent,
        d_rope=d_rope,
        d_nope=d_nope,
        d_value=d_value,
    )
    others = (batch, tokens, product_flop_per_s, context, past_tokens, cache_bytes)
    index = (n_index_heads, d_index, n_selected, index_flop_per_s)
    shape = np.broadcast_shapes(*map(np.shape, (weights, weight_bytes, *others, *index)))
    traffic = np.broadcast_to(weights * np.asarray(weight_bytes), shape)
    return np.zeros(shape), np.asarray(traffic)
