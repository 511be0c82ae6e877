"""What is solved on the way to an answer: `--solver-report FILE` and `--keep-program FILE`.

Who solves tells it here, and where nobody wants to know that costs nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TypeVar

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.mixed import MixedProgram
from planner.programs.mps import as_lp, as_mps
from planner.programs.proofs import Vouched, vouched
from planner.running import meanwhile
from planner.solvers.solution import Answer, Clock, Effort, Progress, Word
from planner.specs.records.certificates import Proof
from planner.specs.records.solving import BoundEvent, ProgramSize, SolvedProgram, SolverRun

Rows = Callable[[], MixedProgram]
_Program = TypeVar("_Program")

_NUMBER = re.compile(r"[\d_]*([\[(].*)?$")
"""Of a row among those of its name: `hbm[3]`, `time0_12`."""

MOST_EVENTS = 400
"""Of a run; of more, every other is forgotten."""


@dataclass(slots=True, kw_only=True)
class RunNotes:
    """What a solver tells of a run while it lasts: see `SolverRun`."""

    tell: Callable[[Progress], None] | None = None
    clock: Clock = field(default_factory=Clock)
    presolved: ProgramSize | None = None
    n_iterations: int = 0
    n_parts: int = 0
    events: list[BoundEvent] = field(default_factory=list)
    multipliers: dict[str, float] = field(default_factory=dict)

    def hear(self, incumbent: float, bound: float, n_nodes: int = 0) -> None:
        """Note an incumbent and a bound, if they are news."""
        last = self.events[-1] if self.events else None
        if last is None or (last.incumbent, last.bound) != (incumbent, bound):
            elapsed_s = self.clock.elapsed_s()
            self.events.append(
                BoundEvent(elapsed_s=elapsed_s, incumbent=incumbent, bound=bound, n_nodes=n_nodes)
            )
        if len(self.events) > MOST_EVENTS:
            del self.events[1:-1:2]

    def told(self, news: Progress) -> None:
        """Note news of a solver, and pass them on."""
        self.hear(news.incumbent, news.bound, news.n_nodes)
        if self.tell is not None:
            self.tell(news)

    def price(self, program: MixedProgram, multipliers: FloatArray) -> None:
        """Note multipliers of the rows (R,) that a bound is recounted by."""
        for r in np.flatnonzero(multipliers).tolist():
            self.multipliers[program.row_name(r)] = float(multipliers[r])

    def ended(self, program: object, word: Word[Answer]) -> SolverRun:
        """The record of the run of a program, which ended with a word."""
        self.hear(word.proof.value, word.proof.bound, word.n_nodes)
        stated = program if isinstance(program, MixedProgram) else None
        return SolverRun(
            statement=stated.name if stated else "",
            size=size_of(stated) if stated else None,
            presolved=self.presolved,
            proof=word.proof,
            n_nodes=word.n_nodes,
            n_iterations=self.n_iterations,
            n_parts=self.n_parts,
            events=tuple(self.events),
            multipliers=self.multipliers,
        )


@dataclass(slots=True, kw_only=True)
class SolverLog:
    """All programs of an answer, and of them one to keep.

    That is the one on which provers disagreed, the first of these; and where none did, the first
    that was solved, which is what the answer is chosen from.
    """

    clock: Clock = field(default_factory=Clock)
    programs: list[SolvedProgram] = field(default_factory=list)
    rows: Rows | None = None
    proofs: tuple[Proof, ...] = ()
    runs: list[SolverRun] | None = None
    """Of the program that is being solved; None between two."""

    def keep(self, rows: Rows | None, proofs: tuple[Proof, ...]) -> None:
        """Keep the rows of a program, if it is the one to keep."""
        is_worse = any(map(_is_refused, proofs)) and not any(map(_is_refused, self.proofs))
        if rows is not None and (self.rows is None or is_worse):
            self.rows, self.proofs = rows, proofs

    def note(
        self, stated: MixedProgram | None, weighed: Vouched, value: float, began_s: float
    ) -> None:
        """Note a program, what provers said of it, the best value, and when it began.

        Not if it was nothing, or only said again what a solver had said that was asked alone.
        """
        said = self.programs[-1].proofs if self.programs and not self.runs else ()
        if weighed.proofs in ((), said if stated is None else ()):
            return
        names = [] if stated is None else map(stated.row_name, range(stated.n_rows))
        self.programs.append(
            SolvedProgram(
                purpose=_PURPOSE.get(),
                name=stated.name if stated else "",
                began_s=began_s,
                size=size_of(stated) if stated else None,
                rows=Counter(_NUMBER.sub("", name) or name for name in names),
                objective=value,
                bound=weighed.bound,
                vouched_by=weighed.by,
                proofs=weighed.proofs,
                runs=tuple(self.runs or ()),
            )
        )

    def text(self, *, is_lp: bool = False) -> str:
        """The kept program as LP or in free MPS, its provers' words as comments; or nothing."""
        if self.rows is None:
            return ""
        notes = [
            f"{proof.prover}: {proof.outcome}, value {proof.value!r}, bound {proof.bound!r}"
            + (f" ({proof.note})" if proof.note else "")
            for proof in self.proofs
        ]
        return (as_lp if is_lp else as_mps)(self.rows(), notes=["to be minimised", *notes])


