"""`plan models`, `plan topologies`, `plan devices`, `plan engines`: what there is to plan with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from planner.commands.options.parsing import Said
from planner.errors import Problem, RequestError
from planner.report.delivery import Answer, answered
from planner.report.paint import width
from planner.specs.ledger import remark, used_if_read

if TYPE_CHECKING:
    from planner.specs.listing import Listing

_Spec = TypeVar("_Spec")


def models(said: Said) -> Answer:
    """All models, or one of them."""
    said.check()
    name = said.name
    if name is None:
        from planner.report.catalogue import listing_text
        from planner.report.facts import model_facts
        from planner.specs.listing import list_models
        from planner.specs.reading import load_model

        hint = "`plan models NAME` describes one, `plan --model NAME` plans for it"
        found = list_models()
        facts = _facts(found, load_model, model_facts, lister="plan models")
        text = listing_text("models", found, hint=hint, width=width(), facts=facts)
    else:
        text = _model_text(name)
    return Answer(text=text)


def _model_text(name: str) -> str:
    """A shipped model by its shape; a `config.json` by its classes of layers."""
    from planner.specs.huggingface.aliases import known_checkpoint
    from planner.specs.huggingface.locating import is_config
    from planner.specs.reading import load_architecture, load_model

    if is_config(name) and known_checkpoint(name) is None:
        from planner.report.architectures import architecture_text

        return architecture_text(load_architecture(name, asked_by="plan models"))
    from planner.report.catalogue import model_text

    return model_text(load_model(name, asked_by="plan models"))


def topologies(said: Said) -> Answer:
    """All topologies, or one of them."""
    said.check()
    name = said.name
    return Answer(text=_topology_text(name) if name is not None else _topologies_text())


def _topologies_text() -> str:
    """Clusters of like nodes or chips; below them fabrics, which only placements tell apart."""
    from planner.report.catalogue import listing_text
    from planner.report.facts import cluster_facts, pool_facts
    from planner.specs.listing import list_clusters, list_fabrics
    from planner.specs.pools import load_pool
    from planner.specs.reading import load_cluster

    clusters, fabrics = list_clusters(), list_fabrics()
    known = _facts(clusters, load_cluster, cluster_facts, lister="plan topologies")
    hint = "`plan topologies NAME` describes one, `plan --topology NAME` plans on it"
    text = listing_text("topologies", clusters, hint=hint, width=width(), facts=known)
    known = _facts(fabrics, load_pool, pool_facts, lister="plan topologies")
    hint = "`plan place --topology NAME` places on a fabric, as on any topology above"
    title = "fabrics of leaves and kinds"
    return f"{text}\n\n{listing_text(title, fabrics, hint=hint, width=width(), facts=known)}"


def _topology_text(name: str) -> str:
    from planner.specs.pools import is_fabric, load_pool
    from planner.specs.reading import load_cluster

    asked_by = "plan topologies"
    if is_fabric(name):
        from planner.report.fabrics import pool_text

        return pool_text(load_pool(name, asked_by=asked_by), width())
    from planner.report.pools import cluster_text

    return cluster_text(load_cluster(name, asked_by=asked_by), width())


def devices(said: Said) -> Answer:
    """All devices, or one of them."""
    from planner.report.answer_kinds import Devices
    from planner.report.devices import device_text, devices_text
    from planner.specs.listing import list_devices
    from planner.specs.reading import load_device

    said.check()
    name = said.name
    found = _loaded(name, list_devices, load_device, asked_by="plan devices")
    return answered(
        Devices(devices=tuple(found)),
        lambda: devices_text(found, width()) if name is None else device_text(found[0]),
        is_json=said.json,
    )


def engines(said: Said) -> Answer:
    """All serving engines, or one of them with the rules of what it starts."""
    from planner.report.answer_kinds import Engines
    from planner.report.engine_rules import engine_text, engines_text
    from planner.specs.engines.files import load_engine
    from planner.specs.listing import list_engines

    said.check()
    name = said.name
    found = _loaded(name, list_engines, load_engine, asked_by="plan engines")
    return answered(
        Engines(engines=tuple(found)),
        lambda: engines_text(found, width()) if name is None else engine_text(found[0], width()),
        is_json=said.json,
    )


def _loaded(
    name: str | None,
    listed: Callable[[], Iterable[Listing]],
    load: Callable[..., _Spec],
    *,
    asked_by: str,
) -> list[_Spec]:
    """The one that is named, or all that can be read; of others how to see their faults."""
    if name is not None:
        return [load(name, asked_by=asked_by)]
    found = []
    for item in listed():
        try:
            with used_if_read():
                found.append(load(item.name, asked_by=asked_by))
        except RequestError as error:
            fact, remedy = _faulty(error, f"{asked_by} {item.name}")
            remark(Problem(where=item.file, fact=f"is left out: it {fact}", remedy=remedy))
    return found


def _facts(
    listings: Iterable[Listing],
    load: Callable[[str], _Spec],
    facts: Callable[[_Spec], str],
    *,
    lister: str,
) -> dict[str, str]:
    """A line for each, patterns by their first example; of a file with faults how to see them."""
    found = {}
    for item in listings:
        name = item.examples[0] if item.examples else item.name
        try:
            with used_if_read():
                found[item.name] = facts(load(name))
        except RequestError as error:
            found[item.name] = ": ".join(_faulty(error, f"{lister} {name}"))
    return found


def _faulty(error: RequestError, command: str) -> tuple[str, str]:
    """That a file has faults, and the command that lists them."""
    n_faults = len(error.problems)
    return f"has {n_faults} fault{'s' * (n_faults > 1)}", f"`{command}` lists them all"
