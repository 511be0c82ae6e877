"""Requests that differ in model, pool or weights format only: their plans, their frontiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from planner.errors import NoPlanError, OutOfTimeError, RequestError
from planner.planning.pareto import frontier
from planner.planning.plans import plan
from planner.quantities.table import QUANTITIES, Quantity, objective_of
from planner.quantities.units import show
from planner.report.words import limit_label, limit_text
from planner.results.conflicts import Conflict
from planner.results.obstacles import Obstacle
from planner.results.plans import AnyPlan, Plan
from planner.results.surveys import Case, Comparison, Curve, Row
from planner.running.deadlines import check, timed
from planner.runtimes.registry import layers_of, named_runtimes
from planner.solvers.recording import solving_for
from planner.specs.ask.defaults import among_formats
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.placement import shape_of
from planner.specs.ask.quality import usual_formats
from planner.specs.ask.targets import OF_ONE_MODEL, Targets
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec, ModelSpec
from planner.specs.records.roles import TOGETHER, Connector
from planner.specs.records.runtimes import ERDIL2025, LAYOUT_RUNTIMES
from planner.specs.validation.arguments import arguments_checked, conformed

if TYPE_CHECKING:
    from planner.results.conflicts import PlacementConflict
    from planner.results.placements import Placement

_T = TypeVar("_T")
_Keywords = dict[str, Any]

OF_ENGINES = OF_ONE_MODEL | {"--engine", "--topology", "--draft"}
"""Likewise where engines are named: engines and kernels differ by device."""


@arguments_checked(ranges="later")
@timed
def compare(
    models: Sequence[ModelSpec | Architecture],
    clusters: Sequence[ClusterSpec],
    engines: Sequence[str] = (),
    *,
    by: str = "",
    weights_formats: Sequence[str] | None = None,
    kv_formats: Sequence[str] | None = None,
    allowed_formats: Sequence[str] | None = None,
    objective: str = "cost",
    roles: Sequence[str] = (),
    connector: Connector | None = None,
    prefill_devices: int | None = None,
    decode_devices: int | None = None,
    expert_devices: int | None = None,
    on_case: Callable[[Case], None] = lambda case: None,
    **keywords: Any,  # noqa: ANN401
) -> Comparison:
    """The best plan of every model on every pool under every engine, for the same targets.

    Args:
        models, clusters, engines: what to serve, on what, and by what; by the usual one where no
            engine is named.
        by: what makes a case of its own beside these: `weights`, each format of
            them; `formats`, each pair of formats of weights and KV cache; or nothing.
        weights_formats, kv_formats: those to choose from; as published where left out, and all
            that a model may take where they are set side by side.
        allowed_formats: those that weights and cache may take, as far as a model is served in
            them; instead of the other two.
        objective: what every plan is best in.
        roles: `together`, `apart`, `free`: a case for each, whose replicas serve the demand; the
            rows then have placements.
        connector, prefill_devices, decode_devices, expert_devices: as `place` has them.
        on_case: called with each case before its plan is sought.
        keywords: the other arguments of `planning.plan`, the same for all.

    Raises:
        RequestError: no case can be read.
        NoPlanError: there is one case, and it has no plan.
        SolverError: an answer failed its verification.
    """
    keywords = conformed(keywords, PlanOptions, without=(*OF_CASES, "objective"))
    choices = PlanOptions(**keywords, objective=objective)
    formats = _Formats(weights_formats, kv_formats, allowed_formats)
    cases = list(_cases((models, clusters, engines), by, formats, choices))
    said = {
        "connector": connector,
        "prefill_devices": prefill_devices,
        "decode_devices": decode_devices,
        "expert_devices": expert_devices,
    }
    said = {name: value for name, value in said.items() if value is not None}
    if roles or said:
        names = roles or (TOGETHER,)
        cases = [(replace(one[0], roles=name), *one[1:]) for one in cases for name in names]
        ask = _asker(cases, choices, said)
        return compared(cases, answers_of(cases, on_case, ask), objective)
    known = {**keywords, "objective": objective}
    answers = answers_of(cases, on_case, lambda case: plan(*case[1], **{**known, **case[2]}))
    return compared(cases, answers, objective)


def _asker(
    cases: Sequence[AskedCase], choices: PlanOptions, said: _Keywords
) -> Callable[[AskedCase], Placement]:
    """What finds the replicas of a case, of however many sorts, that serve the demand.

    Args:
        said: of roles apart: nothing is handed over where all replicas do both phases.

    Raises:
        RequestError: replicas cannot be asked so; all problems are listed.
    """
    from planner.planning.mixing import replicas_of, unasked_of_replicas  # placements are heavy

    if problems := unasked_of_replicas(choices, ("roles", *said)):
        raise RequestError(problems)
    hands_over = any(one[0].roles != TOGETHER for one in cases)

    def ask(case: AskedCase) -> Placement:
        roles = case[0].roles
        apart = {} if hands_over and roles == TOGETHER else said
        model, cluster, engine = case[1]
        of_case = replace(choices, **case[2])
        return replicas_of(model, cluster, engine, of_case, roles=roles, **apart)

    return ask


OF_CASES = ("model", "cluster", "engine", "weights_formats", "kv_formats")
"""Arguments that each case has for itself."""


def compared(
    cases: Sequence[AskedCase], answers: Sequence[_Answered], objective: str
) -> Comparison:
    """The plans of cases, or their placements, or why they have none, set beside the best."""
    quantity = objective_of(objective)
    values = [None if answer is None else _shown_value(answer, quantity) for answer, *_ in answers]
    known = [value for value in values if value is not None]
    best = (max if quantity.is_rate else min)(known, default=None)
    rows = tuple(
        Row(
            case=case[0],
            plan=answer if isinstance(answer, Plan) else None,
            placement=None if isinstance(answer, Plan) else answer,
            loss_fraction=_loss(value, best),
            reason=reason,
            requests=requests,
        )
        for case, (answer, reason, requests), value in zip(cases, answers, values, strict=True)
    )
    number = None if best is None else values.index(best)
    return Comparison(objective=objective, rows=rows, best=number)


def _shown_value(answer: AnyPlan | Placement, quantity: Quantity) -> float:
    """What is shown, SI: a plan may give up some for simplicity; replicas cost their rent."""
    if isinstance(answer, Plan):
        return quantity.told(answer.deployment)
    return answer.certificate.objective


@arguments_checked(ranges="later")
@timed
def frontiers(
    models: Sequence[ModelSpec | Architecture],
    clusters: Sequence[ClusterSpec],
    engines: Sequence[str] = (),
    *,
    by: str = "",
    weights_formats: Sequence[str] | None = None,
    kv_formats: Sequence[str] | None = None,
    allowed_formats: Sequence[str] | None = None,
    on_case: Callable[[Case], None] = lambda case: None,
    **keywords: Any,  # noqa: ANN401
) -> tuple[Curve, ...]:
    """The frontier of every case; see `compare` and `pareto.frontier`."""
    without = (*OF_CASES, "objective", "keywords")
    keywords = conformed(keywords, frontier, PlanOptions, without=without)
    known = {one.name for one in fields(PlanOptions)}
    choices = PlanOptions(**{name: keywords[name] for name in known & keywords.keys()})
    formats = _Formats(weights_formats, kv_formats, allowed_formats)
    cases = list(_cases((models, clusters, engines), by, formats, choices))
    answers = answers_of(cases, on_case, lambda case: frontier(*case[1], **{**keywords, **case[2]}))
    return tuple(
        Curve(case=case[0], frontier=answer, reason=reason, requests=requests)
        for case, (answer, reason, requests) in zip(cases, answers, strict=True)
    )


_Answered = tuple["AnyPlan | Placement | None", str, tuple[Any, ...]]

AskedCase = tuple[Case, tuple[Any, ...], _Keywords]


class _Formats(NamedTuple):
    """Formats that are asked for; `None` leaves them to the model."""

    weights: Sequence[str] | None
    caches: Sequence[str] | None
    allowed: Sequence[str] | None

    def of(
        self, model: ModelSpec | Architecture, engine: str, targets: Targets
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Formats of weights and cache that a model may take; of a list, those it can."""
        if engine not in LAYOUT_RUNTIMES:
            layers = layers_of(model)
            weights = tuple(self.weights or usual_formats(layers, targets))
            return weights, tuple(self.caches or (layers.kv_format,))
        shape = shape_of(model)
        if self.allowed is None:
            weights = tuple(self.weights or shape.weights_formats)
            return weights, tuple(self.caches or (shape.kv_format,))
        return allowed_formats(shape, self.allowed, targets, engine)

    @property
    def are_named(self) -> bool:
        return bool(self.weights or self.allowed)


