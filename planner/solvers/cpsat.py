"""The layout program as a constraint program over integers: OR-Tools CP-SAT.

CP-SAT counts in integers, and its own scaling of floats may move an optimum; so it is done
here, by powers of two, which lose nothing themselves:

    row        coefficients rounded up, right side (with its 1e-9 of tolerance) rounded down:
               what CP-SAT accepts is accepted by `violations`. The step is at most 2^-40 of the
               right side, 900 times finer than the tolerance, so that the roundings of a
               context and a few hundred slots cannot reject what meets a limit exactly.
    objective  coefficients rounded down: CP-SAT's bound is a bound on the true objective, and
               its optimum is within one step a slot of it.

Presolve is off: with coefficients of both signs it has returned wrong optima
(`tests/solvers/test_cpsat_counterexample.py`), and what passed the screens is small.

Columns that no row leaves room for keep a coefficient that cannot overflow: twice the right side.
"""

from __future__ import annotations

import math
from importlib.metadata import version

import numpy as np
from ortools.sat.python import cp_model

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.programs.layout import Assignment, LayoutProgram, ceiling
from planner.programs.proofs import refusal
from planner.solvers.answers import Listener, judged, run_interruptibly
from planner.solvers.solution import Clock, Effort, Stop, Word
from planner.specs.records.certificates import Outcome, Proof

ROW_BITS = 40
OBJECTIVE_BITS = 52  # of the sum of all coefficients: int64, and exact as a float


def build(program: LayoutProgram) -> tuple[cp_model.CpModel, list[list[cp_model.IntVar]], float]:
    """State the program over integers.

    Returns:
        the model; its variables, first of contexts, then of columns; and how many units of
        its objective make one of the program's.
    """
    model = cp_model.CpModel()
    z = [model.new_bool_var(f"z({k})") for k in range(program.n_contexts)]
    x = [model.new_bool_var(f"x({j})") for j in range(program.n_columns)]
    model.add_exactly_one(z).with_name("one_context")
    place = program.column_context * program.n_slots + program.column_slot
    for g, columns in enumerate(_split(place, program.n_contexts * program.n_slots)):
        k, s = divmod(g, program.n_slots)
        model.add_exactly_one([x[j] for j in columns] + [~z[k]]).with_name(f"one_layout({k},{s})")
    for k, columns in enumerate(_split(program.column_context, program.n_contexts)):
        _add_hbm(model, program, k, (z[k], [x[j] for j in columns], columns))
    for limit in program.limits:
        if math.isfinite(limit.at_most):
            left = np.concatenate([limit.context, limit.column])
            coefficients, right = integer_row(left, limit.at_most)
            total = cp_model.LinearExpr.weighted_sum([*z, *x], coefficients)
            model.add(total <= right).with_name(limit.name)
    costs = np.concatenate([program.context_objective, program.column_objective])
    scale = power_of_two(2.0**OBJECTIVE_BITS / (float(np.abs(costs).sum()) or 1.0))
    model.minimize(cp_model.LinearExpr.weighted_sum([*z, *x], integers(np.floor(costs * scale))))
    return model, [z, x], scale


def _add_hbm(
    model: cp_model.CpModel,
    program: LayoutProgram,
    k: int,
    parts: tuple[cp_model.IntVar, list[cp_model.IntVar], list[int]],
) -> None:
    """Weights and columns of a context within its capacity, where it is chosen."""
    z, x, columns = parts
    capacity = float(program.capacity_bytes[k])
    if math.isfinite(capacity):
        held = np.append(program.context_bytes[k], program.column_bytes[columns])
        coefficients, right = integer_row(held, capacity)
        coefficients[0] -= right  # the right side is there only where the context is
        total = cp_model.LinearExpr.weighted_sum([z, *x], coefficients)
        model.add(total <= 0).with_name(f"hbm({k})")


def integer_row(left: FloatArray, at_most: float) -> tuple[list[int], int]:
    """A row in integers: coefficients up, right side down."""
    widest = abs(at_most) or float(np.abs(left).max(initial=0.0)) or 1.0
    scale = power_of_two(2.0**ROW_BITS / widest)
    if (left >= 0).all():
        left = np.minimum(left, 2 * widest)  # no room for it anyway: 2^41 at most
    return integers(np.ceil(left * scale)), math.floor(ceiling(at_most) * scale)


def power_of_two(at_least: float) -> float:
    return float(2.0 ** math.ceil(math.log2(at_least)))


def integers(values: FloatArray) -> list[int]:
    if np.abs(values).sum() >= 2.0**62:
        raise SolverError("cpsat: a row's values lie too far apart for 64-bit integers")
    return [int(value) for value in values.tolist()]


def _split(place: IntArray, n_places: int) -> list[list[int]]:
    """Indices of each place, in order."""
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(1, n_places))
    return [part.tolist() for part in np.split(order, ends)]


