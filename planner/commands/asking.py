"""What `plan`, `plan pareto` and `plan compare` are asked: options and files, read all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, cast

from planner.commands.options.arguments import Arguments
from planner.commands.options.written import WrittenPlan
from planner.errors import Problem, RequestError

if TYPE_CHECKING:
    from planner.specs.architecture import Architecture
    from planner.specs.records import ClusterSpec, ModelSpec

    Model = ModelSpec | Architecture

OF_SURVEYS = ("by", "x", "y", "alpha", "allowed_formats", "variants", "memory", "kv_formats")
"""Arguments that no layout request has, or that are of a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the options of a command ask for.

    Args:
        models, clusters: those that are named; one of each but for surveys.
        runtimes: those that are named; none where that is left to the planner.
        keywords: the other arguments of the library.
        files: (option, as it was written, name of what it stands for), for commands in answers.
    """

    models: list[Model]
    clusters: list[ClusterSpec]
    runtimes: tuple[str, ...]
    keywords: dict[str, Any]
    files: tuple[tuple[str, str, str], ...]


def wanted(written: WrittenPlan, said: Arguments) -> Wanted:
    """Everything that was asked for, or everything that is wrong with it.

    Raises:
        RequestError: with the problems of words, options and files together.
    """
    from planner.commands.options.expert_loads import with_expert_loads
    from planner.commands.options.reading import read_runtimes
    from planner.commands.options.several import names_of
    from planner.commands.options.variants import loaded, named
    from planner.specs.reading import load_architecture, load_cluster, load_model
    from planner.specs.runtimes import LAYOUT_RUNTIMES

    is_survey = hasattr(written, "by")  # an option of these alone
    runtimes, problems = read_runtimes(written, several=is_survey)
    found = replace(said, problems=[*said.problems, *problems])
    texts = names_of(written.model) if is_survey else (written.model,)
    pools = names_of(written.topology) if is_survey else (written.topology,)
    clusters = [found.collect(partial(load_cluster, text)) for text in pools]
    asked_of = runtimes or _usual_runtimes(texts, clusters)
    found.refuse(asked_of)
    by_layouts = all(name in LAYOUT_RUNTIMES for name in asked_of)
    load: Callable[..., Any] = load_model if by_layouts else load_architecture
    models = [found.collect(partial(load, text)) for text in texts]
    if not by_layouts:
        models = [with_expert_loads(one, written.expert_loads, found) for one in models]
    read = _layouts if by_layouts else _engines
    keywords = read(written, runtimes, found)
    known = [one for one in models if one]
    names = [name for one in known for name in named(written.variants, one.name, found)]
    names = list(dict.fromkeys(names))
    variants = loaded(tuple(names), load, found)
    if not by_layouts:
        loaded_ones = (with_expert_loads(one, written.expert_loads, found) for one in variants)
        variants = tuple(one for one in loaded_ones if one is not None)
    keywords["variants"] = variants
    priced = found.priced(written.price, [one for one in clusters if one])
    whole = len(known) == len(models) and len(priced) == len(clusters)
    if whole and by_layouts:
        found.problems += _layout_problems(known, priced, keywords, is_survey=is_survey)
    elif priced and not by_layouts:
        backend = str(keywords["experts_backend"])
        _collect_machines(priced, runtimes, backend, found, is_survey=is_survey)
    found.check()
    return Wanted(
        models=known,
        clusters=priced,
        runtimes=runtimes,
        keywords=keywords,
        files=(
            *(("--model", text, one.name) for text, one in zip(texts, known, strict=True)),
            *(("--topology", text, one.name) for text, one in zip(pools, priced, strict=True)),
            *(("--model", text, one.name) for text, one in zip(names, variants, strict=True)),
        ),
    )


def _usual_runtimes(
    texts: Sequence[str], clusters: Sequence[ClusterSpec | None]
) -> tuple[str, ...]:
    """Those of all models on all pools where none is named; what cannot be read has the layouts."""
    from planner.estimates.serving.usual_engines import engines_of, engines_on
    from planner.specs.reading import load_architecture
    from planner.specs.runtimes import ROOFLINE

    found: dict[str, None] = {}
    for text, cluster in product(texts, clusters):
        engines: tuple[str, ...] = ()
        if cluster is not None and engines_on(cluster):  # most pools need no model for that
            with suppress(RequestError):
                engines = engines_of(load_architecture(text), cluster)
        found |= dict.fromkeys(engines or (ROOFLINE.name,))
    return tuple(found)


def _layouts(written: WrittenPlan, runtimes: Sequence[str], found: Arguments) -> dict[str, Any]:
    """Arguments of plans of layouts."""
    from planner.commands.options.drafts import drafted
    from planner.commands.options.reading import (
        Faults,
        read,
        read_allowed,
        read_confidence,
        read_drafting,
        read_memory,
    )

    faults = Faults()
    asked, problems = read(written)
    drafting, draft_problems = read_drafting(written)
    allowed, format_problems = read_allowed(written)
    memory, memory_problems = read_memory(written)
    keywords = {**asked.keywords(), "allowed_formats": allowed, "memory": memory}
    keywords["confidence"] = read_confidence(written.confidence, faults)
    found.problems += [*problems, *draft_problems, *format_problems, *memory_problems]
    found.problems += faults.problems
    keywords["speculation"] = drafted(drafting, found)
    return _with_axes(keywords, written, found)


def _with_axes(keywords: dict[str, Any], written: WrittenPlan, found: Arguments) -> dict[str, Any]:
    """Arguments with what makes cases of a survey; a frontier has axes instead of an objective."""
    if not hasattr(written, "by"):
        return keywords
    from planner.commands.options.several import read_axes
    from planner.commands.options.written_surveys import WrittenPareto, WrittenSurvey

    axes, problems = read_axes(cast("WrittenSurvey", written))
    found.problems += problems
    keywords = {**keywords, **axes}
    if isinstance(written, WrittenPareto):
        del keywords["objective"]
    return keywords


def _engines(written: WrittenPlan, runtimes: Sequence[str], found: Arguments) -> dict[str, Any]:
    """Arguments of plans of engines."""
    from planner.commands.options.engines import read_engine
    from planner.specs.engines.files import load_engine
    from planner.specs.meanings import ENGINES, family_of

    keywords = read_engine(written, found)
    keywords = _with_axes(keywords, written, found)
    for name in runtimes:
        if family_of(name) == ENGINES:
            found.collect(partial(load_engine, name))
    return keywords


def _layout_problems(
    models: Sequence[Any],
    clusters: Sequence[ClusterSpec],
    keywords: dict[str, Any],
    *,
    is_survey: bool,
) -> list[Problem]:
    """What is wrong with the request whatever the case, each problem once."""
    from planner.specs.quality import variant_problems
    from planner.specs.request import make_request
    from planner.specs.targets import OF_ONE_MODEL

    asked = {name: value for name, value in keywords.items() if name not in OF_SURVEYS}
    asked.setdefault("objective", "cost")
    is_alone = len(models) * len(clusters) == 1 and not keywords.get("by")
    problems: list[Problem] = []
    for model, cluster in product(models, clusters):
        try:
            make_request(model, cluster, kv_formats=keywords["kv_formats"], **asked)
        except RequestError as error:
            problems += [p for p in error.problems if is_alone or p.where not in OF_ONE_MODEL]
        if not is_survey:
            problems += variant_problems(model, keywords["variants"], asked["workload"])
    return list(dict.fromkeys(problems))


def _collect_machines(
    clusters: Sequence[ClusterSpec],
    runtimes: Sequence[str],
    experts_backend: str,
    found: Arguments,
    *,
    is_survey: bool,
) -> None:
    """Kernels of every engine on the pool; of surveys, a case may lack them."""
    from planner.runtimes.engine_requests import machines_of
    from planner.specs.meanings import ENGINES, family_of

    if not is_survey:
        for cluster, name in product(clusters, runtimes):
            if family_of(name) == ENGINES:
                found.collect(partial(machines_of, cluster, name, experts_backend))
