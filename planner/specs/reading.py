"""Load devices, clusters and models from TOML files.

Every fault of a file is reported at once, as a `SpecError`; those of the device that
a cluster is made of are reported with those of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from pydantic import BaseModel

from planner.errors import Problem, SpecError
from planner.specs import coherence, schemas
from planner.specs.faults import validate
from planner.specs.finding import Found, Kind, exists, find, is_path, shown_path
from planner.specs.patterns import Pattern, fill, is_pattern, name_of, read_pattern, substitute
from planner.specs.records import (
    ClusterSpec,
    DeviceSpec,
    Fabric,
    Link,
    LinkedFabric,
    ModelSpec,
    NodesFabric,
    Provenance,
    TorusFabric,
)
from planner.specs.tables import Table, read_table


class _Read(NamedTuple):
    table: Table
    problems: list[Problem]


def load_model(name_or_path: str, *, asked_by: str = "--model") -> ModelSpec:
    """Load a model.

    Args:
        name_or_path: a name such as `palm-540b`, or the path of a file.
        asked_by: the option that named it, for messages.

    Raises:
        SpecError: there is no such model, or its file has faults; all are listed.
    """
    found = find(Kind.MODEL, name_or_path, asked_by=asked_by)
    table, problems = _read(found, "model")
    file = None
    if table:
        file, faults = validate(schemas.ModelFile, table, found.shown)
        problems += [*faults, *coherence.model_problems(table, found.shown)]
    if file is None or problems:
        raise SpecError(problems)
    return _model(file)


def load_device(name_or_path: str, *, asked_by: str = "--device") -> DeviceSpec:
    """Load a device, by a name such as `tpu-v4` or the path of a file.

    Raises:
        SpecError: there is no such device, or its file has faults; all are listed.
    """
    device, problems = _read_device(find(Kind.DEVICE, name_or_path, asked_by=asked_by))
    if device is None or problems:
        raise SpecError(problems)
    return device


def load_cluster(name_or_path: str, *, asked_by: str = "--topology") -> ClusterSpec:
    """Load a cluster and the device it is made of.

    Args:
        name_or_path: a name such as `tpu-v4-4x8x8`, or the path of a file.
        asked_by: the option that named it, for messages.

    Raises:
        SpecError: there is no such cluster, or its file or that of its device has
            faults; all are listed.
    """
    found = find(Kind.CLUSTER, name_or_path, asked_by=asked_by)
    table, problems = _read(found, "cluster")
    if not table:
        raise SpecError(problems)
    file, faults = validate(schemas.ClusterFile, table, found.shown)
    problems += [*faults, *coherence.cluster_problems(table, found.shown)]
    device, hint = None, ""
    try:
        device, faults = _device_of(table, found)
        problems += faults
    except SpecError as error:
        problems, hint = [*problems, *error.problems], error.hint
    if file is None or device is None or problems:
        raise SpecError(problems, hint=hint)
    return _cluster(file, device)


def _read(found: Found, section: str) -> _Read:
    """The table of a file, that of one cluster if it describes many; empty if it has none."""
    table, problems = read_table(found.path, found.shown)
    if problems:
        return _Read({}, list(problems))
    if section == "cluster" and is_pattern(table):
        pattern, problems = read_pattern(table, found.shown)
        if pattern is None:
            return _Read({}, list(problems))
        if not found.values:
            return _Read({}, [_one_of_many(pattern, table, found.shown)])
        table = substitute(table, found.values)
    name = name_of(table, section)
    if found.name and name and name != found.name:
        fact, remedy = "is not the name of the file", f"write `{found.name}`, or rename the file"
        problem = Problem(
            where=found.shown, key=f"{section}.name", value=name, fact=fact, remedy=remedy
        )
        return _Read(table, [problem])
    return _Read(table, [])


def _one_of_many(pattern: Pattern, table: Table, shown: str) -> Problem:
    listed = table["cluster"].get("examples")
    examples = listed if isinstance(listed, list) and listed else pattern.some_names(1)
    remedy = f"name one of them, like `{examples[0]}`"
    fact = "describes many clusters"
    return Problem(where=shown, key="cluster.name", value=pattern.name, fact=fact, remedy=remedy)


def _read_device(found: Found) -> tuple[DeviceSpec | None, list[Problem]]:
    table, problems = _read(found, "device")
    if not table:
        return None, problems
    file, faults = validate(schemas.DeviceFile, table, found.shown)
    problems += [*faults, *coherence.device_problems(table, found.shown)]
    return (None if file is None else _device(file)), problems


def _device_of(table: Table, cluster: Found) -> tuple[DeviceSpec | None, list[Problem]]:
    """The device that a cluster file names: beside that file, or where devices are found."""
    head = table.get("cluster")
    name = head.get("device") if isinstance(head, dict) else None
    if not isinstance(name, str) or not name.strip():
        return None, []  # the schema says so
    folder = cluster.path.parent
    beside = folder / name if is_path(name) else folder / "devices" / f"{name}.toml"
    if is_path(name) or exists(beside):
        stem = "" if is_path(name) else name
        return _read_device(Found(path=beside, shown=shown_path(beside), name=stem))
    try:
        return _read_device(find(Kind.DEVICE, name, asked_by=cluster.shown))
    except SpecError as error:
        problems = [replace(problem, key="cluster.device") for problem in error.problems]
        raise SpecError(problems, hint=error.hint) from None


def _device(file: schemas.DeviceFile) -> DeviceSpec:
    memory, attainable, price = file.memory, file.attainable, file.price.on_demand
    return DeviceSpec(
        name=file.device.name,
        title=file.device.title,
        peak_flop_per_s={number: peak.value for number, peak in file.peak.items()},
        hbm_bytes=memory.hbm.value,
        hbm_bytes_per_s=memory.hbm_bandwidth.value,
        reserve_bytes=memory.reserve.value,
        usd_per_hour=price.value,
        price_date=price.date,
        compute_fraction=attainable.compute_fraction.value,
        hbm_fraction=attainable.hbm_fraction.value,
        layer_overhead_s=attainable.layer_overhead.value,
        roofline_exponent=attainable.roofline_exponent.value,
        provenance=tuple(_provenance(file)),
    )


def _cluster(file: schemas.ClusterFile, device: DeviceSpec) -> ClusterSpec:
    fabric = _fabric(file)
    return ClusterSpec(
        name=file.cluster.name,
        title=fill(file.cluster.title, {"n_devices": fabric.n_devices}),
        device=device,
        fabric=fabric,
        usd_per_hour=file.price.on_demand.value if file.price else device.usd_per_hour,
        provenance=tuple(_provenance(file)),
    )


def _fabric(file: schemas.ClusterFile) -> Fabric:
    if file.torus is not None:
        return _torus(file.torus)
    if file.nodes is not None:
        return _nodes(file.nodes)
    assert file.linked is not None  # coherence.cluster_problems
    return _linked(file.linked, file.link)


def _torus(torus: schemas.Torus) -> TorusFabric:
    a, b, c = torus.shape
    return TorusFabric(
        shape=(a, b, c),
        link_bytes_per_s=torus.link_bandwidth.value,
        hop_s=torus.hop.value,
        wrap_multiple=torus.wrap_multiple.value,
        slice_dims=tuple(torus.slice_dims.value),
        activation_network=torus.activation_network.value,
        bulk_network=torus.bulk_network.value,
    )


def _nodes(nodes: schemas.Nodes) -> NodesFabric:
    return NodesFabric(
        n_nodes=nodes.n_nodes,
        n_devices_per_node=nodes.n_devices_per_node.value,
        scale_up_bytes_per_s=nodes.scale_up.bandwidth.value,
        scale_up_latency_s=nodes.scale_up.latency.value,
        scale_up_fraction=nodes.scale_up.attainable_fraction.value,
        scale_out_bytes_per_s=nodes.scale_out.bandwidth.value,
        scale_out_latency_s=nodes.scale_out.latency.value,
        scale_out_fraction=nodes.scale_out.attainable_fraction.value,
        activation_network=nodes.activation_network.value,
        bulk_network=nodes.bulk_network.value,
    )


def _linked(linked: schemas.Linked, entries: list[schemas.LinkEntry]) -> LinkedFabric:
    links = (
        Link(a=link.a, b=link.b, bytes_per_s=link.bandwidth.value, latency_s=link.latency.value)
        for link in entries
    )
    return LinkedFabric(
        devices=tuple(linked.devices),
        links=tuple(links),
        activation_network=linked.activation_network.value,
        bulk_network=linked.bulk_network.value,
    )


def _model(file: schemas.ModelFile) -> ModelSpec:
    shape, formats = file.shape, file.formats
    served = shape.n_heads_served or shape.n_heads
    return ModelSpec(
        name=file.model.name,
        title=file.model.title,
        n_layers=shape.n_layers.value,
        d_model=shape.d_model.value,
        d_ff=shape.d_ff.value,
        n_heads=shape.n_heads.value,
        n_heads_served=served.value,
        n_kv_heads=shape.n_kv_heads.value,
        d_head=shape.d_head.value,
        vocab_size=shape.vocab_size.value,
        n_ffn_matrices=shape.n_ffn_matrices.value,
        block=shape.block.value,
        tied_embeddings=shape.tied_embeddings.value,
        n_params_published=file.check.n_params.value,
        weights_formats=tuple(formats.weights.value),
        kv_format=formats.kv.value,
        activation_format=formats.activation.value,
        provenance=tuple(_provenance(file)),
    )


def _provenance(node: object, path: str = "") -> Iterator[Provenance]:
    """Every value of a file with its source, under its dotted key."""
    if isinstance(node, schemas.Sourced):
        yield Provenance(key=path, source=node.source)
    elif isinstance(node, BaseModel):
        for key in type(node).model_fields:
            yield from _provenance(getattr(node, key), f"{path}.{key}" if path else key)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _provenance(value, f"{path}.{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _provenance(value, f"{path}[{i}]")
