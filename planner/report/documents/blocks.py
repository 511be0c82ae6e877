"""Documents: headings, and below them notes, pairs, tables, drawings and commands; their CSV.

A block says what there is to read, and nothing of how wide or in which colours it is shown. An
empty one is falsy, and a section of empty ones is left out.
"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from planner.report.words import bar
from planner.specs.files.texts import visible


@dataclass(frozen=True, slots=True)
class Bar:
    """A cell: a fraction of 1 as a bar of at most so many columns of text.

    Args:
        text: a figure that stands before it.
        share: the fraction in words, between both.
    """

    fraction: float
    width: int = 20
    text: str = ""
    share: str = ""

    def __str__(self) -> str:
        return self.drawn(self.width)

    def drawn(self, width: int) -> str:
        """Figure, share and bar side by side, aligned as in a column of such."""
        before = f"{self.text:<9}{self.share:>7}  " if self.text else ""
        return before + bar(self.fraction, min(width, self.width))


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell that is sorted by its number."""

    text: str
    number: float

    def __str__(self) -> str:
        return self.text


IN_JSON = "`--json` lists them all"
"""Where rows are that text leaves out."""

Cell = str | Bar | Figure
Row = Sequence[Cell]


NoteKind = Literal["", "item", "part", "line", "faint"]


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph; without words it is a gap between two blocks.

    Args:
        kind: one `item` of a list, all lines but the first of which are indented; `part` of what
            stands before it, all lines of which are; a `line` that is not broken; `faint` print.
    """

    text: str = ""
    kind: NoteKind = ""

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Labels with a text beside each; rows without a text are left out."""

    rows: Sequence[tuple[str, str]]

    def __bool__(self) -> bool:
        return any(text for _, text in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells below heads.

    Args:
        heads: none where empty.
        rows: a short one ends early.
        align: `<` or `>` of each column; all to the left where empty.
        wraps: the last column is of words, which take as many lines as they need.
        listed: of which rows text has a line; of all where it is None.
        more: where the others are.
        spare: heads of columns that text leaves out, in this order, until a line fits.
        splits: columns before this one stand in a table of their own where a line of text would be
            too long, and the first column in both.
        marked: rows that stand out on a page.
        sorts: readers of a page may sort and search the rows.
        caption: of a page, which then shows the table where it is opened.
    """

    heads: Row = ()
    rows: Sequence[Row]
    align: str = ""
    wraps: bool = False
    listed: Sequence[int] | None = None
    more: str = IN_JSON
    spare: Sequence[str] = ()
    splits: int = 0
    marked: Sequence[int] = ()
    sorts: bool = False
    caption: str = ""

    def __bool__(self) -> bool:
        return bool(self.rows)


@dataclass(frozen=True, slots=True)
class Command:
    """A line that is copied, and not broken."""

    text: str

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture, where there can be one, and its lines where there can be none.

    Args:
        svg: draws it; None where a page has no picture of it.
        lines: of text, at most so many columns wide; None where text has none.
        style: what a page has to know to draw it.
    """

    svg: Callable[[], str] | None = None
    lines: Callable[[int], Sequence[str]] | None = None
    style: str = ""


Block = Note | Pairs | Table | Command | Drawing


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks below a heading.

    Args:
        title: none where empty.
        is_bare: text has neither its title nor an indentation.
        is_folded: a page shows it where it is opened.
    """

    title: str
    blocks: tuple[Block, ...]
    is_bare: bool = False
    is_folded: bool = False


Data = tuple[Sequence[str], Iterable[Sequence[object]]]
"""Heads and rows of a table for machines, in SI units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What an answer says.

    Args:
        title: of a page: what it is of.
        line: all of it in one line.
        head: what it begins with: what is decided, and what else has to be read first; its line.
        sections: `screens` has their order, by their titles; those before the first title are
            read with the head.
        data: for machines; None where there is none.
        is_in_order: sections stay as they stand here.
    """

    title: str
    line: str
    head: tuple[Block, ...] | None = None
    sections: tuple[Section, ...]
    data: Callable[[], Data] | None = None
    is_in_order: bool = False

    @property
    def begins(self) -> tuple[Block, ...]:
        """The head, which is the line where nothing else is said of it."""
        return (Note(self.line),) if self.head is None else self.head


def section(title: str, *blocks: Block, is_bare: bool = False) -> Section:
    """Blocks below a heading."""
    return Section(title=title, blocks=blocks, is_bare=is_bare)


def notes(texts: Iterable[str], kind: NoteKind = "") -> list[Note]:
    """A paragraph for each text."""
    return [Note(text, kind) for text in texts]


def hint(text: str) -> Section:
    """What to do next, a command in one line, to be copied; nothing of an empty text."""
    kind: NoteKind = "line" if "`plan " in text else ""
    return section("", *notes([f"hint: {text}"] if text else [], kind), is_bare=True)


_FORMULAS = ("=", "+", "-", "@")


def csv_of(document: Document) -> str:
    """The table below its heads; texts that would be taken for formulas are shown as texts."""
    assert document.data is not None
    heads, rows = document.data()
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return stream.getvalue()


def _cell(value: object) -> object:
    """A text that a table would take for a formula begins with a quote, which shows it as text.

    Source: OWASP, CSV Injection. Numbers stay what they are, negative ones too.
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULAS) else text
