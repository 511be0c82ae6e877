"""Quantities with units: read strictly, shown briefly.

Inside the planner every quantity is a float in one unit a dimension: seconds, bytes,
FLOP, tokens, US dollars, and their ratios; prices are per hour. Text is read and
written only here. `b` is a bit and `B` a byte, `GB` is 10⁹ and `GiB` is 2³⁰ bytes,
and a number without a unit is an error: a guess would be wrong in silence.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from planner.errors import FactError
from planner.quantities.tables import packaged_table

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}

# word -> (numerator, denominator, dimension); two integers, so that scaling rounds once.
_WORDS: dict[str, tuple[int, int, str]] = {
    "ns": (1, 10**9, "s"),
    "us": (1, 10**6, "s"),
    "µs": (1, 10**6, "s"),  # micro sign
    "μs": (1, 10**6, "s"),  # Greek mu
    "ms": (1, 10**3, "s"),
    "s": (1, 1, "s"),
    "min": (60, 1, "s"),
    "h": (3600, 1, "s"),
    "hr": (3600, 1, "s"),
    "USD": (1, 1, "USD"),
    "$": (1, 1, "USD"),
    "%": (1, 100, "1"),
    **{f"{prefix}B": (factor, 1, "B") for prefix, factor in (_DECIMAL | _BINARY).items()},
    **{f"{prefix}b": (factor, 8, "B") for prefix, factor in (_DECIMAL | _BINARY).items()},
    **{f"{prefix}bit": (factor, 8, "B") for prefix, factor in _DECIMAL.items()},
    **{f"{prefix}FLOP": (factor, 1, "FLOP") for prefix, factor in _DECIMAL.items()},
    **{f"{prefix}W": (factor, 1, "W") for prefix, factor in _DECIMAL.items()},
    **{
        f"{prefix}{word}": (_DECIMAL[prefix], 1, "token")
        for prefix in ("", "k", "M", "G")
        for word in ("tok", "token", "tokens")
    },
    **dict.fromkeys(("req", "request", "requests"), (1, 1, "request")),
}
# Rates that have a word of their own.
_RATES: dict[str, str] = {
    **{f"{prefix}FLOPS": f"{prefix}FLOP/s" for prefix in _DECIMAL},
    **{f"{prefix}bps": f"{prefix}b/s" for prefix in _DECIMAL},
    **{f"{prefix}Bps": f"{prefix}B/s" for prefix in _DECIMAL},
}
_TABLE = packaged_table("quantities/units.toml")
_DIMENSIONS: Mapping[str, Mapping[str, Any]] = _TABLE["dimensions"]
_SPELLED: Mapping[str, str] = _TABLE["spelled"]

RANGES: dict[str, tuple[float, float, str]] = {
    name: tuple(row["range"]) for name, row in _DIMENSIONS.items() if "range" in row
}
"""Least and largest of a quantity but zero, and both in words."""


class UnitError(FactError):
    """A text that is not the quantity wanted.

    Args:
        text: what was written.
        fact: what is wrong with it.
        remedy: what to write instead; may be empty.
    """

    def __init__(self, text: str, fact: str, remedy: str = "") -> None:
        self.text = text
        self.fact = fact
        self.remedy = remedy
        super().__init__(f"`{text}` {fact}" + (f": {remedy}" if remedy else ""))


def parse(
    text: str,
    dimension: str,
    *,
    example: str | None = None,
    positive: bool = True,
    allow_zero: bool = False,
) -> float:
    """Read a quantity into SI units (prices: US dollars an hour, or a token).

    Args:
        text: a number and a unit, like `30ms`, `450 Gb/s`, `$3.22/h`.
        dimension: `s`, `B`, `B/s`, `FLOP`, `FLOP/s`, `W`, `USD/h`, `USD/token`, `token/s` or `1`.
        example: shown as the remedy in place of the usual ones.
        positive: refuse zero and negative numbers.
        allow_zero: with `positive`, let zero pass.

    Raises:
        UnitError: the text is no number with a unit of this dimension.

    >>> parse("30ms", "s"), parse("450 Gb/s", "B/s"), parse("$3.22/h", "USD/h")
    (0.03, 56250000000.0, 3.22)
    """
    remedy = examples(dimension, example or "")
    number, unit = _split(text, remedy)
    if unit == "":
        if dimension != "1":
            raise UnitError(
                text, "no unit", remedy if example else _unit_for(text, number, dimension)
            )
        numerator, denominator, written = 1, 1, "1"
    else:
        numerator, denominator, written = _unit(text, unit, dimension)
    if written == "USD" and dimension.startswith("USD/") and not example:
        remedy = _write(text.strip() + _likely(dimension)[0].removeprefix("USD"))
    if written != dimension:
        raise UnitError(text, f"is {_called(written)}, but {_called(dimension)} is wanted", remedy)
    value = number * numerator / denominator
    _check_range(text, value, dimension, remedy, positive=positive, allow_zero=allow_zero)
    return value


def show(value: float, dimension: str) -> str:
    """Write a quantity for people: three significant digits and a unit.

    >>> show(0.0285, "s"), show(1.2e12, "B/s"), show(206.08, "USD/h")
    ('28.5 ms', '1.2 TB/s', '$206/h')
    """
    scales = _scales(dimension)
    magnitude = abs(float(f"{value:.3g}"))
    if not 0 < magnitude < math.inf:
        chosen = next((scale for scale in scales if scale[1] == 1), scales[-1])
    else:
        chosen = next(scale for scale in scales if magnitude >= scale[0])
    _, factor, before, after = chosen
    return f"{'-' if value < 0 else ''}{before}{_digits(abs(value) / factor)}{after}"


def number_in(text: str) -> float | None:
    """What a text for people begins with, in base units; None of words, and of units unknown.

    >>> number_in("40 ms ± 2 us"), number_in("$2.5/Mtoken"), number_in("8 TP 8")
    (0.04, 2.5e-06, 8.0)
    """
    words = text.replace(",", "").lstrip("≤≥+ ").split()[:2]
    for said in (" ".join(words), *words[:1]):
        with suppress(UnitError):
            number, unit = _split(said, "")
            above, below, _ = _unit(said, unit, "1") if unit else (1, 1, "1")
            return number * above / below
    return None


@cache
def _scales(dimension: str) -> tuple[tuple[float, float, str, str], ...]:
    """Units to show a dimension in, largest first: used from, base units in one, before, after."""
    if "shown" in _DIMENSIONS[dimension]:
        return tuple(tuple(scale) for scale in _DIMENSIONS[dimension]["shown"])
    factors = [(prefix, float(factor)) for prefix, factor in reversed(_DECIMAL.items())]
    return tuple((f if p else 0.0, f, "", f" {p}{dimension}") for p, f in factors)


def _digits(magnitude: float) -> str:
    """Three significant digits, without an exponent wherever one can still read it."""
    if not math.isfinite(magnitude):
        return str(magnitude)
    short = f"{magnitude:.3g}"
    return f"{float(short):.0f}" if 1e3 <= float(short) < 1e6 else short


def _split(text: str, remedy: str) -> tuple[float, str]:
    """The number and the words after it; a dollar sign before counts as a word after."""
    body = text.strip()
    if not body:
        raise UnitError(text, "is empty", remedy)
    body, is_money = _without_dollar(body)
    end = _end_of_number(body)
    try:
        number = float(body[:end])
    except ValueError:
        raise UnitError(text, "does not begin with a number", remedy) from None
    unit = " ".join(body[end:].split())
    if unit.startswith(","):
        raise UnitError(text, "has a comma", "write `.` before decimals, `_` between thousands")
    if is_money and unit and not unit.startswith(("/", "per ")):
        raise UnitError(text, f"has `{unit}` after an amount of money", remedy)
    if is_money:
        unit = f"${unit}" if unit.startswith("/") else f"$ {unit}".strip()
    return number, unit


def _without_dollar(body: str) -> tuple[str, bool]:
    """An amount without the dollar before it, or behind its sign, and whether it had one."""
    sign = body[:1] if body[:1] in ("+", "-") else ""
    amount = body.removeprefix(sign)
    return (sign + amount[1:].lstrip(), True) if amount.startswith("$") else (body, False)


def _end_of_number(body: str) -> int:
    end = 1 if body[:1] in ("+", "-") else 0
    while end < len(body) and body[end] in "0123456789_.":
        end += 1
    if body[end : end + 1] in ("e", "E"):
        digits = end + 2 if body[end + 1 : end + 2] in ("+", "-") else end + 1
        stop = digits
        while stop < len(body) and body[stop] in "0123456789":
            stop += 1
        if stop > digits:
            return stop
    return end


def _unit(text: str, unit: str, dimension: str) -> tuple[int, int, str]:
    """Numerator, denominator and dimension of a unit such as `GB/s`."""
    words = [word.strip() for word in f" {unit} ".replace(" per ", " / ").split("/")]
    if words[0] in _RATES:
        words = [*_RATES[words[0]].split("/"), *words[1:]]
    if len(words) > 2:
        raise UnitError(text, f"unknown unit `{unit}`", examples(dimension))
    for word in words:
        if word not in _WORDS:
            raise UnitError(text, f"unknown unit `{unit}`", _nearest(text, word, dimension))
    numerator, denominator, base = _WORDS[words[0]]
    if len(words) == 1:
        return numerator, denominator, base
    below, above, per = _WORDS[words[1]]
    if (base, per) == ("USD", "s"):
        return numerator * above * 3600, denominator * below, "USD/h"
    return numerator * above, denominator * below, f"{base}/{per}"


def _check_range(
    text: str, value: float, dimension: str, remedy: str, *, positive: bool, allow_zero: bool
) -> None:
    low, high, words = RANGES[dimension]
    if not math.isfinite(value) or not (value == 0 or low <= abs(value) <= high):
        raise UnitError(text, f"is beyond anything real, {words}", remedy)
    if positive and value < 0:
        raise UnitError(text, "is negative", remedy)
    if positive and value == 0 and not allow_zero:
        raise UnitError(text, "is zero", remedy)


def _called(dimension: str) -> str:
    called: str = _DIMENSIONS.get(dimension, {}).get("called", f"a quantity in {dimension}")
    return called


def examples(dimension: str, example: str = "") -> str:
    """What to write for a quantity of a dimension, in words."""
    return _write(*([example] if example else _DIMENSIONS.get(dimension, {}).get("examples", ())))


def _write(*examples: str) -> str:
    return "write " + " or ".join(f"`{example}`" for example in examples) if examples else ""


def _unit_for(text: str, number: float, dimension: str) -> str:
    """The remedy for a number without a unit: the same number with likely units."""
    if not 1e-9 < number < RANGES[dimension][1]:
        return examples(dimension)
    if dimension == "s":
        as_ms = number if abs(number) >= 1 else number * 1e3
        return _write(f"{as_ms:.6g}ms", f"{number:.6g}s")
    is_base = dimension[0] in "BF" and abs(number) >= 1e6  # so large a number was meant in these
    units = (dimension,) if is_base else _likely(dimension)
    return _write(*(f"{text.strip()}{unit}" for unit in units))


def _likely(dimension: str) -> Sequence[str]:
    units: Sequence[str] = _DIMENSIONS.get(dimension, {}).get("likely", (dimension,))
    return units


def _nearest(text: str, word: str, dimension: str) -> str:
    """The remedy for an unknown word: the same text with the nearest known one, if that is read."""
    wanted = dimension.replace("/h", "/s").split("/")
    near = _near(word, dimension, wanted) if word else [f"{wanted[0]}/"]
    head, _, tail = text.rpartition(word or "/")
    meant = (f"{head.lstrip()}{name}{tail.rstrip()}" for name in near)
    said = next((it for it in meant if dimension and _is_read(it, dimension)), "")
    return f"did you mean `{said}`?" if said else examples(dimension)


def _near(word: str, dimension: str, wanted: Sequence[str]) -> list[str]:
    """Units of a dimension, of its words, that an unknown word may mean, the likeliest first."""
    from difflib import get_close_matches  # costs more to import than a whole parse

    known = [name for name, (_, _, found) in _WORDS.items() if found in wanted]
    known += [rate for rate, meaning in _RATES.items() if meaning.endswith(dimension)]
    near = [name for name in known if name.lower() == word.lower()]
    near += [name for name in _likely(dimension) if name.lower().startswith(word.lower())]
    near.append(_SPELLED.get(word.lower().removesuffix("s"), ""))
    return near + get_close_matches(word, [*known, *_likely(dimension)], cutoff=0.6)


def _is_read(text: str, dimension: str) -> bool:
    with suppress(UnitError):
        number, unit = _split(text, "")
        return number > 0 and _unit(text, unit, "")[2] == dimension
    return False
