"""A document as lines of text: labels, columns and bars that align without colour."""

from collections.abc import Iterator, Sequence

from planner.report.documents import blocks
from planner.report.documents.screens import parts_of
from planner.report.words import labelled, wrapped

_LEAST_WORDS = 20
"""Columns of words beside figures, however narrow the text."""
_LEAST_BAR = 6
"""Columns of a bar below which it says nothing."""


def text_of(document: blocks.Document, width: int, *, is_brief: bool = False) -> str:
    """The report in lines of at most `width` columns, 60 or more, where tables allow.

    Args:
        is_brief: its first screen alone.
    """
    first, rest = parts_of(document)
    parts = (section_text(one, width) for one in (*first, *(() if is_brief else rest)))
    return "\n\n".join(filter(None, parts))


def section_text(section: blocks.Section, width: int) -> str:
    """A title and indented lines; nothing if there are no lines."""
    if section.is_bare:
        return "\n".join(line for block in section.blocks for line in _lines(block, width))
    body = [line for block in section.blocks for line in _lines(block, width - 2)]
    title = [section.title] if section.title else []
    return "\n".join([*title, *(f"  {line}".rstrip() for line in body)]) if any(body) else ""


def _lines(block: blocks.Block, width: int) -> Sequence[str]:
    match block:
        case blocks.Note(text=text, kind="item"):
            first, *rest = wrapped(text, width - 2)
            return [first, *(f"  {line}" for line in rest)]
        case blocks.Note(text=text, kind="part"):
            return [f"  {line}" for line in wrapped(text, width - 2)]
        case blocks.Note(text=text, kind="line") | blocks.Command(text=text):
            return [text]
        case blocks.Note(text=text):
            return wrapped(text, width)
        case blocks.Pairs(rows=rows):
            return labelled(rows, width)
        case blocks.Table():
            return list(_table(block, width))
        case blocks.Drawing(lines=lines):
            return lines(width) if lines else []


def _table(table: blocks.Table, width: int) -> Iterator[str]:
    listed = range(len(table.rows)) if table.listed is None else table.listed
    rows = [table.rows[i] for i in listed]
    if not rows:
        return
    heads, align = table.heads, table.align or "<" * max(map(len, (table.heads, *rows)))
    if table.spare:
        heads, rows, align = _spared(table.spare, heads, rows, align, width)
    lines = columns(heads, rows, align, width, wraps=table.wraps)
    if table.splits and max(map(len, lines)) > width:
        lines = _halves(table.splits, heads, rows, width)
    yield from lines
    if len(rows) < len(table.rows):
        yield f"and {len(table.rows) - len(rows):,} more: {table.more}"


def _halves(k: int, heads: blocks.Row, rows: Sequence[blocks.Row], width: int) -> list[str]:
    """Columns before the kth, then the others, each with the first."""
    align = "<" * len(heads)
    whole = [row for row in rows if len(row) == len(heads)]
    first, *others = [[row[0], *row[k:]] for row in (heads, *whole)]
    lines = columns(heads[:k], [row[:k] for row in rows], align, width)
    return [*lines, "", *columns(first, others, align, width)]


def _spared(
    spare: Sequence[str], heads: blocks.Row, rows: Sequence[blocks.Row], align: str, width: int
) -> tuple[blocks.Row, list[blocks.Row], str]:
    """Heads, rows and alignment without the columns for which there is no room."""
    kept = list(range(len(heads)))
    for head in ("", *spare):
        kept = [i for i in kept if not head or heads[i] != head]
        rows_kept = [[row[i] for i in kept] for row in (heads, *rows)]
        aligned = "".join(align[i] for i in kept)
        if max(map(len, columns(rows_kept[0], rows_kept[1:], aligned, width))) <= width:
            break
    return rows_kept[0], [*rows_kept[1:]], aligned


def columns(
    heads: blocks.Row, rows: Sequence[blocks.Row], align: str, width: int, *, wraps: bool = False
) -> list[str]:
    """Rows as aligned columns, two spaces apart; bars as wide as there is room for.

    The last cell of a row that is shorter than others takes the room of all columns that it does
    not have.

    Args:
        heads: none where empty.
        align: `<` or `>` for each column.
        wraps: the last column takes several lines where there are many words.

    >>> columns((), [("a", "10 ms"), ("bc", "5 ms")], "<>", 80)
    ['a   10 ms', 'bc   5 ms']
    """
    table = [row for row in (heads, *rows) if row]
    most = max(
        (cell.width for row in table for cell in row if isinstance(cell, blocks.Bar)), default=0
    )
    for bar_width in range(most, min(most, _LEAST_BAR) - 1, -1):
        lines = _aligned(table, align, bar_width, width, wraps=wraps)
        if max(map(len, lines)) <= width:
            return lines
    return _aligned(table, align, most, width, wraps=wraps)


def _aligned(
    table: Sequence[blocks.Row], align: str, bar_width: int, width: int, *, wraps: bool
) -> list[str]:
    drawn = [[_drawn(cell, bar_width) for cell in row] for row in table]
    n = max(map(len, drawn))
    sizes = [
        max((len(row[i]) for row in drawn if len(row) > i + (len(row) < n)), default=0)
        for i in range(n)
    ]
    lines = []
    for row in drawn:
        cells = zip(row[:-1], align, sizes, strict=False)
        start = "".join(f"{cell:{side}{size}}  " for cell, side, size in cells)
        if len(row) == n and not wraps:
            lines.append(f"{start}{row[-1]:{align[n - 1]}{sizes[-1]}}".rstrip())
            continue
        first, *rest = wrapped(row[-1], max(_LEAST_WORDS, width - len(start)))
        lines += [f"{start}{first}".rstrip(), *(" " * len(start) + line for line in rest)]
    return lines


def _drawn(cell: blocks.Cell, bar_width: int) -> str:
    return cell.drawn(bar_width) if isinstance(cell, blocks.Bar) else str(cell)
