"""`plan`: from a request to a verified plan, one verb after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.certify import certificate, in_si, limit_uses
from planner.describe import describe
from planner.errors import NoPlanError, OutOfTimeError
from planner.estimates.candidates import CandidateTable, machine_of
from planner.estimates.degrees import check_degrees
from planner.estimates.requested import table_of
from planner.explain import explain, gains
from planner.programs.deployment import PosedProgram, pose
from planner.results import Alternative, Plan
from planner.search import Found, search, time_left
from planner.solvers.solution import Progress, Status
from planner.specs.records import ClusterSpec, ModelSpec, Workload
from planner.specs.request import (
    DEFAULT_WORKLOAD,
    Request,
    SolverOptions,
    Speculation,
    Targets,
    make_request,
)
from planner.verdict import referee_verdict

NO_TARGETS = Targets()
DEFAULT_OPTIONS = SolverOptions()


def plan(
    model: ModelSpec,
    cluster: ClusterSpec,
    *,
    workload: Workload = DEFAULT_WORKLOAD,
    targets: Targets = NO_TARGETS,
    weights_formats: Sequence[str] | None = None,
    kv_formats: Sequence[str] | None = None,
    batches: Sequence[int] | None = None,
    prefill_batches: Sequence[int] | None = None,
    prefill: str | None = None,
    objective: str = "cost",
    speculation: Speculation | None = None,
    options: SolverOptions = DEFAULT_OPTIONS,
    on_progress: Callable[[Progress], None] | None = None,
) -> Plan:
    """Choose the deployment that is provably best, and prove it.

    Args:
        model: what to serve, see `load_model`.
        cluster: the pool of devices, see `load_cluster`; any part of it may be used.
        workload: tokens that a request reads and writes.
        targets: what must hold.
        weights_formats: formats that the weights may take; all that the model allows.
        kv_formats: formats that the KV cache may take; the model's usual one.
        batches: decode batches to choose from.
        prefill_batches: prefill batches to choose from.
        prefill: `latency` prefills each request alone, `cost` lets prefill batch; the
            former with a target on the time per output token, the latter without.
        objective: `cost`, `rent`, `latency`, `ttft`, `throughput` or `devices`.
        speculation: a draft model that decode may use; none without it.
        options: backend, time limit, gap, threads, seed.
        on_progress: called with incumbent and bound while the solver works.

    Raises:
        RequestError: the request cannot be read; every problem is listed.
        NoPlanError: nothing satisfies it; the conflict says why and what would.
        OutOfTimeError: the time limit ended before a first plan.
        SolverError: an answer failed its verification.
    """
    began_s = time.perf_counter()
    request = make_request(
        model,
        cluster,
        workload=workload,
        targets=targets,
        weights_formats=weights_formats,
        kv_formats=kv_formats,
        batches=batches,
        prefill_batches=prefill_batches,
        prefill=prefill,
        objective=objective,
        options=options,
        speculation=speculation,
    )
    machine = machine_of(cluster, model)
    check_degrees(request, machine)
    table = table_of(request, machine)
    posed = pose(table, request, objective=objective)
    left = time_left(options, began_s)
    found = search(posed, left, on_progress=_progress_in_si(on_progress, objective))
    if found.solution.status is Status.INFEASIBLE:
        raise NoPlanError(explain(request, machine))
    if found.assignment is None:
        raise OutOfTimeError(
            time_limit_s=options.time_limit_s or 0.0,
            bound=in_si(objective, found.solution.bound),
        )
    return _answer(request, table, posed, found, began_s)


def _progress_in_si(
    on_progress: Callable[[Progress], None] | None, objective: str
) -> Callable[[Progress], None] | None:
    if on_progress is None:
        return None

    def told(progress: Progress) -> None:
        on_progress(
            replace(
                progress,
                incumbent=in_si(objective, progress.incumbent),
                bound=in_si(objective, progress.bound),
            )
        )

    return told


def _answer(
    request: Request,
    table: CandidateTable,
    posed: PosedProgram,
    found: Found,
    began_s: float,
) -> Plan:
    """Describe, verify, certify."""
    assert found.assignment is not None
    best = describe(table, posed, request, found.assignment)
    verified = referee_verdict(table, posed, request, found.assignment, best)
    objective = found.solution.objective
    alternatives = tuple(
        Alternative(
            deployment=describe(table, posed, request, assignment),
            objective=value,
            loss_fraction=(value - objective) / abs(objective) if objective else 0.0,
        )
        for assignment, value in found.alternatives
    )
    return Plan(
        request=request,
        deployment=best,
        alternatives=alternatives,
        limits=limit_uses(request, best, gains(table, request, found.solution, began_s)),
        certificate=certificate(
            table,
            posed,
            request,
            found,
            deployment=best,
            verified=verified,
            wall_s=time.perf_counter() - began_s,
        ),
        provenance=(
            *request.model.provenance,
            *request.cluster.provenance,
            *request.cluster.device.provenance,
        ),
    )
