"""`plan pareto` and `plan compare`: options to a call of the library, its answer to streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_surveys import WrittenComparison, WrittenPareto
from planner.errors import NoPlanError
from planner.report.delivery import FOUND, Answer, answered
from planner.report.files import STDOUT
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.results.surveys import Curve
    from planner.specs.architecture import Architecture
    from planner.specs.records import ClusterSpec, ModelSpec

NOTHING_FOUND = NoPlanError.exit_code

_ALL_DEFAULT = WrittenPareto()
_NOTHING_ASKED = WrittenComparison()
_Said = Annotated[Arguments, Parameter(parse=False)]
_Served = tuple["list[Architecture]", "list[ClusterSpec]", "tuple[str, ...]"]
_Specs = tuple["list[ModelSpec]", "list[ClusterSpec]"]


def pareto(
    written: Annotated[WrittenPareto, Parameter(name="*")] = _ALL_DEFAULT, *, said: _Said
) -> Answer:
    """Find every deployment that is the best for some worth of speed: the exact frontier."""
    from planner.commands.asking import wanted
    from planner.planning.comparing import frontiers
    from planner.report.progress import SurveyLine

    line = SurveyLine()
    asked = wanted(written, said)
    curves = frontiers(
        asked.models,
        asked.clusters,
        asked.runtimes,
        **asked.keywords,
        on_case=line.on_case,
        on_points=line.on_points,
    )
    found = any(curve.frontier for curve in curves)
    if written.csv == STDOUT:
        from planner.report.as_csv import frontiers_csv

        text, pages = frontiers_csv(curves).rstrip("\n"), tuple(_files(written, curves))
        return Answer(text=text, is_data=True, files=pages, code=_code(found))
    from planner.results.surveys import Curves

    return answered(
        Curves(curves=tuple(curves)),
        lambda: _frontiers_text(curves, written),
        is_json=written.json,
        files=_files(written, curves),
        code=_code(found),
    )


def _code(found: object) -> int:
    return FOUND if found else NOTHING_FOUND


def _files(written: WrittenPareto, curves: Sequence[Curve]) -> Iterator[tuple[str, str]]:
    if written.csv not in (None, STDOUT):
        from planner.report.as_csv import frontiers_csv

        yield str(written.csv), frontiers_csv(curves)
    if written.html is not None and any(curve.frontier for curve in curves):
        from planner.report.page import page

        yield written.html, page(curves)


def compare(
    written: Annotated[WrittenComparison, Parameter(name="*")] = _NOTHING_ASKED, *, said: _Said
) -> Answer:
    """Set the best plans of several models, pools, formats or roles side by side."""
    from planner.commands.asking import wanted
    from planner.commands.options.roles import read_roles
    from planner.planning.comparing import compare as find
    from planner.report.progress import SurveyLine

    roles = read_roles(written, said, several=True)
    asked = wanted(written, said)
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
        lambda: best_line(comparison) if written.quiet else comparison_text(comparison, width()),
        is_json=written.json,
        code=_code(comparison.best is not None),
    )


def _frontiers_text(curves: Sequence[Curve], written: WrittenPareto) -> str:
    from planner.report.frontiers import frontiers_text, preferred_line

    if written.quiet:
        return "\n".join(preferred_line(curve, curves) for curve in curves)
    return frontiers_text(curves, width(), show_all=written.all)
