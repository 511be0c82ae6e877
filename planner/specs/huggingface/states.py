"""Recurrences as the fields of a config describe them: what they keep, and their parameters."""

from __future__ import annotations

from planner.specs.huggingface.fields import Fields
from planner.specs.records.mixers import Recurrence

_STATE_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}


def delta(f: Fields) -> Recurrence:
    n_key_heads, n_value_heads = f.count("n_key_heads"), f.count("n_value_heads")
    if f.is_sound("n_key_heads", "n_value_heads") and n_value_heads % n_key_heads:
        f.fault("n_value_heads", f"is not a multiple of the key heads, {n_key_heads}")
    d_key, d_value = f.count("d_linear_key"), f.count("d_linear_value")
    d_keys, d_values = n_key_heads * d_key, n_value_heads * d_value
    n_taps, d_conv = f.count("n_conv_taps"), 2 * d_keys + d_values
    return Recurrence(
        kind="delta",
        n_heads=n_value_heads,
        d_key=d_key,
        d_value=d_value,
        n_groups=n_key_heads,
        n_conv_taps=n_taps,
        d_conv=d_conv,
        # queries, keys, values and gates; a decay and a write strength a head
        n_input_columns=2 * d_keys + 2 * d_values + 2 * n_value_heads,
        n_output_rows=d_values,
        n_other_params=n_taps * d_conv + 2 * n_value_heads + d_value,
        state_bytes_per_number=_state_bytes(f),
    )


def lightning(f: Fields) -> Recurrence:
    n_heads = f.count("n_heads")
    d_head = f.count("d_head", max(1, f.count("d_model") // n_heads))
    d_inner = n_heads * d_head
    return Recurrence(
        kind="lightning",
        n_heads=n_heads,
        d_key=d_head,
        d_value=d_head,
        n_groups=n_heads,
        n_conv_taps=0,
        d_conv=0,
        n_input_columns=4 * d_inner,  # queries, keys, values, gates
        n_output_rows=d_inner,
        n_other_params=d_inner,
    )


def mamba1(f: Fields, *, has_inner_norms: bool) -> Recurrence:
    """Mamba; its time steps and its input and output matrices are made of the channels."""
    d_model = f.count("d_model")
    d_inner = f.count("expansion", 2) * d_model
    n_rows, n_taps = f.count("n_state_rows", 16), f.count("n_conv_taps", 4)
    rank = -(-d_model // 16) if f.raw("n_time_rank") in (None, "auto") else f.count("n_time_rank")
    has_conv_bias = f.flag("has_conv_bias", default=True)
    has_bias = f.flag("has_projection_bias", default=False)
    steps = d_inner * (rank + 2 * n_rows) + rank * d_inner + d_inner
    biases = (d_inner if has_conv_bias else 0) + (2 * d_inner + d_model if has_bias else 0)
    norms = rank + 2 * n_rows if has_inner_norms else 0
    return Recurrence(
        kind="mamba1",
        n_heads=1,
        d_key=n_rows,
        d_value=d_inner,
        n_groups=1,
        n_conv_taps=n_taps,
        d_conv=d_inner,
        n_input_columns=2 * d_inner,
        n_output_rows=d_inner,
        n_other_params=n_taps * d_inner + steps + d_inner * n_rows + d_inner + biases + norms,
        state_bytes_per_number=_state_bytes(f),
    )


def mamba2(f: Fields, n_heads: int, d_head: int) -> Recurrence:
    """Mamba 2; groups of heads share what writes to and reads from their states."""
    d_model, d_inner = f.count("d_model"), n_heads * d_head
    n_rows, n_taps = f.count("n_state_rows"), f.count("n_conv_taps", 4)
    n_groups = f.count("n_state_groups", 1)
    if f.is_sound("n_state_groups", "n_state_heads") and n_heads % n_groups:
        f.fault("n_state_groups", f"does not divide the heads of the state, {n_heads}")
    d_conv = d_inner + 2 * n_groups * n_rows
    n_columns = d_inner + d_conv + n_heads
    biases = d_conv if f.flag("has_conv_bias", default=True) else 0
    if f.flag("has_projection_bias", default=False):
        biases += n_columns + d_model
    return Recurrence(
        kind="mamba2",
        n_heads=n_heads,
        d_key=n_rows,
        d_value=d_head,
        n_groups=n_groups,
        n_conv_taps=n_taps,
        d_conv=d_conv,
        n_input_columns=n_columns,
        n_output_rows=d_inner,
        # taps; a time step, a decay and a skip a head; the gated norm
        n_other_params=n_taps * d_conv + 3 * n_heads + d_inner + biases,
        state_bytes_per_number=_state_bytes(f),
    )


def _state_bytes(f: Fields) -> float:
    """States are kept in single precision unless the config says otherwise."""
    word = f.text("state_dtype", "float32")
    if word not in _STATE_BYTES:
        f.fault("state_dtype", "is no type of states", f"known are {', '.join(_STATE_BYTES)}")
    return _STATE_BYTES.get(word, 4.0)
