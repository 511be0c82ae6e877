"""Programs that were solved on the way to an answer, and what each solver did with them.

Values and bounds are in the program's own unit and are minimised: inf is no answer, a bound of −inf
says nothing. Seconds are of the machine that solved it. Nothing of it can be recounted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.specs.records.certificates import Proof


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSize:
    """Columns by what they may be; rows and entries that are not 0, where a solver says them."""

    n_binary: int
    n_integer: int
    n_continuous: int
    n_rows: int | None = None
    n_nonzeros: int | None = None

    @property
    def n_columns(self) -> int:
        return self.n_binary + self.n_integer + self.n_continuous


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The best answer and bound of a running solver after so long; infinite without one."""

    incumbent: float
    bound: float
    elapsed_s: float
    n_nodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverRun:
    """One solver on one statement of a program, the name and size of its rows, and its verdict.

    Args:
        statement, size: empty and None where it read arrays.
        presolved: what its presolve leaves, or what it searches; None where it does not say.
        n_nodes, n_iterations: nodes, branches or points, and iterations of linear programs; 0 too
            where it does not say.
        n_parts: programs that it had solved by other solvers.
        events: incumbent and bound over time, the last as in the verdict.
        multipliers: of rows by name, those that are not 0, where a bound is recounted by them.
    """

    statement: str
    size: ProgramSize | None
    presolved: ProgramSize | None
    proof: Proof
    n_nodes: int
    n_iterations: int
    n_parts: int
    events: tuple[Progress, ...]
    multipliers: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedProgram:
    """A program as stated, and what all provers said of it, the planner's own arithmetic too.

    Args:
        purpose: what it was solved for.
        name, size: of its rows; empty and None where it was settled before any were stated.
        rows: how many there are of each name, without numbers and what stands in brackets.
        objective, bound: of the best answer, and what is vouched for.
        vouched_by: by whom; empty where one solver is alone.
    """

    purpose: str
    name: str
    size: ProgramSize | None
    rows: Mapping[str, int]
    objective: float
    bound: float
    vouched_by: tuple[str, ...]
    proofs: tuple[Proof, ...]
    runs: tuple[SolverRun, ...]
