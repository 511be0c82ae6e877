"""`plan reproduce` and `plan verify`: answers beside what papers print, or counted anew.

Tables of papers are answered by their own command lines; of a saved answer every figure is counted.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from planner.commands.cli import envelope_of
from planner.commands.options.said import Said
from planner.commands.reporting import reported, shown
from planner.report.answers.reproductions import document
from planner.report.files import Answer
from planner.report.progress import tell
from planner.results.listings import (
    Catalogue,
    CatalogueEntry,
    CatalogueList,
    ReproducedRow,
    ReproducedTable,
)
from planner.specs.files.formulas import FormulaError, value_of
from planner.specs.files.papers import Chart, PaperTable, PublishedRow, load_paper, paper_names

UNREAD = "the request cannot be read"

Typed = Callable[[str], tuple[Any, str]]
"""What a command answers, and why it answers nothing."""


def reproduce(said: Said) -> Answer:
    """Every table of the papers, or those that are named."""
    for name in ("--csv", "--html"):
        if said.list and said.is_given(name):
            said.refuse(name, "is of answers, and `--list` asks for none", "leave one of both out")
    tables = _tables(said)
    said.check()
    if said.list:
        return reported(said, _listed(tables))
    return shown(said, partial(document, answered(tables), in_full=said.name is not None))


def _listed(tables: Sequence[PaperTable]) -> Catalogue:
    entries = tuple(
        CatalogueEntry(
            name=table.name,
            title=f"[{table.paper}] {table.where}",
            description=table.title,
            examples=(),
            file=table.shown,
        )
        for table in tables
    )
    hint = "`plan reproduce NAME` answers every row of one"
    papers = CatalogueList(title="tables of papers", hint=hint, entries=entries)
    return Catalogue(title=papers.title, lists=(papers,))


def answered(tables: Sequence[PaperTable]) -> list[ReproducedTable]:
    """Tables with every row answered; a command that several rows have is run once."""
    n_commands = len({row.command for table in tables for row in table.rows})
    known: dict[str, tuple[Any, str]] = {"": (None, "")}

    def typed(command: str) -> tuple[Any, str]:
        """What a command answers, and why it answers nothing; asked as if it were typed."""
        if command not in known:
            news = f"{len(known):,} of {n_commands:,} commands: {command}"
            tell(lambda _: news)
            known[command] = _run(command)
        return known[command]

    return [
        ReproducedTable(
            table=table, rows=tuple(_reproduced(row, table.chart, typed) for row in table.rows)
        )
        for table in tables
    ]


def _tables(said: Said) -> Sequence[PaperTable]:
    """The tables whose names begin with what is written; all where nothing is."""
    names: Sequence[str] = paper_names()
    if said.name is not None:
        names = [name for name in names if name.startswith(said.name)] or [said.name]
    return said.each(load_paper, names)


def _reproduced(row: PublishedRow, chart: Chart, typed: Typed) -> ReproducedRow:
    """The figure of a row by its request, or why it has none."""
    answer, reason = typed(row.command)
    beside, missing = typed(row.beside)
    names, answered = row.names, None
    if not (reason or missing):
        names |= answer | {"beside": beside["answer"] if beside else None}
        try:
            answered = value_of(row.figure, names)
        except FormulaError as error:
            reason = str(error)

    def drawn(formula: str) -> float | None:
        with suppress(FormulaError):
            return value_of(formula, names) if formula else None
        return None

    return ReproducedRow(
        row=row,
        answered=answered,
        reason=reason or missing,
        x=drawn(chart.x),
        published_x=drawn(chart.published_x or chart.x),
    )


def _run(command: str) -> tuple[Any, str]:
    _, *words = shlex.split(command)
    said, envelope = envelope_of(words, began_s=time.perf_counter())
    if said.code == 0:
        return {name: envelope.get(name) for name in ("answer", "request")}, ""
    return None, _reason(said.message)


def _reason(message: str) -> str:
    """The first sentence of an error; of a request that cannot be read, the first fault."""
    lines = [" ".join(line.split()) for line in message.splitlines() if line.strip()]
    starts = (i for i, line in enumerate(lines) if line.startswith("error: "))
    head, *others = lines[next(starts, 0) :]
    return others[0] if others and UNREAD in head else head.removeprefix("error: ")


TRUE, FALSE = 0, 1


def verify(said: Said) -> Answer:
    """Whether every figure of a saved answer is so."""
    from planner.planning.verification import verify as find

    said.check()
    path = said.answer
    answer = find(path, prove=said.prove, time_limit_s=said.time_limit, shown=path)
    return reported(said, answer, code=TRUE if answer.is_true else FALSE)
