"""A document as one page of HTML that needs nothing else.

Without its script a page shows everything: the choice of axes is a pair of radio buttons that the
style sheet follows, and what a mark means is its title. On a narrow screen rows of wide tables
stand below each other, each figure behind the head of its column.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from planner.report.documents import blocks
from planner.report.documents.screens import parts_of
from planner.report.words import escape

_LONGEST_IN_LINE = 40
"""Letters of a cell that is not to be broken."""
_MOST_ROWS = 40
"""Of a table that is shown without being opened."""
_FEW_COLUMNS = 3
"""That stand side by side on a narrow screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where an answer comes from: what was typed, when, and who answered."""

    command: str
    date: str
    version: str


def page_of(document: blocks.Document, origin: Origin | None = None) -> str:
    first, *rest = document.head or (blocks.Note(),)
    is_title = isinstance(first, blocks.Note) and first.text == document.title
    (head, *screen), sections = parts_of(document)
    head = replace(head, blocks=tuple(rest)) if is_title else head
    drawings = (block for one in document.sections for block in one.blocks)
    styles = dict.fromkeys(one.style for one in drawings if isinstance(one, blocks.Drawing))
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>',
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
            f"<title>{escape(document.title)}</title>",
            f"<style>\n{_file('page.css')}{''.join(styles)}</style></head><body>",
            f"<h1>{escape(document.title)}</h1>",
            *(_origin(origin) if origin else ()),
            *(part for one in (head, *screen, *sections) for part in _section(one)),
            '<div id="tip"></div>',
            f"<script>//<![CDATA[\n{_file('page.js')}//]]></script>",
            "</body></html>",
            "",
        ]
    )


def embedded(document: blocks.Document) -> str:
    """The line and the page of a document, for a place among others whose style is not its own."""
    frame = 'style="width:100%;height:36em;border:1px solid #ccc" sandbox="allow-scripts"'
    page = escape(page_of(document))
    return f'<p>{escape(document.line)}</p><iframe {frame} srcdoc="{page}"></iframe>'


@cache
def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _origin(origin: Origin) -> Iterator[str]:
    yield f'<p class="faint"><code>{escape(origin.command)}</code></p>'
    yield f'<p class="faint">{escape(origin.date)}, {escape(origin.version)}</p>'


def _section(section: blocks.Section) -> Iterator[str]:
    parts = [part for block in section.blocks for part in _block(block)]
    if parts and section.title:
        yield f"<h2>{escape(section.title)}</h2>"
    yield from parts


def _block(block: blocks.Block) -> Iterator[str]:
    match block:
        case blocks.Note(text=text, kind=kind) if text:
            yield f"<p{_classes(kind)}>{_words(text)}</p>"
        case blocks.Pairs(rows=rows) if block:
            told = ((label, text) for label, text in rows if text)
            pairs = (f"<dt>{escape(label)}</dt><dd>{_words(text)}</dd>" for label, text in told)
            yield f"<dl>{''.join(pairs)}</dl>"
        case blocks.Table() if block:
            yield from _table(block)
        case blocks.Command(text=text) if text:
            yield f"<pre>{escape(text)}</pre>"
        case blocks.Drawing(svg=svg) if svg is not None:
            yield svg()


def _classes(*names: str) -> str:
    told = " ".join(filter(None, names))
    return f' class="{told}"' if told else ""


def _words(text: str) -> str:
    """Text in which commands are known by their marks."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _table(table: blocks.Table) -> Iterator[str]:
    caption, n = table.caption, len(table.rows)
    if not caption and n > _MOST_ROWS and not table.sorts:
        caption = f"{n:,} rows"
    inner = "\n".join(_rows(table))
    if table.sorts:
        search = '<label>with the words <input type="search"/></label>'
        inner = f"<p>{search} <output>{n} of {n}</output></p>{inner}"
    inner = f"<div>{inner}</div>"
    yield f"<details><summary>{escape(caption)}</summary>{inner}</details>" if caption else inner


def _rows(table: blocks.Table) -> Iterator[str]:
    n_columns = max(map(len, (table.heads, *table.rows)))
    is_cards = bool(table.heads) and (n_columns > _FEW_COLUMNS or table.wraps)
    kinds = _kinds(table, n_columns)
    yield f"<table{_classes('cards' * is_cards, 'sorts' * table.sorts)}>"
    if table.heads:
        cells = zip(table.heads, kinds, strict=False)
        heads = "".join(f"<th{kind}>{escape(str(head))}</th>" for head, kind in cells)
        yield f"<thead><tr>{heads}</tr></thead>"
    yield "<tbody>"
    for i, row in enumerate(table.rows):
        mark = _classes("mark" * (i in table.marked))
        yield f"<tr{mark}>{''.join(_cells(row, table.heads, kinds))}</tr>"
    yield "</tbody></table>"


def _kinds(table: blocks.Table, n_columns: int) -> list[str]:
    """Attributes of each column: figures stand at its right end."""
    sides = table.align or "<" * n_columns
    return [' class="n"' if side == ">" else "" for side in sides]


def _cells(row: blocks.Row, heads: blocks.Row, kinds: Iterable[str]) -> Iterator[str]:
    n = len(heads)
    for i, (cell, kind) in enumerate(zip(row, kinds, strict=False)):
        attributes = kind
        if not kind and len(str(cell)) > _LONGEST_IN_LINE:
            attributes = ' class="w"'
        if i < n and str(heads[i]):
            attributes += f' data-h="{escape(str(heads[i]))}"'
        if isinstance(cell, blocks.Figure):
            attributes += f' data-n="{cell.number!r}"'
        if i == len(row) - 1 and len(row) < n:
            attributes += f' colspan="{n - i}"'
        yield f"<td{attributes}>{_cell(cell)}</td>"


def _cell(cell: blocks.Cell) -> str:
    if not isinstance(cell, blocks.Bar):
        return _words(str(cell))
    share = 100 * min(max(cell.fraction, 0.0), 1.0)
    before = escape(" ".join(filter(None, (cell.text, cell.share))))
    drawn = f'<span class="bars"><span class="bar" style="width:{share:.3g}%"></span></span>'
    return f"{before} {drawn}".strip()
