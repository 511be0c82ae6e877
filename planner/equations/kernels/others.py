"""How the rest is fitted: small kernels, sampling, dispatch and combine."""

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray

BYTES_OF_A_SCORE = 4.0
"""Engines widen the scores to fp32 before they choose [B]."""


def sampling_s(
    batch: ArrayLike,
    vocab: ArrayLike,
    *,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    n_passes: ArrayLike,
    memory_fraction: ArrayLike,
) -> FloatArray:
    """floor + passes × batch × vocabulary × 4 B / (share × bandwidth) [s].

    Args, broadcast together:
        batch: sequences [1].
        vocab: scores of each [1].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        floor_s: launches of the kernels that choose [s].
        n_passes: times that the scores are read or written: widen, divide by the temperature,
            normalise, limit, draw [1].
        memory_fraction: attainable share of the bandwidth [1].

    Source: `docs/decisions/0010-kernels.md`.
    """
    _, once = sampling_work(batch, vocab)
    traffic = np.multiply(n_passes, once) / np.multiply(hbm_bytes_per_s, memory_fraction)
    return np.add(traffic, floor_s)


def sampling_work(batch: ArrayLike, vocab: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """No FLOP that count, and the bytes of one pass."""
    scores = np.multiply(np.asarray(batch, dtype=float), vocab)
    return np.zeros_like(scores), scores * BYTES_OF_A_SCORE


def elementwise_s(
    n_bytes: ArrayLike,
    n_kernels: ArrayLike = 1.0,
    *,
    hbm_bytes_per_s: ArrayLike,
    kernel_s: ArrayLike,
    memory_fraction: ArrayLike,
) -> FloatArray:
    """Time of small kernels one after the other: n kernel_s + bytes / (share × bandwidth) [s].

    Args, broadcast together:
        n_bytes: read and written by all of them together [B].
        n_kernels: how many [1].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        kernel_s: least time of one, its launch inside a graph [s].
        memory_fraction: attainable share of the bandwidth [1].

    Source: `docs/decisions/0010-kernels.md`.
    """
    traffic = np.divide(n_bytes, np.multiply(hbm_bytes_per_s, memory_fraction))
    return np.asarray(np.multiply(n_kernels, kernel_s) + traffic)


def elementwise_work(
    n_bytes: ArrayLike, n_kernels: ArrayLike = 1.0
) -> tuple[FloatArray, FloatArray]:
    """No FLOP that count, and the bytes."""
    return np.zeros(np.broadcast_shapes(np.shape(n_bytes), np.shape(n_kernels))), np.asarray(
        n_bytes, dtype=float
    )


MODES = ("low-latency", "normal")


def exchange_s(
    tokens: ArrayLike,
    *,
    d_model: ArrayLike,
    n_active: ArrayLike,
    bytes_per_number: ArrayLike,
    n_nodes: ArrayLike,
    mode: str = "low-latency",
    n_nodes_hit: ArrayLike | None = None,
    floor_s: ArrayLike,
    scale_up_bytes_per_s: ArrayLike,
    scale_out_bytes_per_s: ArrayLike,
) -> FloatArray:
    """Time of one dispatch or one combine [s].

    `low-latency` sends each token once for each of its experts, straight to the device. A share
    1/nodes of that stays inside the node, the rest leaves it:

        t = floor + bytes × ((1/N) / B_up + (1 − 1/N) / B_out)

    `normal` sends a token once to each node that holds any of its experts, and spreads it there;
    both links work at once and hinder each other a little:

        t = floor + tokens × d × bytes × √((experts / B_up)² + (other nodes hit / B_out)²)

    Source: [DeepEP2025] for both programs and their measurements; forms in
    `docs/decisions/0010-kernels.md`.

    Args, broadcast together:
        tokens: of one device [1].
        d_model: numbers of a token [1].
        n_active: experts of a token that other devices hold [1].
        bytes_per_number: as sent, scales included; dispatch and combine differ [B].
        n_nodes: nodes that hold the experts [1].
        mode: `low-latency` or `normal`.
        n_nodes_hit: nodes that hold any expert of a token; None draws experts evenly [1].
        floor_s: least time of the exchange [s].
        scale_up_bytes_per_s: of one device inside its node, one way, as attained [B/s].
        scale_out_bytes_per_s: of one device out of its node, one way, as attained [B/s].

    Raises:
        ValueError: there is no such mode.
    """
    if mode not in MODES:
        raise ValueError(f"an exchange is {' or '.join(MODES)}, not {mode}")
    nodes = np.asarray(n_nodes, dtype=float)
    once = np.multiply(tokens, d_model) * np.asarray(bytes_per_number, dtype=float)
    if mode == "low-latency":
        inside = 1.0 / nodes
        out = np.divide(1.0 - inside, scale_out_bytes_per_s)
        per_byte = np.divide(inside, scale_up_bytes_per_s) + out
        return np.asarray(np.add(once * np.asarray(n_active) * per_byte, floor_s))
    hit = expected_nodes_hit(n_active, nodes) if n_nodes_hit is None else np.asarray(n_nodes_hit)
    others = hit * (1.0 - 1.0 / nodes)
    up = np.divide(n_active, scale_up_bytes_per_s)
    out = others / np.asarray(scale_out_bytes_per_s)
    return np.asarray(np.add(once * np.hypot(up, out), floor_s))


def expected_nodes_hit(n_active: ArrayLike, n_nodes: ArrayLike) -> FloatArray:
    """Nodes that hold any of the experts of a token, drawn evenly: N (1 − (1 − 1/N)ᵏ) [1].

    >>> float(expected_nodes_hit(1, 4)), float(expected_nodes_hit(8, 1))
    (1.0, 1.0)
    """
    nodes = np.asarray(n_nodes, dtype=float)
    return np.asarray(nodes * (1.0 - (1.0 - 1.0 / nodes) ** np.asarray(n_active, dtype=float)))


def exchange_work(
    tokens: ArrayLike,
    *,
    d_model: ArrayLike,
    n_active: ArrayLike,
    bytes_per_number: ArrayLike,
    n_nodes: ArrayLike = 1.0,
    n_nodes_hit: ArrayLike = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """No FLOP, and no traffic that the memory's bandwidth would bound."""
    shape = np.broadcast_shapes(
        *map(np.shape, (tokens, d_model, n_active, bytes_per_number, n_nodes, n_nodes_hit))
    )
    return np.zeros(shape), np.zeros(shape)
