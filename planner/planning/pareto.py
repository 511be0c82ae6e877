"""`frontier`: from a request to every deployment that is the best for some worth of speed."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from planner.errors import NoPlanError, Problem, RequestError, SolverError
from planner.planning.explain import explain
from planner.planning.plans import before_search
from planner.programs.blocks import BlockProgram, Objective, joined
from planner.programs.layout import Assignment, ceiling
from planner.programs.tradeoff import tradeoff_of
from planner.quantities.table import objective_of
from planner.results import surveys
from planner.results.plans import AnyDeployment
from planner.running.deadlines import is_over, out_of_time, share, timed
from planner.runtimes.candidates import CandidatePool
from planner.runtimes.registry import candidates_of, named_runtimes
from planner.solvers.certify import in_si, screens_of
from planner.solvers.search import break_ties
from planner.solvers.solution import Status
from planner.solvers.tracing import Step, trace
from planner.specs.ask.engine import PlanKeywords, PlanOptions
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec, ModelSpec
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.runtimes import ERDIL2025
from planner.specs.validation.arguments import arguments_checked, conformed
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import accounted
from planner.verifier.frontiers import judged_frontier

TOLERANCE = 1e-9
POINTS_SHARE = 0.7
"""Of the time that is left, that describing points may take: the rest is to recount them."""


@arguments_checked(ranges="later")
@timed
def frontier(
    model: ModelSpec | Architecture,
    cluster: ClusterSpec,
    engine: str | Sequence[str] | None = None,
    *,
    x: str = "latency",
    y: str = "cost",
    alpha: float = surveys.DEFAULT_ALPHA,
    on_points: Callable[[int, int], None] | None = None,
    **keywords: Unpack[PlanKeywords],
) -> surveys.Frontier:
    """Every deployment that no other is as good as in two quantities, with one proof for all.

    Targets on the two quantities do not cut the frontier: its points say whether they meet
    them. All other targets hold for every point.

    Args:
        x: what is kept short, `latency` (TPOT) or `ttft`.
        y: what is set against it, `cost`, `rent`, `throughput` or `device-throughput`.
        alpha: worth of speed; the preferred point has the largest (1/x)^alpha / price.
        on_points: called with how many points are verified, of how many.
        model, cluster, engine, keywords: as `planning.plan` takes them, its
            objective left out; the gap of the options is not used, nor the preference: each
            point is the best.

    Raises:
        RequestError: the request cannot be read; every problem is listed.
        NoPlanError: nothing satisfies it, whatever the two quantities.
        OutOfTimeError: the time limit ended before a first point.
        SolverError: a point failed its verification.

    Source: [Erdil2025] Eq. 45 for the preferred point.
    """
    began_s = time.perf_counter()
    problems = _axis_problems((x, y, alpha), named_runtimes(engine, model, cluster))
    choices = PlanOptions(**conformed(keywords, PlanOptions, without=("objective",)))
    choices = replace(choices, objective=y if y in surveys.Y_AXES else choices.objective)
    try:
        told = candidates_of(model, cluster, engine, choices)
    except RequestError as error:
        raise RequestError([*problems, *error.problems], hint=error.hint) from None
    RequestError.raise_if_any(problems)
    return traced_out(told, x=x, alpha=alpha, on_points=on_points, began_s=began_s)


@timed
def traced_out(
    told: CandidatePool,
    *,
    x: str,
    alpha: float = surveys.DEFAULT_ALPHA,
    on_points: Callable[[int, int], None] | None = None,
    began_s: float | None = None,
) -> surveys.Frontier:
    """The frontier of some candidates, verified.

    Raises:
        NoPlanError, OutOfTimeError, SolverError: as `frontier`.
    """
    began_s = time.perf_counter() if began_s is None else began_s
    frontier = Tracing(told, x=x, began_s=began_s).frontier(alpha, on_points)
    return accounted(frontier, judged_frontier(frontier), ("provenance", "cost_model", "verified"))


def _axis_problems(axes: tuple[str, str, float], runtimes: Sequence[str]) -> list[Problem]:
    x, y, alpha = axes
    problems = [
        Problem(where=option, value=value, fact="no such axis", remedy=f"one of {', '.join(known)}")
        for option, value, known in (("--x", x, surveys.X_AXES), ("--y", y, surveys.Y_AXES))
        if value not in known
    ]
    if not (math.isfinite(alpha) and alpha >= 0):
        fact = "is not a finite number from 0 on"
        problems.append(Problem(where="--alpha", value=f"{alpha:g}", fact=fact))
    if x == "ttft" and ERDIL2025.name in runtimes:
        fact = "the reference model has no time to first token"
        problems.append(Problem(where="--x", value=x, fact=fact, remedy="write `--x latency`"))
    return problems


class Tracing:
    """One request on its way to a frontier.

    Args:
        told: the candidates, with all targets.
    """

    def __init__(self, told: CandidatePool, *, x: str, began_s: float) -> None:
        self.request, self.x, self.began_s = told.parts[0].named, x, began_s
        self.y, self.others = self.request.objective, told.other_requests(self.request)
        axes = (objective_of(x).name, objective_of(self.y).name)
        among = told.with_targets(self.request.targets.without(*axes))
        self.among, self.source = among, among.source(Objective(objective=self.y))
        self.traced = trace(self.source, x, self.request.options)
        if self.traced.status is Status.INFEASIBLE:
            raise NoPlanError(explain(among), requests=among.requests)
        if not self.traced.steps:
            raise out_of_time()
        self.posed = self.traced.narrowed.posed

    def frontier(
        self, alpha: float, on_points: Callable[[int, int], None] | None = None
    ) -> surveys.Frontier:
        """All points with what proves them."""
        x, y = self.x, self.y
        assert not isinstance(self.request, EconomicsRequest)  # it has no names
        points = self.points(on_points or (lambda done, of: None))
        return surveys.Frontier(
            request=self.request,
            x_name=x,
            y_name=y,
            x_dimension=objective_of(x).dimension,
            y_dimension=objective_of(y).dimension,
            points=points,
            alpha=alpha,
            preferred=max(range(len(points)), key=lambda i: _worth(points[i], y, alpha)),
            proof=self._proof(),
            provenance=(),
            other_requests=self.others,
        )

    def points(self, on_points: Callable[[int, int], None]) -> tuple[surveys.FrontierPoint, ...]:
        """Every point, described; out of time, some of them, the ends first, and nothing proved."""
        found: dict[int, surveys.FrontierPoint] = {}
        steps = self.traced.steps
        with share(POINTS_SHARE):
            for number in _spread(len(steps)):
                if found and is_over():
                    self.traced = replace(self.traced, status=Status.FEASIBLE)
                    break
                posed, assignment = self._settled(steps[number])
                deployment = self.among.deployment(posed, assignment)
                found[number] = self._point(steps[number], deployment)
                on_points(len(found), len(steps))
        return tuple(found[number] for number in sorted(found))

    def _settled(self, step: Step) -> tuple[BlockProgram, Assignment]:
        """Where contexts alone have a price, the least cost per token decides what is free.

        It decides among all columns of the contexts that have this price.
        """
        if self.posed.program.column_objective.any():
            return self.posed, step.assignment
        model, number, price = self.traced.narrowed.prices
        equal = np.abs(price - step.price) <= ceiling(step.price) - step.price
        parts = [
            self.source.of(int(which), number[equal & (model == which)])
            for which in np.unique(model[equal])
        ]
        whole = joined(parts)
        first = whole.place_of(self.posed, step.assignment)
        program = tradeoff_of(whole, self.x).within(step.delay)
        best = break_ties(replace(whole, program=program), first, self.request.options)
        return whole, best

    def _point(self, step: Step, deployment: AnyDeployment) -> surveys.FrontierPoint:
        of_x, of_y = objective_of(self.x), objective_of(self.y)
        x, y = of_x.told(deployment), of_y.told(deployment)
        for name, value, ours in ((self.x, x, step.delay), (self.y, y, step.price)):
            if not math.isclose(value, in_si(name, ours), rel_tol=TOLERANCE):
                raise SolverError(f"{name} {in_si(name, ours)!r} of a point is {value!r}")
        bound = in_si(self.y, max(0.0, step.bound))
        asked = self.request.targets.limits()
        return surveys.FrontierPoint(
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

    def _proof(self) -> surveys.FrontierProof:
        """What was considered, rejected and solved; the account says which checks points pass."""
        traced, before = self.traced, before_search(self.among, self.posed)
        return from_fields(
            surveys.FrontierProof,
            traced,
            status=traced.status.value,
            proofs=traced.vouched.proofs,
            n_candidates=traced.narrowed.n_columns + sum(before.values()),
            n_contexts=traced.narrowed.n_contexts,
            screens=screens_of({**before, **traced.rejected}),
            verified=(),
            wall_s=time.perf_counter() - self.began_s,
        )


def _spread(n: int) -> list[int]:
    """All numbers below n, both ends first, then what is in the middle of what was before.

    >>> _spread(6)
    [0, 5, 2, 1, 3, 4]
    """
    spread, spans = dict.fromkeys([0, n - 1]), [(0, n - 1)]
    for low, high in spans:
        if high - low > 1:
            middle = (low + high) // 2
            spread[middle] = None
            spans += [(low, middle), (middle, high)]
    return list(spread)


def _worth(point: surveys.FrontierPoint, y: str, alpha: float) -> float:
    """Logarithm of (1/x)^alpha / price, where more throughput is a lower price."""
    price = -math.log(point.y) if objective_of(y).is_rate else math.log(point.y)
    return -alpha * math.log(point.x) - price
