"""A document as one page of HTML that needs nothing else.

Without its script a page shows everything: the choice of axes is a pair of radio buttons that the
style sheet follows, and what a mark means is its title. On a narrow screen rows of most tables
stand below each other, each figure behind the head of its column; what is wider is moved sideways.
"""

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from planner.quantities.units import number_in
from planner.report.documents import blocks
from planner.report.documents.screens import parts_of
from planner.report.words import escape

if TYPE_CHECKING:
    from jinja2 import Template

_HINT = re.compile(r"(.+:) `(plan [^`]+)`")
"""A line that ends in a command, which is copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where an answer comes from: what was typed, when, and who answered."""

    command: str
    date: str
    version: str


def page_of(document: blocks.Document, origin: Origin | None = None) -> str:
    screen, rest = parts_of(document)
    said = [it for section in screen for it in _drawn(section)]
    head = [it for it in said if _text(it) != document.title]
    sections = [replace(it, blocks=_drawn(it)) for it in rest if _drawn(it)]
    drawings = (block for it in sections for block in it.blocks)
    styles = dict.fromkeys(it.style for it in drawings if isinstance(it, blocks.Drawing))
    return _template().render(
        title=document.title,
        head=head,
        has_lead=head == said,
        sections=[*enumerate(sections, start=1)],
        origin=origin,
        style=_file("page.css") + "".join(styles),
        script=_file("page.js"),
    )


def embedded(document: blocks.Document) -> str:
    """The line and the page of a document, for a place among others whose style is not its own."""
    frame = 'style="width:100%;height:36em;border:1px solid #ccc" sandbox="allow-scripts"'
    page = escape(page_of(document))
    return f'<p>{escape(document.line)}</p><iframe {frame} srcdoc="{page}"></iframe>'


def _drawn(section: blocks.Section) -> tuple[blocks.Block, ...]:
    """Blocks of which a page shows something."""
    return tuple(it for it in section.blocks if it and getattr(it, "svg", it) is not None)


def _text(block: blocks.Block) -> str:
    """A paragraph in the words of a title."""
    text = block.text if isinstance(block, blocks.Note) else ""
    return text.removeprefix("error: ").rstrip(":").replace("`", "")


@cache
def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


@cache
def _template() -> "Template":
    from jinja2 import Environment, StrictUndefined

    drawn = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    drawn.filters |= {"shown": escape, "words": _words, "parted": _parted, "number": number_in}
    drawn.filters |= {"kind": lambda it: type(it).__name__, "hint": _hint}
    return drawn.from_string(_file("page.html"))


def _hint(text: str) -> tuple[str, ...]:
    match = _HINT.fullmatch(text)
    return match.groups() if match else ()


def _parted(title: str) -> tuple[str, str]:
    """What a section is called, and the figures behind its name."""
    name, _, figures = title.partition(": ")
    return name, figures


def _words(text: str) -> str:
    """Text in which commands are known by their marks."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))
