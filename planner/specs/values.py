"""What one value of a file may be: quantities, counts, words; each fault with its remedy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Annotated, NamedTuple, TypeVar

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from planner.specs.records import FORMAT_BYTES
from planner.specs.served_formats import RUN
from planner.specs.variants import HOWS
from planner.units import UnitError, parse, show

BLOCKS = ("parallel", "serial")
NETWORKS = ("ring", "axis", "flat", "tree", "two-regime", "nccl")
ALGORITHMS = ("tree", "ring")

_MAX_COUNT = 10**9
MOST_TEXT = 300

T = TypeVar("T")


class Unit(NamedTuple):
    """How a record holds a quantity: its unit in SI, and how the name of the field ends."""

    text: str
    ending: str


def fault(fact: str, remedy: str = "") -> PydanticCustomError:
    """A fault with a remedy, as pydantic carries it."""
    return PydanticCustomError("fault", "{fact}", {"fact": fact, "remedy": remedy})


def did_you_mean(word: str, known: Iterable[str], *, otherwise: str = "") -> str:
    names = list(known)
    longer = [name for name in names if word and name.startswith(f"{word}-")]
    close = longer or get_close_matches(word, names, n=1)
    return f"did you mean `{close[0]}`?" if close else otherwise


def _quantity(
    dimension: str, *, allow_zero: bool = False, example: str | None = None
) -> Callable[[object], float]:
    def read(raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise fault("is not a quantity", f"write it like `{example or show(1, dimension)}`")
        try:
            return parse(_text(raw), dimension, allow_zero=allow_zero, example=example)
        except UnitError as error:
            raise fault(error.fact, error.remedy) from None

    return read


def _number(low: float, high: float) -> Callable[[object], float]:
    def read(raw: object) -> float:
        value = _quantity("1", example=f"{low:g}")(raw)
        if not low <= value <= high:
            side = f"is below {low:g}" if value < low else f"is above {high:g}"
            raise fault(side, f"write a number from {low:g} to {high:g}")
        return value

    return read


def _share(*, allow_zero: bool) -> Callable[[object], float]:
    def read(raw: object) -> float:
        value = _quantity("1", allow_zero=allow_zero)(raw)
        if value > 1:
            raise fault("is above 1", "write `0.8` or `80%`")
        return value

    return read


def _loss(raw: object) -> float:
    value = _quantity("1", allow_zero=True, example="0.8%")(raw)
    if value >= 1:
        raise fault("is not below 1", "write `0.8%` or `0.008`")
    return value


def _text(raw: str | float) -> str:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, int):
        # Python refuses to print integers of thousands of digits; none of them is meant.
        return str(raw) if abs(raw) < 10**300 else "1e301"
    if math.isnan(raw):
        raise fault("is not a number")
    return f"{raw:.15g}" if math.isfinite(raw) else "1e999"


def _count(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        as_int = isinstance(raw, float) and raw.is_integer() and abs(raw) < _MAX_COUNT
        remedy = f"write `{raw:.0f}`" if as_int else ""
        raise fault("is not a whole number", remedy)
    if raw <= 0:
        raise fault("is zero" if raw == 0 else "is negative", "write a positive whole number")
    if raw > _MAX_COUNT:
        raise fault("is beyond anything real")
    return raw


def _spare_count(raw: object) -> int:
    return 0 if raw == 0 and isinstance(raw, int) and not isinstance(raw, bool) else _count(raw)


def _line(raw: object) -> str:
    if not isinstance(raw, str):
        raise fault("is not text", "write it in quotes")
    if not raw.strip():
        raise fault("is empty")
    if len(raw) > MOST_TEXT or not raw.isprintable():
        raise fault(f"is not one line of at most {MOST_TEXT} characters")
    return raw


def _one_of(what: str, known: Iterable[str]) -> Callable[[object], str]:
    def read(raw: object) -> str:
        if not isinstance(raw, str) or raw not in known:
            otherwise = f"there are {', '.join(f'`{word}`' for word in known)}"
            raise fault(f"unknown {what}", did_you_mean(str(raw), known, otherwise=otherwise))
        return raw

    return read


def _date(raw: object) -> str:
    text = str(raw)  # TOML dates and texts alike
    year, *rest = text.split("-")
    digits = all(part.isdecimal() and len(part) == 2 for part in rest)
    if text != "undated" and not (year.isdecimal() and len(year) == 4 and digits and len(rest) < 3):
        raise fault("is not a date", 'write it like "2026-05" or "undated"')
    return text


def _gating(raw: object) -> int:
    count = _count(raw)
    if count not in (2, 3):
        raise fault("is neither 2 nor 3", "write 3 for a gated FFN, 2 for a plain one")
    return count


Seconds = Annotated[float, BeforeValidator(_quantity("s", allow_zero=True)), Unit("s", "_s")]
Bytes = Annotated[float, BeforeValidator(_quantity("B")), Unit("B", "_bytes")]
SpareBytes = Annotated[float, BeforeValidator(_quantity("B", allow_zero=True)), Unit("B", "_bytes")]
BytesPerSecond = Annotated[float, BeforeValidator(_quantity("B/s")), Unit("B/s", "bytes_per_s")]
FlopPerSecond = Annotated[
    float, BeforeValidator(_quantity("FLOP/s")), Unit("FLOP/s", "_flop_per_s")
]
TokensPerSecond = Annotated[
    float, BeforeValidator(_quantity("token/s")), Unit("token/s", "_tokens_per_s")
]
RequestsPerSecond = Annotated[float, BeforeValidator(_quantity("request/s"))]
Watts = Annotated[float, BeforeValidator(_quantity("W")), Unit("W", "_w")]
UsdPerHour = Annotated[float, BeforeValidator(_quantity("USD/h"))]
Fraction = Annotated[float, BeforeValidator(_share(allow_zero=False))]
SpareFraction = Annotated[float, BeforeValidator(_share(allow_zero=True))]
Loss = Annotated[float, BeforeValidator(_loss), Unit("", "_fraction")]
Exponent = Annotated[float, BeforeValidator(_number(1, 100))]
Number = Annotated[float, BeforeValidator(_quantity("1", example="7e9"))]
Count = Annotated[int, BeforeValidator(_count)]
SpareCount = Annotated[int, BeforeValidator(_spare_count)]
FfnMatrices = Annotated[int, BeforeValidator(_gating)]
How = Annotated[str, BeforeValidator(_one_of("way to make a variant", HOWS))]
Text = Annotated[str, BeforeValidator(_line)]
Date = Annotated[str, BeforeValidator(_date)]
Format = Annotated[str, BeforeValidator(_one_of("number format", FORMAT_BYTES))]
RunFormat = Annotated[str, BeforeValidator(_one_of("number format of a checkpoint", RUN))]
Block = Annotated[str, BeforeValidator(_one_of("block", BLOCKS))]
Network = Annotated[str, BeforeValidator(_one_of("network convention", NETWORKS))]
Algorithm = Annotated[str, BeforeValidator(_one_of("algorithm", ALGORITHMS))]


def not_empty(items: list[T]) -> list[T]:
    if not items:
        raise fault("is empty")
    return items
