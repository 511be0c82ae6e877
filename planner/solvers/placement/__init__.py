"""Placement programs solved: the same backends, for counts of copies instead of one-of-many.

The objective first, then each of the program's ties among its optima, so that the answer of
one backend is always the same one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.layout import RELATIVE_TOLERANCE, ceiling, exceeds
from planner.programs.mixed import TOLERANCE, MixedProgram
from planner.programs.placement import (
    Counts,
    PlacementProgram,
    is_hopeless,
    keeping,
    limited,
    most_copies,
    n_sorts,
    placement_objective,
    total,
    violations,
)
from planner.programs.proofs import is_closed
from planner.programs.relaxation import placement_rows
from planner.solvers.mixed import MIXED_SOLVERS, Formulation
from planner.solvers.proving import Proved, Prover, prove
from planner.solvers.recording import recorded, solving_for
from planner.solvers.solution import Effort, Status, Word
from planner.specs.ask.targets import Provers
from planner.specs.records.certificates import Outcome, Proof

PLACEMENT_SOLVERS = ("highs", "cpsat", "narrowing", "exhaustive")
"""Not to be asked for by itself: `branching`, which proves packings only, and finds no others."""
_THEN = {
    "highs": ("cpsat", "scip"),
    "cpsat": ("highs", "scip"),
    "narrowing": ("cpsat", "scip"),
    "exhaustive": (),
}
"""Whom to ask next: those of another lineage, the one that starts sooner first."""

MOST_BY_CPSAT = 60
"""Columns of a program that CP-SAT is asked first about: beyond, SCIP takes a tenth of the time."""

LEAST_TIME_S = 0.01
LEAST_TIED_S = 1.0
"""Time that ties may take at least, together."""
MOST_TIED = 100
N_ALWAYS = 3
"""Ties that are broken whatever the number of columns."""
MOST_STATED = 300_000
"""Uses of resources up to which a packing is stated whole, for a second solver: of more of them it
takes minutes that nothing can interrupt, and gigabytes."""
FEW_RESOURCES = 100
"""Of a packing that solvers of rows end with in a second, whatever the time limit."""
MOST_COUNTED = 100_000
"""Choices of a program that are all looked at, in place of a second solver."""

Backend = Callable[[PlacementProgram, Effort], Word[Counts]]

__all__ = ["PLACEMENT_SOLVERS", "PlacementSolution", "solve_placement"]


def solve_placement(
    program: PlacementProgram,
    *,
    solver: str = "highs",
    effort: Effort | None = None,
    proof: Provers = "two",
) -> PlacementSolution:
    """Place copies at the least objective, with proof; among optima, at the least ties.

    The certificate is of the objective. Ties may take as long as the proof did, and `LEAST_TIED_S`
    where that is more, or where a packing is narrowed; then the choice that is in hand stays. Of a
    program of more than `MOST_TIED` columns only the first `N_ALWAYS` ties are broken.

    Args:
        program: what to place, and on what.
        solver: a name in `PLACEMENT_SOLVERS`.
        effort: time limit, gap, threads, seed; of all solves together.
        proof: how many have to vouch: `two`, or `one`.

    Raises:
        SolverError: no such solver; or no solver has an answer.
    """
    if solver not in PLACEMENT_SOLVERS:
        raise SolverError(f"no solver `{solver}`: there are {', '.join(PLACEMENT_SOLVERS)}")
    effort = effort or Effort()
    began_s = time.perf_counter()
    at_once = counted(program)
    if at_once is not None:
        return prove((), effort, wanted=proof, known=(at_once,))
    known: list[Word[Counts]] = []
    if solver == "narrowing":
        known.append(import_module(f"{__name__}.starting").at_even_prices(program))
    if known and is_closed(known[0].proof.value, known[0].proof.bound, effort.gap):
        solution = prove((), effort, wanted=proof, known=known)
    else:
        provers, rows = _provers(program, solver, effort), formulation(program).rows
        solution = prove(provers, effort, wanted=proof, known=known, rows=rows)
        solution = _confirmed(program, solution, _time_left(effort, began_s), proof)
    if program.ties and solution.answer is not None and solution.status.is_final:
        solution = _settled(program, solution, solver, _time_of_ties(effort, solver, began_s))
    return solution


def _time_of_ties(effort: Effort, solver: str, began_s: float) -> Effort:
    spent_s = 0.0 if solver == "narrowing" else time.perf_counter() - began_s
    left = replace(_time_left(effort, began_s), on_progress=None, gap=0.0)
    most_s = min(max(LEAST_TIED_S, spent_s), left.time_limit_s or math.inf)
    return replace(left, time_limit_s=most_s)


def formulation(program: PlacementProgram) -> Formulation[Counts]:
    """The program as rows."""
    return Formulation(
        rows=partial(placement_rows, program),
        answer=partial(_counts, program),
        violations=partial(violations, program),
        value=partial(placement_objective, program),
        repaired=_finer,
        same_bound=10 * RELATIVE_TOLERANCE,
    )


def _counts(program: PlacementProgram, values: FloatArray) -> Counts:
    """Copies of each column: the first of the values."""
    return Counts(copies=tuple(int(n) for n in np.rint(values[: program.n_columns])))


def _finer(rows: MixedProgram, counts: Counts, broken: Mapping[str, float]) -> MixedProgram | None:
    """The rows for a fine tolerance, with which a search is five times as long."""
    kinds = ("mip", "primal", "dual")
    fine = {f"{kind}_feasibility_tolerance": TOLERANCE for kind in kinds}
    usual = rows.hints["highs"]
    if usual == (highs := {**usual, **fine}):
        return None
    return replace(rows, hints={**rows.hints, "highs": highs})


def _provers(program: PlacementProgram, solver: str, effort: Effort) -> list[Prover[Counts]]:
    """Whom to ask, in order: the solver, then enumeration, or others where it cannot.

    Within a time limit a packing has branches and narrowing, a large one always: what solvers of
    rows would add is less than the time that they take.
    """
    from planner.solvers.placement import branching, exhaustive

    if solver != "exhaustive" and exhaustive.is_small(program, MOST_COUNTED):
        return [_prover(program, solver), _prover(program, "exhaustive")]
    if solver == "narrowing" and _is_long(program, effort):
        first = ["branching"] if branching.applies(program) else []
        return [_prover(program, name) for name in (*first, solver)]
    others = _THEN[solver]
    if program.n_columns > MOST_BY_CPSAT and others[:1] == ("cpsat",):
        others = others[::-1]
    return [_prover(program, name) for name in (solver, *others)]


def _confirmed(
    program: PlacementProgram, solution: PlacementSolution, effort: Effort, proof: Provers
) -> PlacementSolution:
    """Where a prover of packings alone has found that there is none, what those of rows say."""
    if solution.status is not Status.UNKNOWN or solution.vouched.alone < math.inf:
        return solution
    provers = [_prover(program, name) for name in ("highs", *_THEN["highs"])]
    return prove(provers, effort, wanted=proof, rows=formulation(program).rows)


def _is_long(program: PlacementProgram, effort: Effort) -> bool:
    """Whether solvers of rows would take too long to prove a packing."""
    is_limited = effort.seconds() is not None and program.n_resources > FEW_RESOURCES
    return is_limited or len(program.uses.amount) > MOST_STATED


def _prover(program: PlacementProgram, name: str) -> Prover[Counts]:
    if name in MIXED_SOLVERS:
        return partial(formulation(program).word, name)

    def ask(effort: Effort) -> Word[Counts]:
        backend: Backend = import_module(f"{__name__}.{name}").solve
        word = recorded(backend)(program, effort)
        if name == "exhaustive":
            word = formulation(program).judged(word, word.answer, wall_s=word.proof.wall_s)
        return word

    return ask


def _time_left(effort: Effort, began_s: float) -> Effort:
    return effort.less(time.perf_counter() - began_s, least_s=LEAST_TIME_S)


@solving_for("ties")
def _settled(
    program: PlacementProgram, solution: PlacementSolution, solver: str, effort: Effort
) -> PlacementSolution:
    """The same proof, for the first of the choices that are as good, or nearly.

    Nothing is claimed of ties, so one solver's word is enough for them. Of the objective no more is
    given up for the first `N_ALWAYS` than they need, and nothing for others; and no further sort of
    replica is used.
    """
    assert solution.answer is not None
    began_s, counts = time.perf_counter(), solution.answer
    program = replace(program, most_sorts=n_sorts(program, counts))
    kept = replace(program, ties=())

    def least(best: PlacementProgram) -> Counts:
        return _better(best, counts, solver, _time_left(effort, began_s)) or counts

    best = replace(program, ties=program.ties[:N_ALWAYS])
    while best.ties:
        best = keeping(best, counts)
        counts = least(best)
        kept = limited(kept, best.objective, ceiling(total(best.objective, counts)))
    if exceeds(placement_objective(program, counts), solution.objective):
        counts = least(kept)
    best = replace(kept, ties=program.ties[N_ALWAYS:], ties_within=0.0)
    while best.ties and program.n_columns <= MOST_TIED:
        best = keeping(best, counts)
        counts = least(best)
    return replace(solution, answer=counts, objective=placement_objective(program, counts))


def _better(
    program: PlacementProgram, counts: Counts, solver: str, effort: Effort
) -> Counts | None:
    """Counts of a lesser objective, in time; None without any."""
    value = placement_objective(program, counts)
    if value == 0.0 and (program.objective >= 0).all() and not program.is_for_share:
        return None
    answer = counted(program) or _prover(program, solver)(effort)
    return answer.answer if answer.answer and answer.proof.value <= value else None


PlacementSolution = Proved[Counts]
"""What provers say of a program; its objective is to be minimised, so a share counts negative."""

MOST_COPIES = 1 << 24
"""Of a column: with bounds of 2^40 HiGHS 1.13 has called optimal what was 2 % off."""


def counted(program: PlacementProgram) -> Word[Counts] | None:
    """What arithmetic says where there is nothing to search: a row cannot hold, or no choice.

    Raises:
        SolverError: a column has no bound.
    """
    most = most_copies(program)
    if is_hopeless(program, most):
        return Word(answer=None, proof=_by_arithmetic("infeasible", math.inf, math.inf))
    if (most > MOST_COPIES).any():
        raise SolverError("a column of a placement may have copies without end")
    if (most > 0).any():
        return None
    nothing = Counts(copies=(0,) * program.n_columns)
    value = placement_objective(program, nothing)
    return Word(answer=nothing, proof=_by_arithmetic("optimal", value, value))


def _by_arithmetic(outcome: Outcome, value: float, bound: float) -> Proof:
    return Proof(
        prover="room of each column", outcome=outcome, value=value, bound=bound, wall_s=0.0
    )
