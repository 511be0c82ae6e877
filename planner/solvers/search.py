"""From a posed program to a verified optimum, and to the plans that come after it.

The order is lexicographic: first the objective, then, among its optima, the cost per token.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from planner.errors import SolverError
from planner.programs.blocks import NO_RELIEFS, BlockProgram, ProgramBlocks
from planner.programs.layout import (
    Assignment,
    LayoutProgram,
    Limit,
    ceiling,
    exceeds,
    objective,
    restrict,
    violations,
)
from planner.programs.proofs import claim
from planner.programs.reduction import Reduced, reduced
from planner.programs.screens import Screening, screen
from planner.running.deadlines import is_over, out_of_time, timed
from planner.solvers import LayoutSolution, counted, enumerated, formulation, provers_of, solve
from planner.solvers.proving import Prover, in_hand, prove
from planner.solvers.recording import solving_for
from planner.solvers.solution import Effort, Status, Word, effort_of
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.solving import Progress

N_ALTERNATIVES = 3
PRIMARY = "primary"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """What a search found.

    Args:
        solution: what the provers say of the screened program, and on small instances of the
            unscreened one; its objective is the primary one.
        assignment: the choice, in the columns of `posed`; `None` without one.
        alternatives: the next best, each with its primary objective.
        reduced: what the screens left and rejected.
    """

    solution: LayoutSolution
    assignment: Assignment | None
    alternatives: tuple[tuple[Assignment, float], ...]
    reduced: Reduced

    @property
    def posed(self) -> BlockProgram:
        """The part of the program that assignments are of."""
        return self.reduced.posed

    @property
    def screened(self) -> Screening:
        """What the screens left of it; the account is that of the whole program."""
        return self.reduced.screening


@timed
@solving_for("best plan")
def search(
    source: ProgramBlocks,
    options: SolverOptions,
    *,
    n_alternatives: int = N_ALTERNATIVES,
    reliefs: Mapping[str, float] = NO_RELIEFS,
    on_progress: Callable[[Progress], None] | None = None,
) -> SearchResult:
    """Screen, solve, break ties by cost, and solve again for the runners-up.

    Args:
        source: the program, block by block.
        reliefs: see `reduced`.

    Raises:
        SolverError: an answer fails `violations` on the unscreened program; or no solver has one.
    """
    left = reduced(source, n_best=1 + n_alternatives, reliefs=reliefs)
    posed, screened = left.posed, left.screening
    solution = _proved(left, options, on_progress)
    best = solution.answer
    if best is None or not solution.status.is_final:  # it goes out at once
        _check_unscreened(source, posed, [] if best is None else [best])
        return SearchResult(solution=solution, assignment=best, alternatives=(), reduced=left)
    _verify(posed.program, best)
    after = _alternatives(posed.program, screened, best, options, n_alternatives)
    if any(exceeds(solution.objective, value) for _, value in after):  # a gap lets this happen
        ranked = sorted([(best, solution.objective), *after], key=lambda pair: pair[1])
        (best, value), *after = ranked
        solution = replace(solution, answer=best, objective=value)
    if posed.tie_breakers:
        first, best = best, break_ties(posed, best, options)
        # the best of the ties may use the pool as a runner-up does, which what it was then beats
        after = [
            (first, solution.objective) if pair.context == best.context else (pair, value)
            for pair, value in after
        ]
    _check_unscreened(source, posed, [best, *(other for other, _ in after)])
    return SearchResult(solution=solution, assignment=best, alternatives=tuple(after), reduced=left)


MOST_UNSCREENED = 200_000
"""Assignments of an unscreened program that are all looked at, so that a wrong screen is seen."""


def _proved(
    left: Reduced, options: SolverOptions, on_progress: Callable[[Progress], None] | None
) -> LayoutSolution:
    """What the provers say of the screened program, in the columns that bounds left.

    What the screens met on the way is an answer in hand: a solver that stops early may miss it.
    Of a small program every unscreened assignment is looked at, so that a wrong screen is seen.
    """
    screened = left.screening
    known = [] if left.is_cut else [counted(screened.program)]
    if screened.incumbent is not None:
        value = objective(left.posed.program, screened.incumbent)
        known.append(in_hand(screened.incumbent, value))
    if left.is_cut:  # of what was not looked at nothing is known
        return prove((), Effort(), known=[*known, *_not_negative(left)])
    if options.proof == "two" and options.solver != "exhaustive":
        known += enumerated(left.posed.program, MOST_UNSCREENED) if left.is_whole else []
        known += [_mapped(screened, word) for word in enumerated(screened.program)]
    solvers = provers_of(screened.program, options.solver)
    provers = [partial(_answer_of, screened, prover) for prover in solvers]
    effort = replace(effort_of(options), on_progress=on_progress)
    rows = formulation(screened.program).rows
    return prove(provers, effort, wanted=options.proof, known=known, rows=rows)


def _not_negative(left: Reduced) -> list[Word[Assignment]]:
    """That what is not negative is at least zero: all that is known of what was not looked at."""
    program = left.posed.program
    values = (program.context_objective, program.column_objective)
    if any((one < 0).any() for one in values):
        return []
    return [Word(answer=None, proof=claim("the sign of all values", 0.0))]


def _answer_of(screened: Screening, prover: Prover[Assignment], effort: Effort) -> Word[Assignment]:
    return _mapped(screened, prover(effort))


def _mapped(screened: Screening, word: Word[Assignment]) -> Word[Assignment]:
    """A word of the screened program in the columns of the unscreened one."""
    assignment = None if word.answer is None else screened.original(word.answer)
    return replace(word, answer=assignment)


@timed
@solving_for("best at other limits")
def optimum(
    source: ProgramBlocks, options: SolverOptions, *, known: float = math.inf
) -> LayoutSolution:
    """The least objective of a program, without runners-up and ties.

    With the objective of a `known` plan, what is not as good counts as infeasible.

    Raises:
        OutOfTimeError: time ended before it was known.
        UnsettledError: the provers do not agree on it.
    """
    left = reduced(source, known=known)
    if left.is_cut:
        raise out_of_time()
    solution = _solve(left.screening.program, options)
    if not solution.status.is_final:
        raise solution.unsettled()
    return solution


@timed
@solving_for("whether anything keeps the limits")
def is_feasible(source: ProgramBlocks, options: SolverOptions) -> bool:
    """Whether anything satisfies the program.

    Raises:
        OutOfTimeError: time ended before that was known.
        UnsettledError: the provers do not agree on it.
    """
    left = reduced(source, until_met=True)
    if left.screening.incumbent is not None:
        return True
    if left.is_cut:
        raise out_of_time()
    solution = _solve(left.screening.program, options)
    if solution.status is Status.UNKNOWN:
        raise solution.unsettled()
    return solution.answer is not None


def _solve(program: LayoutProgram, options: SolverOptions) -> LayoutSolution:
    return solve(program, solver=options.solver, effort=effort_of(options), proof=options.proof)


def _verify(program: LayoutProgram, assignment: Assignment) -> None:
    if broken := violations(program, assignment):
        raise SolverError(f"the plan breaks what the screens should have kept: {broken}")


def _check_unscreened(
    source: ProgramBlocks, posed: BlockProgram, assignments: Sequence[Assignment]
) -> None:
    """Every assignment once more on its whole context, stated anew and not screened.

    Contexts of a model are stated together: operations that they share are timed once.
    """
    contexts = np.array(sorted({one.context for one in assignments}), dtype=np.int64)
    of_model = {
        model: source.of(model, posed.number[contexts[posed.model[contexts] == model]])
        for model in set(posed.model[contexts].tolist())
    }
    for assignment in assignments:
        whole = of_model[int(posed.model[assignment.context])]
        try:
            _verify(whole.program, whole.place_of(posed, assignment))
        except LookupError as error:
            raise SolverError(f"the screens left what was not there: {error}") from None


@timed
@solving_for("ties")
def break_ties(posed: BlockProgram, best: Assignment, options: SolverOptions) -> Assignment:
    """Among plans with the optimal objective, the best by one quantity after the other.

    Out of time, or within a gap, the solver may return a worse one: then the first stays.
    """
    program = posed.program
    for name in posed.tie_breakers:
        if is_over():
            break
        context, column = posed.quantities[name]
        program = replace(
            program,
            context_objective=context,
            column_objective=column,
            limits=(*program.limits, _no_worse(program, best)),
        )
        screened = screen(program, n_best=1)
        solution = _solve(screened.program, options)
        if solution.answer is None:
            return best
        assignment = screened.original(solution.answer)
        _verify(program, assignment)
        if not exceeds(objective(program, assignment), objective(program, best)):
            best = assignment
    return best


def _no_worse(program: LayoutProgram, best: Assignment) -> Limit:
    n_before = sum(limit.name.startswith(PRIMARY) for limit in program.limits)
    return Limit(
        name=f"{PRIMARY}{n_before or ''}",
        context=program.context_objective,
        column=program.column_objective,
        at_most=ceiling(objective(program, best)),
    )


@solving_for("next best")
def _alternatives(
    program: LayoutProgram,
    screened: Screening,
    best: Assignment,
    options: SolverOptions,
    n_alternatives: int,
) -> list[tuple[Assignment, float]]:
    """The best plans in other contexts, one after the other, each context once.

    Args:
        best: in the unscreened program.
    """
    left = np.arange(screened.program.n_contexts)
    used, alternatives = int(np.searchsorted(screened.contexts, best.context)), []
    for _ in range(n_alternatives):
        left = left[left != used]
        columns = np.flatnonzero(np.isin(screened.program.column_context, left))
        if not len(left) or not len(columns) or is_over():
            break
        rest = restrict(screened.program, contexts=left, columns=columns)
        solution = _solve(rest, options)
        if solution.answer is None or not solution.status.is_final:
            break
        used = int(left[solution.answer.context])
        chosen = Assignment(
            context=used, columns=tuple(int(columns[j]) for j in solution.answer.columns)
        )
        assignment = screened.original(chosen)
        _verify(program, assignment)
        alternatives.append((assignment, solution.objective))
    return alternatives
