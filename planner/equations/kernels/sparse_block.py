"""Time of a whole layer's sparse latent attention: as `latent_block`, with an indexer.

Small heads score every cached token, the best are chosen, and attention reads those alone:

    index = batch context max(2 heads width / peak, (width + 4 B) / bandwidth) / share
    selection = context select_s

Attention then meets min(context, selected) tokens. Prefill is timed as engines run it: launched
by the host, so that short prompts take the host's time and long ones the device's, with little
between: t = (host⁴ + device⁴)^(1/4).

The indexer computes in 8 bits. Source: [DeepSeek2025] for the algebra, tables of
[AIConfigurator2026] for constants, `docs/decisions/0012-experts-and-blocks.md`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.kernels.latent import latent_decode_s
from planner.equations.kernels.latent_block import moved_bytes, products_s
from planner.equations.kernels.numbers import floats
from planner.equations.roofline import smooth_roofline_s

BYTES_OF_A_SCALE = 4.0
"""Scale of one cached key of the indexer [B]."""

HOST_EXPONENT = 4.0
"""How sharply the host's time gives way to the device's: chosen, not fitted [1]."""


def sparse_block_decode_s(
    batch: ArrayLike,
    context: ArrayLike,
    *,
    n_heads: ArrayLike,
    d_model: ArrayLike,
    d_q_latent: ArrayLike,
    n_index_heads: ArrayLike,
    d_index: ArrayLike,
    n_selected: ArrayLike,
    d_latent: ArrayLike = 512.0,
    d_rope: ArrayLike = 64.0,
    d_nope: ArrayLike = 128.0,
    d_value: ArrayLike = 128.0,
    weight_bytes: ArrayLike,
    cache_bytes: ArrayLike,
    product_flop_per_s: ArrayLike,
    index_flop_per_s: ArrayLike,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    product_compute_fraction: ArrayLike,
    product_memory_fraction: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    index_fraction: ArrayLike,
    select_s: ArrayLike,
    sequence_s: ArrayLike = 0.0,
    sequence_head_s: ArrayLike = 0.0,
    idle_sequences: ArrayLike = 0.0,
) -> FloatArray:
    """Time of one layer's sparse attention with its projections, one new token a sequence [s].

    Args, broadcast together; those not here are as in `latent_block.latent_block_decode_s`:
        n_index_heads: heads that score, on every device [1].
        d_index: numbers of their queries and of the one key a token [1].
        n_selected: tokens that attention then reads at most [1].
        index_flop_per_s: datasheet peak of 8 bits [FLOP/s].
        index_fraction: share of peak or bandwidth that scoring attains [1].
        select_s: for each token of a context that the best are chosen from [s].
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
        d_indexer=indexer_weights(d_model, d_q_latent, n_heads=n_index_heads, width=d_index),
    )
    core = latent_decode_s(
        batch,
        np.minimum(context, n_selected),
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
    score = np.maximum(
        2.0 * np.multiply(n_index_heads, d_index) / np.asarray(index_flop_per_s),
        np.add(d_index, BYTES_OF_A_SCALE) / np.asarray(hbm_bytes_per_s),
    )
    pairs = np.multiply(np.asarray(batch, dtype=float), context)
    scored = pairs * score / np.asarray(index_fraction)
    return np.asarray(products + core + scored + np.multiply(context, select_s))


def sparse_block_prefill_s(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    n_heads: ArrayLike,
    d_model: ArrayLike,
    d_q_latent: ArrayLike,
    n_index_heads: ArrayLike,
    d_index: ArrayLike,
    n_selected: ArrayLike,
    d_latent: ArrayLike = 512.0,
    d_rope: ArrayLike = 64.0,
    d_nope: ArrayLike = 128.0,
    d_value: ArrayLike = 128.0,
    weight_bytes: ArrayLike,
    product_flop_per_s: ArrayLike,
    index_flop_per_s: ArrayLike,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    host_s: ArrayLike,
    floor_s: ArrayLike,
    product_compute_fraction: ArrayLike,
    product_memory_fraction: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    index_fraction: ArrayLike,
    select_s: ArrayLike,
    min_heads: ArrayLike = 1.0,
) -> FloatArray:
    """Time of one layer's sparse causal attention with its projections [s].

    Args, broadcast together; those not here are as in `sparse_block_decode_s`:
        tokens: new tokens of each sequence [1].
        past_tokens: of each, before those [1].
        host_s: time of the host's launches of one layer [s].
        select_s: for each pair of a token and one before it [s].
        min_heads: heads that a tile works on at least [1].
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
        d_indexer=indexer_weights(d_model, d_q_latent, n_heads=n_index_heads, width=d_index),
    )
    widths = {"n_heads": n_heads, "d_nope": d_nope, "d_rope": d_rope, "d_value": d_value}
    moved = moved_bytes(new, d_model=d_model, **widths)
    pairs, chosen = causal_pairs(tokens, past_tokens, n_selected=n_selected)
    heads = np.maximum(n_heads, min_heads)
    met = (
        2.0 * heads * (2.0 * np.asarray(d_latent) + np.asarray(d_rope)) * np.multiply(batch, chosen)
    )
    score = 2.0 * np.multiply(n_index_heads, d_index) / np.asarray(index_flop_per_s)
    device = (
        np.asarray(floor_s)
        + products
        + moved / np.multiply(hbm_bytes_per_s, memory_fraction)
        + met / np.multiply(peak_flop_per_s, compute_fraction)
        + np.multiply(batch, pairs) * (score / np.asarray(index_fraction) + np.asarray(select_s))
    )
    return smooth_roofline_s(host_s, device, exponent=HOST_EXPONENT)


def causal_pairs(
    tokens: ArrayLike, past_tokens: ArrayLike, *, n_selected: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Pairs of a new token and one up to itself: all of them, and those that are selected [1].

    >>> causal_pairs(4, 0, n_selected=2)
    (array(10.), array(7.))
    """
    new, past, most = floats(tokens, past_tokens, n_selected)
    whole = np.clip(most - past, 0.0, new)  # tokens that see all before them
    pairs = new * (past + (new + 1.0) / 2.0)
    chosen = whole * (past + (whole + 1.0) / 2.0) + (new - whole) * most
    return np.asarray(pairs), np.asarray(chosen)


def indexer_weights(
    d_model: ArrayLike, d_q_latent: ArrayLike, *, n_heads: ArrayLike, width: ArrayLike
) -> FloatArray:
    """Weights of the indexer's queries, its one key a token, and its heads' shares [1].

    >>> float(indexer_weights(7168, 1536, n_heads=64, width=128))
    13959168.0
    """
    queries = np.multiply(d_q_latent, np.multiply(n_heads, width))
    return np.asarray(queries + np.multiply(d_model, np.add(width, n_heads)), dtype=float)
