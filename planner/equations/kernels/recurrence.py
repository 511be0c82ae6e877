"""Time of linear attention: a gated delta net's scan and the short convolution before it.

Decode reads and writes each sequence's state, and nothing else of weight:

    t = floor + batch (2 heads d_key d_value state_bytes + inputs and outputs) / (share × bandwidth)

Prefill walks a sequence chunk by chunk, so that one sequence takes a time that no parallelism
shortens, and many sequences the time of their arithmetic:

    t = floor + (sᵖ + cᵖ)^(1/p) + batch heads b + convolution,  p = 4
    s = tokens × token_s,  c = 8 batch tokens heads d_key d_value / (share × peak)

Eight FLOP for each number of the state: it is read, decayed, corrected and written, a nominal
count that the share makes good. Peaks are those of 16 bits.

Source: fitted to the tables of [AIConfigurator2026], `docs/decisions/0012-experts-and-blocks.md`.
"""

from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.kernels.families import floats
from planner.equations.roofline import smooth_roofline_s

ACTIVATION_BYTES = 2.0
"""Inputs and outputs of the scan, and those that the convolution keeps [B]."""

FLOP_OF_A_STATE_NUMBER = 8.0
"""Nominal work of one token on one number of the state [FLOP]."""

EXPONENT = 4.0
"""How sharply a single sequence's walk gives way to arithmetic: chosen, not fitted [1]."""


class State(TypedDict):
    """What a layer keeps of a sequence on this device, as arrays that broadcast.

    n_heads: heads of the state [1].
    d_key: rows of a head's state [1].
    d_value: columns of a head's state [1].
    d_conv: channels of the convolution [1].
    """

    n_heads: ArrayLike
    d_key: ArrayLike
    d_value: ArrayLike
    d_conv: ArrayLike


def recurrence_decode_s(
    batch: ArrayLike,
    *,
    n_conv_taps: ArrayLike = 4.0,
    state_bytes: ArrayLike = 4.0,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    memory_fraction: ArrayLike,
    **state: Unpack[State],
) -> FloatArray:
    """Time of one new token a sequence in one layer, projections not included [s].

    Args, broadcast together:
        batch: sequences [1].
        n_conv_taps: taps of it; 0 without [1].
        state_bytes: of one number of the state [B].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        floor_s: both kernels' least time [s].
        memory_fraction: attainable share of the bandwidth [1].
        state: see `State`.
    """
    _, traffic = recurrence_decode_work(
        batch, n_conv_taps=n_conv_taps, state_bytes=state_bytes, **state
    )
    return np.add(floor_s, traffic / np.multiply(hbm_bytes_per_s, memory_fraction))


def recurrence_decode_work(
    batch: ArrayLike,
    *,
    n_conv_taps: ArrayLike = 4.0,
    state_bytes: ArrayLike = 4.0,
    **state: Unpack[State],
) -> tuple[FloatArray, FloatArray]:
    """(FLOP, bytes): the state and the convolution's inputs are read and written once.

    >>> recurrence_decode_work(1, n_heads=1, d_key=2, d_value=3, d_conv=7, n_conv_taps=0)
    (array(48.), array(88.))
    """
    sequences, heads, rows, columns = floats(
        batch, state["n_heads"], state["d_key"], state["d_value"]
    )
    numbers = sequences * heads * rows * columns
    taps = np.maximum(np.subtract(n_conv_taps, 1.0), 0.0)
    io = np.multiply(state["d_conv"], 1.0 + taps) + heads * columns
    traffic = 2.0 * numbers * np.asarray(state_bytes) + 2.0 * sequences * io * ACTIVATION_BYTES
    return np.asarray(FLOP_OF_A_STATE_NUMBER * numbers), np.asarray(traffic)


def recurrence_prefill_s(
    batch: ArrayLike,
    tokens: ArrayLike,
    *,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    token_s: ArrayLike,
    compute_fraction: ArrayLike,
    conv_fraction: ArrayLike,
    sequence_head_s: ArrayLike = 0.0,
    **state: Unpack[State],
) -> FloatArray:
    """Time of `tokens` new tokens a sequence in one layer, projections not included [s].

    Args, broadcast together:
        batch: sequences [1].
        tokens: new tokens of each [1].
        peak_flop_per_s: datasheet peak of 16 bits [FLOP/s].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        floor_s: all kernels' least time [s].
        token_s: one token of one sequence on its own [s].
        compute_fraction: attainable share of the peak, of nominal FLOP [1].
        conv_fraction: attainable share of the bandwidth of the convolution [1].
        sequence_head_s: for each sequence and head: states start and end [s].
        state: see `State`.
    """
    flop, traffic = recurrence_prefill_work(batch, tokens, **state)
    compute = flop / np.multiply(peak_flop_per_s, compute_fraction)
    walk = np.multiply(tokens, token_s)
    return np.asarray(
        np.asarray(floor_s)
        + smooth_roofline_s(walk, compute, exponent=EXPONENT)
        + np.multiply(batch, state["n_heads"]) * np.asarray(sequence_head_s, dtype=float)
        + traffic / np.multiply(hbm_bytes_per_s, conv_fraction)
    )


def recurrence_prefill_work(
    batch: ArrayLike, tokens: ArrayLike, **state: Unpack[State]
) -> tuple[FloatArray, FloatArray]:
    """(nominal FLOP, bytes): the convolution reads and writes its channels once."""
    new = np.multiply(np.asarray(batch, dtype=float), tokens)
    heads, rows, columns = floats(state["n_heads"], state["d_key"], state["d_value"])
    flop = FLOP_OF_A_STATE_NUMBER * new * heads * rows * columns
    return flop, 2.0 * new * np.asarray(state["d_conv"], dtype=float) * ACTIVATION_BYTES
