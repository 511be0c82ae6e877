"""Programs of whole numbers by OR-Tools CP-SAT, which counts in integers.

Its own scaling of floats may move an optimum; so it is done here, by powers of two, which lose
nothing themselves:

    rows       of whole numbers as they are. Others with coefficients rounded so that what CP-SAT
               accepts keeps the row, its `rounding` included. The step is at most 2^-44 of the
               side, so that the roundings of some thousand copies stay within a rounding of 1e-9
               and cannot reject what meets a side exactly.
    objective  coefficients rounded down: CP-SAT's bound is a bound on the true objective, and
               its optimum is within one step a column of it.
    a column   that takes any number is taken where rows hold it on one side only and the cost
               draws it there, as the largest or the least of sums: it counts in steps of the
               objective, and its rows are rounded so that none of its true values is lost.

What no row leaves room for keeps a coefficient that cannot overflow: twice what there is room for.
Likewise what meets a row by itself is taken to meet it just so.

Presolve is off unless a program hints at it: with coefficients of both signs it has returned wrong
optima (`tests/solvers/test_cpsat_counterexample.py`), and what passed the screens is small.
"""

import math
from importlib.metadata import version

import numpy as np
from ortools.sat.python import cp_model

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.errors import SolverError
from planner.programs.mixed import MixedProgram
from planner.programs.proofs import refusal
from planner.solvers.answers import Listener, run_interruptibly
from planner.solvers.mixed import RawAnswer, checked
from planner.solvers.recording import notes_of_run, recorded
from planner.solvers.solution import Clock, Effort, Stop, Word
from planner.specs.records.certificates import Outcome
from planner.specs.records.solving import ProgramSize

ROW_BITS = 44
"""Of a side that is no whole number."""
OBJECTIVE_BITS = 52
"""Of the largest sum of costs: an int64, and exact as a float. A program may hint at fewer: columns
of any number are as wide, and wide ones are searched slowly."""
MOST_BITS = 60
"""Of the largest sum of a row: an int64."""


@recorded
def solve(program: MixedProgram, effort: Effort) -> Word[FloatArray]:
    """What CP-SAT says; that it failed, or cannot take the rows, is said as a refusal."""
    clock = Clock()
    prover = f"cpsat (ortools {version('ortools')})"
    try:
        model = _Model(program)
        solver = cp_model.CpSolver()
        set_parameters(solver, effort, spent_s=clock.elapsed_s())
        for name, value in program.hints.get("cpsat", {}).items():
            if name not in ("start", "objective_bits"):
                setattr(solver.parameters, name, value)
        raw = _run(solver, model, effort, clock)
    except SolverError as error:
        return Word(answer=None, proof=refusal(prover, str(error), clock.elapsed_s()))
    return checked(program, raw, prover=prover, wall_s=clock.elapsed_s())


