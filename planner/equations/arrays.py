"""Array types that the equations share."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


def floats(*values: ArrayLike) -> tuple[FloatArray, ...]:
    """The same numbers as arrays of floats, each of its own shape."""
    return tuple(np.asarray(one, dtype=np.float64) for one in values)
