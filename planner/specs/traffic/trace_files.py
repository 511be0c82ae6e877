"""Traces from files: CSV and JSONL, compressed by gzip or not.

A row is an arrival and two counts of tokens, and may say its class and its model. Arrivals are
seconds, or milliseconds where the column says so or the trace is Mooncake's, or dates; what they
count from does not matter.
"""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import Problem, SpecError
from planner.specs.files.ledger import Use, enter
from planner.specs.files.tables import literal
from planner.specs.files.texts import UnreadError, read_bytes
from planner.specs.traffic.arrivals import Trace
from planner.specs.traffic.distributions import MOST_TOKENS
from planner.specs.traffic.trace_rows import TraceRows
from planner.specs.validation.arguments import arguments_checked

MOST_BYTES = 2**30
"""Of a trace, compressed or not."""

_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_NEWLINE = {"csv": "", "jsonl": "\n"}


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
    return _rows_of(Path(path), asked_by).trace()


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePart:
    """Requests of a trace that are of one class and for one model.

    Args:
        of_class, model: as its columns say; empty where it has none.
        said_at: where the model is first said, for messages.
        trace: None of requests that no trace says.
    """

    of_class: str = ""
    model: str = ""
    said_at: str = ""
    trace: Trace | None = None


def load_parts(
    path: str | Path, *, by_model: bool = True, asked_by: str = "--trace"
) -> tuple[TracePart, ...]:
    """All classes and models of a trace, in order of appearance; the whole of it where it has none.

    Args:
        by_model: whether requests for different models are parted.

    Raises:
        SpecError: as `load_trace`.
    """
    rows = _rows_of(Path(path), asked_by)
    lines: dict[tuple[str, str], set[int]] = {}
    for (name, model), line in rows.labels.items():
        lines.setdefault((name, model if by_model else ""), set()).add(line)
    is_whole = len(lines) < 2
    return tuple(
        TracePart(
            of_class=name,
            model=model,
            said_at=f"{path}:{min(some)}: {rows.columns[4]}",
            trace=rows.trace(None if is_whole else some),
        )
        for (name, model), some in (lines or {("", ""): {0}}).items()
    )


def _rows_of(path: Path, asked_by: str) -> TraceRows:
    shown = str(path)
    rows = TraceRows(shown)
    try:
        content, kind = _content_of(path)
        # Line by line: the text of a whole file takes four times its bytes.
        with io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline=_NEWLINE[kind]) as lines:
            (_read_csv if kind == "csv" else _read_jsonl)(lines, rows)
    except (UnicodeDecodeError, UnreadError) as error:
        fact = getattr(error, "fact", "is not text (UTF-8)")
        raise SpecError([Problem(where=asked_by, value=literal(shown), fact=fact)]) from None
    problems = rows.problems()
    if not problems and not rows.arrival_s:
        problems = [Problem(where=shown, fact="has no requests")]
    SpecError.raise_if_any(problems)
    return rows


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
            data = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise UnreadError("is not what gzip writes, or ends too early") from None
    if len(data) > MOST_BYTES:
        raise UnreadError(f"unpacks to more than {MOST_BYTES / 2**20:g} MiB")
    return data


def _read_csv(lines: Iterable[str], rows: TraceRows) -> None:
    reader = csv.reader(lines, skipinitialspace=True)
    try:
        names = [name.strip() for name in next((row for row in reader if any(row)), [])]
        places = [names.index(name) for name in rows.read_header(names, reader.line_num)]
        _read_cells(reader, places, rows)
    except csv.Error as error:
        fact = f"is not CSV: {error}"
        raise SpecError([Problem(where=f"{rows.shown}:{reader.line_num}", fact=fact)]) from None


def _read_cells(reader: Any, places: list[int], rows: TraceRows) -> None:  # noqa: ANN401 of csv, which does not export its type
    """The rows below a header: a loop that is as short as can be, for a million of them."""
    at, first, second, *labels = places
    take_time, take_input, take_output = (
        rows.arrival_s.append,
        rows.n_input.append,
        rows.n_output.append,
    )
    read_time = rows.clock.seconds
    for row in reader:
        if not row:
            continue
        try:
            when, n_input, n_output = read_time(row[at]), int(row[first]), int(row[second])
            if not (0 < n_input <= MOST_TOKENS and 0 < n_output <= MOST_TOKENS):
                raise ValueError
            if labels:
                names = [row[i].strip() for i in labels]
                if not all(names):
                    raise ValueError
                rows.label.append(rows.named(names, reader.line_num))
        except (ValueError, IndexError, OverflowError):
            said = [row[i] if i < len(row) else None for i in places]
            rows.refuses(reader.line_num, said)
            continue
        take_time(when)
        take_input(n_input)
        take_output(n_output)


def _read_jsonl(lines: Iterable[str], rows: TraceRows) -> None:
    columns: list[str] = []
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
        columns = columns or rows.read_header(list(row), line)
        said: list[Any] = [row.get(key) for key in columns]
        if rows.refuses(line, said):
            continue
        when, n_input, n_output, *names = said
        rows.arrival_s.append(rows.clock.seconds(str(when)))
        rows.n_input.append(int(n_input))
        rows.n_output.append(int(n_output))
        if names:
            rows.label.append(rows.named(names, line))
