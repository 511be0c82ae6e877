"""`plan models`, `plan topologies`, `plan devices`, `plan engines`: what there is to plan with.

`plan topologies import` makes a topology of what a cluster's own tools say of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from planner.commands.options.said import Said
from planner.commands.reporting import reported, shown
from planner.errors import Problem, RequestError
from planner.report.files import Answer
from planner.specs.files.ledger import remark, used_if_read
from planner.specs.files.listing import list_files
from planner.specs.files.places import Kind

if TYPE_CHECKING:
    from planner.report.documents.blocks import Document
    from planner.specs.files.listing import Listing

_Spec = TypeVar("_Spec")


def models(said: Said) -> Answer:
    said.check()
    from planner.report.catalogue.figures import listed, model_facts
    from planner.specs.files.reading import load_model

    if said.name is not None:
        return shown(said, lambda: _model(said.name))
    hint = "`plan models NAME` describes one, `plan --model NAME` plans for it"
    listings = list_files(Kind.MODEL)
    facts = _facts(listings, load_model, model_facts, lister="plan models")
    return shown(said, lambda: listed("models", ("models", listings, hint, facts)))


def _model(name: str) -> Document:
    """A shipped model by its shape; a `config.json` by its classes of layers."""
    from planner.report.catalogue import models as shapes
    from planner.specs.files.reading import load_architecture, load_model
    from planner.specs.huggingface.aliases import known_checkpoint
    from planner.specs.huggingface.locating import is_config

    if is_config(name) and known_checkpoint(name) is None:
        return shapes.layers_document(load_architecture(name, asked_by="plan models"))
    return shapes.document(load_model(name, asked_by="plan models"))


def topologies(said: Said) -> Answer:
    """Clusters of like nodes or chips, and fabrics, which only placements tell apart; or one."""
    said.check()
    from planner.report.catalogue.figures import cluster_facts, listed, pool_facts
    from planner.specs.files.pools import load_site
    from planner.specs.files.reading import load_cluster

    if said.name is not None:
        return shown(said, lambda: _topology(said.name))
    clusters, fabrics = list_files(Kind.CLUSTER), list_files(Kind.FABRIC)
    lister = "plan topologies"
    hint = "`plan topologies NAME` describes one, `plan --topology NAME` plans on it"
    facts = _facts(clusters, load_cluster, cluster_facts, lister=lister)
    other = "`plan place --topology NAME` places on a fabric, as on any topology above"
    known = _facts(fabrics, load_site, pool_facts, lister=lister)
    parts = (
        ("topologies", clusters, hint, facts),
        ("fabrics of leaves and kinds", fabrics, other, known),
    )
    return shown(said, lambda: listed("topologies", *parts))


def _topology(name: str) -> Document:
    from planner.report.catalogue.topologies import cluster_document, pool_document
    from planner.specs.files.pools import is_placed_on, load_site
    from planner.specs.files.reading import load_cluster

    asked_by = "plan topologies"
    if is_placed_on(name):
        return pool_document(load_site(name, asked_by=asked_by))
    return cluster_document(load_cluster(name, asked_by=asked_by))


_UNNAMED = "imported.toml"
"""What a topology is called that is written nowhere."""


def topologies_import(said: Said) -> Answer:
    """What a file says of a cluster, and the topology that it is with everything else assumed."""
    if said.output is not None and not said.output.endswith(".toml"):
        fact = "is not what `--topology` takes for a file"
        said.refuse("--output", fact, f"write `--output {said.output}.toml`")
    said.check()
    from planner_workshop.importing import read_cluster
    from planner_workshop.importing.fabrics import files_of, imported_document

    title, cluster = read_cluster(said.file, said.format)
    path = _UNNAMED if said.output is None else said.output
    imported = files_of(cluster, path, device=said.device, prices=said.prices)
    is_written = said.output is not None
    return shown(
        said,
        lambda: imported_document(cluster, imported, title, is_written=is_written),
        files=imported.texts(cluster) if is_written else (),
    )


def devices(said: Said) -> Answer:
    said.check()
    from planner.results.listings import Devices
    from planner.specs.files.reading import load_device

    records = _loaded(said.name, Kind.DEVICE, load_device, asked_by="plan devices")
    return reported(said, Devices(devices=tuple(records)), is_one=said.name is not None)


def engines(said: Said) -> Answer:
    """All serving engines, or one of them with the rules of what it starts."""
    said.check()
    from planner.results.listings import Engines
    from planner.specs.files.engines import load_engine

    records = _loaded(said.name, Kind.ENGINE, load_engine, asked_by="plan engines")
    return reported(said, Engines(engines=tuple(records)), is_one=said.name is not None)


def _loaded(
    name: str | None, kind: Kind, load: Callable[..., _Spec], *, asked_by: str
) -> list[_Spec]:
    """The one that is named, or all that can be read; of others how to see their faults."""
    if name is not None:
        return [load(name, asked_by=asked_by)]
    records = []
    for item in list_files(kind):
        try:
            with used_if_read():
                records.append(load(item.name, asked_by=asked_by))
        except RequestError as error:
            fact, remedy = _faulty(error, f"{asked_by} {item.name}")
            remark(Problem(where=item.file, fact=f"is left out: it {fact}", remedy=remedy))
    return records


def _facts(
    listings: Iterable[Listing],
    load: Callable[[str], _Spec],
    facts: Callable[[_Spec], str],
    *,
    lister: str,
) -> dict[str, str]:
    """A line for each, patterns by their first example; of a file with faults how to see them."""
    texts = {}
    for item in listings:
        name = item.examples[0] if item.examples else item.name
        try:
            with used_if_read():
                texts[item.name] = facts(load(name))
        except RequestError as error:
            texts[item.name] = ": ".join(_faulty(error, f"{lister} {name}"))
    return texts


def _faulty(error: RequestError, command: str) -> tuple[str, str]:
    """That a file has faults, and the command that lists them."""
    n_faults = len(error.problems)
    return f"has {n_faults} fault{'s' * (n_faults > 1)}", f"`{command}` lists them all"
