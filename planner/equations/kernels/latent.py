"""Time of latent attention's kernel alone, without the projections around it.

Decode reads one latent and one rotated key a cached token, for all heads, and works on them as
if they were keys and values (the up-projections are absorbed into queries and outputs):

    t = floor + (cᵖ + mᵖ)^(1/p) + batch (a + heads b)
    c = 2 (batch + idle) context heads (2 latent + rotated) / (share × peak)
    m = (batch + idle) context (latent + rotated) bytes / (share × bandwidth)

`idle` stands for the devices that few long sequences leave idle: splits of one sequence are not
as good as sequences. Prefill widens latents to keys and values first, and is causal:

    t = floor + batch heads tokens (tokens + ramp) (d_key + d_value) / (share × peak)
        + traffic / (share × bandwidth) + batch heads b

Peaks are those of 16 bits whatever the cache: a share above one says that the kernel computes in
fewer. Source: fitted to the tables of [AIConfigurator2026], `docs/decisions/0008-experts.md`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.roofline import smooth_roofline_s

ACTIVATION_BYTES = 2.0
"""Queries, keys, values and outputs stay in 16 bits [B]."""


def latent_decode_s(
    batch: ArrayLike,
    context: ArrayLike,
    *,
    n_heads: ArrayLike,
    d_latent: ArrayLike = 512,
    d_rope: ArrayLike = 64,
    cache_bytes: ArrayLike,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    sequence_s: ArrayLike = 0.0,
    sequence_head_s: ArrayLike = 0.0,
    idle_sequences: ArrayLike = 0.0,
    min_heads: ArrayLike = 1.0,
    exponent: float = 3.0,
) -> FloatArray:
    """Time of one layer's attention over cached latents, one new token a sequence [s].

    Args, broadcast together:
        batch: sequences [1].
        context: cached tokens that each attends to [1].
        n_heads: heads of this device [1].
        d_latent: numbers of a cached latent [1].
        d_rope: numbers of a cached rotated key [1].
        cache_bytes: of one cached number [B].
        peak_flop_per_s: datasheet peak of 16 bits [FLOP/s].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        floor_s: least time [s].
        compute_fraction: attainable share of the peak; above one in fewer bits [1].
        memory_fraction: attainable share of the bandwidth [1].
        sequence_s: a, for each sequence [s].
        sequence_head_s: b, for each sequence and head [s].
        idle_sequences: sequences that would fit beside without taking longer [1].
        min_heads: heads that a tile works on at least [1].
        exponent: p ≥ 1 [1].

    Raises:
        ValueError: the exponent is below one.
    """
    pairs = np.add(batch, idle_sequences) * context
    heads = np.maximum(n_heads, min_heads)
    flop, traffic = latent_decode_work(
        pairs, 1.0, n_heads=heads, d_latent=d_latent, d_rope=d_rope, cache_bytes=cache_bytes
    )
    compute = flop / np.multiply(peak_flop_per_s, compute_fraction)
    memory = traffic / np.multiply(hbm_bytes_per_s, memory_fraction)
    each = np.add(sequence_s, np.multiply(n_heads, sequence_head_s))
    return np.asarray(
        floor_s + smooth_roofline_s(compute, memory, exponent=exponent) + np.multiply(batch, each)
    )


def latent_decode_work(
    batch: ArrayLike,
    context: ArrayLike,
    *,
    n_heads: ArrayLike,
    d_latent: ArrayLike = 512,
    d_rope: ArrayLike = 64,
    cache_bytes: ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """(FLOP, bytes): scores on latent and rotated key, sums of latents; the cache is read once.

    >>> latent_decode_work(1, 1, n_heads=128, cache_bytes=2)
    (array(278528.), array(1152.))
    """
    pairs = np.multiply(np.asarray(batch, dtype=float), context)
    d_score = np.add(d_latent, d_rope)
    flop = 2.0 * pairs * n_heads * np.add(d_score, d_latent)
    return np.asarray(flop), np.asarray(pairs * d_score * cache_bytes)


def latent_prefill_s(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    n_heads: ArrayLike,
    d_key: ArrayLike = 192,
    d_value: ArrayLike = 128,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    ramp_tokens: ArrayLike = 0.0,
    sequence_head_s: ArrayLike = 0.0,
) -> FloatArray:
    """Time of one layer's causal attention over widened keys and values [s].

    Args, broadcast together:
        batch: sequences [1].
        tokens: new tokens of each [1].
        past_tokens: tokens before those, whose keys are there [1].
        n_heads: heads of this device [1].
        d_key: numbers of a key, rotated part included [1].
        d_value: numbers of a value [1].
        peak_flop_per_s: datasheet peak of 16 bits [FLOP/s].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        floor_s: least time [s].
        compute_fraction: attainable share of the peak [1].
        memory_fraction: attainable share of the bandwidth [1].
        ramp_tokens: keys that each token costs beyond its own [1].
        sequence_head_s: for each sequence and head [s].
    """
    where = {"n_heads": n_heads, "d_key": d_key, "d_value": d_value}
    flop, traffic = latent_prefill_work(batch, tokens, past_tokens, **where)
    rows = np.multiply(batch, np.asarray(tokens, dtype=float)) * n_heads
    flop = flop + rows * ramp_tokens * np.add(d_key, d_value)
    return np.asarray(
        floor_s
        + flop / np.multiply(peak_flop_per_s, compute_fraction)
        + traffic / np.multiply(hbm_bytes_per_s, memory_fraction)
        + np.multiply(batch, n_heads) * np.asarray(sequence_head_s, dtype=float)
    )


def latent_prefill_work(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    n_heads: ArrayLike,
    d_key: ArrayLike = 192,
    d_value: ArrayLike = 128,
) -> tuple[FloatArray, FloatArray]:
    """(FLOP, bytes): the causal half, a multiply-add counts two; queries, keys, values, outputs.

    >>> latent_prefill_work(1, 2, n_heads=1, d_key=3, d_value=1)
    (array(16.), array(32.))
    """
    new = np.asarray(tokens, dtype=float)
    rows = np.multiply(batch, new) * n_heads
    width = np.add(d_key, d_value)
    flop = rows * (new + 2.0 * np.asarray(past_tokens, dtype=float)) * width
    kept = np.multiply(batch, np.asarray(past_tokens, dtype=float)) * n_heads
    return np.asarray(flop), np.asarray((2.0 * rows + kept) * width * ACTIVATION_BYTES)
