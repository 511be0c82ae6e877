"""Traces from files: CSV and JSONL, compressed by gzip or not.

A row is an arrival and two counts of tokens. Arrivals are seconds, or milliseconds where the
column says so or the trace is Mooncake's, or dates; what they count from does not matter.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.errors import Problem, SpecError
from planner.specs.arguments import arguments_checked
from planner.specs.ledger import Use, enter, remark
from planner.specs.tables import literal
from planner.specs.texts import UnreadError, read_bytes
from planner.specs.traffic.distributions import MOST_TOKENS
from planner.specs.traffic.trace_columns import Columns, columns_of, understood
from planner.specs.traffic.trace_times import Clock
from planner.specs.traffic.traces import Counts, Floats, Trace

MOST_BYTES = 2**30
"""Of a trace, compressed or not."""

_MOST_SHOWN = 10
_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_NEWLINE = {"csv": "", "jsonl": "\n"}
_EMPTY: tuple[str, ...] = ()


@arguments_checked()
def load_trace(path: str | Path, *, asked_by: str = "--trace") -> Trace:
    """Read a trace; rows that are not in order of arrival are sorted, with a remark.

    Args:
        path: of a `.csv`, `.jsonl` or `.ndjson` file, or one of these and `.gz`.
        asked_by: the option that named it, for messages.

    Raises:
        SpecError: there is no such file, its columns are unknown, or rows are no requests: the
            first ten by their lines, and how many there are.
    """
    shown = str(path)
    rows = _Rows(shown)
    try:
        content, kind = _content_of(Path(path))
        # Line by line: the text of a whole file takes four times its bytes.
        with io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline=_NEWLINE[kind]) as lines:
            (_read_csv if kind == "csv" else _read_jsonl)(lines, rows)
    except (UnicodeDecodeError, UnreadError) as error:
        fact = getattr(error, "fact", "is not text (UTF-8)")
        raise SpecError([Problem(where=asked_by, value=literal(shown), fact=fact)]) from None
    problems = rows.problems()
    if not problems and not rows.arrival_s:
        problems = [Problem(where=shown, fact="has no requests")]
    if problems:
        raise SpecError(problems)
    return rows.trace(Path(path).name.split(".")[0])


def _content_of(path: Path) -> tuple[bytes, str]:
    """What a file holds, unpacked, and what it is, `csv` or `jsonl`.

    Raises:
        UnreadError: it is no such file.
    """
    name = path.name.lower()
    is_packed = name.endswith(".gz")
    kind = _SUFFIXES.get(Path(name.removesuffix(".gz")).suffix)
    content = read_bytes(path, most_bytes=MOST_BYTES)
    if kind is None:
        raise UnreadError("is neither `.csv` nor `.jsonl`, nor one of them with `.gz`")
    enter(Use(kind="trace"), path, content)
    content = _unpacked(content) if is_packed else content
    if not content or content.isspace():
        raise UnreadError("is empty")
    return content, kind


def _unpacked(content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            found = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise UnreadError("is not what gzip writes, or ends too early") from None
    if len(found) > MOST_BYTES:
        raise UnreadError(f"unpacks to more than {MOST_BYTES / 2**20:g} MiB")
    return found


@dataclass(slots=True)
class _Rows:
    """What rows say, and the first of those that say nothing."""

    shown: str
    arrival_s: Floats = field(default_factory=lambda: array("d"))
    n_input: Counts = field(default_factory=lambda: array("q"))
    n_output: Counts = field(default_factory=lambda: array("q"))
    faults: list[Problem] = field(default_factory=list)
    n_faults: int = 0

    def refuse(self, line: int, value: str, fact: str, remedy: str = "") -> None:
        """Keep what is wrong with a line, of the first; count it of the others."""
        self.n_faults += 1
        if self.n_faults <= _MOST_SHOWN:
            where = f"{self.shown}:{line}"
            problem = Problem(where=where, value=literal(value), fact=fact, remedy=remedy)
            self.faults.append(problem)

    def problems(self) -> list[Problem]:
        more = self.n_faults - len(self.faults)
        rest = f"{more:,} more lines like these, of {len(self.arrival_s) + self.n_faults:,}"
        return [*self.faults, *([Problem(where=self.shown, fact=rest)] if more else [])]

    def trace(self, name: str) -> Trace:
        """All rows, in order, from the first arrival on."""
        arrivals, order = self.arrival_s, None
        if any(a > b for a, b in zip(arrivals, memoryview(arrivals)[1:], strict=False)):
            order = sorted(range(len(arrivals)), key=arrivals.__getitem__)
            fact = "is not in order of arrival, and was sorted"
            remark(Problem(where=self.shown, fact=fact))
        first = min(arrivals)

        def ordered(values: array[Any]) -> Iterable[Any]:
            return values if order is None else map(values.__getitem__, order)

        return Trace(
            name=name,
            arrival_s=array("d", [at - first for at in ordered(arrivals)]),
            n_input=array("q", ordered(self.n_input)),
            n_output=array("q", ordered(self.n_output)),
        )


def _columns(names: list[str], rows: _Rows, line: int) -> Columns:
    columns, fact = columns_of(names)
    if columns is None:
        problem = Problem(where=f"{rows.shown}:{line}", fact=fact, remedy=understood())
        raise SpecError([problem])
    return columns


def _read_csv(lines: Iterable[str], rows: _Rows) -> None:
    reader = csv.reader(lines, skipinitialspace=True)
    try:
        names = next((row for row in reader if any(row)), [])
        columns = _columns([name.strip() for name in names], rows, reader.line_num)
        places = [
            [name.strip() for name in names].index(one)
            for one in (columns.arrival, columns.n_input, columns.n_output)
        ]
        _read_cells(reader, places, rows, Clock(columns.seconds))
    except csv.Error as error:
        fact = f"is not CSV: {error}"
        raise SpecError([Problem(where=f"{rows.shown}:{reader.line_num}", fact=fact)]) from None


def _read_cells(reader: Any, places: list[int], rows: _Rows, clock: Clock) -> None:  # noqa: ANN401 of csv, which does not export its type
    """The rows below a header: a loop that is as short as can be, for a million of them."""
    at, first, second = places
    take_time, take_input, take_output = (
        rows.arrival_s.append,
        rows.n_input.append,
        rows.n_output.append,
    )
    read_time = clock.seconds
    for row in reader:
        if not row:
            continue
        try:
            when, n_input, n_output = read_time(row[at]), int(row[first]), int(row[second])
            if not (0 < n_input <= MOST_TOKENS and 0 < n_output <= MOST_TOKENS):
                raise ValueError
        except (ValueError, IndexError, OverflowError):
            said = [row[i] if i < len(row) else None for i in places]
            _refuse(rows, reader.line_num, said, clock)
            continue
        take_time(when)
        take_input(n_input)
        take_output(n_output)


def _read_jsonl(lines: Iterable[str], rows: _Rows) -> None:
    columns: Columns | None = None
    clock = Clock(1.0)
    keys: tuple[str, ...] = _EMPTY
    for line, written in enumerate(lines, start=1):
        if written.isspace():
            continue
        try:
            row = json.loads(written)
        except (ValueError, RecursionError):
            rows.refuse(line, written.strip(), "is not JSON")
            continue
        if not isinstance(row, dict):
            rows.refuse(line, written.strip(), "is no object", 'write {"timestamp": 0, …}')
            continue
        if columns is None:
            columns = _columns(list(row), rows, line)
            clock = Clock(columns.seconds)
            keys = (columns.arrival, columns.n_input, columns.n_output)
        _take_object([row.get(key) for key in keys], rows, line, clock)


def _take_object(said: list[Any], rows: _Rows, line: int, clock: Clock) -> None:
    when, n_input, n_output = said
    try:
        seconds = clock.counted(when) if type(when) in (int, float) else clock.seconds(str(when))
        is_whole = type(n_input) is int and type(n_output) is int
        if not is_whole or not (0 < n_input <= MOST_TOKENS and 0 < n_output <= MOST_TOKENS):
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        _refuse(rows, line, said, clock)
        return
    rows.arrival_s.append(seconds)
    rows.n_input.append(n_input)
    rows.n_output.append(n_output)


def _refuse(rows: _Rows, line: int, said: list[Any], clock: Clock) -> None:
    """Say which of the three is wrong, and how."""
    when, *tokens = said
    if any(one is None for one in said):
        rows.refuse(line, "", "has too few columns, or none of a needed name")
        return
    try:
        clock.seconds(str(when))
    except (ValueError, OverflowError):
        remedy = "write seconds, or a date like 2023-11-16 18:15:46.68"
        rows.refuse(line, str(when), "is no time", remedy)
        return
    for what, value in zip(("input", "output"), tokens, strict=True):
        fact = _token_fault(value)
        if fact:
            is_none = fact == "is zero" and what == "output"
            remedy = "leave requests that failed out" if is_none else ""
            rows.refuse(line, str(value), f"{fact}, as tokens of {what}", remedy)
            return


def _token_fault(value: object) -> str:
    try:
        count = int(str(value))
    except ValueError:
        return "is no whole number"
    if count <= 0:
        return "is zero" if count == 0 else "is negative"
    return "is beyond anything real" if count > MOST_TOKENS else ""
