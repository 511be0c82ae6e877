"""What `plan`, `plan pareto` and `plan compare` are asked, read at once; and asked otherwise."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from typing import Any

from planner.commands.options.reading import as_said, read_engines, read_layouts
from planner.commands.options.said import Said
from planner.errors import Problem, RequestError
from planner.estimates.serving.usual_engines import engines_of, engines_on
from planner.quantities.table import DEMAND, QUANTITIES
from planner.results.conflicts import PlacementConflict, RelaxedLimit
from planner.specs.ask.defaults import make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.quality import variant_problems
from planner.specs.ask.targets import OF_ONE_MODEL
from planner.specs.files.listing import variants_of
from planner.specs.files.reading import load_architecture, load_cluster, load_model
from planner.specs.options.meanings import ENGINES, family_of
from planner.specs.records.devices import AnyModel, ClusterSpec
from planner.specs.records.runtimes import LAYOUT_RUNTIMES, ROOFLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedOptions:
    """What the options of a command ask for.

    Args:
        models, clusters: those that are named; one of each but for surveys.
        runtimes: those that are named; none where that is left to the planner.
        keywords: the other arguments of the library.
        files: (option, as it was written, name of what it stands for), for commands in answers.
    """

    models: list[AnyModel]
    clusters: list[ClusterSpec]
    runtimes: tuple[str, ...]
    keywords: dict[str, Any]
    files: tuple[tuple[str, str, str], ...]


def parsed_options(said: Said) -> ParsedOptions:
    """Everything that was asked for, or everything that is wrong with it.

    Raises:
        RequestError: with the problems of words, options and files together.
    """
    is_survey = said.command != "plan"
    runtimes = _runtimes(said, is_survey=is_survey)
    texts, pools = said.model, said.topology
    if not is_survey:
        texts, pools = (texts,), (pools,)
    clusters = _loaded(said, load_cluster, pools)
    asked_of = runtimes or _usual_runtimes(texts, clusters)
    said.refuse_under(asked_of)
    by_layouts = {*asked_of} <= {*LAYOUT_RUNTIMES}
    load: Callable[..., Any] = load_model if by_layouts else load_architecture
    models = _loaded(said, load, texts)
    keywords = read_layouts(said) if by_layouts else read_engines(said, runtimes)
    known = list(filter(None, models))
    names = _variants(said, [model.name for model in known])
    variants = list(said.each(partial(load, asked_by="--variants"), names))
    if not by_layouts:
        whole = partial(as_said, said=said)
        known, variants = [*map(whole, known)], [*map(whole, variants)]
    keywords["variants"] = tuple(filter(None, variants))
    priced = said.priced(list(filter(None, clusters)))
    if by_layouts and all([*models, *clusters]):
        said.problems += _layout_problems(known, priced, keywords, is_survey=is_survey)
    elif not (by_layouts or is_survey):
        collect_machines(priced, runtimes, said)
    said.check()
    return ParsedOptions(
        models=known,
        clusters=priced,
        runtimes=runtimes,
        keywords=keywords,
        files=(
            *_named("--model", texts, known),
            *_named("--topology", pools, priced),
            *_named("--model", names, keywords["variants"]),
        ),
    )


def _loaded(said: Said, load: Callable[[str], Any], texts: Sequence[str]) -> list[Any]:
    """What texts name; None, and a problem, of what cannot be read."""
    return [said.collect(partial(load, text)) for text in texts]


def _named(option: str, texts: Sequence[str], records: Sequence[Any]) -> list[tuple[str, str, str]]:
    """What an option was written as, and the name of what that is."""
    return [(option, text, record.name) for text, record in zip(texts, records, strict=True)]


def _runtimes(said: Said, *, is_survey: bool) -> tuple[str, ...]:
    """The runtimes that are named; what reads a model as layouts stands alone in one program."""
    names: tuple[str, ...] = said.engine or ()
    alone = [name for name in names if name in LAYOUT_RUNTIMES]
    if alone and len(names) > 1 and not is_survey:
        fact = f"`{alone[0]}` is compared with no engine in one program"
        said.refuse("--engine", fact, "name it alone, or `plan compare --engine`")
    return names


def _usual_runtimes(
    texts: Sequence[str], clusters: Sequence[ClusterSpec | None]
) -> tuple[str, ...]:
    """Those of all models on all pools where none is named; what cannot be read has the layouts."""
    usual: dict[str, None] = {}
    for text, cluster in product(texts, clusters):
        engines: tuple[str, ...] = ()
        if cluster is not None and engines_on(cluster):  # most pools need no model for that
            with suppress(RequestError):
                engines = engines_of(load_architecture(text), cluster)
        usual |= dict.fromkeys(engines or (ROOFLINE.name,))
    return tuple(usual)


def _variants(said: Said, models: Sequence[str]) -> tuple[str, ...]:
    """Names and files that `--variants` lists; of `all`, every variant of the models."""
    names: list[str] = []
    for model, word in product(models, said.variants):
        known = variants_of(model) if word == "all" else (word,)
        if not known and said.variants == ("all",):
            remedy = "say what a model is a variant of in its file, or beside its config.json"
            said.refuse("--variants", f"there is no variant of `{model}`", remedy)
        names += known
    return tuple(dict.fromkeys(names))


def _layout_problems(
    models: Sequence[Any],
    clusters: Sequence[ClusterSpec],
    keywords: dict[str, Any],
    *,
    is_survey: bool,
) -> list[Problem]:
    """What is wrong with the request whatever the case, each problem once."""
    known = {one.name for one in fields(PlanOptions)} & keywords.keys()
    choices = PlanOptions(**{name: keywords[name] for name in known})
    is_alone = len(models) * len(clusters) == 1 and not keywords.get("by")
    problems: list[Problem] = []
    for model, cluster in product(models, clusters):
        try:
            make_request(model, cluster, choices)
        except RequestError as error:
            problems += [p for p in error.problems if is_alone or p.where not in OF_ONE_MODEL]
        if not is_survey:
            problems += variant_problems(model, keywords["variants"], choices.workload)
    return list(dict.fromkeys(problems))


def collect_machines(clusters: Sequence[ClusterSpec], runtimes: Sequence[str], said: Said) -> None:
    """Kernels of every engine on the pool; of surveys, a case may lack them."""
    from planner.runtimes.engine_requests import machines_of

    for cluster, name in product(clusters, runtimes):
        if family_of(name) == ENGINES:
            said.collect(partial(machines_of, cluster, name, said.experts_backend or ""))


def with_commands(said: Said, conflict: PlacementConflict) -> PlacementConflict:
    """A conflict whose changes of wishes say what would have to be typed."""
    relaxed = [
        replace(it, command=shlex.join(["plan", *_changed_words(said, it.changes)]))
        for it in conflict.relaxations
    ]
    return replace(conflict, relaxations=tuple(relaxed))


def _changed_words(said: Said, changes: Sequence[RelaxedLimit]) -> list[str]:
    """The command line with other limits and wishes; what comes in requests is said in tokens."""
    texts = dict(said.texts)
    for change in changes:
        what, _, model = change.name.partition(" ")
        quantity = QUANTITIES[what]
        written, option = quantity.written(change.limit), quantity.option
        if not model:
            texts[option] = [written]
            continue
        for name in (option, "--rate") if what == DEMAND else (option,):
            said_of = [text for text in texts.pop(name, []) if "=" in text]
            if kept := [text for text in said_of if not text.startswith(f"{model}=")]:
                texts[name] = kept
        one = written if len(said.model) == 1 else f"{model}={written}"
        texts[option] = [*texts.get(option, []), one]
    return replace(said, texts=texts).words
