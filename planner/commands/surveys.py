"""`plan pareto` and `plan compare`: options to a call of the library, its answer to streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.commands.options.parsing import Said
from planner.errors import NoPlanError
from planner.report.delivery import FOUND, Answer, answered
from planner.report.files import STDOUT
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.results.surveys import Curve

NOTHING_FOUND = NoPlanError.exit_code


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
    found = any(curve.frontier for curve in curves)
    if said.csv == STDOUT:
        from planner.report.as_csv import frontiers_csv

        text, pages = frontiers_csv(curves).rstrip("\n"), tuple(_files(said, curves))
        return Answer(text=text, is_data=True, files=pages, code=_code(found))
    from planner.results.surveys import Curves

    return answered(
        Curves(curves=tuple(curves)),
        lambda: _frontiers_text(curves, said),
        is_json=said.json,
        files=_files(said, curves),
        code=_code(found),
    )


def _code(found: object) -> int:
    return FOUND if found else NOTHING_FOUND


def _files(said: Said, curves: Sequence[Curve]) -> Iterator[tuple[str, str]]:
    if said.csv not in (None, STDOUT):
        from planner.report.as_csv import frontiers_csv

        yield str(said.csv), frontiers_csv(curves)
    if said.html is not None and any(curve.frontier for curve in curves):
        from planner.report.page import page

        yield said.html, page(curves)


def compare(said: Said) -> Answer:
    """The best plans of several cases."""
    from planner.commands.asking import wanted
    from planner.commands.options.roles import read_roles
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
    from planner.report.comparison import best_line, comparison_text

    return answered(
        comparison,
        lambda: best_line(comparison) if said.quiet else comparison_text(comparison, width()),
        is_json=said.json,
        code=_code(comparison.best is not None),
    )


def _frontiers_text(curves: Sequence[Curve], said: Said) -> str:
    from planner.report.frontiers import frontiers_text, preferred_line

    if said.quiet:
        return "\n".join(preferred_line(curve, curves) for curve in curves)
    return frontiers_text(curves, width(), show_all=said.all)
