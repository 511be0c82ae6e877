"""`plan` itself: options to a call of the library, the plan to text."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written import WrittenPlan
from planner.errors import NoPlanError
from planner.report.delivery import Answer, answered
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.commands.asking import Wanted
    from planner.results import AnyPlan

_NOTHING_ASKED = WrittenPlan()


def plan(
    written: Annotated[WrittenPlan, Parameter(name="*")] = _NOTHING_ASKED,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Find the deployment of a language model that is provably best.

    Args:
        written: the options.
        said: problems of the words that are no options.
    """
    from planner.commands.asking import wanted
    from planner.commands.options.paths import with_paths

    asked = wanted(written, said)
    try:
        best = _find(asked)
    except NoPlanError as error:
        conflict: Any = error.conflict
        command = with_paths(conflict.command, asked.files)
        raise NoPlanError(replace(conflict, command=command)) from error
    best = _as_written(best, asked)
    from planner.report.plans import line_of, text_of

    return answered(
        best,
        lambda: line_of(best) if written.quiet else text_of(best, width()),
        is_json=written.json,
    )


def _find(asked: Wanted) -> AnyPlan:
    from planner.planning.plans import plan as find
    from planner.report.progress import ProgressLine

    keywords = dict(asked.keywords)
    (model,), (cluster,) = asked.models, asked.clusters
    allowed = keywords.pop("allowed_formats", None)
    if allowed:
        keywords |= _among(model, allowed, asked)
    line = ProgressLine(sys.stderr, objective=keywords["objective"])
    news = line if sys.stderr.isatty() else None
    try:
        return find(model, cluster, asked.runtimes or None, **keywords, on_progress=news)
    finally:
        line.clear()


def _among(model: Any, allowed: tuple[str, ...], asked: Wanted) -> dict[str, Any]:  # noqa: ANN401
    """Formats of a list that a model may take."""
    from planner.planning.comparing import allowed_formats

    runtime = asked.runtimes[0] if asked.runtimes else ""
    weights, caches = allowed_formats(model, allowed, asked.keywords["targets"], runtime)
    return {"weights_formats": weights, "kv_formats": caches}


def _as_written(best: AnyPlan, asked: Wanted) -> AnyPlan:
    """The plan, with files in its commands named by their paths, as the request did."""
    from planner.commands.options.paths import with_paths
    from planner.results.engines import EngineDeployment

    deployment = best.deployment
    if not isinstance(deployment, EngineDeployment):
        return best
    command = with_paths(deployment.command, asked.files)
    return replace(best, deployment=replace(deployment, command=command))
