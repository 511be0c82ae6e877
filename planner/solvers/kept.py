"""Programs as provers saw them, for whoever wants to see for himself: `--keep-program FILE`.

Of all programs of an answer the one is kept on which provers disagreed, the first of these; and
where none did, the first that was asked, which is what the answer is chosen from.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from planner.programs.mixed import MixedProgram
from planner.programs.mps import as_mps
from planner.running import meanwhile
from planner.specs.records.certificates import Proof

Rows = Callable[[], MixedProgram]


@dataclass(slots=True, kw_only=True)
class KeptProgram:
    """The program that is kept, and what was said of it; nothing before one is solved."""

    rows: Rows | None = None
    proofs: tuple[Proof, ...] = ()

    def hear(self, rows: Rows, proofs: Sequence[Proof]) -> None:
        """Of a program that was solved, and of what provers said."""
        if self.rows is None or (_disagree(proofs) and not _disagree(self.proofs)):
            self.rows, self.proofs = rows, tuple(proofs)

    def text(self) -> str:
        """The program in free MPS, its provers' words as comments; empty without one."""
        if self.rows is None:
            return ""
        notes = [
            f"{proof.prover}: {proof.outcome}, value {proof.value!r}, bound {proof.bound!r}"
            + (f" ({proof.note})" if proof.note else "")
            for proof in self.proofs
        ]
        return as_mps(self.rows(), notes=["to be minimised", *notes])


def _disagree(proofs: Sequence[Proof]) -> bool:
    return any(not one.is_accepted for one in proofs)


_LISTENER: ContextVar[KeptProgram | None] = ContextVar("kept_program", default=None)


@contextmanager
def keeping_program() -> Iterator[KeptProgram]:
    """Keep a program of what is solved in here."""
    kept = KeptProgram()
    with meanwhile(_LISTENER, kept):
        yield kept


def tell(rows: Rows | None, proofs: Sequence[Proof]) -> None:
    """Tell whoever keeps programs, if anybody does."""
    listener = _LISTENER.get()
    if listener is not None and rows is not None:
        listener.hear(rows, proofs)
