"""Requests that differ in model, pool or weights format only: their plans, their frontiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from planner.errors import NoPlanError, OutOfTimeError, RequestError
from planner.pareto import frontier
from planner.planning import plan
from planner.report.words import limit_label, limit_text
from planner.results import Conflict
from planner.specs.records import ClusterSpec, ModelSpec
from planner.surveys import Case, Comparison, Curve, Row
from planner.units import show

_T = TypeVar("_T")
_Keywords = dict[str, Any]

OF_ONE_MODEL = frozenset(
    {"--weights", "--kv", "--max-quality-loss", "--tp", "--pp", "--ep", "--dp"}
)
"""Options that may suit one model or pool of several and not another."""


def compare(
    models: Sequence[ModelSpec],
    clusters: Sequence[ClusterSpec],
    *,
    by_weights: bool = False,
    weights_formats: Sequence[str] | None = None,
    objective: str = "cost",
    on_case: Callable[[Case], None] = lambda case: None,
    **choices: Any,  # noqa: ANN401
) -> Comparison:
    """The best plan of every model on every pool, for the same targets.

    Args:
        models, clusters: what to serve, and on what.
        by_weights: whether each weights format is a case of its own.
        weights_formats: those to choose from; all that a model allows.
        objective: what every plan is best in.
        on_case: called with each case before its plan is sought.
        choices: the other arguments of `planning.plan`, the same for all.

    Raises:
        RequestError: no case can be read.
        NoPlanError: there is one case, and it has no plan.
        SolverError: an answer failed its verification.
    """
    cases = list(_cases(models, clusters, by_weights, weights_formats))
    choices["objective"] = objective
    answers = _answers(cases, on_case, lambda one: plan(*one[1], **{**choices, **one[2]}))
    values = [None if found is None else found.certificate.objective for found, _ in answers]
    known = [value for value in values if value is not None]
    best = (max if objective == "throughput" else min)(known, default=None)
    rows = tuple(
        Row(case=case[0], plan=found, loss_fraction=_loss(value, best), reason=reason)
        for case, (found, reason), value in zip(cases, answers, values, strict=True)
    )
    return Comparison(
        objective=objective, rows=rows, best=None if best is None else values.index(best)
    )


def frontiers(
    models: Sequence[ModelSpec],
    clusters: Sequence[ClusterSpec],
    *,
    by_weights: bool = False,
    weights_formats: Sequence[str] | None = None,
    on_case: Callable[[Case], None] = lambda case: None,
    **choices: Any,  # noqa: ANN401
) -> tuple[Curve, ...]:
    """The frontier of every model on every pool; see `compare` and `pareto.frontier`."""
    cases = list(_cases(models, clusters, by_weights, weights_formats))
    answers = _answers(cases, on_case, lambda one: frontier(*one[1], **{**choices, **one[2]}))
    return tuple(
        Curve(case=case[0], frontier=answer, reason=reason)
        for case, (answer, reason) in zip(cases, answers, strict=True)
    )


_Asked = tuple[Case, tuple[ModelSpec, ClusterSpec], _Keywords]


def _cases(
    models: Sequence[ModelSpec],
    clusters: Sequence[ClusterSpec],
    by_weights: bool,
    formats: Sequence[str] | None,
) -> Iterator[_Asked]:
    for model in models:
        asked = tuple(formats or model.weights_formats)
        for cluster in clusters:
            for chosen in [(name,) for name in asked] if by_weights else [asked]:
                words = ",".join(chosen) if by_weights or formats else ""
                case = Case(model=model.name, topology=cluster.name, weights=words)
                yield case, (model, cluster), {"weights_formats": chosen}


def _answers(
    cases: list[_Asked], on_case: Callable[[Case], None], answer: Callable[[_Asked], _T]
) -> list[tuple[_T | None, str]]:
    """The answer of each case or the reason that there is none; one that stands alone raises."""
    found: list[tuple[_T | None, str]] = []
    unread: list[RequestError] = []
    for case in cases:
        on_case(case[0])
        try:
            found.append((answer(case), ""))
        except (NoPlanError, OutOfTimeError, RequestError) as error:
            if len(cases) == 1 or not _is_of_case(error):
                raise
            unread += [error] if isinstance(error, RequestError) else []
            found.append((None, _reason(error)))
    if unread and len(unread) == len(cases):
        raise unread[0]
    return found


def _is_of_case(error: Exception) -> bool:
    """Whether another case may do better: a fault of the request itself is one of all."""
    if not isinstance(error, RequestError):
        return True
    return all(problem.where in OF_ONE_MODEL for problem in error.problems)


def _reason(error: NoPlanError | OutOfTimeError | RequestError) -> str:
    """Why a case has no plan, in a few words."""
    if isinstance(error, RequestError):
        return "; ".join(f"`{problem.value}`: {problem.fact}" for problem in error.problems)
    if isinstance(error, OutOfTimeError):
        return f"no plan within {show(error.time_limit_s, 's')}"
    conflict = error.conflict
    assert isinstance(conflict, Conflict)
    return "; ".join(
        f"{limit_label(one.name)} {limit_text(one.name, one.asked, one.dimension)} "
        f"is out of reach: {show(one.reachable, one.dimension)}"
        for one in conflict.obstacles
    )


def _loss(value: float | None, best: float | None) -> float | None:
    if value is None or best is None:
        return None
    return abs(value - best) / abs(best) if best else 0.0
