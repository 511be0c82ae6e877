"""What of a document is read first, and in which order the rest follows, whatever it is of."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any

from planner.quantities.tables import packaged_table
from planner.report.documents.blocks import Block, Command, Document, Note, Pairs, Section

_ORDER: Mapping[str, Any] = packaged_table("report/words.toml")["order"]


FIRST_SCREEN = "first screen"
"""Heading of what is said on the first screen alone."""


def parts_of(document: Document) -> tuple[tuple[Section, ...], tuple[Section, ...]]:
    """The first screen, and sections in the order of `words.toml`, each with its heading.

    The first screen is the head, what follows it without a heading, and of what is said below
    headings the rows that are listed there; and what starts it, if it is one command.
    """
    head = Section(title="", blocks=document.begins, is_bare=True)
    untitled = tuple(takewhile(lambda it: not it.title, document.sections))
    place, keyed = -1, []
    for each in document.sections[len(untitled) :]:
        order = () if document.is_in_order else _ORDER["sections"]
        begun = (i for i, words in enumerate(order) if _is_headed(each, words))
        place = next(begun, place)  # what is listed nowhere stays behind what it was behind
        keyed.append((place, each))
    said = tuple(each for _, each in sorted(keyed, key=itemgetter(0)))
    rest = tuple(each for each in said if each.title != FIRST_SCREEN)
    digest = (Pairs([*_rows(said)]), *_start(rest))
    return (head, *untitled, Section(title="", blocks=digest, is_bare=True)), rest


def _is_headed(section: Section, words: str) -> bool:
    return re.match(rf"{words}\b", section.title) is not None


def _rows(sections: Sequence[Section]) -> Iterator[tuple[str, str]]:
    for screen in _ORDER["screen"]:
        headed = [it for it in sections if _is_headed(it, screen["heading"])]
        said = [row for it in headed for block in it.blocks for row in _said(block)]
        texts: list[str] = []
        for name, words in screen["rows"].items():
            distinct = dict.fromkeys(words.format(text) for label, text in said if label == name)
            texts += [*distinct][: 1 if texts else None]  # the first of several, but of statuses
        yield screen["label"], "; ".join(texts)


def _said(block: Block) -> Sequence[tuple[str, str]]:
    """Rows of pairs that say something, or a paragraph, which has no label."""
    if isinstance(block, Note):
        return [("", block.text)] * bool(block)
    return [row for row in block.rows if row[1]] if isinstance(block, Pairs) else []


def _start(sections: Sequence[Section]) -> Sequence[Block]:
    """The command and the first words of what is said of it."""
    blocks = [block for one in sections if _is_headed(one, "start") for block in one.blocks]
    commands = [block for block in blocks if isinstance(block, Command)]
    if len(commands) > 1:
        return [Pairs([("start", f"{len(commands)} commands, at the end of the whole report")])]
    said = (text for block in blocks for _, text in _said(block))
    words = next(said, "").partition(";")[0].rstrip(":").removeprefix("started ")
    return [Pairs([("start", words)]), *commands]
