"""What proves an answer: who vouches for its bound, what was rejected and why, what was checked.

One record for every kind of answer. Its numbers are in SI units; seconds of provers and their
versions are for people, and nothing is verified of them.
"""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["optimal", "infeasible", "stopped", "refused"]
_LINEAGES = ("highs", "cpsat", "scip")
"""Solvers, by the family of their code; any other prover is the project's own arithmetic."""

CLOSER = "replicas that lie closer together"
SIMPLER = "simpler replicas within the error of what is predicted"
"""What up to `planner.specs.ask.defaults.NEAR_SHARE` of a placement's objective is given up for."""

NO_GAP = 1e-9
"""A gap up to which two figures differ by rounding."""

OPTIMAL, UNCONFIRMED, FEASIBLE, LEAST_MOVED = "optimal", "unconfirmed", "feasible", "least-moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What one prover says of one program.

    Args:
        prover: who: `highs 1.13.1`, `cpsat 9.15`, `scip 9.15`, `enumeration of 12 choices`, …
        outcome: `optimal`, or `infeasible`, as it says itself; `stopped` before either, with a
            bound; `refused` where what it said is refuted or was no answer.
        value: of its answer, recomputed from the arrays, in the unit of the program; in that of
            the objective in a certificate; inf without an answer.
        bound: nothing is better, it says, in the same unit; inf where nothing is feasible, −inf
            where it says nothing.
        wall_s: that it took.
        note: why it was refused, or what stopped it.
        program: which program it is of, where an answer rests on several.
    """

    prover: str
    outcome: Outcome
    value: float
    bound: float
    wall_s: float
    note: str = ""
    program: str = ""

    @property
    def lineage(self) -> str:
        """The family of its code: two of one family are one word."""
        return self.prover.split(" ")[0]

    @property
    def is_own(self) -> bool:
        """Whether it is the project's arithmetic, and no solver's word."""
        return self.lineage not in _LINEAGES

    @property
    def is_accepted(self) -> bool:
        return self.outcome != "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A lossless test that candidates failed before the solver saw them."""

    name: str
    n_candidates: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationStep:
    """The best answer of at most so many sorts of replicas.

    Args:
        n_sorts: of model, engine, role, kind of devices and degrees.
        objective, bound: in the unit of the certificate's, SI.
    """

    n_sorts: int
    objective: float
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Why an answer is the best: its bound and who vouches for it, the screens, the checks.

    Args:
        status: `optimal` within the gap that was asked for; `unconfirmed` where one solver says
            so and nobody vouches for it; `feasible` when time ended before; or `least-moved`: of
            a repair, that nothing within the loss that was asked for moves less.
        objective_name: what was optimised: `cost`, `rent`, `throughput`, …
        objective: value of the answer, SI; for throughput, output tokens a second.
        bound: no answer is better than this; same unit.
        gap: |objective − bound| / |objective|.
        dimension: of objective and bound, as `units.show` takes it.
        proofs: what each prover said, in the order in which they were asked; values and bounds
            in the unit of the objective.
        vouched_by: provers that vouch for the bound; empty where one solver is alone with it.
        vouched_bound: the best that is vouched for, where that is less than the bound; else the
            bound; None where nobody vouches for anything.
        n_candidates: choices that were considered.
        n_contexts: ways to use the pool that were considered.
        screens: what was rejected before the solver, and why that loses nothing.
        n_solved: candidates that reached the solver.
        verified: checks that the answer passed, none of them by the code that found it.
        wall_s: time from request to answer.
        solve_s: part of it spent in provers.
        n_programs: programs that were solved for it.
        n_branches: branches or choices that the first prover looked at; 0 where none was needed.
        sorts: the best of each number of sorts of replicas that was looked at, the last of any
            number; status and bound are of the number that was chosen. None where fewer than
            there are could not be better.
        sort_price: what each sort beyond the fewest costs, of the best objective with the fewest;
            None where there are no such numbers.
        given_up_for: what a gap that nobody asked for was given up for.
    """

    status: str
    objective_name: str
    objective: float
    bound: float
    gap: float
    dimension: str
    proofs: tuple[Proof, ...]
    vouched_by: tuple[str, ...]
    vouched_bound: float | None
    n_candidates: int
    n_contexts: int
    screens: tuple[Screen, ...]
    n_solved: int
    verified: tuple[str, ...]
    wall_s: float
    solve_s: float
    n_programs: int = 1
    n_branches: int = 0
    sorts: tuple[ConfigurationStep, ...] = ()
    sort_price: float | None = None
    given_up_for: str = ""

    @property
    def solver(self) -> str:
        """Who was asked first."""
        return next((proof.prover for proof in self.proofs if not proof.is_own), "enumeration")