class _Model:
    """A program over integers.

    Args:
        program: of whole numbers, and of others that its objective settles.

    Raises:
        SolverError: it is not.
    """

    def __init__(self, program: MixedProgram) -> None:
        if (program.lower[program.cost != 0] < 0).any():  # costs are rounded down
            raise SolverError(f"cpsat: columns of `{program.name}` that cost are below zero")
        self.model, self._program = cp_model.CpModel(), program
        self.offset, self._hints = program.offset, program.hints.get("cpsat", {})
        self._is_whole = program.is_whole | _is_implied(program)
        self._most = np.maximum(np.abs(program.lower), np.abs(program.upper))
        order = np.argsort(program.row, kind="stable")
        self._column = program.column[order].astype(np.int64)
        self._value = program.value[order]
        self._ends = np.searchsorted(program.row[order], np.arange(program.n_rows + 1)).tolist()
        self.unit = self._unit()
        """Steps of the objective in one of the program's."""
        self._steps = np.where(self._is_whole, 1.0, np.abs(program.cost) * self.unit)
        bounds = np.floor(program.lower * self._steps), np.ceil(program.upper * self._steps)
        pairs = zip(*(each.astype(np.int64).tolist() for each in bounds), strict=True)
        self._columns = [self.model.new_int_var(low, high, "") for low, high in pairs]
        if not self._steps.all():
            raise SolverError(f"cpsat: the program `{program.name}` is not of whole numbers")
        for r in range(program.n_rows):
            self._add_row(r)
        if program.cost.any():
            costs = np.where(self._is_whole, program.cost * self.unit, np.sign(program.cost))
            total = cp_model.LinearExpr.weighted_sum(self._columns, _integers(np.floor(costs)))
            self.model.minimize(total)
        start = self._hints.get("start", np.full(program.n_columns, np.nan)) * self._steps
        for j in np.flatnonzero(np.isfinite(start)).tolist():
            self.model.add_hint(self._columns[j], round(float(start[j])))

    def values(self, solver: cp_model.CpSolver) -> FloatArray:
        """What the columns come to in the answer that the solver holds."""
        return np.array([float(solver.value(column)) for column in self._columns]) / self._steps

    def _unit(self) -> float:
        program = self._program
        reach = float(np.abs(program.cost) @ self._most)
        bits = self._hints.get("objective_bits", OBJECTIVE_BITS)
        unit = _power_of_two(2.0**bits / (reach or 1.0))
        for r in np.unique(program.row[~self._is_whole[program.column]]).tolist():
            columns, values, (low, high) = self._row(r)
            real = np.flatnonzero(~self._is_whole[columns])
            cost, value = float(program.cost[columns[real[0]]]), float(values[real[0]])
            # the cost draws it against the side that holds it
            is_held = cost * (value if high < math.inf else -value) < 0
            if len(real) > 1 or not is_held or (low > -math.inf) == (high < math.inf):
                raise SolverError(f"cpsat: the program `{program.name}` is not of whole numbers")
            size = float(np.abs(values) @ self._most[columns]) + abs(min(high, -low, key=abs))
            unit = min(unit, _power_of_two(2.0 ** (MOST_BITS - 1) * abs(value / cost) / size))
        return unit

    def _row(self, r: int) -> tuple[IntArray, FloatArray, tuple[float, float]]:
        here = slice(self._ends[r], self._ends[r + 1])
        sides = float(self._program.low[r]), float(self._program.high[r])
        return self._column[here], self._value[here], sides

    def _add_row(self, r: int) -> None:
        columns, values, (low, high) = self._row(r)
        program = self._program
        real = np.flatnonzero(~self._is_whole[columns])
        numbers = np.append(values, [side for side in (low, high) if math.isfinite(side)])
        if not len(real) and (numbers == np.rint(numbers)).all():
            self._add_whole(columns, values, low, high)
            return
        if low == high:
            raise SolverError(f"cpsat: the program `{program.name}` is not of whole numbers")
        for sign, side in ((1.0, high), (-1.0, -low)):
            if side == math.inf:
                continue
            if len(real):
                terms, most = self._relaxed(columns, sign * values, side, int(real[0]))
            else:
                terms, most = self._tightened(columns, sign * values, side)
            total = cp_model.LinearExpr.weighted_sum(self._of(columns), _integers(terms))
            self.model.add(total <= most)

    def _add_whole(self, columns: IntArray, values: FloatArray, low: float, high: float) -> None:
        program, variables = self._program, self._of(columns)
        is_switch = (program.lower[columns] == 0) & (program.upper[columns] == 1)
        is_clause = (is_switch & (np.abs(values) == 1)).all()
        n_negated = np.count_nonzero(values < 0)
        # that one of some holds it reads off a clause, and off a sum only with presolve
        has_presolve = self._hints.get("cp_model_presolve", False)
        if is_clause and high == 1.0 - n_negated and not (n_negated and has_presolve):
            held = [v if a > 0 else ~v for v, a in zip(variables, values.tolist(), strict=True)]
            if low == high:
                self.model.add_exactly_one(held)
                return
            if low == -math.inf:
                self.model.add_at_most_one(held)
                return
        least = int(low) if math.isfinite(low) else cp_model.INT_MIN
        most = int(high) if math.isfinite(high) else cp_model.INT_MAX
        total = cp_model.LinearExpr.weighted_sum(variables, _integers(values))
        self.model.add_linear_constraint(total, least, most)

    def _tightened(
        self, columns: IntArray, values: FloatArray, at_most: float
    ) -> tuple[FloatArray, int]:
        """Coefficients up, right side down: what keeps this row keeps the true one.

        Columns are whole and not negative here. So one that exceeds what there is room for, were
        all others at their best, has none whatever it exceeds it by; and one that meets a right
        side below zero by itself meets it however far it goes below.
        """
        if (self._program.lower[columns] < 0).any():
            raise SolverError(f"cpsat: a row of `{self._program.name}` holds what is below zero")
        gives = np.maximum(-values, 0.0)
        widest = abs(at_most) or float(gives.max(initial=0.0))
        room = max(at_most, 0.0) + float(gives @ self._most[columns])
        values = np.minimum(values, 2 * room if room else math.inf)
        is_cover = not (values > 0).any()
        if is_cover:
            values = np.maximum(values, 2 * min(at_most, 0.0))
        widest = widest or float(values.max(initial=0.0)) or 1.0
        reach = float(np.abs(values) @ np.maximum(self._most[columns], 1.0))
        scale = min(
            _power_of_two(2.0**ROW_BITS / widest), _power_of_two(2.0**MOST_BITS / (reach or 1.0))
        )
        most = math.floor((at_most + self._program.rounding * widest) * scale)
        terms = np.ceil(values * scale)
        return np.maximum(terms, min(most, 0)) if is_cover else terms, most

    def _relaxed(
        self, columns: IntArray, values: FloatArray, at_most: float, real: int
    ) -> tuple[FloatArray, int]:
        """Coefficients down, right side up: no value of the column that is no whole number is lost.

        Its own coefficient is 1 or -1, so that in whole steps it reaches what it truly does.
        """
        scale = float(self._steps[columns[real]]) / abs(float(values[real]))
        terms = np.floor(values * scale)
        terms[real] = np.sign(values[real])
        return terms, math.ceil(at_most * scale)

    def _of(self, columns: IntArray) -> list[cp_model.IntVar]:
        return [self._columns[j] for j in columns.tolist()]


