"""`plan` itself, `plan pareto` and `plan compare`: options to a call of the library, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.commands.asking import ParsedOptions, parsed_options
from planner.commands.options.reading import read_roles, with_paths
from planner.commands.options.said import Said
from planner.commands.reporting import reported
from planner.errors import NoPlanError, RequestError
from planner.report.files import FOUND, Answer
from planner.report.progress import ProgressLine, SurveyLine, is_shown
from planner.results.engines import EngineDeployment
from planner.results.surveys import Curves
from planner.specs.ask.engine import PlanOptions
from planner.specs.files.what_if import EACH, each_by
from planner.specs.records.roles import TOGETHER
from planner.specs.records.runtimes import is_table

if TYPE_CHECKING:
    from planner.results.plans import AnyPlan


def plan(said: Said) -> Answer:
    """The deployment that is best, or replicas that have roles."""
    roles, options = read_plan(said)
    is_usual = roles in ({}, {"roles": TOGETHER})  # which they are where nothing is said
    if not is_usual or any(map(is_table, options.runtimes)):
        return _replicas(said, options, roles)
    try:
        best = _find(options)
    except NoPlanError as error:
        conflict: Any = error.conflict
        relaxed = [
            replace(it, command=with_paths(it.command, options.files))
            for it in conflict.relaxations
        ]
        command = with_paths(conflict.command, options.files)
        told = replace(conflict, command=command, relaxations=tuple(relaxed))
        raise NoPlanError(told) from error
    if EACH in said.what_if:
        from planner.planning.proving.plans import resource_gains

        best = replace(best, gains=resource_gains(best, each_by(said.what_if[EACH])))
    return reported(said, _as_written(best, options))


def read_plan(said: Said) -> tuple[dict[str, Any], ParsedOptions]:
    """Roles and everything else that was asked for.

    Raises:
        RequestError: with all that is wrong with it.
    """
    roles = read_roles(said)
    options = parsed_options(said)
    if said.roles is None and options.keywords["targets"].demand_tokens_per_s is None:
        for name in filter(said.is_given, ("--sorts", "--sort-price")):
            fact, remedy = "is of replicas that serve a demand", "say how much: `--rate 8req/s`"
            said.refuse(name, fact, remedy, value="")
        said.check()
    return roles, options


def _replicas(said: Said, options: ParsedOptions, roles: dict[str, Any]) -> Answer:
    """Replicas that have roles, or that a table lists: what `plan place` answers."""
    from planner.planning.mixing import replicas_of, unasked_of_replicas

    choices = PlanOptions(**_keywords(options))
    if problems := unasked_of_replicas(choices, roles):
        raise RequestError(problems)
    (model,), (cluster,) = options.models, options.clusters
    return reported(said, replicas_of(model, cluster, options.runtimes or None, choices, **roles))


def _keywords(options: ParsedOptions) -> dict[str, Any]:
    """Arguments of the library: of formats that are allowed, those that the model may take."""
    keywords = dict(options.keywords)
    if allowed := keywords.pop("allowed_formats", None):
        from planner.planning.comparing import allowed_formats

        runtime = options.runtimes[0] if options.runtimes else ""
        model: Any = options.models[0]
        formats = allowed_formats(model, allowed, keywords["targets"], runtime)
        keywords["weights_formats"], keywords["kv_formats"] = formats
    return keywords


def _find(options: ParsedOptions) -> AnyPlan:
    from planner.planning.plans import plan as find

    keywords = _keywords(options)
    (model,), (cluster,) = options.models, options.clusters
    news = ProgressLine(objective=keywords["objective"]) if is_shown() else None
    return find(model, cluster, options.runtimes or None, **keywords, on_progress=news)


def _as_written(best: AnyPlan, options: ParsedOptions) -> AnyPlan:
    """The plan, with files in its commands named by their paths, as the request did."""
    deployment = best.deployment
    if not isinstance(deployment, EngineDeployment):
        return best
    command = with_paths(deployment.command, options.files)
    return replace(best, deployment=replace(deployment, command=command))


def pareto(said: Said) -> Answer:
    """The exact frontier of every case."""
    from planner.planning.comparing import frontiers

    line = SurveyLine()
    options = parsed_options(said)
    curves = frontiers(
        options.models,
        options.clusters,
        options.runtimes,
        **options.keywords,
        on_case=line.on_case,
        on_points=line.on_points,
    )
    is_found = any(curve.frontier for curve in curves)
    return reported(said, Curves(curves=tuple(curves)), code=_code(is_found), is_whole=said.all)


def _code(answer: object) -> int:
    return FOUND if answer else NoPlanError.exit_code


def compare(said: Said) -> Answer:
    """The best plans of several cases."""
    from planner.planning.comparing import compare as find

    roles = read_roles(said)
    options = parsed_options(said)
    comparison = find(
        options.models,
        options.clusters,
        options.runtimes,
        **options.keywords,
        **roles,
        on_case=SurveyLine().on_case,
    )
    return reported(said, comparison, code=_code(comparison.best is not None))
