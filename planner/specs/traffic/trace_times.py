"""Times of a trace as text, to seconds."""

from __future__ import annotations

import math
from datetime import UTC, datetime


class Clock:
    """Times as text to seconds: numbers, or dates of one zone, UTC unless they say another."""

    __slots__ = ("_has_dates", "_minutes", "_unit_s")

    def __init__(self, unit_s: float) -> None:
        self._unit_s = unit_s
        self._has_dates: bool | None = None  # as the first row that can be read says
        self._minutes: dict[str, float] = {}

    def seconds(self, text: str) -> float:
        """Seconds since whatever.

        Raises:
            ValueError: it is no time, or a date among numbers, or a number among dates.
        """
        if self._has_dates:
            return self._date(text)
        try:
            return self.counted(float(text))
        except ValueError:
            if self._has_dates is not None:
                raise
        found = self._date(text)
        self._has_dates = True
        return found

    def counted(self, number: float) -> float:
        """A time that is a number already."""
        found = number * self._unit_s
        if self._has_dates or not math.isfinite(found):
            raise ValueError
        self._has_dates = False
        return found

    def _date(self, text: str) -> float:
        """A date: the minute of it is looked up, for rows of one minute are many."""
        start = self._minutes.get(text[:16])
        if start is None or text[16:17] != ":" or not text[17:].replace(".", "", 1).isdecimal():
            return self._any_date(text)
        seconds = float(text[17:])
        if not 0.0 <= seconds < 61.0:
            raise ValueError
        return start + seconds

    def _any_date(self, text: str) -> float:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo:
            return found.timestamp()
        start = found.replace(second=0, microsecond=0, tzinfo=UTC).timestamp()
        is_usual = text[16:17] == ":" and text[17:].replace(".", "", 1).isdecimal()
        if not is_usual:
            return found.replace(tzinfo=UTC).timestamp()
        self._minutes[text[:16]] = start
        return start + float(text[17:])
