"""Whole numbers and lists of them, read as strictly as quantities are."""

from __future__ import annotations

from collections.abc import Callable

from planner.units import UnitError

MOST = 10**9
MOST_BATCHES = 4096

_LIST = "write `64`, `16:128`, `16:128:8` or `1,2,4`"


def at_least(least: int, most: int = MOST) -> Callable[[str], int]:
    """A reader of a whole number.

    >>> at_least(1)("2_048")
    2048
    """

    def read(text: str) -> int:
        body = text.strip()
        digits = body.removeprefix("+").replace("_", "")
        if not (digits.isascii() and digits.isdecimal()):
            raise _no_count(text, body)
        value = int(digits) if len(digits) <= 20 else most + 1  # int() refuses thousands of digits
        if value > most:
            raise UnitError(text, "is beyond anything real", f"write at most `{most}`")
        if value < least:
            raise UnitError(text, "is zero", f"write at least `{least}`")
        return value

    return read


count = at_least(1)
count_or_none = at_least(0)
tokens = at_least(1, 10**8)
threads = at_least(1, 256)
seed = at_least(0, 2**31 - 1)  # solvers hold it in 32 bits


def _no_count(text: str, body: str) -> UnitError:
    """Why a text is no whole number, as precisely as can be said."""
    if not body:
        return UnitError(text, "is empty")
    try:
        value = float(body.replace("_", ""))
    except ValueError:
        return UnitError(text, "is not a whole number")
    if value != value or value in (float("inf"), float("-inf")):
        return UnitError(text, "is not a whole number")
    if value < 0:
        return UnitError(text, "is negative")
    remedy = f"write `{value:.0f}`" if value.is_integer() and value <= MOST else ""
    return UnitError(text, "is not a whole number", remedy)


def batches(text: str) -> tuple[int, ...]:
    """Batches, ascending: one, a range with both ends and perhaps a step, or a list.

    >>> batches("1,4:6,10:20:5")
    (1, 4, 5, 6, 10, 15, 20)
    """
    if not text.strip():
        raise UnitError(text, "is empty", _LIST)
    chosen: set[int] = set()
    for item in text.split(","):
        span = _span(text, item)
        if len(span) + len(chosen) > MOST_BATCHES:
            raise UnitError(text, f"is more than {MOST_BATCHES} batches", "take larger steps")
        chosen.update(span)
    return tuple(sorted(chosen))


def capped(text: str) -> tuple[int, ...]:
    """Batches to choose from: a number alone is the most, a range or a list says which.

    >>> capped("3"), capped("3:3"), capped("2,4")
    ((1, 2, 3), (3,), (2, 4))
    """
    from planner.specs.defaults import batches_up_to

    values = batches(text)
    is_number = len(values) == 1 and not {":", ","} & set(text)
    return batches_up_to(values[0]) if is_number else values


def _span(text: str, item: str) -> range:
    """The batches of one item: `64`, `16:128`, `16:128:8`."""
    from planner.specs.request import MOST_SEQUENCES

    sequences = at_least(1, MOST_SEQUENCES)
    try:
        first, *more = [sequences(part) for part in item.split(":")]
    except UnitError as error:
        raise _in_list(text, error) from None
    if len(more) > 2:
        raise UnitError(text, "has too many colons", _LIST)
    last, step = (*more, 1)[:2] if more else (first, 1)
    if first > last:
        raise UnitError(text, "runs backwards", f"write `{last}:{first}`")
    return range(first, last + 1, step)


def _in_list(text: str, error: UnitError) -> UnitError:
    if error.text == text:
        return UnitError(text, error.fact, error.remedy or _LIST)
    part = error.text.strip()
    fact = f"has `{part}`, which {error.fact}" if part else "has an empty part"
    return UnitError(text, fact, error.remedy or _LIST)
