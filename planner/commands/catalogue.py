"""`plan models`, `topologies`, `devices`, `engines`, `connectors`, `clients`: what there is.

`plan topologies import` makes a topology of what a cluster's own tools say of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from planner.commands.options.said import Said
from planner.commands.reporting import reported, shown
from planner.errors import Problem, RequestError
from planner.report.files import Answer
from planner.specs.files.ledger import remark, used_if_read
from planner.specs.files.listing import list_files
from planner.specs.files.places import Kind

if TYPE_CHECKING:
    from planner.results.listings import CatalogueEntry, CatalogueList
    from planner.specs.files.listing import Listing
    from planner.specs.files.pools import AnyFabric

_Spec = TypeVar("_Spec")


def models(said: Said) -> Answer:
    """All models; or one, by its shape, or of a `config.json` by its classes of layers."""
    said.check()
    from planner.report.catalogue.figures import model_facts
    from planner.results.listings import Catalogue
    from planner.specs.files.reading import load_architecture, load_model
    from planner.specs.huggingface.aliases import known_checkpoint
    from planner.specs.huggingface.locating import is_config

    name, lister = said.name, "plan models"
    if name is None:
        hint = "`plan models NAME` describes one, `plan --model NAME` plans for it"
        part, known = _list("models", Kind.MODEL, hint, load_model, model_facts, lister=lister)
        return reported(said, Catalogue(title="models", lists=(part,), models=known))
    if is_config(name) and known_checkpoint(name) is None:
        architecture = load_architecture(name, asked_by=lister)
        return reported(said, Catalogue(title=name, architectures=(architecture,)))
    return reported(said, Catalogue(title=name, models=(load_model(name, asked_by=lister),)))


def topologies(said: Said) -> Answer:
    """Clusters of like nodes or chips, and fabrics, which only placements tell apart; or one."""
    said.check()
    from planner.report.catalogue.figures import cluster_facts, pool_facts
    from planner.results.listings import Catalogue
    from planner.specs.files.pools import is_placed_on, load_site
    from planner.specs.files.reading import load_cluster

    name, lister = said.name, "plan topologies"
    if name is not None:
        load: Callable[..., AnyFabric] = load_site if is_placed_on(name) else load_cluster
        return reported(said, Catalogue(title=name, sites=(load(name, asked_by=lister),)))
    hint = "`plan topologies NAME` describes one, `plan --topology NAME` plans on it"
    other = "`plan place --topology NAME` places on a fabric, as on any topology above"
    fabrics = "fabrics of leaves and kinds"
    first = _list("topologies", Kind.CLUSTER, hint, load_cluster, cluster_facts, lister=lister)
    second = _list(fabrics, Kind.FABRIC, other, load_site, pool_facts, lister=lister)
    (clusters, known), (others, pools) = first, second
    whole = Catalogue(title="topologies", lists=(clusters, others), sites=(*known, *pools))
    return reported(said, whole)


def connectors(said: Said) -> Answer:
    """What hands caches over between the replicas of both phases."""
    return _named(said, Kind.CONNECTOR, "`plan --roles apart --connector NAME` hands over by it")


def clients(said: Said) -> Answer:
    """What sends requests in measurements, and when its clock starts."""
    return _named(said, Kind.CLIENT, "`plan predict --in-flight 64 --client NAME` counts its time")


def _named(said: Said, kind: Kind, hint: str) -> Answer:
    """All files of a kind, by name."""
    said.check()
    from planner.results.listings import Catalogue, CatalogueList

    title = said.command
    part = CatalogueList(title=title, hint=hint, entries=tuple(map(_entry, list_files(kind))))
    return reported(said, Catalogue(title=title, lists=(part,)))


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


def _list(
    title: str,
    kind: Kind,
    hint: str,
    load: Callable[[str], _Spec],
    facts: Callable[[_Spec], str],
    *,
    lister: str,
) -> tuple[CatalogueList, tuple[_Spec, ...]]:
    """Files of a kind with a line for each, and those that can be read, patterns by their first
    example; of a file with faults the line says how to see them."""
    from planner.results.listings import CatalogueList

    entries, records = [], []
    for item in list_files(kind):
        name = item.examples[0] if item.examples else item.name
        try:
            with used_if_read():
                record = load(name)
            records.append(record)
            text = facts(record)
        except RequestError as error:
            text = ": ".join(_faulty(error, f"{lister} {name}"))
        entries.append(_entry(item, text))
    return CatalogueList(title=title, hint=hint, entries=tuple(entries)), tuple(records)


def _entry(item: Listing, facts: str = "") -> CatalogueEntry:
    from planner.results.listings import CatalogueEntry

    names = ("name", "title", "description", "examples", "file")
    return CatalogueEntry(**{name: getattr(item, name) for name in names}, facts=facts)


def _faulty(error: RequestError, command: str) -> tuple[str, str]:
    """That a file has faults, and the command that lists them."""
    n_faults = len(error.problems)
    return f"has {n_faults} fault{'s' * (n_faults > 1)}", f"`{command}` lists them all"
