"""Options as arguments of the library: of layouts, of engines, of both, of experts, of roles."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from planner.commands.options.said import Said
from planner.quantities.table import QUANTITIES, Quantity, limited
from planner.quantities.units import UnitError, parse
from planner.specs.ask.defaults import USUAL_UTILISATION
from planner.specs.ask.engine import LOOKAHEADS, DraftOptions
from planner.specs.ask.targets import USUAL_ACCEPTANCE, Degrees, SolverOptions, Speculation, Targets
from planner.specs.files.acceptance import PUBLISHED
from planner.specs.files.engines import load_engine
from planner.specs.files.places import is_path
from planner.specs.files.reading import load_connector, load_model
from planner.specs.files.texts import is_number
from planner.specs.options.meanings import ENGINES, family_of
from planner.specs.options.readers import acceptance, acceptances, one_of
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import Workload
from planner.specs.validation.values import fault_of


def read_layouts(said: Said) -> dict[str, Any]:
    allowed = said.allow_formats
    for name in ("--weights", "--kv"):
        if allowed and said.is_given(name):
            said.refuse(name, "says which formats already: leave `--allow-formats` out")
    return read_request(said) | {"speculation": read_speculation(said)}


def read_engines(said: Said, runtimes: Sequence[str]) -> dict[str, Any]:
    """Arguments of plans of engines, whose kernels know more formats than layouts do."""
    keywords = read_request(said)
    if not said.is_given("--batch"):
        keywords.pop("batches", None)
    for name in runtimes:
        if family_of(name) == ENGINES:
            said.collect(partial(load_engine, name))
    return keywords | {"drafting": _drafting(said)}


def read_request(said: Said) -> dict[str, Any]:
    """Arguments of every plan."""
    refuse_idle_utilisation(said)
    return {
        **said.sets(),
        "workload": Workload(**said.sets("Workload")),
        "targets": read_targets(said, limited()),
        "options": SolverOptions(**said.sets("SolverOptions")),
    }


def read_targets(said: Said, quantities: Sequence[Quantity]) -> Targets:
    """What must hold of these quantities; a rate of requests is a demand of so many tokens."""
    others = {quantity.target for quantity in limited()}
    fields = {name: value for name, value in said.sets("Targets").items() if name not in others}
    further: dict[str, float] = {}
    for quantity in quantities:
        value = said.values.get(quantity.argument)
        if value is not None and quantity.target:
            fields[quantity.target] = value
        elif value is not None:
            further[quantity.name] = value
    demand = QUANTITIES["demand"]
    if demand in quantities and said.values.get("rate") is not None:
        fields[demand.target] = _demanded(said)
    fields.setdefault("max_utilisation", USUAL_UTILISATION if said.is_given("--rate") else 1.0)
    return Targets(**fields, further=further, degrees=Degrees(**said.sets("Degrees")))


def refuse_idle_utilisation(said: Said) -> None:
    """A share of the capacity that a demand may take, where there is none."""
    has_demand = said.is_given("--rate") or said.is_given("--demand")
    if said.is_given("--max-utilisation") and not has_demand:
        fact, remedy = "is of a demand, and there is none", "add `--rate 8req/s`, or leave it out"
        said.refuse("--max-utilisation", fact, remedy)


def _demanded(said: Said) -> float | None:
    """The demand that a rate of requests is: of all replicas together, on average [token/s]."""
    if said.is_given("--demand"):
        said.refuse("--rate", "and `--demand` say the same", "leave one of them out")
    refuse_unsaid_lengths(said)
    return tokens_at(said, said.rate, Workload(**said.sets("Workload")).n_written_tokens)


def tokens_at(said: Said, rate: float, n_output: float) -> float | None:
    """Output tokens a second of so many requests; None, and a problem, where nothing real has."""
    tokens = float(rate * n_output)
    fault = fault_of(QUANTITIES["demand"].target, tokens)
    if fault:
        said.refuse("--rate", f"of {n_output:g} output tokens each {fault}", "write `8req/s`")
    return None if fault else tokens


def refuse_unsaid_lengths(said: Said) -> None:
    """Lengths of requests that come at a rate: a paper's are no chat's."""
    for name in ("--input", "--output"):
        if not said.is_given(name) and said.values[name.lstrip("-")] is not None:
            fact = "is missing: a rate of requests says how much only with their lengths"
            remedy = "write `--input 1500 --output 300`, tokens that a request reads and writes"
            said.refuse(name, fact, remedy)


def read_speculation(said: Said) -> Speculation | None:
    """A draft model that decode may use."""
    accepted = said.read_as("--acceptance", acceptance)
    draft = said.load("--draft", partial(load_model, asked_by="--draft"))
    if draft is None:
        return None
    usual = USUAL_ACCEPTANCE if accepted is None else accepted
    return Speculation(draft=draft, **said.sets("Speculation") | {"acceptance": usual})


def _drafting(said: Said) -> DraftOptions | None:
    """Drafts that a deployment of an engine may use."""
    from planner.estimates.serving.drafting import KINDS

    what = "drafter of an engine (models draft with `--engine roofline`)"
    kind = said.read_as("--draft", one_of(what, *KINDS))
    rates = said.read_as("--acceptance", acceptances)
    if kind is None:
        return None
    return DraftOptions(
        kind=kind,
        acceptance=rates or PUBLISHED[kind].rates,
        lookaheads=said.lookahead or LOOKAHEADS,
    )


def read_roles(said: Said) -> dict[str, Any]:
    """Arguments of `place` for what is said; nothing where nothing is."""
    roles = said.sets("RoleOptions")
    if (name := said.values.get("connector")) is not None:
        connector = said.collect(partial(load_connector, name))
        roles |= {} if connector is None else {"connector": connector}
    return roles


def with_paths(command: str, written: tuple[tuple[str, str, str], ...]) -> str:
    """A command in which what the user gave as a file is given as that file.

    Args:
        command: of `plan`, or empty.
        written: option, its text as the user wrote it, and the name in the file.
    """
    words = shlex.split(command)
    for option, text, name in written:
        if not words or not is_path(text):
            continue
        if option not in words:  # the file has the name that is the default
            words[1:1] = [option, text]
        elif words[words.index(option) + 1] == name:
            words[words.index(option) + 1] = text
    return shlex.join(words)


def as_said(model: Architecture | None, said: Said) -> Architecture | None:
    """The model with loads of its experts and images of requests; problems are collected."""
    model, text = with_expert_loads(model, said), said.images
    if model is None or text is None or said.input is None:
        return model
    counts = re.fullmatch(r"([1-9]\d{0,5})x([1-9]\d{0,5})", text)
    n_images, n_tokens = map(int, counts.groups()) if counts else (0, 0)
    tower = model.encoder
    if tower is None:
        said.refuse("--images", f"{model.name} has no tower of a known shape", "leave it out")
    elif not 0 < n_images * n_tokens <= said.input:
        fact = f"is no number of images and tokens of each, of {said.input} of `--input`"
        said.refuse("--images", fact, f"write at most `2x{said.input // 2}`")
    else:
        n_patches = n_tokens * tower.n_joined
        seen = {"patches_per_token": n_images * n_patches / said.input}
        tower = replace(tower, images=text, n_image_patches=n_patches, **seen)
    return replace(model, encoder=tower)


OPTION = "--expert-loads"
ONE_LAYER = "keep the row of one layer"

LARGEST_EXPONENT = 10.0
"""Of a power law: beyond it the busiest expert has 999 of 1,000 visits [1]."""

LEAST_SHARE = 1e-12
"""Of all visits, below which an expert is never visited [1]."""


def with_expert_loads(model: Architecture | None, said: Said) -> Architecture | None:
    """The model with the loads that were said of its experts; problems are collected.

    They are a file as `plan experts` reads it, or the exponent of a power law.
    """
    text = said.expert_loads
    if model is None or text is None:
        return model
    from planner_workshop.experts.loads import zipf_loads

    counts = model.expert_counts
    if not counts:
        said.refuse(OPTION, f"{model.name} has no experts", "leave it out")
        return model
    if text.strip() and not is_number(text):  # a file may be called anything else
        return _of_file(model, text, said)
    exponent = said.read_as(OPTION, _exponent)
    for n_experts in counts if exponent is not None else ():
        loads = zipf_loads(n_experts, exponent)
        loads[loads < LEAST_SHARE] = 0.0
        model = model.with_loads(loads.tolist(), said=text)
    return model


def _exponent(text: str) -> float:
    fact = "is no exponent of a power law" if text.strip() else "is empty"
    remedy = f"write one from 0 to {LARGEST_EXPONENT:g}, or the path of a file"
    try:
        exponent = parse(text, "1", allow_zero=True)
    except UnitError:
        raise UnitError(text, fact, remedy) from None
    if exponent > LARGEST_EXPONENT:
        raise UnitError(text, "leaves one expert with all visits", remedy)
    return exponent


def _of_file(model: Architecture, path: str, said: Said) -> Architecture:
    from planner_workshop.experts.loads import load_loads

    loads = said.collect(lambda: load_loads(path, asked_by=OPTION, one_layer=ONE_LAYER))
    if loads is None:
        return model
    if len(loads) not in model.expert_counts:
        counts = " or ".join(str(count) for count in model.expert_counts)
        fact = f"has {len(loads)} loads for {counts} experts"
        said.refuse(OPTION, fact, "write one for each expert of a layer")
        return model
    return model.with_loads(loads.tolist(), said=path)
