"""Whole numbers and lists of them, read as strictly as quantities are, and written back."""

import re
from collections.abc import Callable, Sequence

from planner.quantities.units import UnitError

MOST = 10**9
MOST_BATCHES = 4096
MOST_EXPERTS = 4096
DEFAULT_BATCHES = (*range(1, 129), *range(136, 1025, 8))
"""Batches that every search chooses from: each up to 128, then each multiple of 8 up to 1024.

The sizes that vLLM captures CUDA graphs for are among them, and its `max_num_seqs` on devices of
70 GiB or more is the last.
"""

N_LARGER_BATCHES = 64
"""Batches that are offered beyond these where only larger ones are asked for."""

_WITH_WORDS = re.compile(r"(\d[\d_,]{0,8})\s*([kKM]?)\s*[A-Za-z]*", re.ASCII)
_ZEROS = {"": "", "k": "000", "K": "000", "M": "000000"}
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


def count_or_any(text: str) -> int:
    """A number, or 0 for `any`."""
    return 0 if text == "any" else count(text)


tokens = at_least(1, 10**8)
threads = at_least(1, 256)
experts = at_least(1, MOST_EXPERTS)
seed = at_least(0, 2**31 - 1)  # solvers hold it in 32 bits


def _no_count(text: str, body: str) -> UnitError:
    """Why a text is no whole number, as precisely as can be said."""
    if not body:
        return UnitError(text, "is empty")
    try:
        value = float(body.replace("_", ""))
    except ValueError:
        number = _WITH_WORDS.fullmatch(body)
        digits = number[1].replace(",", "").replace("_", "") if number else ""
        remedy = f"write `{digits}{_ZEROS[number[2]]}`" if number else ""
        return UnitError(text, "is not a whole number", remedy)
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
    values = batches(text)
    is_number = len(values) == 1 and not {":", ","} & set(text)
    return batches_up_to(values[0]) if is_number else values


def _span(text: str, item: str) -> range:
    """The batches of one item: `64`, `16:128`, `16:128:8`."""
    from planner.specs.validation.values import MOST_SEQUENCES

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


def batches_up_to(most: int) -> tuple[int, ...]:
    """The usual batches that are no larger than a cap, and the cap itself.

    >>> batches_up_to(4), batches_up_to(130)[-3:], batches_up_to(1100)[-4:]
    ((1, 2, 3, 4), (127, 128, 130), (1058, 1075, 1092, 1100))
    """
    usual = (n for n in DEFAULT_BATCHES if n < most)
    larger = range(DEFAULT_BATCHES[-1], most, max(1, most // N_LARGER_BATCHES))
    return tuple(sorted({*usual, *larger, most}))


def batches_text(chosen: Sequence[int]) -> str:
    """Batches as `--batch` reads them back: a number alone is a cap.

    >>> batches_text((1, 2, 3)), batches_text((3,)), batches_text((2, 4))
    ('3', '3:3', '2,4')
    """
    if len(chosen) == 1 and chosen[0] > 1:
        return f"{chosen[0]}:{chosen[0]}"
    is_capped = tuple(chosen) == batches_up_to(chosen[-1])
    return str(chosen[-1]) if is_capped else span_text(chosen)


def spans(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Ascending integers as (first, last, step) of runs.

    >>> spans((1, 2, 3, 8, 16, 24, 90))
    [(1, 3, 1), (8, 24, 8), (90, 90, 1)]
    """
    runs: list[tuple[int, int, int]] = []
    start = 0
    while start < len(numbers):
        end, step = start + 1, 1
        if end < len(numbers):
            step = numbers[end] - numbers[start]
            while end + 1 < len(numbers) and numbers[end + 1] - numbers[end] == step:
                end += 1
        if end >= len(numbers) or (step > 1 and end - start < 2):
            end, step = start, 1  # two numbers far apart are no run
        runs.append((numbers[start], numbers[end], step))
        start = end + 1
    return runs


def span_text(numbers: Sequence[int]) -> str:
    """Integers as an option takes them: `1:1024`, `1,2,4`, `8:64:8`."""
    return ",".join(
        f"{first}" if first == last else f"{first}:{last}" + (f":{step}" if step > 1 else "")
        for first, last, step in spans(numbers)
    )
