"""All-reduces of tensor parallelism in two dimensions, on grids of integers.

The product into the inner dimension is reduced over the rows of the grid, the one back over
its columns. On a square grid of squarely many nodes this is Eqs. 39-44.

Source: [Erdil2025] §3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.equations.economics.collectives import ALL_REDUCE, collective_s
from planner.equations.economics.degrees import Degrees
from planner.estimates.economics.degrees import Grid, grids
from planner.specs.economics.records import DecodePass

Widths = tuple[float, float]


def attention_widths(decode: DecodePass) -> Widths:
    """Numbers a token that the two products around attention put out [1]."""
    return decode.model.d_qkv, decode.model.d_model


def ffn_widths(decode: DecodePass) -> Widths:
    """Numbers a token that the two products of its experts put out [1]."""
    model = decode.model
    inner = model.n_active_experts * model.n_ffn_in * model.d_ff
    return inner, model.n_active_experts * model.n_ffn_out * model.d_model


def attention_grids(decode: DecodePass, n_attention: int) -> tuple[Grid, ...]:
    """Grids for the projections of attention on t ranks; columns cut the heads."""
    model, per_node = decode.model, decode.device.n_devices_per_node
    return grids(n_attention, per_node, d_rows=model.d_model, d_columns=model.n_heads)


def ffn_grids(decode: DecodePass, n_ffn: int) -> tuple[Grid, ...]:
    """Grids for an expert on T/e ranks; columns cut its width."""
    model, per_node = decode.model, decode.device.n_devices_per_node
    return grids(n_ffn, per_node, d_rows=model.d_model, d_columns=n_ffn)


def attention_grid_s(decode: DecodePass, degrees: Degrees, ranks: IntArray) -> FloatArray:
    """All-reduces around attention on the best grid of t ranks each (R, b); inf without [s]."""
    found = [attention_grids(decode, int(t)) for t in ranks]
    return _best(decode, degrees.n_tokens, found, ranks, attention_widths(decode))


def ffn_grid_s(decode: DecodePass, degrees: Degrees, experts: IntArray) -> FloatArray:
    """All-reduces around experts, rows by (T, e) as `experts` (2, R); inf without a grid [s]."""
    found = [ffn_grids(decode, int(t // e)) for t, e in experts.T]
    return _best(decode, degrees.n_tokens, found, experts[0], ffn_widths(decode))


def _best(
    decode: DecodePass,
    n_tokens: FloatArray,
    found: Sequence[tuple[Grid, ...]],
    n_group: IntArray,
    widths: Widths,
) -> FloatArray:
    """The fastest grid of every row (R, b); inf for rows without one [s]."""
    best = np.full((len(found), len(n_tokens)), np.inf)
    row = np.repeat(np.arange(len(found)), [len(some) for some in found])
    if row.size == 0:
        return best
    sides = np.array([(g.rows, g.columns, g.node_rows, g.node_columns) for g in chain(*found)])
    times = grid_s(decode, sides.T[:, :, None], n_tokens, n_group[row, None], widths)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    best[row[first]] = np.minimum.reduceat(times, first)
    return best


def grid_s(
    decode: DecodePass,
    sides: IntArray,
    n_tokens: FloatArray,
    n_group: IntArray,
    widths: Widths,
) -> FloatArray:
    """Both all-reduces of every layer on grids of ranks (G, b) [s].

    Args:
        sides: rows, columns, and the nodes of each (4, G, 1).
        n_tokens: of a micro-batch (b,).
        n_group: devices that share the tokens' numbers (G, 1): of the stage for experts, of
            attention for its projections.
    """
    rows, columns, node_rows, node_columns = sides
    per_number = n_tokens * (decode.model.activation_bytes / n_group)
    within = widths[0] * rows * per_number, (rows, node_rows)
    across = widths[1] * columns * per_number, (columns, node_columns)
    times = [collective_s(ALL_REDUCE, *message, decode.device) for message in (within, across)]
    return np.asarray(decode.model.n_layers * (times[0] + times[1]))
