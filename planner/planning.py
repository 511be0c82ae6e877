"""`plan`: from a request to a verified plan, one verb after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from planner.certify import certificate, in_si, limit_uses
from planner.deadlines import timed
from planner.describe import describe
from planner.errors import NoPlanError, RequestError
from planner.estimates.candidates import CandidateTable, machine_of
from planner.estimates.degrees import check_degrees, degree_problems
from planner.estimates.requested import table_of
from planner.estimates.steps import Machine
from planner.explain import explain
from planner.gains import gains, reliefs_of
from planner.programs.deployment import Posing
from planner.programs.layout import Assignment
from planner.programs.posed import PosedProgram, Several
from planner.results import Alternative, Conflict, Considered, Deployment, Plan
from planner.search import Found, search
from planner.solvers.solution import Progress, Status
from planner.specs.arguments import arguments_checked
from planner.specs.quality import variant_problems, with_variants
from planner.specs.records import ClusterSpec, ModelSpec, Workload
from planner.specs.request import (
    DEFAULT_WORKLOAD,
    Request,
    SolverOptions,
    Speculation,
    Targets,
    make_request,
)
from planner.verifier.findings import refuse
from planner.verifier.plans import judge_plan, plan_checks

NO_TARGETS = Targets()
DEFAULT_OPTIONS = SolverOptions()


@arguments_checked(ranges="later")
@timed
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
    variants: Sequence[ModelSpec] = (),
    options: SolverOptions = DEFAULT_OPTIONS,
    on_progress: Callable[[Progress], None] | None = None,
) -> Plan:
    """Choose the deployment that is provably best, and prove it.

    Args:
        model: what to serve, see `load_model`.
        cluster: the pool of devices, see `load_cluster`; any part of it may be used.
        workload: tokens that a request reads and writes.
        targets: what must hold.
        weights_formats: formats that the weights may take; as published, or all that a limit on
            lost quality leaves.
        kv_formats: formats that the KV cache may take; as published.
        batches: decode batches to choose from.
        prefill_batches: prefill batches to choose from.
        prefill: `latency` prefills each request alone, `cost` lets prefill batch; the
            former with a target on the time per output token, the latter without.
        objective: `cost`, `rent`, `latency`, `ttft`, `throughput` or `devices`.
        speculation: a draft model that decode may use; none without it.
        variants: models that may be served in the model's place, as their files say; those that
            lose more quality than the targets allow are left out.
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
    among = _Among.of(_requests(replace(request, variants=tuple(variants))))
    found = search(
        among.source,
        options,
        reliefs=reliefs_of(request),
        on_progress=_progress_in_si(on_progress, objective),
    )
    if found.solution.status is Status.INFEASIBLE:
        raise NoPlanError(_conflict(among, machine))
    if found.assignment is None:
        raise found.solution.unsettled(in_si(objective, found.solution.bound))
    return _answer(among, found, began_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Among:
    """The request, and those of variants, with their candidates, as one program."""

    requests: tuple[Request, ...]
    tables: tuple[CandidateTable, ...]
    source: Several

    @classmethod
    def of(cls, requests: Sequence[Request]) -> _Among:
        tables = [table_of(one, machine_of(one.cluster, one.model)) for one in requests]
        parts = [
            Posing(table, one, objective=one.objective, model=number)
            for number, (table, one) in enumerate(zip(tables, requests, strict=True))
        ]
        return cls(requests=tuple(requests), tables=tuple(tables), source=Several(parts))

    def request_of(self, posed: PosedProgram, assignment: Assignment) -> Request:
        return self.requests[int(posed.model[assignment.context])]

    def described(self, posed: PosedProgram, assignment: Assignment) -> Deployment:
        which = int(posed.model[assignment.context])
        request = self.requests[which]
        deployment = describe(self.tables[which], posed, request, assignment)
        return replace(deployment, variant=request.model.name) if which else deployment


def _requests(request: Request) -> list[Request]:
    """The request, and with each variant that can be served in the model's place.

    Raises:
        RequestError: a model is no variant of this one.
    """
    problems = list(variant_problems(request.model, request.variants, request.workload))
    if problems:
        raise RequestError(problems)
    asked, *others = with_variants(request)
    return [
        asked,
        *(one for one in others if not degree_problems(one, machine_of(one.cluster, one.model))),
    ]


def _conflict(among: _Among, machine: Machine) -> Conflict:
    """Why the model has no plan; its variants have none either."""
    conflict = explain(among.requests[0], machine)
    others = [one.model.name for one in among.requests[1:]]
    if not others:
        return conflict
    also = f"no variant has a plan either: {', '.join(others)}"
    return replace(conflict, verified=(*conflict.verified, also))


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


def _answer(among: _Among, found: Found, began_s: float) -> Plan:
    """Describe, certify, verify."""
    assert found.assignment is not None
    best = among.described(found.posed, found.assignment)
    served = among.request_of(found.posed, found.assignment)
    objective = found.solution.objective
    alternatives = tuple(
        Alternative(
            deployment=among.described(found.posed, assignment),
            objective=in_si(served.objective, value),
            loss_fraction=(value - objective) / abs(objective) if objective else 0.0,
        )
        for assignment, value in found.alternatives
    )
    answer = Plan(
        request=among.requests[0],
        deployment=best,
        alternatives=alternatives,
        limits=limit_uses(served, best, gains(among.tables, among.requests, found)),
        certificate=certificate(
            among.tables,
            served,
            found,
            deployment=best,
            verified=plan_checks(served),
            wall_s=time.perf_counter() - began_s,
        ),
        provenance=(
            *served.model.provenance,
            *served.cluster.provenance,
            *served.cluster.device.provenance,
        ),
        variants=tuple(_considered(one.model) for one in among.requests[1:]),
    )
    refuse(judge_plan(answer)[1])
    return answer


def _considered(model: ModelSpec) -> Considered:
    assert model.variant is not None
    return Considered(
        name=model.name,
        title=model.title,
        quality_loss_fraction=model.variant.quality_loss_fraction,
        quality=model.variant.quality,
    )
