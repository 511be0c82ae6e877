"""What a command found, in the shapes that its options ask for: text, a line, JSON, CSV, a page."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TextIO

from planner.commands.options.parsing import STDOUT, listing
from planner.commands.options.said import Said
from planner.report import answer_kinds
from planner.report.documents.as_html import Origin, page_of
from planner.report.documents.as_text import text_of
from planner.report.documents.blocks import Document, csv_of, notes, section
from planner.report.files import FOUND, Answer
from planner.report.paint import SCREEN, width
from planner.report.words import HINTS, plural

if TYPE_CHECKING:
    from planner.solvers.recording import SolverLog


def reported(
    said: Said,
    answer: object,
    *,
    record: object = None,
    files: Iterable[tuple[str, str]] = (),
    code: int = FOUND,
    **beside: object,
) -> Answer:
    """An answer as it is asked for.

    Args:
        record: what programs get, where it is not the answer.
        files: beside those that options of every command name, as `Answer` has them.
        code: the exit code.
        beside: what the document of the answer may say more, as `document_of` takes it.
    """

    def document() -> Document:
        whole = answer_kinds.document_of(answer, **beside)
        read = section("what runs, as read", *notes(said.values.get("read", ()), "item"))
        whole = replace(whole, sections=(*whole.sections[:1], read, *whole.sections[1:]))
        if not said.values.get("explain"):
            return whole
        from planner.report.explaining import explained

        return explained(whole, answer, said.values["explain"])

    record = answer if record is None else record
    made = shown(said, document, record=record, files=files, code=code)
    return replace(made, record=answer)


def shown(
    said: Said,
    document: Callable[[], Document],
    *,
    record: object = None,
    files: Iterable[tuple[str, str]] = (),
    code: int = FOUND,
) -> Answer:
    """A document as it is asked for.

    Args:
        record: what programs get.
    """
    document, csv, is_data = cache(document), said.values.get("csv"), True
    if csv is not None:
        text = csv_of(document())
        files = files if csv == STDOUT else ((str(csv), text), *files)
    if csv == STDOUT:
        text = text.rstrip("\n")
    elif said.values.get("json"):
        from planner.report.as_json import answer_json, dumps

        text = dumps(answer_json(record))
    else:
        whole, is_data = document(), False
        text = whole.line if said.values.get("quiet") else screen_text(said, whole, sys.stdout)
    return Answer(text=text, is_data=is_data, files=tuple(files), code=code, document=document)


def screen_text(said: Said, document: Document, stream: TextIO) -> str:
    """A document for a stream: all of it; a terminal gets its first screen, and how to see more."""
    whole, is_brief = text_of(document, width()), bool(said.values.get("brief"))
    is_cut = stream.isatty() and said.values.get("full") is False and not listing(said)
    if not is_brief and (not is_cut or _n_lines(whole) <= SCREEN):
        return whole
    first = text_of(document, width(), is_brief=True)
    n_more = _n_lines(whole) - _n_lines(first)
    more = HINTS["more"].format(lines=plural(n_more, "more line"))
    return first if is_brief else f"{first}\n\n{more}"


def _n_lines(text: str) -> int:
    """Of a terminal, which goes on in the next line where a command is longer."""
    return sum(max(1, -(-len(line) // width())) for line in text.splitlines())


def with_solved(said: Said, log: SolverLog, answer: Answer) -> Answer:
    """An answer, and what was solved for it: the program to keep, and the report of all."""
    kept, path = said.values.get("keep_program"), said.values.get("solver_report")
    texts = {kept: log.text(is_lp=kept.lower().endswith(".lp"))} if kept else {}
    if path:
        texts[path] = _solver_text(said, answer, log, path)
    note = "" if all(texts.values()) else "no program was proved by solvers: none is kept"
    text = "\n\n".join(filter(None, (answer.text, texts.pop(STDOUT, ""))))
    message = "\n".join(filter(None, (note, answer.message)))
    files = (*answer.files, *(file for file in texts.items() if file[1]))
    return replace(answer, text=text, message=message, files=files)


def _solver_text(said: Said, answer: Answer, log: SolverLog, path: str) -> str:
    """The solver report, as the name of its file says: a page, JSON, or text."""
    from planner.report.as_json import dumps
    from planner.results.listings import solver_report

    report = solver_report(shlex.join(["plan", *said.words]), answer.record, log.programs)
    if path.lower().endswith(".json"):
        return dumps(report.to_dict())
    if path.lower().endswith(".html"):
        return page_of(answer_kinds.document_of(report), origin(said))
    text = text_of(answer_kinds.document_of(report), width())
    return text if path == STDOUT else f"{report.command}\n\n{text}\n"


def origin(said: Said) -> Origin:
    """What was typed, today, and who answers."""
    from planner.report.as_json import versions

    return Origin(
        command=shlex.join(["plan", *said.words]),
        date=time.strftime("%Y-%m-%d"),
        version=f"llm-serving-planner {versions()['planner']}",
    )
