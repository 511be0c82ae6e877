"""Array types that the equations share, records of arrays, and divisors."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache
from math import isqrt
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyInts: TypeAlias = NDArray[np.integer[Any]]
"""Whole numbers of any width: of a large program narrow ones take an eighth of the memory."""

_R = TypeVar("_R")


def each_array(record: _R, change: Callable[[NDArray[Any]], NDArray[Any]]) -> _R:
    """A record with each array that is a field of it changed; all else as it is."""
    return replace(record, **{name: change(getattr(record, name)) for name in _arrays_of(record)})  # type: ignore[type-var]


def joined_arrays(parts: Sequence[_R], **others: Any) -> _R:  # noqa: ANN401 of any field
    """Records with the entries of each array one after the other; all else as of the first.

    Args:
        others: fields that are said otherwise.
    """
    first, *_ = parts
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _arrays_of(first)
    }
    return replace(first, **{**arrays, **others})  # type: ignore[type-var]


def _arrays_of(record: Any) -> list[str]:  # noqa: ANN401 a dataclass
    names = (field.name for field in fields(record))
    return [name for name in names if isinstance(getattr(record, name), np.ndarray)]


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending.

    Source: trial division; each above √n is n over one below.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return tuple(sorted({*small, *(number // n for n in small)}))
