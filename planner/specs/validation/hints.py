"""Type hints of functions and records, what kinds of values they ask for, and records of others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

_T = TypeVar("_T")


LATER = "later"
"""Metadata of a field that answers of an earlier version lack: these are read with its default."""


class Computed(property):
    """A property that answers have beside the fields of its record."""


if TYPE_CHECKING:
    computed = property  # which type checkers know by its name
else:
    computed = Computed


def from_fields(make: Callable[..., _T], said: object, **more: Any) -> _T:  # noqa: ANN401
    """What a record or a function is of the fields that another record has by the same names.

    Args:
        said: the other record.
        more: further arguments, which win.
    """
    names = [
        name for name in signature_of(make).parameters if name not in more and hasattr(said, name)
    ]
    return make(**{name: getattr(said, name) for name in names}, **more)


def of_kind(kind: type[_T], records: Iterable[object]) -> list[_T]:
    """Those of some records that are of one kind."""
    return [record for record in records if isinstance(record, kind)]


signature_of = cache(inspect.signature)


@cache
def hints_of(function_or_record: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Type hints by name; what is imported for types only may be anything."""
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(function_or_record, localns=unknown, include_extras=True)
        except NameError as error:
            unknown[str(error.name)] = _Anything


class _AnythingMeta(type):
    def __getattr__(cls, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything

    def __getitem__(cls, item: object) -> Any:  # noqa: ANN401
        return Any


class _Anything(metaclass=_AnythingMeta):
    """Stands for a module or a type that is not there at run time."""


@cache
def kind_of(hint: Any) -> Any:  # noqa: ANN401
    """The type of a hint, whatever is inside; of an alias, as numpy 2.5 has them, its value."""
    kind: Any = get_origin(hint) or hint
    kind = Any if kind in (_Anything, Unpack) else kind
    return kind_of(kind.__value__) if type(kind).__name__ == "TypeAliasType" else kind


def is_mapping(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Mapping)


def is_array(kind: object) -> bool:
    return getattr(kind, "__name__", "") == "ndarray"


def is_list(kind: object) -> bool:
    is_iterable = isinstance(kind, type) and issubclass(kind, Iterable)
    return is_iterable and not is_mapping(kind) and kind is not str and not is_array(kind)


def unboxed(value: Any) -> Any:  # noqa: ANN401
    """A number of numpy as Python's."""
    is_scalar = hasattr(value, "dtype") and getattr(value, "shape", None) == ()
    return value.item() if is_scalar and hasattr(value, "item") else value


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)


def _is_read_again(value: object) -> bool:
    """Whether a value has items, again and again."""
    is_other = isinstance(value, str | bytes | bytearray | Mapping)
    return isinstance(value, Iterable) and not is_other and iter(value) is not value


def looks_like(value: object, hint: Any) -> bool:  # noqa: ANN401
    """Whether a value is of the kind of a hint, whatever is inside."""
    kind = kind_of(hint)
    if kind in (Union, UnionType):
        return any(looks_like(value, inner) for inner in get_args(hint))
    if kind is Any:
        return True
    if kind in (int, float):
        return _is_number(unboxed(value), kind)
    if is_array(kind):
        return getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u", "f")
    if is_list(kind):
        return _is_read_again(value)
    if kind is Callable:
        return callable(value)
    return isinstance(value, str | int if kind is Literal else kind)
