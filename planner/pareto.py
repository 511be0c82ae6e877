"""`frontier`: from a request to every deployment that is the best for some worth of speed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from planner.certify import in_si, screens_of
from planner.deadlines import out_of_time, timed
from planner.economics.tracing import EconomicsCandidates, axis_problems
from planner.engine.planning import asked_of, plan_engine
from planner.engine.tracing import EngineCandidates
from planner.errors import NoPlanError, Problem, RequestError, SolverError
from planner.estimates.economics.request import MEMORY_RULES
from planner.estimates.serving.request import EngineRequest
from planner.layout_candidates import Candidates, LayoutCandidates
from planner.programs.layout import Assignment, ceiling
from planner.programs.posed import PosedProgram, joined
from planner.programs.tradeoff import tradeoff_of
from planner.quantities import objective_of
from planner.search import break_ties
from planner.solvers.solution import Status
from planner.specs.architecture import Architecture
from planner.specs.arguments import arguments_checked, conformed
from planner.specs.defaults import COST_MODELS, ECONOMICS
from planner.specs.records import ClusterSpec, ModelSpec, Workload
from planner.specs.request import (
    DEFAULT_WORKLOAD,
    Request,
    SolverOptions,
    Speculation,
    Targets,
    make_request,
)
from planner.surveys import (
    DEFAULT_ALPHA,
    OWN,
    X_AXES,
    Y_AXES,
    AnyDeployment,
    Frontier,
    FrontierPoint,
    FrontierProof,
)
from planner.tracing import Step, Trace, trace

NO_TARGETS = Targets()
DEFAULT_OPTIONS = SolverOptions()
TOLERANCE = 1e-9

NO_SUCH = {"--x": "no such axis", "--y": "no such axis", "--cost-model": "no such cost model"}


@arguments_checked(ranges="later")
@timed
def frontier(
    model: ModelSpec,
    cluster: ClusterSpec,
    *,
    x: str = "latency",
    y: str = "cost",
    alpha: float = DEFAULT_ALPHA,
    workload: Workload = DEFAULT_WORKLOAD,
    targets: Targets = NO_TARGETS,
    weights_formats: Sequence[str] | None = None,
    kv_formats: Sequence[str] | None = None,
    batches: Sequence[int] | None = None,
    prefill_batches: Sequence[int] | None = None,
    prefill: str | None = None,
    speculation: Speculation | None = None,
    cost_model: str = OWN.name,
    memory: str = MEMORY_RULES[0],
    options: SolverOptions = DEFAULT_OPTIONS,
    on_points: Callable[[int, int], None] | None = None,
) -> Frontier:
    """Every deployment that no other is as good as in two quantities, with one proof for all.

    Targets on the two quantities do not cut the frontier: its points say whether they meet
    them. All other targets hold for every point.

    Args:
        x: what is kept short, `latency` (TPOT) or `ttft`.
        y: what is set against it, `cost`, `rent`, `throughput` or `device-throughput`.
        alpha: worth of speed; the preferred point has the largest (1/x)^alpha / price.
        cost_model: `layouts`, or `economics`: decode by the model of [Erdil2025].
        memory: the rule of `economics` for what has to fit, of `MEMORY_RULES`.
        on_points: called with how many points are verified, of how many.
        model, cluster, workload, targets, weights_formats, kv_formats, batches,
            prefill_batches, prefill, speculation, options: as `planning.plan` takes them;
            the gap of the options is not used.

    Raises:
        RequestError: the request cannot be read; every problem is listed.
        NoPlanError: nothing satisfies it, whatever the two quantities.
        OutOfTimeError: the time limit ended before a first point.
        SolverError: a point failed its verification.

    Source: [Erdil2025] Eq. 45 for the preferred point.
    """
    began_s = time.perf_counter()
    request = _request(
        (x, y, alpha),
        cost_model,
        model=model,
        cluster=cluster,
        workload=workload,
        targets=targets,
        weights_formats=weights_formats,
        kv_formats=kv_formats,
        batches=batches,
        prefill_batches=prefill_batches,
        prefill=prefill,
        objective=y,
        speculation=speculation,
        options=options,
    )
    free = _without_axes(request, x, y)
    candidates: Candidates
    if cost_model == ECONOMICS:
        candidates = EconomicsCandidates(free, memory=memory)
    else:
        candidates = LayoutCandidates(free)
    search = _Search(request, candidates, x=x, began_s=began_s)
    return search.frontier(alpha, (model, cluster), on_points)


@arguments_checked(ranges="later")
@timed
def engine_frontier(
    model: Architecture,
    cluster: ClusterSpec,
    engine: str = "vllm",
    *,
    x: str = "latency",
    y: str = "cost",
    alpha: float = DEFAULT_ALPHA,
    on_points: Callable[[int, int], None] | None = None,
    **asked: Any,  # noqa: ANN401
) -> Frontier:
    """Every deployment of an engine that no other is as good as in two quantities, and the proof.

    Args:
        asked: the other arguments of `plan_engine`, confidence among them: times are those that
            are planned against. Their preference is not used, each point is the best.
        model, cluster, engine, x, y, alpha, on_points: as `frontier` and `plan_engine` have them.

    Raises:
        RequestError, NoPlanError, OutOfTimeError, SolverError: as `frontier`.
    """
    began_s = time.perf_counter()
    asked = conformed(asked, plan_engine, without=("model", "cluster", "engine", "objective"))
    problems = _axis_problems((x, y, alpha))
    try:
        planner = asked_of(model, cluster, engine, **_DEFAULTS | asked, objective=y)
    except RequestError as error:
        raise RequestError([*problems, *error.problems], hint=error.hint) from None
    if problems:
        raise RequestError(problems)
    request = planner.request
    free = _without_axes(request, x, y)
    candidates = EngineCandidates(replace(planner, request=free))
    search = _Search(request, candidates, x=x, began_s=began_s)
    return search.frontier(alpha, (model, cluster), on_points)


_DEFAULTS: dict[str, Any] = {
    "workload": DEFAULT_WORKLOAD,
    "hit_fraction": 0.0,
    "targets": NO_TARGETS,
    "weights_formats": None,
    "kv_formats": None,
    "batches": None,
    "chunks": None,
    "confidence": 0.0,
    "prefer": "objective",
    "options": DEFAULT_OPTIONS,
}
"""Arguments of `plan_engine` that a frontier of an engine may leave out."""


def _axis_problems(axes: tuple[str, str, float]) -> list[Problem]:
    x, y, alpha = axes
    problems = [
        Problem(
            where=option, value=value, fact=NO_SUCH[option], remedy=f"one of {', '.join(known)}"
        )
        for option, value, known in (("--x", x, X_AXES), ("--y", y, Y_AXES))
        if value not in known
    ]
    if not (math.isfinite(alpha) and alpha >= 0):
        fact = "is not a finite number from 0 on"
        problems.append(Problem(where="--alpha", value=f"{alpha:g}", fact=fact))
    return problems


def _request(axes: tuple[str, str, float], cost_model: str, **asked: Any) -> Request:  # noqa: ANN401
    """The request, or everything that is wrong with it and the axes."""
    x, y, _ = axes
    problems = _axis_problems(axes)
    if cost_model not in COST_MODELS:
        fact, remedy = NO_SUCH["--cost-model"], f"one of {', '.join(COST_MODELS)}"
        problems.append(Problem(where="--cost-model", value=cost_model, fact=fact, remedy=remedy))
    if cost_model == ECONOMICS:
        problems += axis_problems(x)
    try:
        request = make_request(**{**asked, "objective": y if y in Y_AXES else "cost"})
    except RequestError as error:
        raise RequestError([*problems, *error.problems], hint=error.hint) from None
    if problems:
        raise RequestError(problems)
    return request


_Asked = TypeVar("_Asked", Request, EngineRequest)


def _without_axes(request: _Asked, x: str, y: str) -> _Asked:
    """The request without targets on the axes."""
    names = (objective_of(x).name, objective_of(y).name)
    return replace(request, targets=request.targets.without(*names))


class _Search:
    """One request on its way to a frontier."""

    def __init__(
        self, request: Request | EngineRequest, candidates: Candidates, *, x: str, began_s: float
    ) -> None:
        self.request, self.x, self.y, self.began_s = request, x, request.objective, began_s
        self.candidates = candidates
        if candidates.is_empty:
            raise NoPlanError(candidates.conflict())
        self.traced = self._traced()
        self.posed = self.traced.narrowed.posed
        self.columns_are_free = not self.posed.program.column_objective.any()
        self.verified: tuple[str, ...] = ()

    def _traced(self) -> Trace:
        traced = trace(self.candidates.source, self.x, self.request.options)
        if traced.status is Status.INFEASIBLE:
            raise NoPlanError(self.candidates.conflict())
        if not traced.steps:
            raise out_of_time()
        return traced

    def frontier(
        self,
        alpha: float,
        served: tuple[ModelSpec | Architecture, ClusterSpec],
        on_points: Callable[[int, int], None] | None,
    ) -> Frontier:
        """All points with what proves them."""
        x, y, (model, cluster) = self.x, self.y, served
        points = self.points(on_points or (lambda done, of: None))
        return Frontier(
            request=self.request,
            x_name=x,
            y_name=y,
            x_dimension=objective_of(x).dimension,
            y_dimension=objective_of(y).dimension,
            points=points,
            alpha=alpha,
            preferred=max(range(len(points)), key=lambda i: _worth(points[i], y, alpha)),
            proof=self.proof(),
            provenance=(*model.provenance, *cluster.provenance, *cluster.device.provenance),
            cost_model=self.candidates.cost_model,
        )

    def points(self, on_points: Callable[[int, int], None]) -> tuple[FrontierPoint, ...]:
        """Every point, described and recounted by the verifier."""
        found = []
        for step in self.traced.steps:
            posed, assignment = self._settled(step)
            deployment, self.verified = self.candidates.described(posed, assignment)
            found.append(self._point(step, deployment))
            on_points(len(found), len(self.traced.steps))
        return tuple(found)

    def _settled(self, step: Step) -> tuple[PosedProgram, Assignment]:
        """Where contexts alone have a price, the least cost per token decides what is free.

        It decides among all columns of the contexts that have this price.
        """
        if not self.columns_are_free:
            return self.posed, step.assignment
        model, number, price = self.traced.narrowed.prices
        equal = np.abs(price - step.price) <= ceiling(step.price) - step.price
        parts = [
            self.candidates.source.of(int(which), number[equal & (model == which)])
            for which in np.unique(model[equal])
        ]
        whole = joined(parts)
        first = whole.place_of(self.posed, step.assignment)
        program = tradeoff_of(whole, self.x).within(step.delay)
        best = break_ties(replace(whole, program=program), first, self.request.options)
        return whole, best

    def _point(self, step: Step, deployment: AnyDeployment) -> FrontierPoint:
        of_x, of_y = objective_of(self.x), objective_of(self.y)
        x, y = of_x.told(deployment), of_y.told(deployment)
        for name, value, ours in ((self.x, x, step.delay), (self.y, y, step.price)):
            if not math.isclose(value, in_si(name, ours), rel_tol=TOLERANCE):
                raise SolverError(f"{name} {in_si(name, ours)!r} of a point is {value!r}")
        bound = in_si(self.y, max(0.0, step.bound))
        asked = self.request.targets.limits()
        return FrontierPoint(
            deployment=deployment,
            x=x,
            y=y,
            bound=bound,
            gap=abs(y - bound) / abs(y) if y else 0.0,
            meets_targets=all(
                of.is_kept(value, asked[of.name], tolerance=TOLERANCE)
                for of, value in ((of_x, x), (of_y, y))
                if of.name in asked
            ),
        )

    def proof(self) -> FrontierProof:
        """What was considered, rejected, solved and verified."""
        traced, narrowed = self.traced, self.traced.narrowed
        before = self.candidates.rejected(narrowed)
        rejected = {**before, **traced.rejected}
        return FrontierProof(
            status=traced.status.value,
            proofs=traced.vouched.proofs,
            vouched_by=traced.vouched_by,
            n_candidates=narrowed.n_columns + sum(before.values()),
            n_contexts=narrowed.n_contexts,
            screens=screens_of(rejected),
            n_solved=traced.n_solved,
            verified=self.verified,
            wall_s=time.perf_counter() - self.began_s,
            solve_s=traced.solve_s,
        )


def _worth(point: FrontierPoint, y: str, alpha: float) -> float:
    """Logarithm of (1/x)^alpha / price, where more throughput is a lower price."""
    price = -math.log(point.y) if objective_of(y).is_rate else math.log(point.y)
    return -alpha * math.log(point.x) - price
