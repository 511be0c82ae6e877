"""Rows of a trace while it is read, and what is wrong with those that are no requests."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.errors import Problem, SpecError
from planner.quantities.tables import packaged_table
from planner.specs.files.ledger import remark
from planner.specs.files.tables import literal
from planner.specs.traffic.arrivals import Counts, Floats, Trace
from planner.specs.traffic.distributions import MOST_TOKENS

_MOST_SHOWN = 10


@dataclass(slots=True)
class TraceRows:
    """What rows say, and the first of those that say nothing.

    Args:
        columns: as the file names them, of what it may say: the arrival, tokens in and out, the
            class and the model; empty of what it does not.
        labels: classes and models, each by the line that names it first; none without columns.
        label: of each row, that line.
        clock: what reads arrivals, once the header is known.
    """

    shown: str
    columns: tuple[str, ...] = ()
    arrival_s: Floats = field(default_factory=lambda: array("d"))
    n_input: Counts = field(default_factory=lambda: array("q"))
    n_output: Counts = field(default_factory=lambda: array("q"))
    labels: dict[tuple[str, str], int] = field(default_factory=dict)
    label: Counts = field(default_factory=lambda: array("q"))
    clock: Clock = field(init=False)
    faults: list[Problem] = field(default_factory=list)
    n_faults: int = 0

    def read_header(self, names: Sequence[str], line: int) -> list[str]:
        """Which column says what; names of those that are read, in the order of `columns`.

        Raises:
            SpecError: some are missing, or several are of the same.
        """
        columns = {what: _all(known, names) for what, known in (_NAMES | _LABELS).items()}
        fact = ""
        if missing := [what for what in _NAMES if not columns[what]]:
            shown = literal(", ".join(names))
            fact = f"has no column of {' and '.join(missing)}: the header is {shown}"
        elif several := [each for each in columns.values() if each[1:]]:
            doubled = "; ".join(f"`{'` and `'.join(each)}`" for each in several)
            fact = f"has several columns of the same: {doubled}: leave one"
        if fact:
            where = f"{self.shown}:{line}"
            raise SpecError([Problem(where=where, fact=fact, remedy=understood())])
        self.columns = tuple(next(iter(each), "") for each in columns.values())
        self.clock = Clock(_unit_s(self.columns[0], names))
        return list(filter(None, self.columns))

    def refuse(
        self, line: int, value: str, fact: str, remedy: str = "", *, column: str = ""
    ) -> None:
        """Keep what is wrong with a line, of the first; count it of the others."""
        self.n_faults += 1
        if self.n_faults <= _MOST_SHOWN:
            where, said = f"{self.shown}:{line}", literal(value)
            problem = Problem(where=where, key=column, value=said, fact=fact, remedy=remedy)
            self.faults.append(problem)

    def refuses(self, line: int, said: Sequence[Any]) -> bool:
        """Say which column of a row is wrong first, and how; nothing where none is."""
        for name, value in zip(filter(None, self.columns), said, strict=True):
            number = self.columns.index(name)
            fact = "is missing" if value is None else _fault(number, value, self.clock)
            if fact:
                shown, (fact, _, remedy) = "" if value is None else str(value), fact.partition(": ")
                self.refuse(line, shown, fact, remedy, column=name)
                return True
        return False

    def problems(self) -> list[Problem]:
        more = self.n_faults - len(self.faults)
        rest = f"{more:,} more lines like these, of {len(self.arrival_s) + self.n_faults:,}"
        return [*self.faults, *([Problem(where=self.shown, fact=rest)] if more else [])]

    def named(self, said: Sequence[str], line: int) -> int:
        """The line that names first what a row is of, by the columns that there are."""
        name, model = said[0] if self.columns[3] else "", said[-1] if self.columns[4] else ""
        return self.labels.setdefault((name, model), line)

    def trace(self, of: Collection[int] | None = None) -> Trace:
        """Rows, or those of some labels, in order, from the first arrival of all on."""
        arrivals = self.arrival_s
        order: Sequence[int] = range(len(arrivals))
        if any(a > b for a, b in zip(arrivals, memoryview(arrivals)[1:], strict=False)):
            order = sorted(order, key=arrivals.__getitem__)
            fact = "is not in order of arrival, and was sorted"
            remark(Problem(where=self.shown, fact=fact), once=self.shown)
        first, last = arrivals[order[0]], arrivals[order[-1]]
        if of is not None:
            order = [i for i in order if self.label[i] in of]
        return Trace(
            name=Path(self.shown).name.split(".")[0],
            arrival_s=array("d", [arrivals[i] - first for i in order]),
            n_input=array("q", map(self.n_input.__getitem__, order)),
            n_output=array("q", map(self.n_output.__getitem__, order)),
            part_of_s=0.0 if of is None else last - first,
            part_of_n=None if of is None else len(arrivals),
        )


def _fault(number: int, value: object, clock: Clock) -> str:
    """What is wrong with a time, a count of tokens, or the name of a class or a model."""
    if number == 0:
        try:
            clock.seconds(str(value))
        except (ValueError, OverflowError):
            return "is no time: write seconds, or a date like 2023-11-16 18:15:46.68"
        return ""
    if number > 2:
        return "" if isinstance(value, str) and value.strip() else "is no name"
    try:
        count = int(str(value))
    except ValueError:
        return "is no whole number"
    if count == 0:
        return "is zero" + ": leave requests that failed out" * (number == 2)
    return "is negative" * (count < 0) or "is beyond anything real" * (count > MOST_TOKENS)


ARRIVAL, INPUT, OUTPUT = "arrival", "input tokens", "output tokens"

_NAMES: dict[str, tuple[str, ...]] = {
    what: tuple(names) for what, names in packaged_table("specs/published.toml")["traces"].items()
}
"""By what a column holds; people call the same differently."""

_LABELS = {"class": ("class", "class_name", "traffic_class"), "model": ("model", "model_name")}
"""Columns that a trace may have besides: of several classes, for several models."""

_MOONCAKE = frozenset({"timestamp", "inputlength", "outputlength"})
"""Its timestamps are milliseconds: FAST25-release/traces of kvcache-ai/Mooncake."""


def _unit_s(arrival: str, names: Sequence[str]) -> float:
    """Seconds of one unit of a column of times."""
    is_ms = _bare(arrival).endswith("ms") or {_bare(name) for name in names} >= _MOONCAKE
    return 1e-3 if is_ms else 1.0


def understood() -> str:
    """All names that are known, for a remedy."""
    said = (f"{what}: {', '.join(f'`{name}`' for name in names)}" for what, names in _NAMES.items())
    return f"capitals and `_` do not count; {'; '.join(said)}"


def _all(known: Sequence[str], names: Sequence[str]) -> list[str]:
    return [name for name in names if _bare(name) in map(_bare, known)]


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


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
            seconds = float(text) * self._unit_s
            if not math.isfinite(seconds):
                raise ValueError
            self._has_dates = False
            return seconds
        except ValueError:
            if self._has_dates is not None:
                raise
        date = self._date(text)
        self._has_dates = True
        return date

    def _date(self, text: str) -> float:
        """A date: the minute of it is looked up, for rows of one minute are many."""
        is_usual = text[16:17] == ":" and text[17:].replace(".", "", 1).isdecimal()
        start = self._minutes.get(text[:16]) if is_usual else None
        if start is None:
            date = datetime.fromisoformat(text.strip())
            if date.tzinfo or not is_usual:
                return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
            start = date.replace(second=0, microsecond=0, tzinfo=UTC).timestamp()
            self._minutes[text[:16]] = start
        seconds = float(text[17:])
        if not 0.0 <= seconds < 61.0:
            raise ValueError
        return start + seconds
