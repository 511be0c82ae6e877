"""Values of the library held against their type hints, and against what their names say.

A caller may pass anything, and a record takes whatever it is given. What conforms is handed on
with the numbers of numpy as Python's; what does not is a problem that names the argument, and
the field in it. Names say units (`hbm_bytes`, `tpot_s`), and units have ranges.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
import types
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from planner.errors import Problem
from planner.units import RANGES

MOST_COUNT = 10**9
MOST_PARAMETERS = 10**15
MOST_ITEMS = 2_000_000
LARGEST_SEED = 2**31 - 1  # solvers hold it in 32 bits

_DIMENSIONS = (
    ("bytes_per_s", "B/s"),
    ("flop_per_s", "FLOP/s"),
    ("tokens_per_s", "token/s"),
    ("requests_per_s", "request/s"),
    ("usd_per_hour", "USD/h"),
    ("usd_per_token", "USD/token"),
    ("_bytes", "B"),
    ("_s", "s"),
    ("_w", "W"),
)
"""The dimension of a number, by how its name ends."""

_MAY_BE_ZERO = frozenset(
    (
        *("seed", "layer", "order", "present", "n_groups", "n_other_params", "n_norm_params"),
        *("n_shared_experts", "n_dense_layers", "n_conv_taps", "d_conv", "d_shared"),
        *("d_rope", "d_nope", "reserve_bytes", "rates_tokens_per_s", "matrix_tokens_per_s"),
        *("from_coordinator_tokens_per_s", "to_coordinator_tokens_per_s"),
        *("quality_loss_fraction", "bandwidth_fraction", "hit_fraction", "n_waves", "priority"),
    )
)
"""Counts, amounts and fractions that may be 0; so may times, and numbers without a unit."""

_MUST_TAKE_TIME = frozenset({"tpot_s", "ttft_s", "time_limit_s"})
_BELOW_ONE = frozenset({"loss", "gap", "sort_price", "acceptance", "confidence", "hit_fraction"})
_ANSWERS = ("results", "predictions", "surveys")
"""Ends of the names of modules whose records are answers: what they count may be anything."""

_OPAQUE = ("kernels", "networks", "deployments")
"""Ends of the names of modules whose records only the planner makes: they are not looked into."""


Known = dict[tuple[int, type], object]
"""Records that conform, by identity, which each keeps as long as it is in here."""


class Spot(NamedTuple):
    """Where a value stands.

    Args:
        where: the argument, or the option that says the same.
        name: of the argument, or of the field that holds the value.
        key: the way from the argument to it: `groups[0].spine_latency_s`.
    """

    where: str
    name: str
    key: str = ""

    def field(self, name: str) -> Spot:
        return Spot(self.where, name, f"{self.key}.{name}" if self.key else name)

    def item(self, index: object) -> Spot:
        return Spot(self.where, self.name, f"{self.key}[{index}]")


class Conforming:
    """Holds values against their hints, and keeps what is wrong with each.

    Of `misfits` the type is another; of `faults` the number is none that there can be.

    Args:
        options: of fields of records, `Targets.tpot_s`, the option that says the same.
        makers: of records, what makes one of what people have in hand.
        known: records that conform, by what they are and what was asked of them; others are added.
    """

    def __init__(
        self, *, options: Mapping[str, str], makers: Mapping[str, str], known: Known | None = None
    ) -> None:
        self.misfits: list[Problem] = []
        self.faults: list[Problem] = []
        self._options, self._makers = options, makers
        self._known: Known = {} if known is None else known

    def conform(self, value: object, hint: Any, spot: Spot) -> Any:  # noqa: ANN401
        """The value as it is to be used; as it was where it does not conform."""
        value = _unboxed(value)
        if hint is Any or hint is _Anything:
            return value
        kind = _kind(hint)
        if kind in (Union, types.UnionType):
            return self._any_of(value, get_args(hint), spot)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return self._record(value, hint, spot)
        if not _looks_like(value, hint):
            return self._wrong(value, f"is no {_called(hint)}", spot, _remedy(hint, spot))
        if kind in (int, float):
            return self._number(value, kind, spot)
        if _is_mapping(kind):
            return self._mapping(value, get_args(hint), spot)
        if _is_list(kind):
            return self._list(value, get_args(hint), spot)
        return value

    def _any_of(self, value: object, hints: tuple[Any, ...], spot: Spot) -> Any:  # noqa: ANN401
        for hint in hints:
            if _looks_like(value, hint):
                return self.conform(value, hint, spot)
        others = [hint for hint in hints if hint is not type(None)]
        if len(others) == 1:
            return self.conform(value, others[0], spot)
        *some, last = [_called(hint) for hint in others]
        makers = [m for hint in others if (m := self._makers.get(getattr(hint, "__name__", "")))]
        remedy = f"{' or '.join(f'`{maker}`' for maker in makers)} makes one" if makers else ""
        return self._wrong(value, f"is no {', '.join(some)} or {last}", spot, remedy)

    def _record(self, value: object, hint: type, spot: Spot) -> object:
        if not isinstance(value, hint):
            maker = self._makers.get(hint.__name__)
            remedy = f"`{maker}` makes one of a name" if maker else f"write `{hint.__name__}(...)`"
            return self._wrong(value, f"is no {hint.__name__}", spot, remedy)
        if hint.__module__.endswith(_OPAQUE) or (id(value), hint) in self._known:
            return value
        faults, n_wrong = list(self.faults), len(self.faults) + len(self.misfits)
        changed = self._changed(value, hint, spot)
        if not changed and n_wrong == len(self.faults) + len(self.misfits):
            self._known[id(value), hint] = value
        if hint.__module__.endswith(_ANSWERS):
            self.faults = faults
        return dataclasses.replace(value, **changed) if changed else value  # type: ignore[type-var]

    def _changed(self, value: object, hint: type, spot: Spot) -> dict[str, Any]:
        """Fields of a record that are to be others than they are."""
        changed = {}
        for name, inner in hints_of(hint).items():
            option = self._options.get(f"{hint.__name__}.{name}")
            before = getattr(value, name)
            after = self.conform(before, inner, Spot(option, name) if option else spot.field(name))
            if after is not before:
                changed[name] = after
        return changed

    def _number(self, value: Any, kind: type, spot: Spot) -> object:  # noqa: ANN401
        try:
            float(value)
        except OverflowError:
            return self._wrong(value, "has hundreds of digits, too many to compute with", spot)
        number: Any = value if type(value) is kind else kind(value)
        fault = _count_fault(spot.name, number) if kind is int else _fault(spot.name, number)
        if fault:
            self.faults.append(_problem(value, fault, spot))
            return value
        return number

    def _mapping(self, value: Any, hints: tuple[Any, ...], spot: Spot) -> object:  # noqa: ANN401
        found = {key: self._entry(key, inner, hints, spot) for key, inner in value.items()}
        is_same = all(found[key] is inner for key, inner in value.items())
        return value if is_same else found

    def _entry(self, key: object, inner: object, hints: tuple[Any, ...], spot: Spot) -> object:
        if not hints:
            return inner
        if not _looks_like(key, hints[0]):
            self._wrong(key, f"is no {_called(hints[0])}", spot)
        return self.conform(inner, hints[1], spot.item(str(key)[:40]))

    def _list(self, value: Any, hints: tuple[Any, ...], spot: Spot) -> object:  # noqa: ANN401
        if isinstance(value, Sized) and len(value) > MOST_ITEMS:
            return self._wrong(value, f"has more than {MOST_ITEMS:,} entries", spot)
        if not hints:
            return value  # of entries that may be anything there may be a million
        items = list(value)
        each = [hints[0]] * len(items)
        if len(hints) > 1 and hints[-1] is not Ellipsis:
            each = list(hints)
            if len(items) != len(hints):
                return self._wrong(value, f"has {len(items)} entries, not {len(hints)}", spot)
        found = [
            self.conform(item, hint, spot.item(i))
            for i, (item, hint) in enumerate(zip(items, each, strict=True))
        ]
        is_same = all(new is old for new, old in zip(found, items, strict=True))
        return value if is_same else tuple(found)

    def _wrong(self, value: object, fact: str, spot: Spot, remedy: str = "") -> Any:  # noqa: ANN401
        self.misfits.append(_problem(value, fact, spot, remedy))
        return value


@cache
def hints_of(function_or_record: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Type hints by name; what is imported for types only may be anything."""
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(function_or_record, localns=unknown)
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


