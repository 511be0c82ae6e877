"""Axes of a picture: what is drawn of a quantity, where, and which numbers stand beside it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SPARE = 0.04  # of an axis, beyond its first and last value
_LETTER = 9.0  # pixels, where a phone draws them largest


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Numbers from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    def at(self, number: float) -> float:
        if self.is_log:
            share = math.log(number / self.low) / math.log(self.high / self.low)
        else:
            share = (number - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 9) -> list[float]:
        """At most so many round numbers within the axis, as many as can be."""
        is_wide = self.is_log and self.high / self.low >= 3
        candidates = _log_ticks if is_wide else _linear_ticks
        for fineness in range(6):
            values = candidates(self.low, self.high, fineness)
            if len(values) <= most:
                return values
        return values


def axis(numbers: Sequence[float], start: float, end: float, *, is_log: bool) -> Axis:
    """An axis for positive numbers: from zero where it is linear, else with a little to spare."""
    low, high = min(numbers), max(numbers)
    if not is_log:
        return Axis(low=0.0, high=high * (1 + SPARE), start=start, end=end, is_log=False)
    spare = max((high / low) ** SPARE, 1.02)
    return Axis(low=low / spare, high=high * spare, start=start, end=end, is_log=True)


def _log_ticks(low: float, high: float, fineness: int) -> list[float]:
    """Fewer and fewer numbers of each decade, then decades further and further apart."""
    digits = ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,), (1,))[fineness]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = 2 if fineness == 5 else 1
    ticks = (digit * 10.0**decade for decade in decades if decade % every == 0 for digit in digits)
    return [_clean(number) for number in ticks if low <= number <= high]


def _linear_ticks(low: float, high: float, fineness: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10((high - low) / 10))
    step = power * (1, 2, 5, 10, 20, 50)[fineness]
    first, last = math.ceil(low / step), math.floor(high / step + 1e-9)
    return [_clean(i * step) for i in range(first, last + 1)]


def _clean(number: float) -> float:
    return float(f"{number:.6g}")


def tick_text(number: float, before: str = "") -> str:
    """`$0.5`, `2000`: a number at an axis.

    >>> tick_text(2000.0, "$"), tick_text(0.05)
    ('$2000', '0.05')
    """
    text = f"{number:.0f}" if 1 <= number < 1e6 and number == round(number) else f"{number:g}"
    return before + text


MIDDLE, END = 'text-anchor="middle"', 'text-anchor="end"'
Tick = tuple[float, str]
"""A pixel, and what stands there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The box of a drawing, its grid and what stands around it.

    Args:
        xs, ys: lines of the grid.
        title: below the box.
        above: at its upper left corner.
    """

    left: float
    right: float
    top: float
    bottom: float
    xs: Sequence[Tick]
    ys: Sequence[Tick]
    title: str
    above: str = ""

    def drawn(self) -> Iterator[str]:
        left, right, top, bottom = self.left, self.right, self.top, self.bottom
        yield '<g class="grid">'
        yield from (f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>' for x, _ in self.xs)
        yield from (f'<path d="M{left:.1f} {y:.1f}H{right:.1f}"/>' for y, _ in self.ys)
        yield f'</g><rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        yield f'height="{bottom - top:.1f}"/>'
        taken = -math.inf
        for x, text in self.xs:
            half = _LETTER * len(text) / 2
            if x - half > taken:  # numbers that would touch are left out
                yield f'<text x="{x:.1f}" y="{bottom + 18:.1f}" {MIDDLE}>{text}</text>'
                taken = x + half
        for y, text in self.ys:
            yield f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" {END}>{text}</text>'
        centre = (left + right) / 2
        yield f'<text class="title" x="{centre:.0f}" y="{bottom + 40:.0f}" {MIDDLE}>{self.title}'
        yield "</text>"
        if self.above:
            yield f'<text class="faint" x="{left:.0f}" y="{top - 10:.0f}">{self.above}</text>'
