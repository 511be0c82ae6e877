"""Rows of a trace while it is read, and what is wrong with those that are no requests."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.errors import Problem
from planner.specs.ledger import remark
from planner.specs.tables import literal
from planner.specs.traffic.distributions import MOST_TOKENS
from planner.specs.traffic.trace_times import Clock
from planner.specs.traffic.traces import Counts, Floats, Trace

_MOST_SHOWN = 10


@dataclass(slots=True)
class TraceRows:
    """What rows say, and the first of those that say nothing.

    Args:
        columns: as the file names them, of what it may say.
        labels: classes and models, each by the line that names it first; none without columns.
        label: of each row, that line.
    """

    shown: str
    columns: tuple[str, ...] = ()
    arrival_s: Floats = field(default_factory=lambda: array("d"))
    n_input: Counts = field(default_factory=lambda: array("q"))
    n_output: Counts = field(default_factory=lambda: array("q"))
    labels: dict[tuple[str, str], int] = field(default_factory=dict)
    label: Counts = field(default_factory=lambda: array("q"))
    faults: list[Problem] = field(default_factory=list)
    n_faults: int = 0

    def refuse(
        self, line: int, value: str, fact: str, remedy: str = "", *, column: str = ""
    ) -> None:
        """Keep what is wrong with a line, of the first; count it of the others."""
        self.n_faults += 1
        if self.n_faults <= _MOST_SHOWN:
            where, said = f"{self.shown}:{line}", literal(value)
            problem = Problem(where=where, key=column, value=said, fact=fact, remedy=remedy)
            self.faults.append(problem)

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


def refuse_row(rows: TraceRows, line: int, said: list[Any], clock: Clock) -> bool:
    """Say which column of a row is wrong first, and how; nothing where none is."""
    for name, value in zip(filter(None, rows.columns), said, strict=True):
        fact = "is missing" if value is None else _fault(rows.columns.index(name), value, clock)
        if fact:
            shown, (fact, _, remedy) = "" if value is None else str(value), fact.partition(": ")
            rows.refuse(line, shown, fact, remedy, column=name)
            return True
    return False


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
