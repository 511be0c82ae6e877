"""`plan --engine`: options to a request of an engine's deployments, its plan to text."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.errors import NoPlanError, Problem
from planner.options.arguments import Arguments
from planner.options.written import OF_ENGINES, WrittenPlan, option
from planner.report.paint import width, write, write_data

if TYPE_CHECKING:
    from planner.engine_results import EngineConflict, EnginePlan
    from planner.estimates.serving.request import AskedDrafting
    from planner.options.reading import Faults

FOUND = 0
_MEANINGLESS = {
    "cost_model": "an engine's kernels are the cost model",
    "memory": "is a choice of `--cost-model economics` only",
    "speculation": "engines score what they draft and one more token",
    "prefill": "engines read prompts between decode passes: `--chunk` says how much at once",
    "prefill_batch": "engines read prompts between decode passes: `--chunk` says how much at once",
    "demand": "plans of an engine are of one deployment",
    "allow_formats": "name them with `--weights` and `--kv`",
}
"""Options that an engine's plan cannot take, and why."""


def without_engine(written: WrittenPlan) -> list[Problem]:
    """Options that mean nothing, as no engine is named."""
    said = {name: getattr(written, name[2:].replace("-", "_")) for name in OF_ENGINES}
    said["--overlap"] = ",".join(written.overlap) or None
    fact, remedy = "means nothing without `--engine`", "name one: `--engine vllm`"
    return [
        Problem(where=name, value=value, fact=fact, remedy=remedy)
        for name, value in said.items()
        if value is not None
    ]


def plan_engine(written: WrittenPlan, said: Arguments) -> int:
    """Plan the deployment of an engine and print it.

    Raises:
        RequestError: with the problems of words, options and files together.
        NoPlanError: nothing satisfies the request.
    """
    best = _find(written, said)
    if written.json:
        from planner.report.as_json import dumps, engine_json

        write_data(dumps(engine_json(best)), sys.stdout)
    else:
        from planner.report.engine import engine_line, engine_text

        write(engine_line(best) if written.quiet else engine_text(best, width()), sys.stdout)
    return FOUND


def _find(written: WrittenPlan, said: Arguments) -> EnginePlan:
    from planner.engine.asking import machines_of
    from planner.engine.planning import plan_engine as find
    from planner.options.paths import with_paths
    from planner.options.variants import loaded, named
    from planner.specs.reading import load_architecture, load_cluster
    from planner.specs.request import repriced

    found = Arguments(problems=[*said.problems, *_unfit(written)], hints=said.hints)
    price, keywords = _read(written, found)
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


def _unfit(written: WrittenPlan) -> list[Problem]:
    """Options of other plans."""
    usual = WrittenPlan()
    problems = []
    for name, fact in _MEANINGLESS.items():
        value = getattr(written, name)
        if value != getattr(usual, name):
            shown = ",".join(value) if isinstance(value, tuple) else value
            remedy = "leave it out, or `--engine`"
            problems.append(Problem(where=option(name), value=shown, fact=fact, remedy=remedy))
    return problems


def _read(written: WrittenPlan, found: Arguments) -> tuple[float | None, dict[str, Any]]:
    """Rent of a device, if it is asked for, and the arguments of `plan_engine`."""
    from planner.engine.asking import KNOWN_FORMATS
    from planner.estimates.serving.request import OVERLAPS, PREFERENCES
    from planner.options.counts import batches
    from planner.options.reading import Faults, one_of, read, read_pool
    from planner.units import UnitError, parse

    usual = WrittenPlan()
    faults = Faults()

    def share(text: str) -> float:
        value = parse(text, "1", example="90%", allow_zero=True)
        if value >= 1.0:
            raise UnitError(text, "is not below 1", "write `90%` or `0.9`")
        return value

    def formats(name: str, listed: tuple[str, ...]) -> tuple[str, ...] | None:
        known = one_of("number format", KNOWN_FORMATS)
        return (
            tuple(filter(None, (faults.read(name, word, known) for word in _words(listed)))) or None
        )

    # formats of kernels are more than those of the planner's own models
    rest = replace(written, **{name: getattr(usual, name) for name in (*_MEANINGLESS, *_OWN)})
    asked, problems = read(rest)
    price, _, pool_problems = read_pool(rest)
    keywords = {
        "workload": asked.workload,
        "targets": asked.targets,
        "weights_formats": formats("--weights", written.weights),
        "kv_formats": formats("--kv", written.kv),
        "batches": None if written.batch == usual.batch else asked.batches,
        "chunks": faults.read("--chunk", written.chunk, batches),
        "hit_fraction": faults.read("--hit-rate", written.hit_rate, share) or 0.0,
        "objective": asked.objective,
        "confidence": faults.read("--confidence", written.confidence, share) or 0.0,
        "prefer": faults.read("--prefer", written.prefer, one_of("preference", PREFERENCES))
        or PREFERENCES[0],
        "options": asked.options,
        "drafting": _drafting(written, faults),
        "overlaps": _words(written.overlap) or OVERLAPS[:1],
    }
    found.problems += [*problems, *pool_problems, *faults.problems]
    return price, keywords


def _drafting(written: WrittenPlan, faults: Faults) -> AskedDrafting | None:
    """Drafts that a deployment may use; their options mean nothing without one."""
    from planner.estimates.serving.request import ACCEPTANCE, LOOKAHEADS, AskedDrafting
    from planner.options.counts import batches
    from planner.units import parse

    acceptance = faults.read("--acceptance", written.acceptance, lambda text: parse(text, "1"))
    lookaheads = faults.read("--lookahead", written.lookahead, batches)
    if written.draft is None:
        fact, remedy = "means nothing without `--draft`", "write `--draft eagle`"
        faults.problems += [
            Problem(where=where, value=value, fact=fact, remedy=remedy)
            for where, value in (
                ("--acceptance", written.acceptance),
                ("--lookahead", written.lookahead),
            )
            if value is not None
        ]
        return None
    return AskedDrafting(
        kind=written.draft,
        acceptance=ACCEPTANCE if acceptance is None else acceptance,
        lookaheads=lookaheads or LOOKAHEADS,
    )


_OWN = ("weights", "kv", "draft", "acceptance", "lookahead")
"""Options that mean something else to engines."""


def _words(listed: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.strip() for text in listed for word in text.split(","))
