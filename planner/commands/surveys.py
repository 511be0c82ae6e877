"""`plan pareto` and `plan compare`: options to a call of the library, its answer to streams."""

from __future__ import annotations

from planner.commands.options.said import Said
from planner.commands.reporting import reported
from planner.errors import NoPlanError
from planner.report.files import FOUND, Answer


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
