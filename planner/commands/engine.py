"""`plan --engine`: options to a request of an engine's deployments, its plan to text."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import NoPlanError
from planner.options.arguments import Arguments
from planner.options.written import WrittenPlan
from planner.report.paint import width, write, write_data

if TYPE_CHECKING:
    from planner.engine_results import EngineConflict, EnginePlan

FOUND = 0


def plan_engine(written: WrittenPlan, said: Arguments) -> int:
    """Plan the deployment of an engine and print it.

    Raises:
        RequestError: with the problems of words, options and files together.
        NoPlanError: nothing satisfies the request.
    """
    best = _find(written, said)
    if written.json:
        from planner.report.as_json import answer_json, dumps

        write_data(dumps(answer_json(best)), sys.stdout)
    else:
        from planner.report.engine import engine_line, engine_text

        write(engine_line(best) if written.quiet else engine_text(best, width()), sys.stdout)
    return FOUND


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
