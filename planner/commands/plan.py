"""`plan` itself, `plan pareto` and `plan compare`: options to a call of the library, and back."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.commands.options.reading import read_roles
from planner.commands.options.said import Said
from planner.commands.reporting import reported
from planner.errors import NoPlanError, RequestError
from planner.report.files import FOUND, Answer

if TYPE_CHECKING:
    from planner.commands.asking import Wanted
    from planner.results.plans import AnyPlan


def plan(said: Said) -> Answer:
    """The deployment that is best, or replicas that have roles."""
    from planner.commands.options.reading import with_paths
    from planner.specs.records.roles import TOGETHER
    from planner.specs.records.runtimes import is_table

    roles, asked = read_plan(said)
    is_usual = roles in ({}, {"roles": TOGETHER})  # which they are where nothing is said
    if not is_usual or any(map(is_table, asked.runtimes)):
        return _replicas(said, asked, roles)
    try:
        best = _find(asked)
    except NoPlanError as error:
        conflict: Any = error.conflict
        command = with_paths(conflict.command, asked.files)
        raise NoPlanError(replace(conflict, command=command)) from error
    return reported(said, _as_written(best, asked))


def read_plan(said: Said) -> tuple[dict[str, Any], Wanted]:
    """Roles and everything else that was asked for.

    Raises:
        RequestError: with all that is wrong with it.
    """
    from planner.commands.asking import wanted

    roles = read_roles(said)
    asked = wanted(said)
    if said.roles is None and asked.keywords["targets"].demand_tokens_per_s is None:
        for name in filter(said.is_given, ("--sorts", "--sort-price")):
            fact, remedy = "is of replicas that serve a demand", "say how much: `--rate 8req/s`"
            said.refuse(name, fact, remedy, value="")
        said.check()
    return roles, asked


def _replicas(said: Said, asked: Wanted, roles: dict[str, Any]) -> Answer:
    """Replicas that have roles, or that a table lists: what `plan place` answers."""
    from planner.planning.mixing import replicas_of, unasked_of_replicas

    keywords = _keywords(asked)
    if problems := unasked_of_replicas(keywords, roles):
        raise RequestError(problems)
    (model,), (cluster,) = asked.models, asked.clusters
    return reported(said, replicas_of(model, cluster, asked.runtimes or None, keywords, **roles))


def _keywords(asked: Wanted) -> dict[str, Any]:
    """Arguments of the library: of formats that are allowed, those that the model may take."""
    keywords = dict(asked.keywords)
    allowed = keywords.pop("allowed_formats", None)
    if not allowed:
        return keywords
    from planner.planning.comparing import allowed_formats

    runtime = asked.runtimes[0] if asked.runtimes else ""
    model: Any = asked.models[0]
    weights, caches = allowed_formats(model, allowed, keywords["targets"], runtime)
    return {**keywords, "weights_formats": weights, "kv_formats": caches}


def _find(asked: Wanted) -> AnyPlan:
    from planner.planning.plans import plan as find
    from planner.report.progress import ProgressLine

    keywords = _keywords(asked)
    (model,), (cluster,) = asked.models, asked.clusters
    news = ProgressLine(objective=keywords["objective"]) if sys.stderr.isatty() else None
    return find(model, cluster, asked.runtimes or None, **keywords, on_progress=news)


def _as_written(best: AnyPlan, asked: Wanted) -> AnyPlan:
    """The plan, with files in its commands named by their paths, as the request did."""
    from planner.commands.options.reading import with_paths
    from planner.results.engines import EngineDeployment

    deployment = best.deployment
    if not isinstance(deployment, EngineDeployment):
        return best
    command = with_paths(deployment.command, asked.files)
    return replace(best, deployment=replace(deployment, command=command))


def pareto(said: Said) -> Answer:
    """The exact frontier of every case."""
    from planner.commands.asking import wanted
    from planner.planning.comparing import frontiers
    from planner.report.progress import SurveyLine

    line = SurveyLine()
    asked = wanted(said)
    curves = frontiers(
        asked.models,
        asked.clusters,
        asked.runtimes,
        **asked.keywords,
        on_case=line.on_case,
        on_points=line.on_points,
    )
    from planner.results.surveys import Curves

    found = any(curve.frontier for curve in curves)
    return reported(said, Curves(curves=tuple(curves)), code=_code(found), is_whole=said.all)


def _code(found: object) -> int:
    return FOUND if found else NoPlanError.exit_code


def compare(said: Said) -> Answer:
    """The best plans of several cases."""
    from planner.commands.asking import wanted
    from planner.commands.options.reading import read_roles
    from planner.planning.comparing import compare as find
    from planner.report.progress import SurveyLine

    roles = read_roles(said)
    asked = wanted(said)
    comparison = find(
        asked.models,
        asked.clusters,
        asked.runtimes,
        **asked.keywords,
        **roles,
        on_case=SurveyLine().on_case,
    )
    return reported(said, comparison, code=_code(comparison.best is not None))
