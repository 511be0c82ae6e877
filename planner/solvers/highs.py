"""The layout program as a mixed-integer program: Pyomo states it, HiGHS solves it.

Three things about HiGHS decide how it is called. Its scheduler belongs to the process: a run
with another number of threads fails without a word, so the scheduler is reset when the number
changes. Its probing stalls on one-of-many binaries and its presolve has returned wrong optima,
and programs that passed the screens are too small to need either: presolve is off. Its
tolerances are absolute, so they are set far below the 1e-3 that a program's values may be, and
what they still let pass is cut off and solved again.

Pyomo's own `solve` captures the file descriptors of the process while HiGHS runs, which would
swallow progress; so Pyomo hands the model over and the run is ours.
"""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any, TypeVar

import highspy  # type: ignore[import-untyped]
import numpy as np
from highspy.highs import HighsCallbackEvent  # type: ignore[import-untyped]

# From their own modules: `pyomo.environ` would load every plug-in for 0.2 s more.
from pyomo.contrib.solver.solvers.highs import Highs
from pyomo.core import Binary, ConcreteModel, Constraint, Var, minimize
from pyomo.core.expr.numeric_expr import LinearExpression

from planner.errors import SolverError
from planner.programs.layout import (
    Assignment,
    FloatArray,
    LayoutProgram,
    Limit,
    choosable,
    lower_bounds,
    violations,
)
from planner.solvers.answers import Clock, Listener, answer, run_interruptibly
from planner.solvers.scheduler import use_threads
from planner.solvers.solution import Effort, Solution, Status, Stop

TOLERANCE = 1e-9  # absolute, in the program's units
_Key = TypeVar("_Key")
_Columns = dict[_Key, list[int]]  # column indices by where they belong
MOST_REPAIRS = 100
_IN_HAND = (Status.OPTIMAL, Status.FEASIBLE)
_FEASIBLE_POINT = 2  # kSolutionStatusFeasible


def build(program: LayoutProgram) -> ConcreteModel:
    """State the layout program as an integer program.

    minimise   Σ_k objective_k z_k + Σ_j objective_j x_j
    such that  Σ_k z_k = 1                                            one_context
               Σ_{j in (k, s)} x_j = z_k                       ∀ k,s  one_layout
               Σ_{j in k} bytes_j x_j - (capacity_k - bytes_k) z_k ≤ 0  ∀ k  hbm
               Σ_k context_k z_k + Σ_j column_j x_j ≤ at_most  ∀ limit  the limit's name
               x, z ∈ {0, 1}

    An infinite capacity or limit is no row.
    """
    m = ConcreteModel("layout")
    m.z = Var(range(program.n_contexts), domain=Binary)
    m.x = Var(range(program.n_columns), domain=Binary)
    z, x = list(m.z.values()), list(m.x.values())
    of_context, of_place = _places(program)

    @m.Objective(sense=minimize)
    def least(_m: ConcreteModel) -> object:
        return _sum(program.context_objective, z, program.column_objective, x)

    @m.Constraint()
    def one_context(_m: ConcreteModel) -> object:
        return linear([1.0] * len(z), z) == 1

    @m.Constraint(range(program.n_contexts), range(program.n_slots))
    def one_layout(_m: ConcreteModel, k: int, s: int) -> object:
        columns = of_place.get((k, s), [])
        ones = [1.0] * len(columns)
        return linear([*ones, -1.0], [*(x[j] for j in columns), z[k]]) == 0

    @m.Constraint(range(program.n_contexts))
    def hbm(_m: ConcreteModel, k: int) -> object:
        free = float(program.capacity_bytes[k] - program.context_bytes[k])
        if not math.isfinite(free):
            return Constraint.Skip
        columns = [j for j in of_context.get(k, []) if program.column_bytes[j] != 0]
        held = program.column_bytes[columns].tolist()
        return linear([*held, -free], [*(x[j] for j in columns), z[k]]) <= 0

    for limit in program.limits:
        if math.isfinite(limit.at_most):
            m.add_component(limit.name, Constraint(expr=_row(limit, z, x)))
    return m


def _places(program: LayoutProgram) -> tuple[_Columns[int], _Columns[tuple[int, int]]]:
    """Columns of each context, and of each context and slot."""
    of_context: _Columns[int] = {}
    of_place: _Columns[tuple[int, int]] = {}
    pairs = zip(program.column_context.tolist(), program.column_slot.tolist(), strict=True)
    for j, (k, s) in enumerate(pairs):
        of_context.setdefault(k, []).append(j)
        of_place.setdefault((k, s), []).append(j)
    return of_context, of_place


def linear(coefficients: list[float], variables: list[Any]) -> LinearExpression:
    return LinearExpression(linear_coefs=coefficients, linear_vars=variables)


def _sum(context: FloatArray, z: list[Any], column: FloatArray, x: list[Any]) -> LinearExpression:
    """Σ context_k z_k + Σ column_j x_j, without the zeros."""
    terms = zip([*context.tolist(), *column.tolist()], [*z, *x], strict=True)
    kept = [(coefficient, variable) for coefficient, variable in terms if coefficient]
    return linear([c for c, _ in kept], [v for _, v in kept])


def _row(limit: Limit, z: list[Any], x: list[Any]) -> object:
    left = _sum(limit.context, z, limit.column, x)
    if left.linear_vars:
        return left <= limit.at_most
    return Constraint.Feasible if limit.at_most >= 0 else Constraint.Infeasible


def write_lp(program: LayoutProgram, path: Path) -> None:
    """Write the model as an LP file, with the names of `build`."""
    from pyomo.repn.plugins.lp_writer import LPWriter

    with path.open("w", encoding="utf-8") as stream:
        LPWriter().write(build(program), stream, symbolic_solver_labels=True)


