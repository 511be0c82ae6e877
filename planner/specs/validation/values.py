"""What values may be beyond their types: by their names, by notes of types, and as files say them.

Names say units (`hbm_bytes`, `tpot_s`), and units have ranges.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from planner.errors import FactError
from planner.quantities.tables import packaged_table
from planner.quantities.units import RANGES, examples, parse, show
from planner.specs.validation.problems import did_you_mean

MOST_TEXT = 300
MOST_COUNT = 10**9
MOST_PARAMETERS = 10**15
LARGEST_SEED = 2**31 - 1  # solvers hold it in 32 bits

_TABLE = packaged_table("specs/validation/values.toml")
_MAY_BE_ZERO, _NEVER_ZERO, _BELOW_ONE = (
    frozenset(_TABLE[name].split()) for name in ("may_be_zero", "never_zero", "below_one")
)


class FaultError(FactError):
    """A value that cannot be.

    Args:
        fact: what is wrong with it.
        remedy: what to write instead; may be empty.
        is_misfit: it is of another type, and nothing else can be said of it.
    """

    def __init__(self, fact: str, remedy: str = "", *, is_misfit: bool = False) -> None:
        self.fact, self.remedy, self.is_misfit = fact, remedy, is_misfit
        super().__init__(fact)


@cache
def dimension_of(name: str) -> str:
    """The dimension of a number of this name; `1` of one without a unit."""
    return next(
        (dimension for end, dimension in _TABLE["dimensions"].items() if name.endswith(end)), "1"
    )


def may_be_zero(name: str, kind: type = float) -> bool:
    """Whether a number of this name may be 0: some counts, times, what has no unit."""
    if name in _MAY_BE_ZERO or kind is int:
        return name in _MAY_BE_ZERO
    is_free = dimension_of(name) in ("1", "s") and not name.endswith("_fraction")
    return is_free and name not in _NEVER_ZERO


def is_share(name: str) -> bool:
    """Whether a number of this name is a share."""
    return name.endswith("_fraction") or name in _BELOW_ONE


def fault_of(name: str, value: float) -> str:
    """What is wrong with a number of this name; empty if nothing is."""
    if not math.isfinite(value):
        return "is not a finite number"
    if value < 0:
        return "is negative"
    if value == 0:
        return "" if may_be_zero(name, type(value)) else "is zero"
    return _too_many(name, value) if isinstance(value, int) else _out_of_range(name, value)


def _too_many(name: str, value: int) -> str:
    most = MOST_PARAMETERS if name.endswith("_params") else MOST_COUNT
    most = LARGEST_SEED if name == "seed" else most
    return f"is above {most:,}" if value > most else ""


def _out_of_range(name: str, value: float) -> str:
    if name in _BELOW_ONE and value >= 1:
        return "is not below 1"
    if name.endswith("_fraction") and value > 1:
        return "is above 1"
    low, high, words = RANGES[dimension_of(name)]
    return "" if low <= value <= high else f"is beyond anything real, {words}"


@dataclass(frozen=True, slots=True)
class Named:
    """A note of a number that is what numbers of another name are."""

    name: str


@dataclass(frozen=True, slots=True)
class Check:
    """A note of what values may be, wherever they come from.

    Args:
        fault: what is wrong with one, and what to write instead; no fact of one that is sound.
    """

    fault: Callable[[Any], tuple[str, str]]

    def checked(self, value: object) -> object:
        fact, remedy = self.fault(value)
        if fact:
            raise FaultError(fact, remedy)
        return value


@dataclass(frozen=True, slots=True)
class Reader:
    """A note of what reads a value of a file, in place of what the name says.

    Args:
        read: raises `FaultError`, or another with a fact and a remedy.
    """

    read: Callable[[object], object]


def between(low: float, high: float) -> Check:
    """A number in a range."""
    remedy = f"write a number from {low:,} to {high:,}"

    def fault(value: float) -> tuple[str, str]:
        if low <= value <= high:
            return "", ""
        return f"is below {low:,}" if value < low else f"is above {high:,}", remedy

    return Check(fault)


def one_of(what: str, known: Collection[str]) -> Check:
    """One of a few words."""

    def fault(word: str) -> tuple[str, str]:
        if word in known:
            return "", ""
        otherwise = f"there are {', '.join(f'`{one}`' for one in known)}"
        return f"unknown {what}", did_you_mean(word, known, otherwise=otherwise)

    return Check(fault)


NOT_EMPTY = Check(lambda items: ("" if items else "is empty", ""))
Share = Annotated[float, Named("_fraction")]
Loss = Annotated[float, Named("loss")]
Positive = Annotated[int, Check(lambda n: ("" if n else "is zero", _POSITIVE))]
_POSITIVE = "write a positive whole number"


def number_of(name: str, kind: type) -> Callable[[object], float]:
    """What reads a number by its name."""
    dimension = dimension_of(name)
    example = "" if is_share(name) or dimension != "1" else "7e9" if name[:2] == "n_" else "1.5"

    def read(raw: object) -> float:
        value = whole(raw) if kind is int else quantity(raw, dimension, example)
        if fact := fault_of(name, value):
            raise FaultError(fact, _POSITIVE if kind is int else examples(dimension, example))
        return value

    return read


def quantity(raw: object, dimension: str, example: str = "") -> float:
    """A number with a unit of a dimension, in SI; one without a dimension needs no unit."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise FaultError("is not a quantity", f"write it like `{example or show(1, dimension)}`")
    if isinstance(raw, float) and math.isnan(raw):
        raise FaultError("is not a number")
    if isinstance(raw, int) and abs(raw) >= 10**300:
        raw = "1e301"  # Python refuses to print integers of thousands of digits; none is meant
    elif isinstance(raw, float):
        raw = f"{raw:.15g}" if math.isfinite(raw) else "1e999"
    return parse(str(raw), dimension, positive=False, example=example or None)