def _problem(value: object, fact: str, spot: Spot, remedy: str = "") -> Problem:
    return Problem(where=spot.where, key=spot.key, value=_shown(value), fact=fact, remedy=remedy)


def _unboxed(value: Any) -> Any:  # noqa: ANN401
    """A number of numpy as Python's."""
    is_scalar = hasattr(value, "dtype") and getattr(value, "shape", None) == ()
    return value.item() if is_scalar and hasattr(value, "item") else value


def _looks_like(value: object, hint: Any) -> bool:  # noqa: ANN401
    """Whether a value is of the kind of a hint, whatever is inside."""
    kind = _kind(hint)
    if kind in (Union, types.UnionType):
        return any(_looks_like(value, one) for one in get_args(hint))
    if kind is Any or kind is _Anything:
        return True
    if kind is Literal:
        return isinstance(value, str | int)
    if kind in (int, float):
        wanted = Integral if kind is int else Real
        return isinstance(value, wanted) and not isinstance(value, bool)
    if _is_array(kind):
        return getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u", "f")
    if _is_mapping(kind):
        return isinstance(value, Mapping)
    if _is_list(kind):
        return _is_readable_list(value)
    if kind is Callable:
        return callable(value)
    return isinstance(value, kind)


def _is_readable_list(value: object) -> bool:
    """Whether it has entries in a row that can be read again and again."""
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        return False
    return iter(value) is not value


