"""Type hints of functions and records, and what kinds of values they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, get_origin, get_type_hints


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
    kind = Any if kind is _Anything else kind
    return kind_of(kind.__value__) if type(kind).__name__ == "TypeAliasType" else kind


def is_mapping(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Mapping)


def is_array(kind: object) -> bool:
    return getattr(kind, "__name__", "") == "ndarray"


def is_list(kind: object) -> bool:
    is_iterable = isinstance(kind, type) and issubclass(kind, Iterable)
    return is_iterable and not is_mapping(kind) and kind is not str and not is_array(kind)
