"""Numbers as the closed forms take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray


def floats(*values: ArrayLike) -> tuple[FloatArray, ...]:
    """The same numbers as arrays of floats, each of its own shape."""
    return tuple(np.asarray(one, dtype=np.float64) for one in values)
