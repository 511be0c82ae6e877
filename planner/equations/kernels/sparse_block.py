"""Time of a whole layer's sparse latent attention: as `latent_block`, with an indexer.

Small heads score every cached token, the best are chosen, and attention reads those alone:

    index = batch context max(2 heads width / peak, (width + 4 B) / bandwidth) / share
    selection = context select_s

Attention then meets min(context, selected) tokens. Prefill is timed as engines run it: launched
by the host, so that short prompts take the host's time and long ones the device's, with little
between: t = (host⁴ + device⁴)^(1/4).

The indexer computes in 8 bits. Source: [DeepSeek2025] for the algebra, tables of
[AIConfigurator2026] for constants, `docs/decisions/0012-experts-and-blocks.md`.
"""

from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.kernels import latent_block
from planner.equations.kernels.families import floats
from planner.equations.roofline import smooth_roofline_s

BYTES_OF_A_SCALE = 4.0
"""Scale of one cached key of the indexer [B]."""

HOST_EXPONENT = 4.0
"""How sharply the host's time gives way to the device's: chosen, not fitted [1]."""


class Indexer(TypedDict):
    """What chooses the tokens that attention reads, and what that takes.

    n_index_heads: heads that score, on every device [1].
    d_index: numbers of their queries and of the one key a token [1].
    n_selected: tokens that attention then reads at most [1].
    index_flop_per_s: datasheet peak of 8 bits [FLOP/s].
    index_fraction: share of peak or bandwidth that scoring attains [1].
    select_s: for each token, in prefill each pair, that the best are chosen from [s].
    """

    n_index_heads: ArrayLike
    d_index: ArrayLike
    n_selected: ArrayLike
    index_flop_per_s: ArrayLike
    index_fraction: ArrayLike
    select_s: ArrayLike


class SparseDecodeBlock(latent_block.DecodeBlock, Indexer):
    """All that a sparse block of decode takes beside its sequences."""


class SparseBlock(latent_block.Block, Indexer):
    """All that a sparse block takes in both phases."""


def sparse_block_decode_s(
    batch: ArrayLike, context: ArrayLike, **block: Unpack[SparseDecodeBlock]
) -> FloatArray:
    """Time of one layer's sparse attention with its projections, one new token a sequence [s].

    Args, broadcast together:
        batch: sequences of one device [1].
        context: tokens that each attends to [1].
        block: see `latent_block.Block`, `latent_block.Core` and `Indexer`.
    """
    score = np.maximum(
        _scoring_s(block),
        np.add(block["d_index"], BYTES_OF_A_SCALE) / np.asarray(block["hbm_bytes_per_s"]),
    )
    pairs = np.multiply(np.asarray(batch, dtype=float), context)
    scored = pairs * score / np.asarray(block["index_fraction"])
    products = latent_block.products_s(batch, block, n_more=_indexer(block))
    core = latent_block.core_s(batch, np.minimum(context, block["n_selected"]), block)
    return np.asarray(products + core + scored + np.multiply(context, block["select_s"]))


def sparse_block_prefill_s(
    batch: ArrayLike,
    tokens: ArrayLike,
    past_tokens: ArrayLike = 0.0,
    *,
    host_s: ArrayLike,
    floor_s: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    min_heads: ArrayLike = 1.0,
    **block: Unpack[SparseBlock],
) -> FloatArray:
    """Time of one layer's sparse causal attention with its projections [s].

    Args, broadcast together; those not here are as in `latent_block.latent_block_prefill_s`:
        host_s: time of the host's launches of one layer [s].
        min_heads: heads that a tile works on at least [1].
        block: see `latent_block.Block` and `Indexer`.
    """
    new = np.multiply(batch, np.asarray(tokens, dtype=float))
    moved = latent_block.moved_bytes(new, block)
    pairs, chosen = causal_pairs(tokens, past_tokens, n_selected=block["n_selected"])
    heads = np.maximum(block["n_heads"], min_heads)
    width = np.add(
        np.multiply(2.0, block.get("d_latent", latent_block.D_LATENT)),
        block.get("d_rope", latent_block.D_ROPE),
    )
    met = 2.0 * heads * width * np.multiply(batch, chosen)
    pair_s = _scoring_s(block) / np.asarray(block["index_fraction"])
    pair_s = pair_s + np.asarray(block["select_s"])
    device = (
        np.asarray(floor_s)
        + latent_block.products_s(new, block, n_more=_indexer(block))
        + moved / np.multiply(block["hbm_bytes_per_s"], memory_fraction)
        + met / np.multiply(block["peak_flop_per_s"], compute_fraction)
        + np.multiply(batch, pairs) * pair_s
    )
    return smooth_roofline_s(host_s, device, exponent=HOST_EXPONENT)


def _scoring_s(indexer: Indexer) -> FloatArray:
    """Of one pair, at the datasheet's peak [s]."""
    flop = 2.0 * np.multiply(indexer["n_index_heads"], indexer["d_index"])
    return np.asarray(flop / np.asarray(indexer["index_flop_per_s"]))


def _indexer(block: SparseDecodeBlock | SparseBlock) -> FloatArray:
    return indexer_weights(
        block["d_model"],
        block["d_q_latent"],
        n_heads=block["n_index_heads"],
        width=block["d_index"],
    )


def causal_pairs(
    tokens: ArrayLike, past_tokens: ArrayLike, *, n_selected: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Pairs of a new token and one up to itself: all of them, and those that are selected [1].

    >>> causal_pairs(4, 0, n_selected=2)
    (array(10.), array(7.))
    """
    new, past, most = floats(tokens, past_tokens, n_selected)
    whole = np.clip(most - past, 0.0, new)  # tokens that see all before them
    pairs = new * (past + (new + 1.0) / 2.0)
    chosen = whole * (past + (whole + 1.0) / 2.0) + (new - whole) * most
    return np.asarray(pairs), np.asarray(chosen)


def indexer_weights(
    d_model: ArrayLike, d_q_latent: ArrayLike, *, n_heads: ArrayLike, width: ArrayLike
) -> FloatArray:
    """Weights of the indexer's queries, its one key a token, and its heads' shares [1].

    >>> float(indexer_weights(7168, 1536, n_heads=64, width=128))
    13959168.0
    """
    queries = np.multiply(d_q_latent, np.multiply(n_heads, width))
    return np.asarray(queries + np.multiply(d_model, np.add(width, n_heads)), dtype=float)
