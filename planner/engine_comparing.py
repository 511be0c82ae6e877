"""Requests of engines that differ in model, pool, engine or formats: plans and frontiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from planner.comparing import OF_ONE_MODEL, AskedCase, answers_of, compared
from planner.deadlines import timed
from planner.engine.planning import plan_engine
from planner.pareto import engine_frontier
from planner.specs.architecture import Architecture
from planner.specs.arguments import arguments_checked, conformed
from planner.specs.quality import usual_formats
from planner.specs.records import ClusterSpec
from planner.specs.targets import Targets
from planner.surveys import Case, Comparison, Curve

OF_CASE = OF_ONE_MODEL | {"--engine", "--topology", "--draft"}
"""Options that may suit one case and not another: engines and kernels differ by device."""

OF_CASES = ("model", "cluster", "engine")
"""Arguments that each case has for itself."""

_Served = tuple[Sequence[Architecture], Sequence[ClusterSpec], Sequence[str]]


@arguments_checked(ranges="later")
@timed
def compare_engines(
    models: Sequence[Architecture],
    clusters: Sequence[ClusterSpec],
    engines: Sequence[str],
    *,
    by: str = "",
    objective: str = "cost",
    on_case: Callable[[Case], None] = lambda case: None,
    **choices: Any,  # noqa: ANN401
) -> Comparison:
    """The best plan of every model on every pool under every engine, for the same targets.

    Args:
        by: `weights` or `formats`: a case for each format, or pair of them; or nothing.
        objective: what every plan is best in.
        on_case: called with each case before its plan is sought.
        choices: the other arguments of `plan_engine`, the same for all.

    Raises:
        RequestError: no case can be read.
        NoPlanError: there is one case, and it has no plan.
        SolverError: an answer failed its verification.
    """
    choices = conformed(choices, plan_engine, without=(*OF_CASES, "objective"))
    cases = list(_cases((models, clusters, engines), by, choices))
    choices["objective"] = objective
    answers = answers_of(cases, on_case, lambda one: plan_engine(*one[1], **{**choices, **one[2]}))
    return compared(cases, answers, objective)


@arguments_checked(ranges="later")
@timed
def engine_frontiers(
    models: Sequence[Architecture],
    clusters: Sequence[ClusterSpec],
    engines: Sequence[str],
    *,
    by: str = "",
    on_case: Callable[[Case], None] = lambda case: None,
    **choices: Any,  # noqa: ANN401
) -> tuple[Curve, ...]:
    """The frontier of every case; see `compare_engines` and `pareto.engine_frontier`."""
    without = (*OF_CASES, "objective", "asked")
    choices = conformed(choices, engine_frontier, plan_engine, without=without)
    cases = list(_cases((models, clusters, engines), by, choices))
    answers = answers_of(
        cases,
        on_case,
        lambda one: engine_frontier(*one[1], **{**choices, **one[2]}),
        of_case=OF_CASE,
    )
    return tuple(
        Curve(case=case[0], frontier=answer, reason=reason)
        for case, (answer, reason) in zip(cases, answers, strict=True)
    )


def _cases(served: _Served, by: str, choices: dict[str, Any]) -> Iterator[AskedCase]:
    named = choices.get("weights_formats")
    for engine, model, cluster in product(served[2], served[0], served[1]):
        weights = tuple(named or usual_formats(model, choices.get("targets") or Targets()))
        caches = tuple(choices.get("kv_formats") or (model.kv_format,))
        parts = [(name,) for name in weights] if by else [weights]
        halves = [(name,) for name in caches] if by == "formats" else [caches]
        for chosen, kept in product(parts, halves):
            case = Case(
                model=model.name,
                topology=cluster.name,
                weights=",".join(chosen) if by or named else "",
                kv=kept[0] if by == "formats" else "",
                engine=engine,
            )
            variants = [one for one in choices.get("variants", ()) if _is_of(one, model)]
            asked = {
                "variants": variants,
                "weights_formats": chosen if by or named else None,
                "kv_formats": kept,
            }
            yield case, (model, cluster, engine), asked


def _is_of(variant: Architecture, model: Architecture) -> bool:
    return variant.variant is not None and variant.variant.of == model.name
