"""What is solved on the way to an answer: `--solver-report FILE` and `--keep-program FILE`.

Who solves tells it here, and where nobody wants to know that costs nothing.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import TypeVar

from planner.equations.arrays import BoolArray, FloatArray
from planner.programs.mixed import MixedProgram
from planner.programs.mps import as_lp, as_mps, row_words
from planner.programs.proofs import Vouched, vouched
from planner.running import meanwhile
from planner.solvers.solution import Answer, Effort, Word
from planner.specs.records.certificates import Proof
from planner.specs.records.solving import ProgramSize, Progress, SolvedProgram, SolverRun

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
    presolved: Callable[[], ProgramSize | None] = lambda: None
    """Called after the run, whose time does not contain it."""
    n_iterations: int = 0
    n_parts: int = 0
    events: list[Progress] = field(default_factory=list)
    multipliers: dict[str, float] = field(default_factory=dict)

    def hear(self, news: Progress) -> None:
        """Note an incumbent and a bound, if they are other than the last, and pass them on."""
        last = self.events[-1] if self.events else _NOTHING
        if (last.incumbent, last.bound) != (news.incumbent, news.bound):
            self.events.append(news)
        if len(self.events) > MOST_EVENTS:
            del self.events[1:-1:2]
        if self.tell is not None:
            self.tell(news)

    def price(self, program: MixedProgram, multipliers: FloatArray) -> None:
        """Note multipliers of the rows (R,) that a bound is recounted by."""
        priced = zip(row_words(program), multipliers.tolist(), strict=True)
        self.multipliers = {name: multiplier for name, multiplier in priced if multiplier}

    def ended(self, stated: MixedProgram | None, word: Word[Answer]) -> SolverRun:
        """The record of a run, which ended with a word; without a program it read arrays."""
        self.tell, proof, n_nodes = None, word.proof, word.n_nodes
        ends = {"incumbent": proof.value, "bound": proof.bound, "elapsed_s": proof.wall_s}
        self.hear(Progress(**ends, n_nodes=n_nodes))
        return SolverRun(
            statement=stated.name if stated else "",
            size=size_of(stated) if stated else None,
            presolved=self.presolved(),
            proof=proof,
            n_nodes=n_nodes,
            n_iterations=self.n_iterations,
            n_parts=self.n_parts,
            events=tuple(self.events),
            multipliers=self.multipliers,
        )


_NOTHING = Progress(incumbent=math.inf, bound=-math.inf, elapsed_s=0.0)


@dataclass(slots=True, kw_only=True)
class SolverLog:
    """All programs of an answer, where a report of them is wanted, and of them one to keep.

    That is the one on which provers disagreed, the first of these; and where none did, the first
    that was solved, which is what the answer is chosen from.
    """

    is_reported: bool = True
    programs: list[SolvedProgram] = field(default_factory=list)
    rows: Rows | None = None
    proofs: tuple[Proof, ...] = ()
    is_refuted: bool = False
    runs: list[SolverRun] | None = None
    """Of the program that is being solved; None between two."""

    def hear(self, rows: Rows | None, weighed: Vouched, value: float) -> None:
        """Keep the rows of a program, if it is the one to keep, and note it."""
        is_refuted = not all(proof.is_accepted for proof in weighed.proofs)
        if rows is not None and (self.rows is None or is_refuted > self.is_refuted):
            self.rows, self.proofs, self.is_refuted = rows, weighed.proofs, is_refuted
        if self.is_reported:
            self.note(rows() if rows else None, weighed, value, self.runs or ())

    def note(
        self, stated: MixedProgram | None, weighed: Vouched, value: float, runs: Sequence[SolverRun]
    ) -> None:
        """Note a program, what provers said of it, the best value, and runs of solvers.

        Not if it was nothing, or only said again what a solver had said that was asked alone.
        """
        said = self.programs[-1].proofs if self.programs and not runs else ()
        if weighed.proofs in ((), said if stated is None else ()):
            return
        names = [] if stated is None else map(stated.row_name, range(stated.n_rows))
        self.programs.append(
            SolvedProgram(
                purpose=_PURPOSE.get(),
                name=stated.name if stated else "",
                size=size_of(stated) if stated else None,
                rows=Counter(_NUMBER.sub("", name) or name for name in names),
                objective=value,
                bound=weighed.bound,
                vouched_by=weighed.by,
                proofs=weighed.proofs,
                runs=tuple(runs),
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


_LOG: ContextVar[SolverLog | None] = ContextVar("solver_log", default=None)
_RUN: ContextVar[RunNotes | None] = ContextVar("solver_run", default=None)
_PURPOSE: ContextVar[str] = ContextVar("purpose", default="")

notes_of_run = _RUN.get
"""The notes of the run that is under way; None where nobody wants them."""


@contextmanager
def recording(*, is_reported: bool = True) -> Iterator[SolverLog]:
    """Record what is solved in here: what solvers do, or only the program to keep."""
    log = SolverLog(is_reported=is_reported)
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
    outside, log.runs = log.runs, []
    try:
        yield partial(log.hear, rows)
    finally:
        log.runs = outside


def recorded(
    solve: Callable[[_Program, Effort], Word[Answer]],
) -> Callable[[_Program, Effort], Word[Answer]]:
    """A solver that is recorded, where somebody wants that; as part of another's run, counted."""

    @wraps(solve)
    def run(program: _Program, effort: Effort) -> Word[Answer]:
        log, outer = _LOG.get(), _RUN.get()
        if log is None or not log.is_reported:
            return solve(program, effort)
        notes = RunNotes(tell=effort.on_progress)
        with meanwhile(_RUN, notes):
            word = solve(program, replace(effort, on_progress=notes.hear))
        if outer is not None:
            outer.n_parts += 1
            return word
        stated = program if isinstance(program, MixedProgram) else None
        ran = notes.ended(stated, word)
        if log.runs is None:  # nobody else is going to be asked
            log.note(stated, vouched([word.proof], word.proof.value), word.proof.value, [ran])
        else:
            log.runs.append(ran)
        return word

    return run


def size_of(program: MixedProgram) -> ProgramSize:
    """Of a program as it is stated."""
    kinds = counts_of(program.is_whole, program.lower, program.upper)
    return ProgramSize(**kinds, n_rows=program.n_rows, n_nonzeros=len(program.value))


def counts_of(is_whole: BoolArray, lower: FloatArray, upper: FloatArray) -> dict[str, int]:
    """Columns (N,) by what they may be."""
    is_binary = is_whole & (lower >= 0) & (upper <= 1)
    kinds = {"n_binary": is_binary, "n_integer": is_whole & ~is_binary, "n_continuous": ~is_whole}
    return {name: int(kind.sum()) for name, kind in kinds.items()}