def _is_implied(program: MixedProgram) -> BoolArray:
    """Columns (N,) that are whole in some optimum, though they need not be.

    Whatever the others, a column that stands alone among whole ones, once in each of its rows, all
    of whole numbers, may be anything from one whole number to another. Others may be but one thing.
    """
    is_real = ~program.is_whole[program.column]
    is_odd = np.bincount(program.row, is_real, program.n_rows) > 1
    for side in (program.low, program.high):
        is_odd |= np.isfinite(side) & (side != np.rint(side))
    is_odd[program.row[program.value != np.rint(program.value)]] = True
    bars = is_odd[program.row] | (np.abs(program.value) != 1)
    is_barred = np.bincount(program.column, bars, program.n_columns) > 0
    bounds = np.stack([program.lower, program.upper])
    is_barred &= program.lower < program.upper
    return np.asarray(~is_barred & (bounds == np.rint(bounds)).all(axis=0))


def _power_of_two(at_least: float) -> float:
    return float(2.0 ** math.ceil(math.log2(at_least)))


def _integers(values: FloatArray) -> list[int]:
    if np.abs(values).sum() >= 2.0**62:
        raise SolverError("cpsat: a row's values lie too far apart for 64-bit integers")
    return [int(value) for value in values.tolist()]


def set_parameters(solver: cp_model.CpSolver, effort: Effort, *, spent_s: float) -> None:
    """Of an effort of which stating the program took some seconds."""
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


def _run(solver: cp_model.CpSolver, model: _Model, effort: Effort, clock: Clock) -> RawAnswer:
    """What CP-SAT says at the end, the time limit or Ctrl-C.

    Raises:
        SolverError: CP-SAT does not take the model.
    """
    listener = Listener(effort, clock, solver.stop_search)
    ends: list[str] = []
    news = _News(listener, model)
    if effort.on_progress is not None:
        solver.best_bound_callback = news.on_bound
    interrupted = run_interruptibly(
        lambda: ends.append(solver.solve(model.model, news).name), solver.stop_search
    )
    listener.close()
    if (notes := notes_of_run()) is not None:
        said = solver.response_proto
        notes.n_iterations = int(said.num_lp_iterations)
        n_binary, n_integer = int(said.num_booleans), int(said.num_integers)  # of its search
        size = ProgramSize(n_binary=n_binary, n_integer=n_integer, n_continuous=0)
        notes.presolved = lambda: size
    outcome, stopped_by = _outcome(ends[0], interrupted=interrupted)
    bound = math.inf
    if outcome != "infeasible":  # where it came to nothing, what it calls a bound is not set
        bound = -math.inf if ends[0] == "UNKNOWN" else solver.best_objective_bound / model.unit
    return RawAnswer(
        outcome=outcome,
        values=model.values(solver) if ends[0] in ("OPTIMAL", "FEASIBLE") else None,
        bound=bound + model.offset,
        n_nodes=int(solver.num_branches),
        stopped_by=stopped_by,
    )


class _News(cp_model.CpSolverSolutionCallback):
    """Passes incumbents and bounds on, in the program's unit."""

    def __init__(self, listener: Listener, model: _Model) -> None:
        super().__init__()
        self._listener, self._model = listener, model
        self._incumbent = math.inf

    def on_solution_callback(self) -> None:
        self._incumbent = self.objective_value / self._model.unit + self._model.offset
        self.on_bound(self.best_objective_bound)

    def on_bound(self, bound: float) -> None:
        """A bound that is better than the last, in steps of the objective."""
        self._listener.hear(self._incumbent, bound / self._model.unit + self._model.offset)


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
