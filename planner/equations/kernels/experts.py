"""Time of an engine's fused kernel of experts: sort, both products, activation, and summing.

    t = floor + routing v / (v + 256) + (cᵖ + wᵖ)^(1/p) + x + s (d + f) + g (L − hit)

v are the rows that the kernel walks through: every token once for each of its experts, wherever
those live, unless a dispatch has left only the rows that stay here. c is the arithmetic on the
rows of experts held here, each expert's rows filled up to whole tiles; w reads the weights of
the experts that any token hits; x moves activations, of rows that stay and of rows that are
walked through; s (d + f) is the walk of one tile along both products, which no parallelism
shortens. Expert columns are lengthened by a constant for the price of narrow slices. A kernel that
looks at the experts held here one by one spends g on each that no token hits: L of them are held.

The weights read, and with them the time of a decode step, follow from how many distinct experts
are hit: `expected_experts_hit` says it for even routing.

Source: fitted to the tables of [AIConfigurator2026], `docs/decisions/0012-experts-and-blocks.md`.
"""

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.kernels.families import floats
from planner.equations.roofline import smooth_roofline_s

ROWS_OF_ROUTING = 256.0
"""Walked rows at which half of the routing's time is spent: chosen, not fitted [1]."""

OUTPUT_BYTES = 2.0
"""Activations leave a product in 16 bits [B]."""


def fused_experts_s(
    tokens: ArrayLike,
    *,
    n_experts: ArrayLike,
    n_experts_local: ArrayLike,
    n_active: ArrayLike,
    d_model: ArrayLike,
    d_expert: ArrayLike,
    weight_bytes: ArrayLike,
    input_bytes: ArrayLike,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    routing_s: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    row_traffic: ArrayLike,
    walk_traffic: ArrayLike,
    column_s: ArrayLike,
    narrow_columns: ArrayLike,
    tile_rows: ArrayLike,
    exponent: float,
    n_up: ArrayLike = 2.0,
    rows: ArrayLike | None = None,
    walked_rows: ArrayLike | None = None,
    n_hit: ArrayLike | None = None,
    idle_expert_s: ArrayLike = 0.0,
) -> FloatArray:
    """Time of all experts of one layer on one device [s].

    Args, broadcast together:
        tokens: routed together, by all devices that share the experts [1].
        n_experts: experts of the layer [1].
        n_experts_local: of those, held by this device [1].
        n_active: experts of a token [1].
        d_model: numbers of a token [1].
        d_expert: columns of one expert, as sharded [1].
        weight_bytes: of one weight, scales included [B].
        input_bytes: of one input number, scales included [B].
        peak_flop_per_s: datasheet peak of the product's format [FLOP/s].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        floor_s: launches, and whatever else no work explains [s].
        routing_s: more of that where many rows are sorted [s].
        compute_fraction: attainable share of the peak [1].
        memory_fraction: attainable share of the bandwidth [1].
        row_traffic: passes over the activations of rows that stay here [1].
        walk_traffic: passes over as many activations of all rows walked through [1].
        column_s: walk of one tile, for each column of `d_model` and `d_expert` [s].
        narrow_columns: columns that each expert costs beyond its own [1].
        tile_rows: rows of one tile [1].
        exponent: p ≥ 1, how far arithmetic and weights hide each other [1].
        n_up: products before the activation: two with a gate, one without [1].
        rows: that stay here; None spreads them evenly [1].
        walked_rows: that the kernel walks through; None walks through all [1].
        n_hit: distinct experts of this device that are hit; None for even routing [1].
        idle_expert_s: of each expert held here that no token hits [s].

    Raises:
        ValueError: the exponent is below one.
    """
    model, columns, ways = floats(d_model, d_expert, n_up)
    everywhere = np.multiply(tokens, np.asarray(n_active, dtype=float))
    where = {"n_experts": n_experts, "n_experts_local": n_experts_local, "n_active": n_active}
    stay, hit = _reached(tokens, rows, n_hit, **where)
    walked = everywhere if walked_rows is None else np.asarray(walked_rows, dtype=float)
    weights = (ways + 1.0) * model * (columns + np.asarray(narrow_columns))
    flop = 2.0 * filled_rows(stay, hit, tile_rows=tile_rows) * weights
    compute = flop / np.multiply(peak_flop_per_s, compute_fraction)
    memory = (
        hit * weights * np.asarray(weight_bytes) / np.multiply(hbm_bytes_per_s, memory_fraction)
    )
    through = np.add(input_bytes, OUTPUT_BYTES)
    each = model * through + columns * (OUTPUT_BYTES * ways + through)
    moved = (np.multiply(row_traffic, stay) + np.multiply(walk_traffic, walked)) * each
    return np.asarray(
        np.asarray(floor_s)
        + np.multiply(routing_s, walked / (walked + ROWS_OF_ROUTING))
        + smooth_roofline_s(compute, memory, exponent=exponent)
        + moved / np.asarray(hbm_bytes_per_s)
        + np.multiply(column_s, model + columns)
        + np.multiply(idle_expert_s, np.subtract(n_experts_local, hit))
    )


