"""How the mixing of tokens is fitted: attention, latent attention, linear attention."""

from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.roofline import smooth_roofline_s


class Heads(TypedDict):
    """Heads of one device, as arrays that broadcast.

    n_heads: query heads [1].
    n_kv_heads: key and value heads [1].
    d_head: size of a head [1].
    """

    n_heads: ArrayLike
    n_kv_heads: ArrayLike
    d_head: ArrayLike


def decode_attention_s(
    batch: ArrayLike,
    context: ArrayLike,
    *,
    cache_bytes: ArrayLike,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    memory_fraction: ArrayLike,
    compute_fraction: ArrayLike = np.inf,
    exponent: float = 1.0,
    sequence_head_s: ArrayLike = 0.0,
    **heads: Unpack[Heads],
) -> FloatArray:
    """Time of one layer's attention for one new token of each sequence [s].

    Decode reads the cache of each sequence once; prefill works on half of a square, that of the
    causal mask. Where a window limits what is seen, the caller passes what is seen as the context.

    t = floor + (cᵖ + bᵖ)^(1/p) + (batch × KV heads) × sequence_head_s.

    Args, broadcast together:
        batch: sequences of one device [1].
        context: tokens that each attends to [1].
        cache_bytes: of one number of the cache [B].
        peak_flop_per_s: datasheet peak of the format of the arithmetic [FLOP/s].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        floor_s: launch and whatever else no work explains [s].
        memory_fraction: attainable share of the bandwidth [1].
        compute_fraction: attainable share of the peak; infinite leaves arithmetic out [1].
        exponent: p ≥ 1, how far arithmetic and traffic hide each other [1].
        sequence_head_s: for each sequence and KV head [s].
        heads: see `Heads`.

    Raises:
        ValueError: the exponent is below one.
    """
    flop, traffic = decode_attention_work(batch, context, cache_bytes=cache_bytes, **heads)
    compute = flop / np.multiply(peak_flop_per_s, compute_fraction)
    memory = traffic / np.multiply(hbm_bytes_per_s, memory_fraction)
    each = np.multiply(batch, heads["n_kv_heads"]) * np.asarray(sequence_head_s)
    return np.asarray(np.add(smooth_roofline_s(compute, memory, exponent=exponent) + each, floor_s))


def prefill_attention_s(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    cache_bytes: ArrayLike = 2.0,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike = np.inf,
    ramp_tokens: ArrayLike = 0.0,
    **heads: Unpack[Heads],
) -> FloatArray:
    """Time of one layer's attention for the tokens of prompts, causal [s].

    t = floor + c (1 + ramp_tokens / span) + b, span = tokens + past tokens.

    Args, broadcast together; those not here are as in `decode_attention_s`:
        batch: prompts of one device [1].
        tokens: new tokens of each [1].
        past_tokens: of each, whose keys and values are in the cache [1].
        memory_fraction: attainable share of the bandwidth; infinite leaves traffic out [1].
        ramp_tokens: span at which the arithmetic has half its speed [1].
    """
    flop, traffic = prefill_attention_work(
        batch, tokens, past_tokens, cache_bytes=cache_bytes, **heads
    )
    span = np.maximum(np.add(tokens, past_tokens), 1.0)
    ramp = 1.0 + np.asarray(ramp_tokens) / span
    compute = flop / np.multiply(peak_flop_per_s, compute_fraction)
    memory = traffic / np.multiply(hbm_bytes_per_s, memory_fraction)
    return np.add(compute * ramp + memory, floor_s)


def decode_attention_work(
    batch: ArrayLike,
    context: ArrayLike,
    *,
    cache_bytes: ArrayLike,
    **heads: Unpack[Heads],
) -> tuple[FloatArray, FloatArray]:
    """FLOP of scores and sums, and bytes of the cache that is read."""
    seen = np.multiply(np.asarray(batch, dtype=float), context) * np.asarray(heads["d_head"])
    traffic = 2.0 * seen * np.multiply(heads["n_kv_heads"], cache_bytes)
    return 4.0 * seen * heads["n_heads"], traffic


def prefill_attention_work(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    cache_bytes: ArrayLike = 2.0,
    **heads: Unpack[Heads],
) -> tuple[FloatArray, FloatArray]:
    """FLOP under the causal mask, and bytes of queries, outputs, keys and values."""
    batch, tokens = np.asarray(batch, dtype=float), np.asarray(tokens, dtype=float)
    pairs = batch * tokens * (np.asarray(past_tokens) + tokens / 2.0)
    width = np.multiply(heads["n_heads"], heads["d_head"])
    flop = 4.0 * pairs * width
    ends = 4.0 * batch * tokens * width  # queries, outputs: two bytes each
    seen = batch * (tokens + past_tokens) * np.multiply(heads["n_kv_heads"], heads["d_head"])
    return flop, ends + 2.0 * seen * np.asarray(cache_bytes)
