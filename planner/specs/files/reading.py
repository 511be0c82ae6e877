"""Load devices, clusters, connectors and models from TOML files; models from a `config.json` too.

Every fault of a file is reported at once, as a `SpecError`; those of the device that
a cluster is made of are reported with those of the cluster.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from planner.errors import Problem, SpecError
from planner.specs.files import coherence, model_coherence
from planner.specs.files.file_layouts import (
    ClusterFile,
    DeviceFile,
    ModelFile,
    build_cluster,
    build_model,
)
from planner.specs.files.finding import SpecFile, find
from planner.specs.files.ledger import recording, remark
from planner.specs.files.listing import list_files
from planner.specs.files.overruled import remark_cluster, remark_device, remark_model
from planner.specs.files.patterns import Pattern, is_pattern, name_of, read_pattern, substitute
from planner.specs.files.places import Kind, exists, is_as_shipped, is_path, shipped_as, shown_path
from planner.specs.files.tables import Table, read_table, value_at
from planner.specs.files.what_if import supposed
from planner.specs.huggingface.aliases import known_checkpoint
from planner.specs.huggingface.locating import is_config
from planner.specs.records.architecture import Architecture
from planner.specs.records.correspondence import architecture_of, model_spec_of
from planner.specs.records.devices import ClusterSpec, DeviceSpec, ModelSpec
from planner.specs.records.roles import Client, Connector
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.files import Coherent, validate
from planner.specs.validation.hints import from_fields
from planner.specs.validation.problems import Problems

_T = TypeVar("_T")


@arguments_checked()
def load_model(name_or_path: str, *, asked_by: str = "--model") -> ModelSpec:
    """Load a model.

    Args:
        name_or_path: a name such as `palm-540b`, a checkpoint `org/name` that a model file knows,
            the path of a file, or a config of Hugging Face: its `config.json`, the folder of it,
            or `org/name` of the local cache.
        asked_by: the option that named it, for messages.

    Raises:
        SpecError: there is no such model, its file has faults, or no layout knows its layers;
            all are listed.
    """
    known = known_checkpoint(name_or_path)
    if known is None and is_config(name_or_path):
        from planner.specs.huggingface.reading import read_config  # a tenth of a start

        architecture = read_config(name_or_path, asked_by=asked_by)
        return model_spec_of(architecture, asked_by=asked_by, written=name_or_path)
    source = find(Kind.MODEL, known.file if known else name_or_path, asked_by=asked_by)
    read = read_named(source, "model", Kind.MODEL)
    coherent = model_coherence.file_faults
    file = record_of(ModelFile, *read, shown=source.shown, coherent=coherent)
    if not is_as_shipped(source.path):
        remark_model(file, source.shown)
    model = build_model(file)
    return known.of(model) if known else model


@arguments_checked()
def load_architecture(name_or_path: str, *, asked_by: str = "--model") -> Architecture:
    """Load a model as classes of layers, whatever their kinds; see `load_model`.

    Raises:
        SpecError: there is no such model, or its file has faults; all are listed.
    """
    if is_config(name_or_path) and known_checkpoint(name_or_path) is None:
        from planner.specs.huggingface.reading import read_config  # a tenth of a start

        return read_config(name_or_path, asked_by=asked_by)
    return architecture_of(load_model(name_or_path, asked_by=asked_by))


@arguments_checked()
def load_device(name_or_path: str, *, asked_by: str = "--device") -> DeviceSpec:
    """Load a device, by a name such as `tpu-v4` or the path of a file.

    Raises:
        SpecError: there is no such device, or its file has faults; all are listed.
    """
    return supposed(_read_device(find(Kind.DEVICE, name_or_path, asked_by=asked_by)))


@arguments_checked()
def load_cluster(name_or_path: str, *, asked_by: str = "--topology") -> ClusterSpec:
    """Load a cluster and the device it is made of.

    Args:
        name_or_path: a name such as `tpu-v4-4x8x8`, or the path of a file.
        asked_by: the option that named it, for messages.

    Raises:
        SpecError: there is no such cluster, or its file or that of its device has
            faults; all are listed.
    """
    source = find(Kind.CLUSTER, name_or_path, asked_by=asked_by)
    table, problems = read_named(source, "cluster", Kind.CLUSTER)
    if not table:
        raise SpecError(problems)
    # a fabric is no topology, wherever its file is
    remedy = f"`plan place --topology {source.name or source.shown}` places on it"
    wrong = partial(Problem, where=source.shown, fact="makes it a fabric", remedy=remedy)
    SpecError.raise_if_any(wrong(key=key) for key in ("group", "part") if key in table)
    collected = Problems()
    coherent, shown = coherence.file_faults, source.shown
    read = partial(record_of, ClusterFile, table, problems, shown=shown, coherent=coherent)
    file, device = collected.collect(read), collected.collect(partial(_device_of, table, source))
    collected.settle()
    assert file is not None
    assert device is not None  # or something is wrong with the file
    cluster = build_cluster(file, device)
    if not is_as_shipped(source.path):
        remark_cluster(cluster, source.shown, like=file.like)
    return supposed(cluster, is_part=asked_by != "--topology")


def cluster_examples() -> Iterator[ClusterSpec]:
    """Pools that files give as examples of themselves; those of files with faults are left out.

    They are looked at, not used: no ledger has them.
    """
    for name in (name for listing in list_files(Kind.CLUSTER) for name in listing.examples):
        cluster = None
        with recording(), suppress(SpecError):
            cluster = load_cluster(name)
        if cluster is not None:
            yield cluster


def read_named(file: SpecFile, section: str, kind: Kind) -> tuple[Table, list[Problem]]:
    """The table of a file, that of one cluster if it describes many, and what is wrong with it.

    Args:
        section: that has the name of what it describes.
    """
    table, problems = read_table(file.path, file.shown, use=file.use(kind))
    if problems:
        return {}, list(problems)
    if section == "cluster" and is_pattern(table):
        pattern, problems = read_pattern(table, file.shown)
        if pattern is None:
            return {}, list(problems)
        if not file.values:
            return {}, [_one_of_many(pattern, table, file.shown)]
        table = substitute(table, file.values)
    return table, list(misnamed(file, name_of(table, section), section))


def record_of(
    record: type[_T],
    table: Table,
    problems: Sequence[Problem],
    *,
    shown: str,
    coherent: Coherent | None = None,
) -> _T:
    """The record that a file is.

    Args:
        table, problems: as `read_table` and `read_named` return them.
        shown: the file as the user knows it.
        coherent: what is wrong with its fields only together.

    Raises:
        SpecError: with every problem.
    """
    record_read, faults = validate(record, table, shown, coherent) if table else (None, [])
    if record_read is None or problems:
        raise SpecError([*problems, *faults])
    return record_read


def misnamed(file: SpecFile, name: str, section: str) -> Iterator[Problem]:
    """One problem if a file that was found by its name calls itself something else."""
    if file.name and name and name != file.name:
        fact, remedy = "is not the name of the file", f"write `{file.name}`, or rename the file"
        key = f"{section}.name"
        yield Problem(where=file.shown, key=key, value=name, fact=fact, remedy=remedy)


def _one_of_many(pattern: Pattern, table: Table, shown: str) -> Problem:
    listed = value_at(table, "cluster", "examples")
    examples = listed if isinstance(listed, list) and listed else pattern.some_names(1)
    remedy = f"name one of them, like `{examples[0]}`"
    fact = "describes many clusters"
    return Problem(where=shown, key="cluster.name", value=pattern.name, fact=fact, remedy=remedy)


def _read_device(source: SpecFile) -> DeviceSpec:
    read = read_named(source, "device", Kind.DEVICE)
    file = record_of(DeviceFile, *read, shown=source.shown, coherent=coherence.device_faults)
    if not is_as_shipped(source.path):
        remark_device(source.shown)
    return from_fields(DeviceSpec, file)


def _device_of(table: Table, cluster: SpecFile) -> DeviceSpec | None:
    """The device that a cluster file names: beside a file of the user, or where devices are found.

    A file that ships has its devices beside it too, but those of the user come before.
    """
    name = value_at(table, "cluster", "device")
    if not isinstance(name, str) or not name.strip():
        return None  # the schema says so
    try:
        file = _found_device(name, cluster)
    except SpecError as error:
        problems = [replace(problem, key="cluster.device") for problem in error.problems]
        raise SpecError(problems, hint=error.hint) from None
    if "price" in table and not is_as_shipped(file.path):
        fact = f"has no effect: `{cluster.shown}` has a price of its own"
        remark(Problem(where=file.shown, key="price.on_demand", fact=fact))
    return _read_device(file)


def _found_device(name: str, cluster: SpecFile) -> SpecFile:
    folder = cluster.path.parent
    beside = folder / name if is_path(name) else folder / "devices" / f"{name}.toml"
    if is_path(name) and not exists(beside):
        raise SpecError([Problem(where=cluster.shown, value=name, fact="no such file")])
    if is_path(name) or (exists(beside) and not shipped_as(cluster.path)):
        return SpecFile(path=beside, shown=shown_path(beside), name="" if is_path(name) else name)
    return find(Kind.DEVICE, name, asked_by=cluster.shown)


USUAL_CONNECTOR = "nixl"
"""What hands caches over where nothing else is asked."""


@arguments_checked()
def load_connector(name_or_path: str, *, asked_by: str = "--connector") -> Connector:
    """Load a connector, by a name such as `nixl` or the path of a file.

    Raises:
        SpecError: there is no such connector, or its file has faults; all are listed.
    """
    file = find(Kind.CONNECTOR, name_or_path, asked_by=asked_by)
    return record_of(Connector, *read_named(file, "connector", Kind.CONNECTOR), shown=file.shown)


@arguments_checked()
def load_client(name_or_path: str, *, asked_by: str = "--client") -> Client:
    """Load a client, by a name such as `inferencex` or the path of a file.

    Raises:
        SpecError: there is no such client, or its file has faults; all are listed.
    """
    file = find(Kind.CLIENT, name_or_path, asked_by=asked_by)
    return record_of(Client, *read_named(file, "client", Kind.CLIENT), shown=file.shown)
