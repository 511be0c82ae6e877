"""`--keep-program FILE`: the program that provers saw, for a bug report."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from planner.options.arguments import Arguments
from planner.report.files import save, unwritable
from planner.report.paint import write


@contextmanager
def program_kept(path: str | None, said: Arguments) -> Iterator[None]:
    """Leave the program of what is solved in here, however it ends; nothing without a path."""
    if path is None:
        yield
        return
    said.problems += unwritable("--keep-program", path)
    from planner.solvers.kept import keeping_program

    with keeping_program() as kept:
        try:
            yield
        finally:
            text = kept.text()
            if text:
                save(path, text)
            elif not said.problems:
                write("no program was solved: `--keep-program` leaves none", sys.stderr)
