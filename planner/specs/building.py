"""Checked files as records: values in SI units, each with its source listed beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeVar

from pydantic import BaseModel

from planner.specs import schemas
from planner.specs.patterns import fill
from planner.specs.records import (
    ClusterSpec,
    DeviceSpec,
    Fabric,
    Link,
    LinkedFabric,
    MeasuredCollectives,
    MlaShape,
    ModelSpec,
    MoeShape,
    MtpShape,
    NcclProtocol,
    NodesFabric,
    Provenance,
    TorusFabric,
    TwoRegimes,
    WindowShape,
)
from planner.specs.served_formats import Checkpoint
from planner.specs.variants import Variant

_Record = TypeVar("_Record")


def record_of(record: type[_Record], *sections: schemas.Strict | None, **more: object) -> _Record:
    """A record of what sections of a checked file say; of what they leave out, its defaults.

    Args:
        record: its fields are named as `schemas.field_names` has them; what else sections say is
            not of it.
        sections: None where the file has no such section.
        more: fields that are not in sections, or that win over these.
    """
    known = {field.name for field in fields(record)}  # type: ignore[arg-type]
    said = {key: value for section in sections for key, value in values(section).items()}
    return record(**{key: said[key] for key in said.keys() & known} | more)


def values(section: schemas.Strict | None, prefix: str = "") -> dict[str, Any]:
    """The values of a section that are said in it, by the fields of a record.

    Args:
        section: sections inside it are left out.
        prefix: of the fields.
    """
    names = schemas.field_names(type(section)) if section else {}
    found = {prefix + name: getattr(section, key) for key, name in names.items()}
    return {name: plain(value) for name, value in found.items() if _is_value(value)}


def _is_value(value: object) -> bool:
    return isinstance(value, schemas.Sourced) or not isinstance(value, schemas.Strict | None)


def plain(value: object) -> Any:  # noqa: ANN401
    """A value without its source; lists as tuples."""
    if isinstance(value, schemas.Sourced):
        return plain(value.value)
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return tuple(map(plain, value)) if isinstance(value, list) else value


def build_device(file: schemas.DeviceFile) -> DeviceSpec:
    return record_of(
        DeviceSpec,
        file.device,
        file.memory,
        file.power,
        file.attainable,
        peak_flop_per_s=plain(file.peak),
        usd_per_hour=file.price.on_demand.value,
        price_date=file.price.on_demand.date,
        provenance=tuple(provenance(file)),
    )


def build_cluster(file: schemas.ClusterFile, device: DeviceSpec) -> ClusterSpec:
    fabric = _fabric(file)
    return ClusterSpec(
        name=file.cluster.name,
        title=fill(file.cluster.title, {"n_devices": fabric.n_devices}),
        device=device,
        fabric=fabric,
        usd_per_hour=file.price.on_demand.value if file.price else device.usd_per_hour,
        provenance=tuple(provenance(file)),
    )


def _fabric(file: schemas.ClusterFile) -> Fabric:
    if file.torus is not None:
        return record_of(TorusFabric, file.torus)
    if file.nodes is not None:
        return _nodes(file.nodes)
    assert file.linked is not None  # coherence.cluster_problems
    links = tuple(record_of(Link, link) for link in file.link)
    return record_of(LinkedFabric, file.linked, links=links)


def _nodes(nodes: schemas.Nodes) -> NodesFabric:
    measured = nodes.scale_up.measured
    tiers = values(nodes.scale_up, "scale_up_") | values(nodes.scale_out, "scale_out_")
    return record_of(
        NodesFabric,
        nodes,
        **tiers,
        scale_up_measured=_measured(measured) if measured else None,
        protocols=tuple(record_of(NcclProtocol, protocol) for protocol in nodes.protocol),
    )


def _measured(measured: schemas.Measured) -> MeasuredCollectives:
    fits = {name: record_of(TwoRegimes, part) for name, part in measured}
    return MeasuredCollectives(**fits)


def build_model(file: schemas.ModelFile) -> ModelSpec:
    shape, formats, check = file.shape, file.formats, file.check
    return record_of(
        ModelSpec,
        file.model,
        shape,
        n_heads_served=plain(shape.n_heads_served or shape.n_heads),
        n_params_published=check.n_params.value,
        weights_formats=plain(formats.weights),
        published_weights=plain(formats.published.weights),
        kv_format=formats.published.kv.value,
        activation_format=formats.activation.value,
        provenance=tuple(provenance(file)),
        kv_formats=plain(formats.kv),
        n_active_params_published=plain(check.n_params_active),
        moe=record_of(MoeShape, file.moe) if file.moe else None,
        mla=record_of(MlaShape, file.mla) if file.mla else None,
        window=record_of(WindowShape, file.window) if file.window else None,
        mtp=record_of(MtpShape, file.mtp) if file.mtp else None,
        quality_losses=plain(file.quality),
        kv_quality_losses=plain(file.kv_quality),
        variant=_variant(file.variant) if file.variant else None,
        checkpoints=_checkpoints(file.checkpoints),
    )


def _checkpoints(said: dict[str, schemas.Checkpoint]) -> tuple[Checkpoint, ...]:
    return tuple(
        Checkpoint(
            format=name,
            weights=one.weights.value,
            experts=(one.experts or one.weights).value,
            repository=one.repository,
            source=one.weights.source,
        )
        for name, one in said.items()
    )


def _variant(variant: schemas.Variant) -> Variant:
    quality = f"{variant.quality.value} ({variant.quality.source})"
    return record_of(Variant, variant, quality=quality)


def provenance(node: object, path: str = "") -> Iterator[Provenance]:
    """Every value of a file with its source, under its dotted key."""
    if isinstance(node, schemas.Sourced):
        yield Provenance(key=path, source=node.source)
    elif isinstance(node, BaseModel):
        for key in type(node).model_fields:
            yield from provenance(getattr(node, key), f"{path}.{key}" if path else key)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from provenance(value, f"{path}.{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from provenance(value, f"{path}[{i}]")
