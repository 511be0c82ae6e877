"""Answers that are several plans: frontiers and comparisons, as frozen records in SI units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.quantities.table import axes
from planner.results.plans import AnyDeployment, AnyPlan, AnyRequest
from planner.results.records import AnswerRecord
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.records.certificates import Proof, Screen
from planner.specs.records.devices import Provenance
from planner.specs.records.runtimes import ROOFLINE
from planner.specs.validation.hints import computed

if TYPE_CHECKING:  # pools are read from files, which a plan by itself need not wait for
    from planner.results.placements import Placement
    from planner.specs.ask.placement import PlacementRequest

X_AXES = axes(delays=True)
"""What a frontier may keep short: time per output token, time to first token."""

Y_AXES = axes(delays=False)
"""What a frontier may set against it."""

DEFAULT_ALPHA = 3.0
"""Worth of speed against price at the preferred point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """What counts seconds and dollars.

    Args:
        name: of the runtime.
        memory: the rule by which `erdil2025` counts what has to fit; else empty.
        left_out: what it cannot say of the model.
    """

    name: str = ROOFLINE.name
    memory: str = ""
    left_out: tuple[str, ...] = ()


OWN = CostModel()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """A deployment that no other is as good as in both quantities.

    Args:
        deployment: what to run.
        x, y: the two quantities of it.
        bound: no deployment whose x is at most this one's has a better y.
        gap: |y − bound| / y.
        meets_targets: whether it is within the targets on the two axes; those on other
            quantities hold for every point.
    """

    deployment: AnyDeployment
    x: float
    y: float
    bound: float
    gap: float
    meets_targets: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierProof:
    """Why these points are the frontier: no deployment lies below their staircase.

    Args:
        status: `optimal`, or `feasible` when time ended before the proof.
        proofs: what each prover said of the one program that proves all points: how far below
            their staircase anything lies, beside the cheapest price.
        vouched_by: who vouches for its bound; empty where one solver is alone with it.
        n_candidates: (layout, format, batch) choices of both phases that were considered.
        n_contexts: ways to use the pool that were considered.
        screens: what was rejected before the solver, and why that loses no point.
        n_solved: candidates that reached the solver.
        verified: checks that every point passed, none of them by the code that found it.
        wall_s: time from request to frontier.
        solve_s: part of it spent in the solver.
    """

    status: str
    proofs: tuple[Proof, ...]
    vouched_by: tuple[str, ...]
    n_candidates: int
    n_contexts: int
    screens: tuple[Screen, ...]
    n_solved: int
    verified: tuple[str, ...]
    wall_s: float
    solve_s: float

    @property
    def solver(self) -> str:
        """Who was asked first."""
        return next((proof.prover for proof in self.proofs if not proof.is_own), "enumeration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier(AnswerRecord):
    """All deployments of a request that are not dominated in two quantities.

    Args:
        request: what was asked; its objective is `y_name`.
        x_name, y_name: the quantities, of `X_AXES` and `Y_AXES`.
        x_dimension, y_dimension: their dimensions, as `units.show` takes them.
        points: the cheapest first, and so the slowest.
        alpha: worth of speed against price.
        preferred: index of the point with the largest (1/x)^alpha / price.
        proof: that no point is missing and none too many.
        provenance: where the constants come from.
        cost_model: what counts the quantities.
        other_requests: what else was asked to count them: the other runtimes, each in its own
            words, and `erdil2025` in its own.
    """

    request: Request | EngineRequest
    x_name: str
    y_name: str
    x_dimension: str
    y_dimension: str
    points: tuple[FrontierPoint, ...]
    alpha: float
    preferred: int
    proof: FrontierProof
    provenance: tuple[Provenance, ...]
    cost_model: CostModel = OWN
    other_requests: tuple[AnyRequest, ...] = ()

    def whole(self) -> Curves:
        """The frontier as that of the only case."""
        case = Case(model=self.request.model.name, topology=self.request.cluster.name, weights="")
        return Curves(curves=(Curve(case=case, frontier=self, reason=""),))

    @property
    def best(self) -> FrontierPoint:
        return self.points[self.preferred]

    @computed
    def at_target(self) -> int | None:
        """Index of the cheapest point within the targets on both axes, if one is."""
        return next((i for i, point in enumerate(self.points) if point.meets_targets), None)

    @computed
    def n_assumed(self) -> int:
        """Constants of the inputs that have no published source."""
        return sum(value.is_assumed for value in self.provenance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One of several requests that differ in model, pool or formats.

    Args:
        model, topology: names.
        weights: formats of the weights, joined by commas; empty for all that the model has.
        kv: the format of the KV cache, where each is a case of its own; else empty.
        engine: the engine that serves it; empty by the planner's own layouts.
        roles: which roles its replicas may have; empty where nothing is said of them.
    """

    model: str
    topology: str
    weights: str
    kv: str = ""
    engine: str = ""
    roles: str = ""

    @property
    def words(self) -> str:
        """Model, pool and formats."""
        return " ".join(filter(None, (self.model, self.topology, self.weights, self.kv)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(AnswerRecord):
    """The frontier of a case, or why it has none, and what was then asked; see `Row`."""

    case: Case
    frontier: Frontier | None
    reason: str
    requests: tuple[AnyRequest, ...] = ()

    def whole(self) -> Curves:
        """The curve as the only one."""
        return Curves(curves=(self,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves(AnswerRecord):
    """Frontiers of several cases, in the order asked."""

    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The plan of a case, or why it has none.

    Args:
        case: what was asked.
        plan: the best plan.
        placement: in its place the best replicas, where their roles are compared.
        loss_fraction: how much worse its objective is than that of the best row.
        reason: why there is no plan.
        requests: what was asked where nothing satisfies it, each runtime in its own words; none
            where it could not be read, or time ended.
    """

    case: Case
    plan: AnyPlan | None
    loss_fraction: float | None
    reason: str
    placement: Placement | None = None
    requests: tuple[AnyRequest | PlacementRequest, ...] = ()

    @property
    def answer(self) -> AnyPlan | Placement | None:
        """What the case has, of either kind."""
        return self.placement if self.plan is None else self.plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(AnswerRecord):
    """Plans for the same targets, side by side.

    Args:
        objective: what every plan is best in, or all replicas of a row together.
        rows: in the order asked.
        best: index of the row whose plan is the best; `None` where none has a plan.
    """

    objective: str
    rows: tuple[Row, ...]
    best: int | None