def solve(program: LayoutProgram, effort: Effort) -> Solution:
    """Solve with HiGHS; see `planner.solvers.solve`.

    Raises:
        SolverError: HiGHS failed, or its answer fails verification.
    """
    clock = Clock()
    version: str = highspy.Highs().version()
    if not choosable(program).any():
        return answer(
            program,
            None,
            status=Status.INFEASIBLE,
            bound=math.inf,
            solver=("highs", version),
            clock=clock,
        )
    model = build(program)
    transfer = Highs()
    transfer.set_instance(model)
    highs: highspy.Highs = transfer._solver_model
    set_options(highs, effort, spent_s=clock.elapsed_s())
    stop, listener = listen(highs, effort, clock=clock)
    position = transfer._pyomo_var_to_solver_var_map
    z, x = ([position[id(v)] for v in block.values()] for block in (model.z, model.x))
    chosen, status, stopped_by = _search(program, highs, (z, x), stop)
    listener.close()
    info = highs.getInfo()
    return answer(
        program,
        chosen,
        status=status,
        bound=max(float(lower_bounds(program).min()), float(info.mip_dual_bound)),
        solver=("highs", version),
        clock=clock,
        n_nodes=max(0, int(info.mip_node_count)),
        stopped_by=stopped_by,
    )


def _search(
    program: LayoutProgram,
    highs: highspy.Highs,
    positions: tuple[list[int], list[int]],
    stop: threading.Event,
) -> tuple[Assignment | None, Status, Stop]:
    """Run HiGHS, again if its tolerance let something pass; what it has, and how it ended."""
    z, x = positions
    for _ in range(MOST_REPAIRS):
        interrupted = run_interruptibly(lambda: run(highs), stop.set)
        status, stopped_by = status_of(highs, interrupted=interrupted)
        chosen = _chosen(program, highs, z, x) if status in _IN_HAND else None
        if chosen is None or not _is_tolerated(program, chosen):
            break
        _forbid(highs, [x[j] for j in chosen.columns])
    return chosen, status, stopped_by


def _is_tolerated(program: LayoutProgram, chosen: Assignment) -> bool:
    """Whether it breaks rows, but by no more than HiGHS's absolute tolerance lets pass.

    For a right side far below 1 that tolerance is coarser than the 1e-9 of `violations`.
    """
    broken = violations(program, chosen)
    return bool(broken) and max(broken.values()) <= 10 * TOLERANCE


def _forbid(highs: highspy.Highs, columns: list[int]) -> None:
    """Cut one assignment off: not all of its columns together."""
    n = len(columns)
    highs.addRow(-highspy.kHighsInf, n - 1.0, n, np.array(columns, dtype=np.int32), np.ones(n))


def set_options(
    highs: highspy.Highs, effort: Effort, *, spent_s: float, tolerance: float = TOLERANCE
) -> None:
    """Tell HiGHS how to work, and make sure that it listened."""
    use_threads(effort.threads)
    options: dict[str, Any] = {
        "output_flag": False,
        "presolve": "off",
        "threads": effort.threads,
        "random_seed": effort.seed,
        "mip_rel_gap": effort.gap,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": tolerance,
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
    }
    if effort.time_limit_s is not None:
        options["time_limit"] = max(0.0, effort.time_limit_s - spent_s)
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"highs does not take {value!r} for its option `{name}`")


def listen(
    highs: highspy.Highs, effort: Effort, *, clock: Clock
) -> tuple[threading.Event, Listener]:
    """Attach an event that stops HiGHS, and the caller's ear."""
    stop = threading.Event()
    listener = Listener(effort, clock, stop.set)

    def check(event: HighsCallbackEvent) -> None:
        if stop.is_set():
            event.interrupt()

    def report(event: HighsCallbackEvent) -> None:
        listener.hear(float(event.data_out.mip_primal_bound), float(event.data_out.mip_dual_bound))

    highs.cbMipInterrupt += check
    if effort.on_progress is not None:
        highs.cbMipImprovingSolution += report
        highs.cbMipLogging += report
    return stop, listener


def run(highs: highspy.Highs) -> None:
    if highs.run() == highspy.HighsStatus.kError:
        raise SolverError(f"highs failed: {highs.modelStatusToString(highs.getModelStatus())}")


def status_of(highs: highspy.Highs, *, interrupted: bool) -> tuple[Status, Stop]:
    """HiGHS's own status in our words.

    Raises:
        SolverError: HiGHS ended in a way that a program of binaries cannot.
    """
    status = highs.getModelStatus()
    ends = highspy.HighsModelStatus
    if status == ends.kOptimal:
        return Status.OPTIMAL, ""
    if status in (ends.kInfeasible, ends.kUnboundedOrInfeasible):  # binaries: never unbounded
        return Status.INFEASIBLE, ""
    if status not in (ends.kTimeLimit, ends.kInterrupt, ends.kHighsInterrupt):
        raise SolverError(f"highs ended with: {highs.modelStatusToString(status)}")
    in_hand = highs.getInfo().primal_solution_status == _FEASIBLE_POINT
    stopped_by: Stop = "interrupt" if interrupted else "time limit"
    return (Status.FEASIBLE if in_hand else Status.UNKNOWN), stopped_by


def _chosen(program: LayoutProgram, highs: highspy.Highs, z: list[int], x: list[int]) -> Assignment:
    """The assignment that HiGHS's values, at these positions, round to."""
    values = highs.getSolution().col_value
    columns = [j for j, position in enumerate(x) if values[position] > 0.5]
    columns.sort(key=lambda j: int(program.column_slot[j]))
    context = max(range(len(z)), key=lambda k: float(values[z[k]]))
    return Assignment(context=context, columns=tuple(columns))
