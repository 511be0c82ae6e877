"""Array types that the equations share, and divisors."""

from functools import cache
from math import isqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyInts: TypeAlias = NDArray[np.integer[Any]]
"""Whole numbers of any width: of a large program narrow ones take an eighth of the memory."""


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending.

    Source: trial division; each above √n is n over one below.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return tuple(sorted({*small, *(number // n for n in small)}))
