"""How the mixing of tokens is fitted: attention, latent attention, linear attention."""

from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.kernels import latent, recurrence
from planner.equations.kernels.families import COMPUTE, FLOOR, MEMORY, SMOOTH, Family, Parameter
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


_HEADS = ("n_heads", "n_kv_heads", "d_head")
_EXPONENT = Parameter(name="exponent", start=3.0, low=1.0, high=20.0)
_SEQUENCE_HEAD = Parameter(name="sequence_head_s", start=1e-8, low=0.0, high=1e-6)
_IDLE = Parameter(name="idle_sequences", start=4.0, low=0.0, high=256.0)
_RAMP = Parameter(name="ramp_tokens", start=300.0, low=0.0, high=4096.0)
_ADDITIVE = ("floor_s", "compute_fraction", "memory_fraction")  # short prompts are traffic
_STATE = ("n_heads", "d_key", "d_value", "d_conv")

MIXERS = (
    Family(
        name="decode_attention",
        title="attention, decode",
        function=decode_attention_s,
        work=decode_attention_work,
        dimensions=("batch", "context", *_HEADS, "cache_bytes"),
        parameters=(FLOOR, COMPUTE, MEMORY, _EXPONENT, _SEQUENCE_HEAD),
        forms={"smooth": SMOOTH, "by sequence and head": (*SMOOTH, "sequence_head_s")},
        shape=_HEADS,
    ),
    Family(
        name="prefill_attention",
        title="attention, prefill",
        function=prefill_attention_s,
        work=prefill_attention_work,
        dimensions=("batch", "tokens", *_HEADS),
        optional=("past_tokens", "cache_bytes"),
        parameters=(FLOOR, COMPUTE, MEMORY, _RAMP),
        forms={"traffic": _ADDITIVE, "ramp and traffic": (*_ADDITIVE, "ramp_tokens")},
        spare=("memory_fraction",),
        shape=_HEADS,
    ),
    Family(
        name="latent_decode",
        title="latent attention, decode",
        function=latent.latent_decode_s,
        work=latent.latent_decode_work,
        dimensions=("batch", "context", "n_heads", "cache_bytes"),
        optional=("d_latent", "d_rope"),
        parameters=(FLOOR, COMPUTE, MEMORY, _EXPONENT, _SEQUENCE_HEAD, _IDLE),
        forms={
            "smooth": SMOOTH,
            "idle": (*SMOOTH, "idle_sequences"),
            "idle, by sequence and head": (*SMOOTH, "idle_sequences", "sequence_head_s"),
        },
        shape=("n_heads",),
    ),
    Family(
        name="latent_prefill",
        title="latent attention, prefill",
        function=latent.latent_prefill_s,
        work=latent.latent_prefill_work,
        dimensions=("batch", "tokens", "n_heads"),
        optional=("past_tokens",),
        parameters=(FLOOR, COMPUTE, MEMORY, _RAMP, _SEQUENCE_HEAD),
        forms={
            "traffic": _ADDITIVE,
            "ramp and traffic": (*_ADDITIVE, "ramp_tokens"),
            "by sequence and head": (*_ADDITIVE, "sequence_head_s"),
        },
        shape=("n_heads",),
    ),
    Family(
        name="recurrence_decode",
        title="linear attention, decode",
        function=recurrence.recurrence_decode_s,
        work=recurrence.recurrence_decode_work,
        dimensions=("batch", *_STATE),
        optional=("n_conv_taps", "state_bytes"),
        parameters=(FLOOR, MEMORY),
        forms={"additive": ("floor_s", "memory_fraction")},
        shape=_STATE,
        rates=("hbm_bytes_per_s",),
    ),
    Family(
        name="recurrence_prefill",
        title="linear attention, prefill",
        function=recurrence.recurrence_prefill_s,
        work=recurrence.recurrence_prefill_work,
        dimensions=("batch", "tokens", *_STATE),
        parameters=(
            FLOOR,
            Parameter(name="token_s", start=1e-8, low=0.0, high=1e-5),
            COMPUTE,
            Parameter(name="conv_fraction", start=0.5, low=0.02, high=1.0),
            _SEQUENCE_HEAD,
        ),
        forms={
            "walk": ("floor_s", "token_s", "compute_fraction", "conv_fraction"),
            "walk, by sequence and head": (
                "floor_s",
                "token_s",
                "compute_fraction",
                "conv_fraction",
                "sequence_head_s",
            ),
        },
        shape=_STATE,
    ),
)
