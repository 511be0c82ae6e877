"""Places that tokens take in a cache of blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray


def paged_tokens(n_tokens: ArrayLike, *, n_block_tokens: ArrayLike) -> FloatArray:
    """Places for tokens in the whole blocks that sequences take [tokens].

    Args, broadcast together:
        n_tokens: cached tokens of each sequence.
        n_block_tokens: tokens of a block, at least 1.

    Source: [Kwon2023] §4.1, [Lecture] §4.2.
    """
    return np.multiply(np.ceil(np.divide(n_tokens, n_block_tokens)), n_block_tokens)