@cache  # a few hints, held against thousands of values
def _kind(hint: Any) -> Any:  # noqa: ANN401
    """The type of a hint, whatever is inside; of an alias, as numpy 2.5 has them, its value."""
    kind = get_origin(hint) or hint
    return _kind(kind.__value__) if type(kind).__name__ == "TypeAliasType" else kind


@cache
def _is_array(kind: object) -> bool:
    return getattr(kind, "__name__", "") == "ndarray"


@cache
def _is_mapping(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Mapping)


@cache
def _is_list(kind: object) -> bool:
    is_iterable = isinstance(kind, type) and issubclass(kind, Iterable)
    return is_iterable and not _is_mapping(kind) and kind is not str and not _is_array(kind)


_WORDS = {int: "whole number", float: "number", str: "word", bool: "yes or no, True or False"}
_SEVERAL = {int: "whole numbers", float: "numbers", str: "words"}
_EXAMPLES = {int: "[1, 2, 4]", float: "[0.5, 1.0]", str: '["bf16"]'}


def _called(hint: Any) -> str:  # noqa: ANN401
    """What a hint asks for, in words."""
    kind, inside = _kind(hint), get_args(hint)
    if _is_mapping(kind):
        return "mapping"
    if _is_array(kind):
        return "array of numbers"
    if _is_list(kind):
        return f"list of {_SEVERAL.get(inside[0], 'such records')}" if inside else "list"
    if kind is Literal:
        return "word"
    if kind is Callable:
        return "function"
    return _WORDS.get(kind, getattr(kind, "__name__", str(kind)))


def _remedy(hint: Any, spot: Spot) -> str:  # noqa: ANN401
    inside = get_args(hint)
    example = _EXAMPLES.get(inside[0]) if inside and _is_list(get_origin(hint)) else None
    return f"write `{spot.name}={example}`" if example and not spot.key else ""


def _count_fault(name: str, value: float) -> str:
    """What is wrong with a whole number of this name; empty if nothing is."""
    most = MOST_PARAMETERS if name.endswith("_params") else MOST_COUNT
    most = LARGEST_SEED if name == "seed" else most
    if value < 0:
        return "is negative"
    if value == 0 and name not in _MAY_BE_ZERO:
        return "is zero"
    return f"is above {most:,}" if value > most else ""


def _fault(name: str, value: float) -> str:
    """What is wrong with a number of this name; empty if nothing is."""
    if not math.isfinite(value):
        return "is not a finite number"
    if value < 0:
        return "is negative"
    dimension = next((d for end, d in _DIMENSIONS if name.endswith(end)), "1")
    is_fraction = name.endswith("_fraction") or name in _BELOW_ONE
    if value == 0:
        is_unitless = dimension == "1" and not name.endswith("_fraction")
        is_time = dimension == "s" and name not in _MUST_TAKE_TIME
        return "" if is_unitless or is_time or name in _MAY_BE_ZERO else "is zero"
    if is_fraction and (value > 1 or (value == 1 and name in _BELOW_ONE)):
        return "is not below 1" if name in _BELOW_ONE else "is above 1"
    low, high, words = RANGES[dimension]
    return "" if low <= value <= high else f"is beyond anything real, {words}"


_LONGEST = 60
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _LONGEST


def _shown(value: object) -> str:
    """A value in short, whatever it is."""
    try:
        return _SHORT.repr(value)[:_LONGEST]
    except Exception:  # of a stranger's own, or of a number of thousands of digits
        return f"a {type(value).__name__}"
