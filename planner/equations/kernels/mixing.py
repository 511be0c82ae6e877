"""How the mixing of tokens is fitted: attention, latent attention, linear attention."""

from __future__ import annotations

from planner.equations.kernels.attention import (
    decode_attention_s,
    decode_attention_work,
    prefill_attention_s,
    prefill_attention_work,
)
from planner.equations.kernels.families import COMPUTE, FLOOR, MEMORY, SMOOTH, Family, Parameter
from planner.equations.kernels.latent import (
    latent_decode_s,
    latent_decode_work,
    latent_prefill_s,
    latent_prefill_work,
)
from planner.equations.kernels.recurrence import (
    recurrence_decode_s,
    recurrence_decode_work,
    recurrence_prefill_s,
    recurrence_prefill_work,
)

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
        forms={
            "traffic": _ADDITIVE,
            "ramp and traffic": (*_ADDITIVE, "ramp_tokens"),
        },
        spare=("memory_fraction",),
        shape=_HEADS,
    ),
    Family(
        name="latent_decode",
        title="latent attention, decode",
        function=latent_decode_s,
        work=latent_decode_work,
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
        function=latent_prefill_s,
        work=latent_prefill_work,
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
        function=recurrence_decode_s,
        work=recurrence_decode_work,
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
        function=recurrence_prefill_s,
        work=recurrence_prefill_work,
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
