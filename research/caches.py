"""What papers say of caches: how large they are, the context that fits, what paging wastes.

Source: [Pope2022] §2 and Table 1; blocks and what they waste, [Kwon2023].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray


def kv_cache_bytes(
    n_sequences: ArrayLike,
    n_tokens: ArrayLike,
    *,
    n_layers: ArrayLike,
    n_kv_heads: ArrayLike,
    d_head: int,
    bytes_per_number: float,
) -> FloatArray:
    """Keys and values of sequences of equal length [bytes].

    Args, broadcast together:
        n_sequences: sequences held [1].
        n_tokens: cached tokens of each [1].
        n_layers: layers held [1].
        n_kv_heads: key-value heads held; may be a fraction of a head [1].
        d_head: width of a head.
        bytes_per_number: bytes of one number of the cache's format.

    Source: [Pope2022] §2: 2 (keys and values) × heads × width.
    """
    per_token = np.multiply(n_kv_heads, 2.0 * d_head * bytes_per_number)
    return np.multiply(np.multiply(n_sequences, n_tokens), np.multiply(n_layers, per_token))


def longest_context_tokens(
    kv_budget_bytes: ArrayLike, n_sequences: ArrayLike, bytes_per_token: ArrayLike
) -> FloatArray:
    """Context that a KV budget holds for each of a batch of sequences [tokens].

    Source: [Pope2022] Table 1, with 30 % of the memory as the budget.
    """
    return np.divide(kv_budget_bytes, np.multiply(n_sequences, bytes_per_token))


def unfilled_share(held_tokens: ArrayLike, n_tokens: ArrayLike) -> float:
    """Share of the places held for a batch of sequences that none of their tokens fill [1].

    Held are `paged_tokens` with blocks, or the longest sequence allowed where each sequence has
    one contiguous reservation. Gaps between reservations are not in it.

    Args, broadcast together:
        held_tokens: places that each sequence holds, at least its tokens.
        n_tokens: cached tokens of each sequence.

    Raises:
        ValueError: a sequence holds fewer places than it has tokens, or nothing is held.

    Source: internal fragmentation in [Kwon2023] §3.1, [Lecture] §4.2.
    """
    held, filled = np.broadcast_arrays(
        np.asarray(held_tokens, dtype=float), np.asarray(n_tokens, dtype=float)
    )
    if np.any(held < filled) or not held.sum() > 0:
        raise ValueError("sequences hold at least one place, and one for each of their tokens")
    return float(1.0 - filled.sum() / held.sum())
