"""From a decode request under the reference model to a verified plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from planner.certificates import Certificate
from planner.certify import certified, in_si, n_rejected, screens_of
from planner.deadlines import timed, within
from planner.economics.asking import as_conflict, economics_request
from planner.economics.describing import describe_choice, judge
from planner.economics.limiting import column_values, conflict_of, keeping, limit_uses
from planner.economics_results import EconomicsAlternative, EconomicsConflict, EconomicsPlan
from planner.errors import NoPlanError
from planner.estimates.economics.choices import Choices, choices, tables_of
from planner.estimates.economics.request import MEMORY_RULES, EconomicsRequest
from planner.programs.economics import pose_economics
from planner.programs.posed import InMemory, PosedProgram
from planner.programs.rows import first_least
from planner.quantities import objective_of
from planner.search import N_ALTERNATIVES, Found, search
from planner.solvers.solution import Progress, Status
from planner.specs.records import ClusterSpec, ModelSpec, Workload
from planner.specs.request import (
    DEFAULT_WORKLOAD,
    SolverOptions,
    Speculation,
    Targets,
    make_request,
)

NO_TARGETS = Targets()
DEFAULT_OPTIONS = SolverOptions()


@timed
def plan_economics(
    model: ModelSpec,
    cluster: ClusterSpec,
    *,
    workload: Workload = DEFAULT_WORKLOAD,
    targets: Targets = NO_TARGETS,
    weights_formats: Sequence[str] | None = None,
    kv_formats: Sequence[str] | None = None,
    batches: Sequence[int] | None = None,
    objective: str = "cost",
    memory: str = MEMORY_RULES[0],
    speculation: Speculation | None = None,
    options: SolverOptions = DEFAULT_OPTIONS,
    on_progress: Callable[[Progress], None] | None = None,
) -> EconomicsPlan:
    """The best decode deployment by the cost model of [Erdil2025], with deployable integers.

    Takes what `planning.plan` takes, but for prefill, which the reference model has not:
    decode is planned at the mean context of a request, and holds its longest.

    Args:
        memory: `in-flight`, or `one-microbatch` as the paper counts; see `MEMORY_RULES`.

    Raises:
        RequestError: the request cannot be read, or the reference model knows no such pool.
        NoPlanError: nothing satisfies it; the conflict says why and what would.
        OutOfTimeError: the time limit ended before a first plan.
        SolverError: an answer failed its verification.
    """
    request = make_request(
        model,
        cluster,
        workload=workload,
        targets=targets,
        weights_formats=weights_formats,
        kv_formats=kv_formats,
        batches=batches,
        prefill_batches=None,
        prefill=None,
        objective=objective,
        options=options,
        speculation=speculation,
    )
    asked = economics_request(request, memory=memory)
    found = _decide(asked, on_progress)
    if isinstance(found, EconomicsConflict):
        raise NoPlanError(as_conflict(request, found))
    return found


def plan_decode(
    request: EconomicsRequest, *, on_progress: Callable[[Progress], None] | None = None
) -> EconomicsPlan:
    """The same, asked in the reference model's own records.

    Raises:
        NoPlanError: nothing satisfies it; the conflict is an `EconomicsConflict`.
        OutOfTimeError, SolverError: as `plan_economics`.
    """
    with within(request.options.time_limit_s):
        found = _decide(request, on_progress)
    if isinstance(found, EconomicsConflict):
        raise NoPlanError(found)
    return found


def _decide(
    request: EconomicsRequest, on_progress: Callable[[Progress], None] | None
) -> EconomicsPlan | EconomicsConflict:
    """Search, solve, describe, judge."""
    began_s = time.perf_counter()
    tables = tables_of(request)
    found = choices(request, tables)
    if not len(found.batch):
        return conflict_of(request, tables)
    posed = pose_economics(found, request, objective=request.objective)
    answer = search(InMemory(posed), request.options, n_alternatives=0, on_progress=on_progress)
    if answer.solution.status is Status.INFEASIBLE:
        return conflict_of(request, tables)
    if answer.assignment is None:
        raise answer.solution.unsettled(in_si(request.objective, answer.solution.bound))
    column = int(answer.posed.arm[answer.assignment.columns[0]])
    best = describe_choice(found, request, column)
    verified = judge(request, best)
    return EconomicsPlan(
        request=request,
        deployment=best,
        alternatives=_runners_up(found, posed, request, column),
        limits=limit_uses(request, tables, posed, best),
        certificate=_certificate(found, posed, request, answer, verified, began_s),
    )


def _runners_up(
    found: Choices, posed: PosedProgram, request: EconomicsRequest, best: int
) -> tuple[EconomicsAlternative, ...]:
    """The best of each other context, the nearest first: one slot, so read off the arrays."""
    values = np.where(keeping(posed), column_values(posed, request.objective), np.inf)
    objective = float(values[best])
    group, n_contexts = posed.program.column_context, posed.program.n_contexts
    values[group == group[best]] = np.inf
    columns = first_least(values, group, n_contexts)
    nearest = columns[np.argsort(values[columns], kind="stable")][:N_ALTERNATIVES]
    return tuple(
        EconomicsAlternative(
            deployment=describe_choice(found, request, column),
            objective=in_si(request.objective, float(values[column])),
            loss_fraction=(float(values[column]) - objective) / abs(objective),
        )
        for column in nearest.tolist()
        if np.isfinite(values[column])
    )


def _certificate(
    found: Choices,
    posed: PosedProgram,
    request: EconomicsRequest,
    answer: Found,
    verified: tuple[str, ...],
    began_s: float,
) -> Certificate:
    """The proof in numbers, in SI units."""
    screened, name = answer.screened, request.objective
    n_slower = found.n_considered - posed.program.n_columns
    return certified(
        answer.solution,
        objective_name=name,
        to_si=partial(in_si, name),
        dimension=objective_of(name).dimension,
        n_candidates=found.n_considered,
        n_contexts=posed.program.n_contexts,
        screens=screens_of({"slower": n_slower, **n_rejected(screened)}),
        n_solved=screened.program.n_columns,
        outside=screened.bound,
        verified=verified,
        wall_s=time.perf_counter() - began_s,
    )
