"""Recurrences as the fields of a config describe them: what they keep, and their parameters."""

from dataclasses import replace

from planner.specs.huggingface.fields import Fields
from planner.specs.records.mixers import Recurrence

_STATE_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}


def delta(f: Fields) -> Recurrence:
    n_key_heads, n_value_heads = f.count("n_key_heads"), f.count("n_value_heads")
    if f.is_sound("n_key_heads", "n_value_heads") and n_value_heads % n_key_heads:
        f.fault("n_value_heads", f"is not a multiple of the key heads, {n_key_heads}")
    return _delta_net(
        f, n_key_heads, n_value_heads, f.count("d_linear_key"), f.count("d_linear_value")
    )


def _delta_net(
    f: Fields, n_key_heads: int, n_value_heads: int, d_key: int, d_value: int
) -> Recurrence:
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


def kda(f: Fields) -> Recurrence:
    """Kimi delta attention: a delta net with a decay a channel, made by narrow projections.

    Source: transformers, `KimiLinearDeltaAttention`.
    """
    n_heads, d_head = f.count("n_linear_heads"), f.count("d_linear_head")
    net, d_inner = _delta_net(f, n_heads, n_heads, d_head, d_head), n_heads * d_head
    return replace(
        net,
        kind="kda",
        # queries, keys, values; a write strength a head; what decays and gates are made of
        n_input_columns=3 * d_inner + n_heads + 2 * d_head,
        # further: decays and gates of these, a time step a channel instead of a head
        n_other_params=net.n_other_params + 2 * d_head * d_inner + d_inner - n_heads,
    )


def short_convolution(f: Fields) -> Recurrence:
    """The gated convolution of LFM2: it keeps the last inputs, and no other state.

    Source: transformers, `Lfm2ShortConv`.
    """
    d_model, n_taps = f.count("d_model"), f.count("n_conv_taps")
    return Recurrence(
        kind="convolution",
        n_heads=d_model,
        d_key=0,
        d_value=1,
        n_groups=d_model,
        n_conv_taps=n_taps,
        d_conv=d_model,
        n_input_columns=3 * d_model,
        n_output_rows=d_model,
        n_other_params=(n_taps + 5 * f.flag("has_conv_bias", default=False)) * d_model,
    )


def rwkv6(f: Fields) -> Recurrence:
    """The time mixing of RWKV-6, with what its channel mixing keeps of the token before.

    Source: [Eagle and Finch], arXiv 2404.05892; `modeling_rwkv6.py` of RWKV/v6-Finch-7B-HF.
    """
    d_model, d_head = f.count("d_model"), f.count("d_linear_head", 64)
    d_inner = f.count("d_linear", d_model)
    n_heads = max(1, d_inner // d_head)
    f.dismiss("n_heads")  # of whatever else a config says, there are as many as fit
    if f.is_sound("d_linear", "d_linear_head") and n_heads * d_head != d_inner:
        f.fault("d_linear_head", f"does not divide the width of time mixing, {d_inner}")
    d_mix, d_decay = (64, 128) if d_model == 4096 else (32, 64)  # of projections that make these
    mixes = 6 * d_model + 2 * 5 * d_mix * d_model
    decays = d_inner + d_decay * (d_model + d_inner) + d_inner
    return Recurrence(
        kind="rwkv6",
        n_heads=n_heads,
        d_key=d_head,
        d_value=d_head,
        n_groups=n_heads,
        n_conv_taps=2,  # the token before, and this one
        d_conv=2 * d_model,
        n_input_columns=4 * d_inner,  # receptances, keys, values, gates
        n_output_rows=d_inner,
        n_other_params=mixes + decays + 2 * d_inner,
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
        n_heads=d_inner,  # each channel has a state of its own, and is cut over devices
        d_key=n_rows,
        d_value=1,
        n_groups=1,
        n_conv_taps=n_taps,
        d_conv=d_inner,
        n_input_columns=2 * d_inner,
        n_output_rows=d_inner,
        n_other_params=n_taps * d_inner + steps + d_inner * n_rows + d_inner + biases + norms,
        state_bytes_per_number=_state_bytes(f),
    )


def mamba2(f: Fields, n_heads: int, d_head: int, *, is_normed: bool = True) -> Recurrence:
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
        n_other_params=n_taps * d_conv + 3 * n_heads + d_inner * is_normed + biases,
        state_bytes_per_number=_state_bytes(f),
    )


def mamba2_beside(f: Fields, *, is_normed: bool = True) -> Recurrence:
    """Mamba 2 in models with attention too, whose heads may be left to the width of the state."""
    d_usual = f.count("expansion", 2) * f.count("d_model")
    d_inner = f.optional("d_state_inner") or d_usual
    n_heads = f.count("n_state_heads")
    if f.raw("d_state_head") in (None, "auto"):
        return mamba2(f, n_heads, max(1, d_inner // n_heads), is_normed=is_normed)
    return mamba2(f, n_heads, f.count("d_state_head"), is_normed=is_normed)


def _state_bytes(f: Fields) -> float:
    """States are kept in single precision unless the config says otherwise."""
    word = f.text("state_dtype", "float32")
    if word not in _STATE_BYTES:
        f.fault("state_dtype", "is no type of states", f"known are {', '.join(_STATE_BYTES)}")
    return _STATE_BYTES.get(word, 4.0)
