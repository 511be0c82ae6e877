"""Tables of deployments, from CSV: our own columns, or those that another tool writes.

A line of the header names columns, each other line is one replica. Lines that start with `#` are
comments. docs/tables.md has the columns, an example and what is done with them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from planner.errors import Problem, SpecError
from planner.quantities.tables import packaged_table
from planner.specs.files import aiconfigurator, texts
from planner.specs.files.ledger import Use, remark
from planner.specs.huggingface.aliases import model_named
from planner.specs.records.roles import DECODE, PREFILL, ROLES
from planner.specs.records.runtimes import ROOFLINE, DeploymentRow, DeploymentTable, table_file
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.problems import did_you_mean
from planner.specs.validation.values import FaultError, one_of

MOST_BYTES = 64 * 2**20
MOST_TOLD = 20
"""Problems of a file that are told one by one."""


def _optional(name: str) -> Callable[[str], float | None]:
    read = texts.cell_number(name)
    return lambda cell: read(cell) if cell else None


def _milliseconds(cell: str) -> float:
    """Seconds; none where the cell is empty: the role says whether it may be."""
    return texts.cell_number("latency_s", scale=1e-3)(cell) if cell else 0.0


def _engine(cell: str) -> str:
    if texts.cell_text(cell) == ROOFLINE.name:
        raise FaultError("is no engine, but the planner's own layouts", "name what ran it")
    return cell


class _Column(NamedTuple):
    """A column: the field of a row that it says, how, and whether a file may lack it."""

    field: str
    read: Callable[[str], Any]
    is_needed: bool


_READERS: Mapping[str, Callable[[str], Any]] = {
    "text": texts.cell_text,
    "model": lambda cell: model_named(texts.cell_text(cell)),
    "count": texts.cell_count,
    "role": one_of("role of a replica", ROLES).checked,
    "engine": _engine,
    "milliseconds": _milliseconds,
}
"""What reads a column; of numbers it is made for the field."""


def _column(field: str, reads: str) -> _Column:
    made = {"number": texts.cell_number, "optional": _optional}
    read = made[reads](field) if reads in made else _READERS[reads]
    return _Column(field, read, reads != "optional")


COLUMNS: Mapping[str, _Column] = {
    name: _column(**row) for name, row in packaged_table("specs/published.toml")["columns"].items()
}
"""Columns of a table, by name; each may stand anywhere."""

_TIMES = {"ttft_ms": "ttft_s", "tpot_ms": "tpot_s"}
"""Fields of columns of times."""

_WITHOUT_EFFECT = {PREFILL: "tpot_ms", DECODE: "ttft_ms"}
"""Of a role: the column that says nothing of it; it has to say the other."""


@arguments_checked()
def load_table(name: str, *, asked_by: str = "--engine") -> DeploymentTable:
    """All rows of a table.

    Args:
        name: of the runtime: `table:` and the path of the file.
        asked_by: the option that named it, for messages.

    Raises:
        SpecError: the file cannot be read, or says what cannot be; problems are listed by line.
    """
    file, remedy = table_file(name), "write `table:` and the path of a CSV file"
    if not file.strip():
        raise SpecError([Problem(where=asked_by, value=name, fact="names no file", remedy=remedy)])
    try:
        lines = _lines(texts.read_text(file, most_bytes=MOST_BYTES, use=Use(kind="deployments")))
    except texts.UnreadError as error:
        raise SpecError([error.problem(asked_by, value=name, remedy=remedy)]) from None
    header = lines.pop(next(iter(lines)), []) if lines else []
    if aiconfigurator.is_known(header):
        made_by, (rows, problems) = aiconfigurator.TOOL, aiconfigurator.rows_of(header, lines)
    else:
        made_by, (rows, problems) = "", _rows(header, lines)
    if not problems and not rows:
        problems.append(Problem(where=file, fact="has no row", remedy="write one for each replica"))
    if problems:
        raise SpecError(_first_problems(problems, file))
    return DeploymentTable(name=name, made_by=made_by, rows=tuple(rows))


def _lines(text: str) -> dict[int, list[str]]:
    """The cells of each line that says something, by its number.

    Raises:
        UnreadError: it is not CSV.
    """
    listed = [[cell.strip() for cell in cells] for cells in texts.csv_of(text)]
    return {
        number: cells
        for number, cells in enumerate(listed, start=1)
        if any(cells) and not cells[0].startswith("#")
    }


def _first_problems(problems: Sequence[Problem], file: str) -> list[Problem]:
    """The first problems of a file, and how many more there are."""
    located = [replace(one, where=file) for one in problems[:MOST_TOLD]]
    if len(problems) > MOST_TOLD:
        located.append(Problem(where=file, fact=f"has {len(problems) - MOST_TOLD:,} more faults"))
    return located


def _rows(
    header: Sequence[str], lines: Mapping[int, Sequence[str]]
) -> tuple[list[DeploymentRow], list[Problem]]:
    """The rows below a header of our own columns, and everything that is wrong with either."""
    problems = list(_header_problems(header))
    if problems:
        return [], problems
    missing = {one.field: one.read("") for name, one in COLUMNS.items() if name not in header}
    rows = []
    for number, cells in lines.items():
        values, wrong = _values(header, cells, f"line {number}")
        if not wrong:
            row = DeploymentRow(line=number, **missing, **values)
            wrong = _time_problems(row)
            rows.append(row)
        problems += wrong
    _remark_without_effect(rows)
    return [_as_its_role(row) for row in rows], problems


def _header_problems(header: Sequence[str]) -> Iterator[Problem]:
    """Columns that nobody knows, that stand twice, or that are missing."""
    wrong = partial(Problem, where="", key="header")
    for name in dict.fromkeys(header):
        if name not in COLUMNS:
            remedy = did_you_mean(name, COLUMNS, otherwise=f"there are {', '.join(COLUMNS)}")
            fact = "is no column of a table of deployments"
            yield wrong(value=name, fact=fact, remedy=remedy)
        elif header.count(name) > 1:
            yield wrong(value=name, fact="names two columns")
    for name, column in COLUMNS.items():
        if column.is_needed and name not in header:
            yield wrong(value=name, fact="is missing", remedy="say it of every row")


def _values(
    header: Sequence[str], cells: Sequence[str], key: str
) -> tuple[dict[str, Any], list[Problem]]:
    """The fields of a row by name, and what is wrong with its cells."""
    if len(cells) != len(header):
        fact = f"has {len(cells)} cells, and the header {len(header)}"
        return {}, [Problem(where="", key=key, fact=fact)]
    values, problems = {}, []
    for name, cell in zip(header, cells, strict=True):
        column = COLUMNS[name]
        try:
            values[column.field] = column.read(cell)
        except FaultError as error:
            told = error.problem("", key=key, value=cell[:60])
            problems.append(replace(told, fact=f"of `{name}` {error.fact}"))
    return values, problems


def _time_problems(row: DeploymentRow) -> list[Problem]:
    """Times that a row of its role has to say."""
    fact = f"is not said, and a replica of {row.role} has it"
    return [
        Problem(where="", key=f"line {row.line}", value=name, fact=fact)
        for name, field in _TIMES.items()
        if name != _WITHOUT_EFFECT.get(row.role) and not getattr(row, field)
    ]


def _remark_without_effect(rows: Iterable[DeploymentRow]) -> None:
    """Say once of each role which column is not looked at, where it says something."""
    for role, name in _WITHOUT_EFFECT.items():
        lines = [row.line for row in rows if row.role == role and getattr(row, _TIMES[name])]
        if lines:
            fact = f"has no effect in {len(lines):,} rows of {role}, the first in line {lines[0]}"
            remark(Problem(where=name, fact=fact))


def _as_its_role(row: DeploymentRow) -> DeploymentRow:
    """A row without the time that is none of its role's."""
    name = _WITHOUT_EFFECT.get(row.role)
    without: dict[str, Any] = {_TIMES[name]: 0.0} if name else {}
    return replace(row, **without)
