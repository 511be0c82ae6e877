"""From a request to the deployment of an engine that is provably best."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from planner.certificates import Certificate
from planner.certify import certified, in_si, n_rejected, screens_of
from planner.deadlines import is_over, out_of_time, timed
from planner.engine.asking import clock_of, command_of, engine_request, machines_of
from planner.engine.describing import describe_choice, judge
from planner.engine.limiting import column_values, conflict_parts, keeping, limit_uses, limits_of
from planner.engine_results import (
    EngineAlternative,
    EngineConflict,
    EngineDeployment,
    EnginePlan,
)
from planner.errors import NoPlanError
from planner.estimates.serving.choices import EngineChoices, choices_of
from planner.estimates.serving.request import (
    OVERLAPS,
    PREFERENCES,
    AskedDrafting,
    EngineRequest,
)
from planner.explain import UNEXPLAINED
from planner.predicting import Machines
from planner.programs.engine import SIMPLICITY, pose_engine
from planner.programs.layout import Limit, ceiling
from planner.programs.posed import InMemory, PosedProgram
from planner.programs.rows import first_least
from planner.quantities import MEMORY, QUANTITIES, objective_of
from planner.results import Obstacle
from planner.search import N_ALTERNATIVES, Found, search
from planner.solvers.solution import Progress, Status
from planner.specs.architecture import Architecture
from planner.specs.arguments import arguments_checked
from planner.specs.records import ClusterSpec, Workload
from planner.specs.request import DEFAULT_WORKLOAD, SolverOptions, Targets

NO_TARGETS = Targets()
DEFAULT_OPTIONS = SolverOptions()
SIMPLEST = PREFERENCES[1]
EXPLAINED = (
    "each limit of the conflict was left out in turn, and a plan was found",
    "what is reachable is the best of all deployments that keep the other limits",
)


@arguments_checked(ranges="later")
@timed
def plan_engine(
    model: Architecture,
    cluster: ClusterSpec,
    engine: str = "vllm",
    *,
    workload: Workload = DEFAULT_WORKLOAD,
    hit_fraction: float = 0.0,
    targets: Targets = NO_TARGETS,
    weights_formats: Sequence[str] | None = None,
    kv_formats: Sequence[str] | None = None,
    batches: Sequence[int] | None = None,
    chunks: Sequence[int] | None = None,
    objective: str = "cost",
    confidence: float = 0.0,
    prefer: str = PREFERENCES[0],
    variants: Sequence[Architecture] = (),
    overlaps: Sequence[str] = OVERLAPS[:1],
    drafting: AskedDrafting | None = None,
    options: SolverOptions = DEFAULT_OPTIONS,
    on_progress: Callable[[Progress], None] | None = None,
) -> EnginePlan:
    """The best of all deployments of an engine on a pool, by its kernel-calibrated estimates.

    Args:
        model: as `load_architecture` reads it, of a `config.json` too.
        cluster: devices; any number of them may be used, node after node.
        engine: `vllm`, `sglang` or `trtllm`.
        hit_fraction: share of the input that the prefix cache already has.
        targets: `min_batch` counts the sequences of all attention ranks; a demand cannot be
            asked for, and a loss of quality is one of variants.
        weights_formats, kv_formats: to choose from; as published where left out.
        batches: sequences on one attention rank to choose from.
        chunks: most tokens of a pass to choose from.
        confidence: plan against the upper end of the interval that holds this share of all
            cases; 0 plans against what is predicted.
        prefer: `objective`, or `simplest`: of all plans that lose less of the objective than its
            error, the one with fewest devices, then stages, ranks and groups of experts.
        variants: models that may be served in the model's place, as they say themselves.
        overlaps: `none`, `two-batch`: two micro-batches that hide each other's messages, where
            tokens are exchanged between experts.
        drafting: drafts that a deployment may use, or leave.

    Raises:
        RequestError: the request cannot be read; all problems are listed.
        NoPlanError: nothing satisfies it; the conflict is an `EngineConflict`.
        OutOfTimeError: the time limit ended before a first plan.
        SolverError: an answer failed its verification.
    """
    return asked_of(
        model,
        cluster,
        engine,
        workload=workload,
        hit_fraction=hit_fraction,
        targets=targets,
        weights_formats=weights_formats,
        kv_formats=kv_formats,
        batches=batches,
        chunks=chunks,
        objective=objective,
        confidence=confidence,
        prefer=prefer,
        options=options,
        variants=variants,
        overlaps=overlaps,
        drafting=drafting,
    ).plan(on_progress)


def asked_of(
    model: Architecture,
    cluster: ClusterSpec,
    engine: str,
    *,
    variants: Sequence[Architecture] = (),
    **asked: Any,  # noqa: ANN401
) -> EnginePlanner:
    """A request, all of whose arguments are those of `plan_engine`, with all that it names.

    Raises:
        RequestError: the request cannot be read; all problems are listed.
    """
    machines = machines_of(cluster, engine)
    request = engine_request(model, cluster, machines, variants=variants, **asked)
    names = {one.name for one in request.variants}
    served = (model, *(one for one in variants if one.name in names))
    return EnginePlanner(models=served, machines=machines, request=request)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePlanner:
    """A request with all that it names; `models` are those of the request, in its order."""

    models: tuple[Architecture, ...]
    machines: Machines
    request: EngineRequest

    def choices(self, memory_scale: float = 1.0) -> EngineChoices:
        clock = clock_of(self.machines)
        return choices_of(self.models, clock, self.request, memory_scale=memory_scale)

    def describe(self, found: EngineChoices, column: int) -> EngineDeployment:
        model = self.models[int(found.model_index[column])]
        return describe_choice(model, self.machines, self.request, found, column)

    def plan(self, on_progress: Callable[[Progress], None] | None) -> EnginePlan:
        """Enumerate, solve, describe, judge."""
        began_s, request = time.perf_counter(), self.request
        found = self.choices()
        if not len(found):
            raise out_of_time() if found.is_cut else NoPlanError(self.conflict())
        posed = pose_engine(found, request, objective=request.objective)
        source = InMemory(posed, is_cut=found.is_cut)
        answer = search(source, request.options, n_alternatives=0, on_progress=on_progress)
        if answer.solution.status is Status.INFEASIBLE:
            raise NoPlanError(self.conflict())
        if answer.assignment is None:
            raise answer.solution.unsettled(in_si(request.objective, answer.solution.bound))
        best = int(answer.posed.arm[answer.assignment.columns[0]])
        error = _error(found, request.objective, best)
        chosen = best
        if request.prefer == SIMPLEST:
            chosen = _simplest(found, posed, request, best, error)
        deployment = self.describe(found, chosen)
        verified = judge(request, deployment)
        values = column_values(posed, request.objective)
        is_known = answer.solution.status.is_final
        others, n_ties = self._others(found, posed, (best, chosen), error) if is_known else ((), 0)
        return EnginePlan(
            request=request,
            deployment=deployment,
            error_fraction=error,
            n_ties=n_ties,
            given_up_fraction=float(values[chosen] / values[best] - 1.0),
            alternatives=others,
            limits=limit_uses(request, self._roomier() if is_known else None, deployment),
            certificate=_certificate(posed, request, answer, verified, began_s),
        )

    def _roomier(self) -> PosedProgram | None:
        """What a little more memory would let in too; None where there is no time to see."""
        if is_over():
            return None
        found = self.choices(QUANTITIES[MEMORY].relief)
        if found.is_cut:
            return None
        return pose_engine(found, self.request, objective=self.request.objective)

    def conflict(self) -> EngineConflict:
        """Why there is no plan, whatever memory devices had; if there is time to see."""
        found = self.choices(np.inf)
        posed = pose_engine(found, self.request, objective=self.request.objective)
        parts: tuple[tuple[Obstacle, ...], dict[str, str]] = ((), {})
        if not found.is_cut:
            parts = conflict_parts(self.request, found, posed)
        obstacles, changes = parts
        return EngineConflict(
            request=self.request,
            obstacles=obstacles,
            command=command_of(self.models[0], self.request, changes) if changes else "",
            n_candidates=found.n_considered,
            verified=UNEXPLAINED if found.is_cut else EXPLAINED,
        )

    def _others(
        self, found: EngineChoices, posed: PosedProgram, taken: tuple[int, int], error: float
    ) -> tuple[tuple[EngineAlternative, ...], int]:
        """The best of each other context, the nearest first, and how many of them are ties.

        Args:
            taken: columns of the best objective, and of the plan.
        """
        objective, program = self.request.objective, posed.program
        best, chosen = taken
        values = np.where(keeping(limits_of(posed)), column_values(posed, objective), np.inf)
        least, context = float(values[best]), program.column_context
        values[context == context[chosen]] = np.inf
        columns = first_least(values, context, program.n_contexts)
        columns = columns[np.isfinite(values[columns])]
        ordered = columns[np.argsort(values[columns], kind="stable")]
        ties = values[ordered] <= ceiling(least * (1.0 + error))
        alternatives = tuple(
            EngineAlternative(
                deployment=self.describe(found, column),
                objective=in_si(objective, float(values[column])),
                loss_fraction=float(values[column]) / least - 1.0,
                is_tie=bool(tie),
            )
            for column, tie in zip(ordered[:N_ALTERNATIVES].tolist(), ties, strict=False)
        )
        return alternatives, int(ties.sum())


def _error(found: EngineChoices, objective: str, column: int) -> float:
    """Relative standard deviation of an objective: rent and devices have none."""
    errors = {"ttft": found.ttft_error, "rent": None, "devices": None}
    error = errors.get(objective, found.tpot_error)
    return 0.0 if error is None else float(error[column])


def _simplest(
    found: EngineChoices,
    posed: PosedProgram,
    request: EngineRequest,
    best: int,
    error: float,
) -> int:
    """The simplest of the ties, and the best objective of these: a program of its own."""
    program = posed.program
    least = float(column_values(posed, request.objective)[best])
    tie = Limit(
        name="tie",
        context=program.context_objective,
        column=program.column_objective,
        at_most=ceiling(least * (1.0 + error)),
    )
    simpler = pose_engine(
        found, request, objective=SIMPLICITY, limits=(tie,), tie_breaker=request.objective
    )
    exact = replace(request.options, gap=0.0)
    answer = search(InMemory(simpler), exact, n_alternatives=0)
    if answer.assignment is None:
        return best
    return int(answer.posed.arm[answer.assignment.columns[0]])


def _certificate(
    posed: PosedProgram,
    request: EngineRequest,
    answer: Found,
    verified: tuple[str, ...],
    began_s: float,
) -> Certificate:
    """The proof in numbers, in SI units."""
    screened, name = answer.screened, request.objective
    return certified(
        answer.solution,
        objective_name=name,
        to_si=partial(in_si, name),
        dimension=objective_of(name).dimension,
        n_candidates=posed.program.n_columns + posed.n_unfit,
        n_contexts=posed.program.n_contexts,
        screens=screens_of({"memory": posed.n_unfit, **n_rejected(screened)}),
        n_solved=screened.program.n_columns,
        outside=screened.bound,
        verified=verified,
        wall_s=time.perf_counter() - began_s,
    )