def _is_refused(proof: Proof) -> bool:
    return not proof.is_accepted


_LOG: ContextVar[SolverLog | None] = ContextVar("solver_log", default=None)
_RUN: ContextVar[RunNotes | None] = ContextVar("solver_run", default=None)
_PURPOSE: ContextVar[str] = ContextVar("purpose", default="")

notes_of_run = _RUN.get
"""The notes of the run that is under way; None where nobody wants them."""


@contextmanager
def recording() -> Iterator[SolverLog]:
    """Record what is solved in here."""
    log = SolverLog()
    with meanwhile(_LOG, log):
        yield log


@contextmanager
def solving_for(purpose: str) -> Iterator[None]:
    """Say what programs are solved for in here, behind what was said outside."""
    with meanwhile(_PURPOSE, ": ".join(filter(None, (_PURPOSE.get(), purpose)))):
        yield


@contextmanager
def recorded_program(rows: Rows | None) -> Iterator[Callable[[Vouched, float], None]]:
    """Solve a program: whoever knows what provers say of it, and the best value, tells it."""
    log = _LOG.get()
    if log is None:
        yield lambda weighed, value: None
        return
    began_s = log.clock.elapsed_s()

    def hear(weighed: Vouched, value: float) -> None:
        log.keep(rows, weighed.proofs)
        log.note(rows() if rows else None, weighed, value, began_s)

    outside, log.runs = log.runs, []
    try:
        yield hear
    finally:
        log.runs = outside


def recorded(
    solve: Callable[[_Program, Effort], Word[Answer]],
) -> Callable[[_Program, Effort], Word[Answer]]:
    """A solver that is recorded, where somebody wants that; as part of another's run, counted."""

    @wraps(solve)
    def run(program: _Program, effort: Effort) -> Word[Answer]:
        log, outer = _LOG.get(), _RUN.get()
        if log is None:
            return solve(program, effort)
        notes, began_s = RunNotes(tell=effort.on_progress), log.clock.elapsed_s()
        with meanwhile(_RUN, notes):
            word = solve(program, replace(effort, on_progress=notes.told))
        if outer is not None:
            outer.n_parts += 1
        elif log.runs is not None:
            log.runs.append(notes.ended(program, word))
        else:  # nobody else is going to be asked
            log.runs = [notes.ended(program, word)]
            stated = program if isinstance(program, MixedProgram) else None
            weighed = vouched([word.proof], word.proof.value)
            log.note(stated, weighed, word.proof.value, began_s)
            log.runs = None
        return word

    return run


def size_of(program: MixedProgram) -> ProgramSize:
    """Of a program as it is stated."""
    whole = program.is_whole
    n_binary = int((whole & (program.lower >= 0) & (program.upper <= 1)).sum())
    return ProgramSize(
        n_binary=n_binary,
        n_integer=int(whole.sum()) - n_binary,
        n_continuous=int((~whole).sum()),
        n_rows=program.n_rows,
        n_nonzeros=len(program.value),
    )