def allowed_formats(
    model: ModelSpec, allowed: Sequence[str], targets: Targets, engine: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Formats of weights and cache, of those that are allowed, that a model may take."""
    weights, caches = among_formats(model, allowed)
    if targets.quality_loss_fraction is not None:
        good = usual_formats(model, targets)
        weights = tuple(name for name in weights if name in good) or weights
    keeps_usual = engine == ERDIL2025.name  # it has no format of the cache
    return weights, (model.kv_format,) if keeps_usual else caches


_Served = tuple[Sequence[ModelSpec | Architecture], Sequence[ClusterSpec], Sequence[str]]


def _cases(
    served: _Served, by: str, formats: _Formats, choices: PlanOptions
) -> Iterator[AskedCase]:
    is_free = not by and not formats.are_named  # each request then takes those it may
    models, clusters, engines = served
    for engine, model, cluster in product(engines or (None,), models, clusters):
        runtime = named_runtimes(engine, model, cluster)[0]
        weights, caches = formats.of(model, runtime, choices.targets)
        parts = [(name,) for name in weights] if by else [weights]
        halves = [(name,) for name in caches] if by == "formats" else [caches]
        for chosen, kept in product(parts, halves):
            case = Case(
                model=model.name,
                topology=cluster.name,
                weights=",".join(chosen) if by or formats.are_named else "",
                kv=kept[0] if by == "formats" else "",
                engine=engine or "",
            )
            given: _Keywords = {"weights_formats": None if is_free else chosen, "kv_formats": kept}
            if choices.variants:
                given["variants"] = [
                    it for it in choices.variants if it.variant and it.variant.of == model.name
                ]
            yield case, (model, cluster, engine), given


def answers_of(
    cases: list[AskedCase],
    on_case: Callable[[Case], None],
    answer: Callable[[AskedCase], _T],
) -> list[tuple[_T | None, str, tuple[Any, ...]]]:
    """The answer of each case, or why there is none and of what; one that stands alone raises.

    Raises:
        OutOfTimeError: no case has an answer, and of one of them for want of time alone.
    """
    answers: list[tuple[_T | None, str, tuple[Any, ...]]] = []
    errors: list[Exception] = []
    for case in cases:
        on_case(case[0])
        try:
            if answers:
                check()
            with solving_for(case[0].words):
                answers.append((answer(case), "", ()))
        except (NoPlanError, OutOfTimeError, RequestError) as error:
            if len(cases) == 1 or not _is_of_case(error, case[0]):
                raise
            errors.append(error)
            requests = error.requests if isinstance(error, NoPlanError) else ()
            answers.append((None, reason_of(error), requests))
    if len(errors) == len(cases):
        _raise_of_all(errors)
    return answers


def _raise_of_all(errors: Sequence[Exception]) -> None:
    """Where no case has an answer: a fault of all; or time, since more of it may find one."""
    for kind in (RequestError, OutOfTimeError):
        mine = [one for one in errors if isinstance(one, kind)]
        if mine and (kind is OutOfTimeError or len(mine) == len(errors)):
            raise mine[0]


def _is_of_case(error: Exception, case: Case) -> bool:
    """Whether another case may do better: a fault of the request itself is one of all."""
    if not isinstance(error, RequestError):
        return True
    of_case = OF_ENGINES if case.engine else OF_ONE_MODEL
    return all(problem.where in of_case for problem in error.problems)


def reason_of(error: NoPlanError | OutOfTimeError | RequestError) -> str:
    """Why a case has no plan, in a few words."""
    if isinstance(error, RequestError):
        return "; ".join(f"`{problem.value}`: {problem.fact}" for problem in error.problems)
    if isinstance(error, OutOfTimeError):
        return f"no plan within {show(error.time_limit_s, 's')}"
    conflict = cast("Conflict | PlacementConflict", error.conflict)
    return "; ".join(map(_beyond_reach, conflict.obstacles)) or str(conflict)


def _beyond_reach(obstacle: Obstacle) -> str:
    """A limit, and what could be had of it; of replicas that no pool holds, why."""
    what, _, model = obstacle.name.partition(" ")
    if what not in QUANTITIES:
        return obstacle.reason
    limit = f"{limit_label(what)} {limit_text(what, obstacle.asked, obstacle.dimension)}"
    of = f" of {model}" if model else ""
    return f"{limit}{of} is out of reach: {show(obstacle.reachable, obstacle.dimension)}"


def _loss(value: float | None, best: float | None) -> float | None:
    if value is None or best is None:
        return None
    return abs(value - best) / abs(best) if best else 0.0