def positive(dimension: str) -> Reader:
    """A quantity above zero of a dimension that its name does not say."""

    def read(raw: object) -> float:
        value = quantity(raw, dimension)
        if value <= 0:
            raise FaultError("is negative" if value else "is zero", examples(dimension))
        return value

    return Reader(read)


def number(most: float, unit: str) -> Reader:
    """A number without a unit, from 0, where its name says the unit."""

    def read(raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, int | float) or raw != raw:
            raise FaultError("is not a number", f"write it in {unit}")
        if not 0 <= raw <= most:  # compared first: some integers are no floats
            raise FaultError(
                "is negative" if raw < 0 else f"is above {most:g}", f"write it in {unit}"
            )
        return float(raw)

    return Reader(read)


def whole(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        as_int = isinstance(raw, float) and raw.is_integer() and abs(raw) < MOST_COUNT
        raise FaultError("is not a whole number", f"write `{raw:.0f}`" if as_int else "")
    return min(raw, 10**300)  # more are no floats, and too many anyway


def line(raw: object) -> str:
    if not isinstance(raw, str):
        raise FaultError("is not text", "write it in quotes")
    if not raw.strip():
        raise FaultError("is empty")
    if len(raw) > MOST_TEXT or not raw.isprintable():
        raise FaultError(f"is not one line of at most {MOST_TEXT} characters")
    return raw


LONGEST_S = 60.0
"""No engine spends more on anything that its file says; it is then a slip of the unit [s]."""


def _duration(seconds: float) -> tuple[str, str]:
    is_long = seconds > LONGEST_S
    return (f"is above {show(LONGEST_S, 's')}", "write it like `2 ms`") if is_long else ("", "")


def _date(raw: object) -> str:
    text = str(raw)  # TOML dates and texts alike
    year, *rest = text.split("-")
    digits = all(part.isdecimal() and len(part) == 2 for part in rest)
    if text != "undated" and not (year.isdecimal() and len(year) == 4 and digits and len(rest) < 3):
        raise FaultError("is not a date", 'write it like "2026-05" or "undated"')
    return text


MOST_SEQUENCES = 10**6
Sequences = Annotated[int, between(1, MOST_SEQUENCES)]
"""Of a batch, replicas, devices: as many as anybody has."""

Date = Annotated[str, Reader(_date)]
Duration = Annotated[float, Check(_duration)]