def local_rows(
    tokens: ArrayLike, *, n_experts: ArrayLike, n_experts_local: ArrayLike, n_active: ArrayLike
) -> FloatArray:
    """Rows that stay on a device under even routing: tokens × active × local / experts [1].

    >>> float(local_rows(64, n_experts=256, n_experts_local=32, n_active=8))
    64.0
    """
    share = np.divide(n_experts_local, n_experts)
    return np.asarray(np.multiply(tokens, n_active) * share)


def expected_experts_hit(
    tokens: ArrayLike, *, n_experts: ArrayLike, n_experts_local: ArrayLike, n_active: ArrayLike
) -> FloatArray:
    """Distinct local experts that any token hits, drawn evenly: L (1 − (1 − k/E)ᵗ) [1].

    >>> float(expected_experts_hit(1, n_experts=8, n_experts_local=8, n_active=2))
    2.0
    """
    hits = 1.0 - np.power(1.0 - np.divide(n_active, n_experts), tokens)
    return np.asarray(np.multiply(n_experts_local, hits))


def _reached(
    tokens: ArrayLike, rows: ArrayLike | None, n_hit: ArrayLike | None, **where: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Rows that stay here and local experts that are hit: as said, or by even routing."""
    stay = local_rows(tokens, **where) if rows is None else np.asarray(rows, dtype=float)
    hit = expected_experts_hit(tokens, **where) if n_hit is None else np.asarray(n_hit, dtype=float)
    return stay, hit


def filled_rows(rows: ArrayLike, n_hit: ArrayLike, *, tile_rows: ArrayLike) -> FloatArray:
    """Rows that tiles work on: each expert's last tile is half empty on average [1].

    An expert with few rows still fills one tile.

    >>> float(filled_rows(64, 32, tile_rows=16)), float(filled_rows(640, 10, tile_rows=16))
    (512.0, 720.0)
    """
    full = np.multiply(n_hit, np.asarray(tile_rows, dtype=float))
    return np.asarray(np.maximum(full, np.add(rows, full / 2.0)))


def fused_experts_work(
    tokens: ArrayLike,
    *,
    n_experts: ArrayLike,
    n_experts_local: ArrayLike,
    n_active: ArrayLike,
    d_model: ArrayLike,
    d_expert: ArrayLike,
    weight_bytes: ArrayLike,
    input_bytes: ArrayLike = 2.0,
    n_up: ArrayLike = 2.0,
    rows: ArrayLike | None = None,
    walked_rows: ArrayLike | None = None,
    n_hit: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    """(FLOP, bytes) that no kernel avoids: the rows that stay, and the weights that they hit."""
    where = {"n_experts": n_experts, "n_experts_local": n_experts_local, "n_active": n_active}
    stay, hit = _reached(tokens, rows, n_hit, **where)
    weights = np.add(n_up, 1.0) * np.multiply(d_model, np.asarray(d_expert, dtype=float))
    return np.asarray(2.0 * stay * weights), np.asarray(hit * weights * np.asarray(weight_bytes))
