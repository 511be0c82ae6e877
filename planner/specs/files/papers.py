"""Tables of papers: what is printed, and the request that answers each figure, as `plan` takes it.

A file of `papers/` is one table or figure. Its rows are its own, or those of a CSV beside it;
`{column}` in a command is what the row has there, and so is a name in a formula; `{folder}` is
where the file is.
"""

import csv
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from planner.errors import Problem, SpecError
from planner.specs.files.finding import find
from planner.specs.files.formulas import FormulaError, names_in, value_of
from planner.specs.files.places import Kind, files, shown_path
from planner.specs.files.reading import record_of
from planner.specs.files.tables import Table, read_table
from planner.specs.files.texts import UnreadError, is_number, read_text
from planner.specs.validation.hints import from_fields
from planner.specs.validation.values import FaultError, Reader

NO_PLAN = "no plan"
"""What stands for a figure where a run failed: memory ran out, or nothing keeps the limits."""


def _words(raw: object) -> str:
    """A text, or a number as it is written."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise FaultError("is neither text nor a number", "write it in quotes")
    return str(raw)


def _choices(raw: object) -> tuple[str, ...]:
    return tuple(map(_words, raw if isinstance(raw, list) else [raw]))


Words = Annotated[str, Reader(_words)]
Choices = Annotated[tuple[str, ...], Reader(_choices)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How a table is drawn.

    Args:
        x: formula of where an answer is drawn, as `figure`; printed figures are across where empty.
        published_x: of where the printed figure is drawn; as `x` where empty.
        x_title, y_title: of the axes.
    """

    x: Words = ""
    published_x: Words = ""
    x_title: Words = ""
    y_title: Words = ""
    is_log: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead:
    """What a file says of its table."""

    name: str
    title: str
    paper: str
    where: str
    note: Words = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Rows that one command line answers, with what each has in its columns."""

    name: str
    command: Words
    beside: Words = ""
    figure: Words
    published: Words = ""
    unit: Words = "1"
    label: Words = ""
    data: Words = ""
    where: Mapping[str, Choices] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Words, ...], ...] = ()
    note: Words = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFile:
    """A table of a paper as its file has it."""

    table: TableHead
    chart: Chart = Chart()
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """One figure of a paper, and how to ask for it.

    Args:
        series: what the figure is.
        label: what it is of.
        command: that answers it, after which `--json` may stand.
        beside: another that the formula sets it against; empty without one.
        figure: formula over the command's `answer` and `request`, `beside` and the columns.
        unit: dimension of both, or any word.
        published: as printed; None where nothing is, or where the run failed.
        fails: whether the run failed, so that no plan is the right answer.
        columns: of the row.
        note: what a reader of it should know.
    """

    series: str
    label: str
    command: str
    beside: str
    figure: str
    unit: str
    published: float | None
    fails: bool
    columns: Mapping[str, str]
    note: str

    @property
    def names(self) -> dict[str, object]:
        """Its columns as formulas know them: numbers where they are numbers."""
        return _names(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A table or a figure of a paper.

    Args:
        name: to ask for it.
        title: what it shows.
        paper: its key in `docs/references.bib`.
        where: `Table 2`.
        note: what a reader should know of all of it.
        shown: its file, as the user knows it.
    """

    name: str
    title: str
    paper: str
    where: str
    note: str
    chart: Chart
    rows: tuple[PublishedRow, ...]
    shown: str = ""


def paper_names() -> tuple[str, ...]:
    """Names of the tables that can be asked for."""
    return tuple(path.stem for path in files(Kind.PAPER))


def load_paper(name_or_path: str, *, asked_by: str = "NAME") -> PaperTable:
    """Load a table of a paper, by its name or the path of a file.

    Raises:
        SpecError: there is no such table, or its file has faults; all are listed.
    """
    source = find(Kind.PAPER, name_or_path, asked_by=asked_by)
    table, unread = read_table(source.path, source.shown, use=source.use(Kind.PAPER))
    file = record_of(PaperFile, _filled(table), unread, shown=source.shown)
    problems: list[Problem] = []
    rows: list[PublishedRow] = []
    for i, series in enumerate(file.series):
        try:
            rows += _rows(series, source.path.parent)
        except FormulaError as error:
            problems.append(Problem(where=source.shown, key=f"series[{i}]", fact=str(error)))
        except UnreadError as error:
            shown = shown_path(source.path.parent / series.data)
            problems.append(error.problem(shown))
    SpecError.raise_if_any(problems)
    beside = {"shown": source.shown, "chart": file.chart, "rows": tuple(rows)}
    return from_fields(PaperTable, file.table, **beside)


def _filled(table: Table) -> Table:
    """The table with what `[every]` says in each series that does not say otherwise."""
    every, series = table.get("every", {}), table.get("series")
    if not (isinstance(every, dict) and isinstance(series, list)):
        return table
    filled = [every | one if isinstance(one, dict) else one for one in series]
    return {key: value for key, value in table.items() if key != "every"} | {"series": filled}


def _rows(series: Series, folder: Path) -> Iterator[PublishedRow]:
    """The rows of a series.

    Raises:
        FormulaError: a column is none of its rows, or a formula has no value.
        UnreadError: the file of its rows cannot be read.
    """
    here = shown_path(folder)
    for row in _columns(series, folder):
        columns = {name: text.replace("{folder}", here) for name, text in row.items()}
        columns["folder"] = here
        printed = {columns[name] for name in names_in(series.published) & columns.keys()}
        is_known = bool(series.published) and not printed & {"", NO_PLAN}
        try:
            yield from_fields(
                PublishedRow,
                series,
                series=series.name,
                label=series.label.format_map(columns),
                command=series.command.format_map(columns),
                beside=series.beside.format_map(columns),
                published=value_of(series.published, _names(columns)) if is_known else None,
                fails=NO_PLAN in printed,
                columns=columns,
            )
            _check_words(series.command.format_map(columns))
        except (KeyError, IndexError) as error:
            raise FormulaError(f"a row has no column {error}") from None


def _check_words(command: str) -> None:
    """Refuse what no shell would read as a command of the planner."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise FormulaError(f"`{command}` is no command line: {str(error).lower()}") from None
    if words[:1] != ["plan"]:
        raise FormulaError(f"`{command}` is no command of `plan`")


def _columns(series: Series, folder: Path) -> Iterator[dict[str, str]]:
    """Columns of each row: of those in the file, and of a CSV's that `where` names."""
    for row in series.rows:
        if len(row) != len(series.columns):
            raise FormulaError(
                f"row [{', '.join(row)}] has {len(row)} cells of {len(series.columns)} columns"
            )
        yield dict(zip(series.columns, row, strict=True))
    if not series.data:
        return
    wanted = series.where
    for record in _records(read_text(folder / series.data)):
        if missing := wanted.keys() - record.keys():
            raise FormulaError(f"`{series.data}` has no column `{min(missing)}`")
        if all(record[name] in words for name, words in wanted.items()):
            yield record


@lru_cache(maxsize=4)
def _records(text: str) -> tuple[dict[str, str], ...]:
    """Rows of a CSV, of which many series have some each."""
    return tuple(csv.DictReader(text.splitlines()))


def _names(columns: Mapping[str, str]) -> dict[str, object]:
    return {name: float(text) if is_number(text) else text for name, text in columns.items()}
