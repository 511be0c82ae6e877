"""`plan --engine`: options to a request of an engine's deployments, its plan to text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import NoPlanError
from planner.options.arguments import Arguments
from planner.options.written import WrittenPlan
from planner.report.delivery import Answer, answered
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.engine_results import EngineConflict, EnginePlan


def plan_engine(written: WrittenPlan, said: Arguments) -> Answer:
    """Plan the deployment of an engine.

    Raises:
        RequestError: with the problems of words, options and files together.
        NoPlanError: nothing satisfies the request.
    """
    best = _find(written, said)
    from planner.report.engine import engine_line, engine_text

    return answered(
        best,
        lambda: engine_line(best) if written.quiet else engine_text(best, width()),
        is_json=written.json,
    )


def _find(written: WrittenPlan, said: Arguments) -> EnginePlan:
    from planner.engine.asking import machines_of
    from planner.engine.planning import plan_engine as find
    from planner.options.engines import read_engine, unfit
    from planner.options.paths import with_paths
    from planner.options.variants import loaded, named
    from planner.specs.reading import load_architecture, load_cluster
    from planner.specs.request import repriced

    found = Arguments(problems=[*said.problems, *unfit(written)], hints=said.hints)
    price, keywords = read_engine(written, found)
    model = found.collect(lambda: load_architecture(written.model))
    cluster = found.collect(lambda: load_cluster(written.topology))
    names = named(written.variants, model.name if model else "", found) if model else ()
    variants = loaded(names, load_architecture, found)
    engine = str(written.engine)
    if cluster is not None:
        pool = cluster if price is None else repriced(cluster, price)
        found.collect(lambda: machines_of(pool, engine))
    found.check()
    assert model is not None
    assert cluster is not None
    files = (
        ("--model", written.model, model.name),
        ("--topology", written.topology, cluster.name),
    )
    try:
        best = find(model, pool, engine, variants=variants, **keywords)
    except NoPlanError as error:
        conflict: EngineConflict = error.conflict  # type: ignore[assignment]
        command = with_paths(conflict.command, files)
        raise NoPlanError(replace(conflict, command=command)) from error
    paths = zip(names, variants, strict=True)
    others = tuple(("--model", text, variant.name) for text, variant in paths)
    command = with_paths(best.deployment.command, (*files, *others))
    return replace(best, deployment=replace(best.deployment, command=command))
