"""Time of latent attention (MLA): absorbed in decode, with whole heads in prefill.

In decode every head reads the same compressed cache, so that arithmetic and traffic are close to
each other on most devices. Source: [DeepSeek2024] for the algebra, [InferSim] and
[AIConfigurator2026] for measurements, `docs/decisions/0012-experts-and-blocks.md` for the smaller
terms.
The kernels alone: `latent_block` is a layer's attention with the products around it.
"""

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.roofline import smooth_roofline_s


def latent_decode_s(
    batch: ArrayLike,
    context: ArrayLike,
    *,
    n_heads: ArrayLike,
    d_latent: ArrayLike = 512.0,
    d_rope: ArrayLike = 64.0,
    cache_bytes: ArrayLike,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    exponent: float = 3.0,
    sequence_s: ArrayLike = 0.0,
    sequence_head_s: ArrayLike = 0.0,
    idle_sequences: ArrayLike = 0.0,
    min_heads: ArrayLike = 1.0,
) -> FloatArray:
    """Time of one layer, for one new token of each sequence [s].

    t = floor + (cᵖ + bᵖ)^(1/p) + batch (a + heads h); c and b are those of `idle_sequences`
    more than there are: splits of a few long sequences use a device less well than many
    sequences do.

    Args, broadcast together:
        batch: sequences of one device [1].
        context: tokens that each attends to [1].
        n_heads: query heads of one device [1].
        d_latent: compressed key and value of a token [1].
        d_rope: part of the key that positions rotate [1].
        cache_bytes: of one number of the cache [B].
        peak_flop_per_s: datasheet peak of the format of the arithmetic [FLOP/s].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        floor_s: launch and whatever else no work explains [s].
        compute_fraction: attainable share of the peak [1].
        memory_fraction: attainable share of the bandwidth [1].
        exponent: p ≥ 1, how far arithmetic and traffic hide each other [1].
        sequence_s: a, for each sequence [s].
        sequence_head_s: h, for each head of each sequence [s].
        idle_sequences: that would fit beside without taking longer [1].
        min_heads: that a tile works on at least [1].

    Raises:
        ValueError: the exponent is below one.
    """
    flop, traffic = latent_decode_work(
        np.add(batch, idle_sequences),
        context,
        n_heads=np.maximum(n_heads, min_heads),
        d_latent=d_latent,
        d_rope=d_rope,
        cache_bytes=cache_bytes,
    )
    compute = flop / np.multiply(peak_flop_per_s, compute_fraction)
    memory = traffic / np.multiply(hbm_bytes_per_s, memory_fraction)
    each = np.add(sequence_s, np.multiply(n_heads, sequence_head_s))
    core = smooth_roofline_s(compute, memory, exponent=exponent)
    return np.asarray(core + np.asarray(floor_s) + np.multiply(batch, each))


def latent_prefill_s(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    n_heads: ArrayLike,
    d_nope: ArrayLike = 128.0,
    d_rope: ArrayLike = 64.0,
    d_value: ArrayLike = 128.0,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    compute_fraction: ArrayLike,
    ramp_tokens: ArrayLike = 0.0,
    memory_fraction: ArrayLike = np.inf,
    sequence_head_s: ArrayLike = 0.0,
) -> FloatArray:
    """t = floor + c (1 + ramp_tokens / span) + traffic + batch heads h of one layer, causal [s].

    Args, broadcast together; those not here are as in `latent_decode_s`:
        tokens: new tokens of each prompt [1].
        past_tokens: of each, in the cache [1].
        d_nope: part of a query and a key without position [1].
        d_value: of a value [1].
        ramp_tokens: span at which the arithmetic has half its speed [1].
        memory_fraction: attainable share of the bandwidth; infinite leaves traffic out [1].
    """
    flop, traffic = latent_prefill_work(
        batch, tokens, past_tokens, n_heads=n_heads, d_nope=d_nope, d_rope=d_rope, d_value=d_value
    )
    span = np.maximum(np.add(tokens, past_tokens), 1.0)
    compute = flop / np.multiply(peak_flop_per_s, compute_fraction)
    memory = traffic / np.multiply(hbm_bytes_per_s, memory_fraction)
    each = np.multiply(batch, n_heads) * np.asarray(sequence_head_s)
    return np.asarray(compute * (1.0 + np.asarray(ramp_tokens) / span) + memory + each + floor_s)


def latent_decode_work(
    batch: ArrayLike,
    context: ArrayLike,
    *,
    n_heads: ArrayLike,
    d_latent: ArrayLike = 512.0,
    d_rope: ArrayLike = 64.0,
    cache_bytes: ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """FLOP of scores over latent and rotated parts and of sums over the latent; bytes read."""
    seen = np.multiply(np.asarray(batch, dtype=float), context)
    held = np.add(d_latent, d_rope)
    flop = 2.0 * seen * np.multiply(n_heads, held + d_latent)
    return flop, seen * held * np.asarray(cache_bytes)


def latent_prefill_work(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    n_heads: ArrayLike,
    d_nope: ArrayLike = 128.0,
    d_rope: ArrayLike = 64.0,
    d_value: ArrayLike = 128.0,
) -> tuple[FloatArray, FloatArray]:
    """FLOP under the causal mask with whole heads, and bytes of queries, keys, values, outputs."""
    batch, tokens = np.asarray(batch, dtype=float), np.asarray(tokens, dtype=float)
    query, value = np.add(d_nope, d_rope), np.asarray(d_value)
    pairs = batch * tokens * (np.asarray(past_tokens) + tokens / 2.0)
    flop = 2.0 * pairs * np.multiply(n_heads, query + value)
    held = batch * (2.0 * tokens + np.asarray(past_tokens)) * np.multiply(n_heads, query + value)
    return flop, 2.0 * held
