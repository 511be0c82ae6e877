"""The frontier of a trade-off, and one program that proves all of it.

The screens leave few columns, and the staircase of their combinations is the frontier in hand.
To prove it point by point, an ε-constraint method asks for the cheapest assignment within each
delay. One question asks that for every delay at once: *which assignment lies furthest below the
staircase?*

    minimise   price - staircase(delay)      over all assignments

The delay is that of one column, so the staircase is a constant of each column, and this is the
same linear program with another objective. Where its optimum is zero, nothing that takes at
most as long as a point costs less, and nothing as cheap is faster. Where it is negative, the
answer is a better point: it joins the staircase, and the question is asked again.

Source: the exact ε-constraint method of [Berube2009] is what the one question replaces.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.blocks import ProgramBlocks
from planner.programs.layout import RELATIVE_TOLERANCE, Assignment, ceiling, violations
from planner.programs.narrowing import Narrowed, narrow
from planner.programs.proofs import Vouched
from planner.programs.rows import Stairs, merged, stairs
from planner.programs.screens import screen
from planner.programs.tradeoff import Tradeoff, tradeoff_of
from planner.running.deadlines import timed
from planner.solvers import LayoutSolution, solve
from planner.solvers.proving import prove
from planner.solvers.recording import solving_for
from planner.solvers.solution import Effort, Status, effort_of
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.solving import Progress

STRICTLY = 2 * RELATIVE_TOLERANCE
"""Share by which a delay must be shorter to count as shorter: twice what rounding may hide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One point of a frontier, in the program's units.

    Args:
        assignment: in the columns that were left, verified in the unscreened program.
        delay, price: of it.
        bound: nothing that takes at most `delay` costs less.
    """

    assignment: Assignment
    delay: float
    price: float
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """A frontier, cheapest point first, and its proof.

    Args:
        steps: its points.
        narrowed: the part of the program that they are of, and how much there was.
        status: `OPTIMAL` when it is proved; `FEASIBLE` when time ended before; `INFEASIBLE`
            when there is no point, `UNKNOWN` when none was found in time.
        below: how far an assignment may lie below the staircase at most, ≥ 0.
        vouched: what each prover said of the program that proves it, in its unit: the price in
            hand that is cheapest, less how far below the staircase anything lies.
        rejected: columns that each screen rejected.
        n_solved: columns that reached the solver.
        solve_s: time in the solver.
    """

    steps: tuple[Step, ...]
    narrowed: Narrowed
    status: Status
    below: float
    vouched: Vouched
    rejected: Mapping[str, int]
    n_solved: int
    solve_s: float

    @property
    def vouched_by(self) -> tuple[str, ...]:
        """Who vouches for it; nobody where one solver is alone."""
        return self.vouched.by if self.status in (Status.OPTIMAL, Status.INFEASIBLE) else ()


@timed
@solving_for("frontier")
def trace(
    source: ProgramBlocks,
    delay: str,
    options: SolverOptions,
    *,
    on_progress: Callable[[Progress], None] | None = None,
) -> Trace:
    """Every assignment that no other is as good as in both price and delay.

    Args:
        source: the program, block by block; its objective is the price.
        delay: the quantity that is kept small too.
        options: solver, time limit, threads, seed; the gap is not used.
        on_progress: called with news of the proof.

    Raises:
        SolverError: an answer fails `violations` on the unscreened program.
    """
    narrowed = narrow(source, delay)
    tradeoff = narrowed.tradeoff
    in_hand, solve_s = narrowed.in_hand, 0.0
    if narrowed.is_cut:  # of what was not looked at nothing is known
        return _traced(source, narrowed, in_hand, _UNASKED, solve_s)
    while True:
        answer = _ask(tradeoff, in_hand, options, on_progress)
        solve_s += math.fsum(proof.wall_s for proof in answer.solution.vouched.proofs)
        better = _better(tradeoff, in_hand, answer.chosen)
        if better is not None:
            in_hand = merged(in_hand, better)
        if better is None or not answer.solution.status.is_final:
            return _traced(source, narrowed, in_hand, answer, solve_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Optimum:
    """The answer to the one question, in the columns that the trade-off's screens left.

    Args:
        below: no assignment lies further below the staircase than this, ≥ 0.
    """

    solution: LayoutSolution
    chosen: Assignment | None
    below: float
    rejected: Mapping[str, tuple[int, int]]
    n_solved: int


_UNASKED = _Optimum(solution=prove((), Effort()), chosen=None, below=inf, rejected={}, n_solved=0)


def _ask(
    tradeoff: Tradeoff,
    in_hand: Stairs,
    options: SolverOptions,
    on_progress: Callable[[Progress], None] | None,
) -> _Optimum:
    """The assignment that lies furthest below the staircase.

    Tolerances are shares of an objective, which would be zero at the staircase: so the
    cheapest price in hand is added to all.
    """
    program = tradeoff.program
    saved = np.where(program.column_slot == tradeoff.slot, _stair_prices(tradeoff, in_hand), 0.0)
    base = float(in_hand.price[-1]) if len(in_hand.price) else 0.0
    screened = screen(
        replace(
            program,
            context_objective=program.context_objective + base,
            column_objective=program.column_objective - saved,
        )
    )
    effort = replace(effort_of(options), gap=0.0, on_progress=on_progress)
    solution = solve(screened.program, solver=options.solver, effort=effort, proof=options.proof)
    assignment = solution.answer
    return _Optimum(
        solution=solution,
        chosen=screened.incumbent if assignment is None else screened.original(assignment),
        below=max(0.0, base - min(solution.bound, screened.bound)),
        rejected=screened.rejected,
        n_solved=screened.program.n_columns,
    )


def _stair_prices(tradeoff: Tradeoff, in_hand: Stairs) -> FloatArray:
    """The staircase at the delay of each column [J]; faster than all in hand, beyond any price."""
    program = tradeoff.program
    delay = tradeoff.column_delay + tradeoff.context_delay[program.column_context]
    dearest = program.context_objective.max(initial=0.0)
    dearest += program.n_slots * program.column_objective.max(initial=0.0)
    price = in_hand.price_at(delay)
    return np.where(np.isfinite(price), price, dearest + 1.0)


def _better(tradeoff: Tradeoff, in_hand: Stairs, chosen: Assignment | None) -> Stairs | None:
    """The assignment, if it is below the staircase by more than rounding."""
    if chosen is None:
        return None
    delay, price = tradeoff.delay(chosen), tradeoff.price(chosen)
    known = float(in_hand.price_at(np.array([delay]))[0])
    if ceiling(price) >= known:
        return None
    return stairs(np.array([delay]), np.array([price]), np.array([chosen.columns]))


def _traced(
    source: ProgramBlocks, narrowed: Narrowed, in_hand: Stairs, answer: _Optimum, solve_s: float
) -> Trace:
    """The points in the unscreened program, verified, with what is proved of each."""
    solution = answer.solution
    proved = solution.status.is_final
    if solution.status is Status.INFEASIBLE and len(in_hand.delay):
        raise SolverError("nothing is feasible, it is said, where there is a plan in hand")
    steps = [
        Step(assignment=chosen, delay=delay, price=price, bound=price - answer.below)
        for chosen, delay, price in _apart(narrowed, in_hand)
    ]
    _check_unscreened(source, narrowed, steps)
    status = Status.FEASIBLE if steps and not proved else solution.status
    rejected = {name: n_columns for name, (n_columns, _) in narrowed.rejected.items()}
    for name, (n_columns, _) in answer.rejected.items():
        rejected[name] = rejected.get(name, 0) + n_columns
    return Trace(
        steps=tuple(steps),
        narrowed=narrowed,
        status=status,
        below=answer.below,
        vouched=solution.vouched,
        rejected=rejected,
        n_solved=answer.n_solved,
        solve_s=solve_s,
    )


def _apart(narrowed: Narrowed, in_hand: Stairs) -> list[tuple[Assignment, float, float]]:
    """The stairs from the cheapest on, without those that differ by rounding only."""
    apart: list[tuple[Assignment, float, float]] = []
    context_of = narrowed.tradeoff.program.column_context
    for i in reversed(range(len(in_hand.delay))):
        delay, price = float(in_hand.delay[i]), float(in_hand.price[i])
        if apart and delay > apart[-1][1] * (1 - STRICTLY):
            continue
        if apart and price <= ceiling(apart[-1][2]):
            apart.pop()  # as cheap, and faster
        columns = tuple(int(j) for j in in_hand.columns[i])
        chosen = Assignment(context=int(context_of[columns[0]]), columns=columns)
        apart.append((chosen, delay, price))
    return apart


def _check_unscreened(source: ProgramBlocks, narrowed: Narrowed, steps: list[Step]) -> None:
    """Every point once more on its whole context, stated anew and not screened.

    Raises:
        SolverError: it breaks a row there, or is not there.
    """
    posed = narrowed.posed
    for k in {step.assignment.context for step in steps}:
        whole = source.of(int(posed.model[k]), posed.number[[k]])
        tradeoff = tradeoff_of(whole, narrowed.delay)
        for step in steps:
            if step.assignment.context == k:
                own = whole.place_of(posed, step.assignment)
                broken = violations(tradeoff.within(step.delay), own)
                if broken:
                    raise SolverError(f"a point breaks what the screens should have kept: {broken}")