def prover() -> str:
    return f"cpsat (ortools {version('ortools')})"


def solve(program: LayoutProgram, effort: Effort) -> Word[Assignment]:
    """What CP-SAT says of the program; that it failed is said as a refusal."""
    clock = Clock()
    try:
        model, variables, scale = build(program)
        solver = cp_model.CpSolver()
        set_parameters(solver, effort, spent_s=clock.elapsed_s())
        word = ask(solver, model, effort, scale=scale, clock=clock)
    except SolverError as error:
        return Word(answer=None, proof=refusal(prover(), str(error), clock.elapsed_s()))
    chosen = None if word.answer is None else _chosen(program, solver, variables)
    return judged(program, word, chosen, wall_s=clock.elapsed_s())


def ask(
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    effort: Effort,
    *,
    scale: float,
    clock: Clock,
) -> Word[bool]:
    """What CP-SAT says at the end, the time limit or Ctrl-C.

    Its answer is True where it has one, which the solver then holds.

    Raises:
        SolverError: CP-SAT does not take the model.
    """
    listener = Listener(effort, clock, solver.stop_search)
    status: list[str] = []
    interrupted = run_interruptibly(
        lambda: status.append(solver.solve(model, _News(listener, scale)).name), solver.stop_search
    )
    listener.close()
    ended = status[0]
    outcome, stopped_by = _outcome(ended, interrupted=interrupted)
    if outcome == "infeasible":
        bound = math.inf
    else:  # where it came to nothing, what it calls a bound is not set
        bound = -math.inf if ended == "UNKNOWN" else solver.best_objective_bound / scale
    proof = Proof(
        prover=prover(),
        outcome=outcome,
        value=math.inf,
        bound=bound,
        wall_s=clock.elapsed_s(),
        note="out of time" if stopped_by == "time limit" else stopped_by,
    )
    has_answer = ended in ("OPTIMAL", "FEASIBLE")
    return Word(
        answer=True if has_answer else None,
        proof=proof,
        n_nodes=int(solver.num_branches),
        stopped_by=stopped_by,
    )


def set_parameters(solver: cp_model.CpSolver, effort: Effort, *, spent_s: float) -> None:
    parameters = solver.parameters
    parameters.num_workers = effort.threads
    parameters.random_seed = effort.seed
    parameters.relative_gap_limit = effort.gap
    parameters.absolute_gap_limit = 0.0
    parameters.cp_model_presolve = False  # 9.15 has returned wrong optima with it
    parameters.catch_sigint_signal = False  # Ctrl-C is `run_interruptibly`'s
    limit_s = effort.seconds()
    if limit_s is not None:
        parameters.max_time_in_seconds = max(0.0, limit_s - spent_s)


class _News(cp_model.CpSolverSolutionCallback):
    """Passes each incumbent on."""

    def __init__(self, listener: Listener, scale: float) -> None:
        super().__init__()
        self._listener, self._scale = listener, scale

    def on_solution_callback(self) -> None:
        self._listener.hear(
            self.objective_value / self._scale, self.best_objective_bound / self._scale
        )


def _outcome(ended: str, *, interrupted: bool) -> tuple[Outcome, Stop]:
    """CP-SAT's own status in our words.

    Raises:
        SolverError: CP-SAT does not take the model.
    """
    if ended == "OPTIMAL":
        return "optimal", ""
    if ended == "INFEASIBLE":
        return "infeasible", ""
    if ended not in ("FEASIBLE", "UNKNOWN"):
        raise SolverError(f"cpsat ended with: {ended}")
    return "stopped", "interrupt" if interrupted else "time limit"


def _chosen(
    program: LayoutProgram, solver: cp_model.CpSolver, variables: list[list[cp_model.IntVar]]
) -> Assignment:
    """The assignment in CP-SAT's values."""
    z, x = ([solver.boolean_value(v) for v in block] for block in variables)
    columns = [j for j, taken in enumerate(x) if taken]
    columns.sort(key=lambda j: int(program.column_slot[j]))
    return Assignment(context=z.index(True), columns=tuple(columns))


def run_cpsat(solver: cp_model.CpSolver, model: cp_model.CpModel) -> cp_model.CpSolverStatus:
    """Solve a model with the parameters that the solver has.

    CP-SAT by itself takes SIGINT for a limit, answers with what it has, and leaves the signal to
    end the process without a word afterwards.

    Raises:
        KeyboardInterrupt: interrupted.
    """
    solver.parameters.catch_sigint_signal = False
    ended: list[cp_model.CpSolverStatus] = []
    if run_interruptibly(lambda: ended.append(solver.solve(model)), solver.stop_search):
        raise KeyboardInterrupt
    return ended[0]
