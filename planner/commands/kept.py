"""`--keep-program FILE`: the program that provers saw, however the command ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.report.delivery import Answer

if TYPE_CHECKING:
    from planner.solvers.kept import KeptProgram

UNREAD = 2


@dataclass(slots=True)
class Kept:
    """The program of a command, and the file that it goes to; neither unless it is asked for."""

    path: str = ""
    program: KeptProgram | None = None

    @contextmanager
    def listening(self, path: str | None) -> Iterator[None]:
        """Keep the program of what is solved in here."""
        if path is None:
            yield
            return
        from planner.solvers.kept import keeping_program

        with keeping_program() as self.program:
            self.path = path
            yield

    def beside(self, answer: Answer) -> Answer:
        """An answer, and beside its files the program."""
        if self.program is None or answer.code == UNREAD:
            return answer
        text = self.program.text()
        if text:
            return replace(answer, files=(*answer.files, (self.path, text)))
        note = "no program was solved: `--keep-program` leaves none"
        return replace(answer, message="\n".join(filter(None, (note, answer.message))))
