"""`plan pareto` and `plan compare`: options to a call of the library, its answer to streams."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from planner.errors import NoPlanError, Problem, RequestError
from planner.options.arguments import Arguments
from planner.options.written import WrittenPareto, WrittenSurvey
from planner.report.delivery import FOUND, Answer, answered
from planner.report.files import STDOUT
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.options.several import AskedSurvey
    from planner.specs.architecture import Architecture
    from planner.specs.records import ClusterSpec, ModelSpec
    from planner.surveys import Curve

NOTHING_FOUND = NoPlanError.exit_code

_ALL_DEFAULT = WrittenPareto()
_NOTHING_ASKED = WrittenSurvey()
_Said = Annotated[Arguments, Parameter(parse=False)]
_Served = tuple["list[Architecture]", "list[ClusterSpec]", "tuple[str, ...]"]
_Specs = tuple["list[ModelSpec]", "list[ClusterSpec]"]


def pareto(
    written: Annotated[WrittenPareto, Parameter(name="*")] = _ALL_DEFAULT, *, said: _Said
) -> Answer:
    """Find every deployment that is the best for some worth of speed: the exact frontier."""
    from planner.comparing import frontiers
    from planner.report.progress import SurveyLine

    line = SurveyLine(sys.stderr)
    try:
        if written.engine is not None:
            from planner.engine_comparing import engine_frontiers

            served, keywords = _engines(written, said)
            curves = engine_frontiers(
                *served, **keywords, on_case=line.on_case, on_points=line.on_points
            )
        else:
            specs, asked = _asked(written, said)
            curves = frontiers(
                *specs, **asked.keywords, on_case=line.on_case, on_points=line.on_points
            )
    finally:
        line.clear()
    found = any(curve.frontier for curve in curves)
    if written.csv == STDOUT:
        from planner.report.as_csv import frontiers_csv

        text, pages = frontiers_csv(curves).rstrip("\n"), tuple(_files(written, curves))
        return Answer(text=text, is_data=True, files=pages, code=_code(found))
    from planner.report.answer_kinds import Curves

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
    written: Annotated[WrittenSurvey, Parameter(name="*")] = _NOTHING_ASKED, *, said: _Said
) -> Answer:
    """Set the best plans of several models, pools or weights formats side by side."""
    from planner.comparing import compare as find
    from planner.report.progress import SurveyLine

    line = SurveyLine(sys.stderr)
    try:
        if written.engine is not None:
            from planner.engine_comparing import compare_engines

            served, keywords = _engines(written, said)
            comparison = compare_engines(*served, **keywords, on_case=line.on_case)
        else:
            specs, asked = _asked(written, said)
            comparison = find(*specs, **asked.keywords, on_case=line.on_case)
    finally:
        line.clear()
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


def _asked(written: WrittenSurvey, said: Arguments) -> tuple[_Specs, AskedSurvey]:
    """Everything that was asked for, or everything that is wrong with it.

    Raises:
        RequestError: with the problems of words, options and files together.
    """
    from planner.options.drafts import drafted
    from planner.options.misplaced import without_engine
    from planner.options.reading import read_cost_model, read_drafting, read_pool
    from planner.options.several import read_survey
    from planner.specs.reading import load_cluster, load_model
    from planner.specs.request import repriced

    said.problems += without_engine(written)
    if written.variants:
        fact = "are chosen among by `plan`, and by surveys of an engine"
        said.problems.append(Problem(where="--variants", fact=fact, remedy="name an `--engine`"))
    asked, problems = read_survey(written)
    drafting, draft_problems = read_drafting(written)
    price, allowed, pool_problems = read_pool(written)
    counted, model_problems = read_cost_model(written)
    wrong = [*said.problems, *problems, *draft_problems, *pool_problems, *model_problems]
    asked.keywords.update(counted, allowed_formats=allowed)
    found = Arguments(problems=wrong, hints=said.hints)
    asked.keywords["speculation"] = drafted(drafting, found)
    models = [found.collect(partial(load_model, name)) for name in asked.models]
    clusters = [found.collect(partial(load_cluster, name)) for name in asked.topologies]
    pools = [one for one in clusters if one]
    if price is not None:
        pools = [repriced(one, price) for one in pools]
    loaded = [one for one in models if one], pools
    if len(loaded[0]) == len(models) and len(loaded[1]) == len(clusters):
        found.problems += _request_problems(*loaded, asked)
    found.check()
    return loaded, asked


def _engines(written: WrittenSurvey, said: Arguments) -> tuple[_Served, dict[str, Any]]:
    """Everything that was asked for of engines, or everything that is wrong with it.

    Raises:
        RequestError: with the problems of words, options and files together.
    """
    from planner.options.engines import read_engine, unfit
    from planner.options.several import names_of, read_axes
    from planner.options.variants import loaded, named
    from planner.specs.engine_files import load_engine
    from planner.specs.reading import load_architecture, load_cluster
    from planner.specs.request import repriced

    found = Arguments(problems=[*said.problems, *unfit(written)], hints=said.hints)
    price, keywords = read_engine(written, found)
    axes, problems = read_axes(written)
    found.problems += problems
    if isinstance(written, WrittenPareto):
        del keywords["objective"]
    models = [found.collect(partial(load_architecture, name)) for name in names_of(written.model)]
    names = [name for one in models if one for name in named(written.variants, one.name, found)]
    variants = loaded(tuple(dict.fromkeys(names)), load_architecture, found)
    clusters = [found.collect(partial(load_cluster, name)) for name in names_of(written.topology)]
    engines = names_of(str(written.engine))
    for name in engines:
        found.collect(partial(load_engine, name))
    found.check()
    pools = [one if price is None else repriced(one, price) for one in clusters if one]
    asked = {**keywords, **axes, "variants": variants}
    return ([one for one in models if one], pools, engines), asked


def _request_problems(
    models: list[ModelSpec], clusters: list[ClusterSpec], asked: AskedSurvey
) -> list[Problem]:
    """What is wrong with the request whatever the case, each problem once."""
    from planner.comparing import OF_ONE_MODEL
    from planner.specs.request import make_request

    of_survey = ("by", "x", "y", "alpha", "allowed_formats", "cost_model", "memory")
    keywords = {name: value for name, value in asked.keywords.items() if name not in of_survey}
    keywords.setdefault("objective", "cost")
    is_alone = len(models) * len(clusters) == 1 and not asked.keywords["by"]
    problems: list[Problem] = []
    for model, cluster in product(models, clusters):
        try:
            make_request(model, cluster, **keywords)
        except RequestError as error:
            problems += [p for p in error.problems if is_alone or p.where not in OF_ONE_MODEL]
    return list(dict.fromkeys(problems))
