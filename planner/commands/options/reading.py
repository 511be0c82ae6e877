"""Options of plans as arguments of the library: of layouts, of engines, and of both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from planner.commands.options.parsing import Said
from planner.commands.options.readers import acceptance, acceptances, one_of
from planner.quantities import QUANTITIES, Quantity, limited
from planner.specs.defaults import USUAL_UTILISATION
from planner.specs.engine_request import LOOKAHEADS, AskedDrafting
from planner.specs.records import FORMAT_BYTES, Workload
from planner.specs.request import Degrees, SolverOptions, Speculation, Targets


def read_layouts(said: Said) -> dict[str, Any]:
    """Arguments of plans of layouts."""
    allowed = said.allow_formats
    for name in ("--weights", "--kv"):
        if allowed and said.is_given(name):
            said.refuse(name, "says which formats already: leave `--allow-formats` out")
    return {
        **read_request(said),
        "weights_formats": layout_formats(said, "--weights"),
        "kv_formats": layout_formats(said, "--kv"),
        "speculation": read_speculation(said),
    }


def read_engines(said: Said, runtimes: Sequence[str]) -> dict[str, Any]:
    """Arguments of plans of engines, whose kernels know more formats than layouts do."""
    from planner.specs.engines.files import load_engine
    from planner.specs.meanings import ENGINES, family_of

    asked = read_request(said)
    if not said.is_given("--batch"):
        asked.pop("batches", None)
    for name in runtimes:
        if family_of(name) == ENGINES:
            said.collect(partial(load_engine, name))
    return {
        **asked,
        "weights_formats": kernel_formats(said, "--weights"),
        "kv_formats": kernel_formats(said, "--kv"),
        "drafting": _drafting(said),
    }


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
    values = {one: said.values.get(one.argument) for one in quantities}
    limits = {one: value for one, value in values.items() if value is not None}
    others = {one.target for one in limited()}
    fields = {name: value for name, value in said.sets("Targets").items() if name not in others}
    fields |= {one.target: value for one, value in limits.items() if one.target}
    demand = QUANTITIES["demand"]
    if demand in quantities and said.values.get("rate") is not None:
        fields[demand.target] = _demanded(said)
    fields.setdefault("max_utilisation", USUAL_UTILISATION if said.is_given("--rate") else 1.0)
    return Targets(
        **fields,
        further={one.name: value for one, value in limits.items() if not one.target},
        degrees=Degrees(**said.sets("Degrees")),
    )


def refuse_idle_utilisation(said: Said) -> None:
    """A share of the capacity that a demand may take, where there is none."""
    has_demand = said.is_given("--rate") or said.is_given("--demand")
    if said.is_given("--max-utilisation") and not has_demand:
        fact, remedy = "is of a demand, and there is none", "add `--rate 8req/s`, or leave it out"
        said.refuse("--max-utilisation", fact, remedy)


def _demanded(said: Said) -> float:
    """The demand that a rate of requests is: of all replicas together, on average [token/s]."""
    if said.is_given("--demand"):
        said.refuse("--rate", "and `--demand` say the same", "leave one of them out")
    refuse_unsaid_lengths(said)
    return float(said.rate * said.output)


def refuse_unsaid_lengths(said: Said) -> None:
    """Lengths of requests that come at a rate: a paper's are no chat's."""
    for name in ("--input", "--output"):
        if not said.is_given(name) and said.values[name.lstrip("-")] is not None:
            fact = "is missing: a rate of requests says how much only with their lengths"
            remedy = "write `--input 1500 --output 300`, tokens that a request reads and writes"
            said.refuse(name, fact, remedy)


def layout_formats(said: Said, name: str) -> tuple[str, ...] | None:
    """Formats of layouts."""
    return said.read_each(name, one_of("number format", tuple(FORMAT_BYTES)))


def kernel_formats(said: Said, name: str) -> tuple[str, ...] | None:
    """Formats of an engine's kernels."""
    from planner.estimates.serving.operations import KNOWN_FORMATS

    return said.read_each(name, one_of("number format", KNOWN_FORMATS))


def read_speculation(said: Said) -> Speculation | None:
    """A draft model that decode may use."""
    from planner.specs.reading import load_model

    accepted = said.read_as("--acceptance", acceptance)
    name = said.draft
    if name is None:
        return None
    draft = said.collect(lambda: load_model(name, asked_by="--draft"))
    if draft is None:
        return None
    fields = {
        "acceptance": accepted,
        "lookaheads": said.lookahead,
        "convention": said.speculation,
    }
    return Speculation(draft=draft, **{k: v for k, v in fields.items() if v is not None})


def _drafting(said: Said) -> AskedDrafting | None:
    """Drafts that a deployment of an engine may use."""
    from planner.estimates.serving.drafting import KINDS
    from planner.specs.acceptance import PUBLISHED

    what = "drafter of an engine (models draft with `--engine roofline`)"
    kind = said.read_as("--draft", one_of(what, KINDS))
    rates = said.read_as("--acceptance", acceptances)
    if kind is None:
        return None
    return AskedDrafting(
        kind=kind,
        acceptance=rates or PUBLISHED[kind].rates,
        lookaheads=said.lookahead or LOOKAHEADS,
    )


def read_roles(said: Said) -> dict[str, Any]:
    """Arguments of `place` for what is said; nothing where nothing is."""
    asked = said.sets("AskedRoles")
    name = said.values.get("connector")
    if name is not None:
        from planner.specs.roles import load_connector

        connector = said.collect(lambda: load_connector(name))
        asked |= {} if connector is None else {"connector": connector}
    return asked
