"""Records as the files that would say the same, so that the checks of files judge records too.

A record that was altered (`dataclasses.replace`) has passed no loader. Its table goes through the
schema and the coherence of its file, where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.errors import Problem
from planner.specs import coherence, model_coherence, schemas
from planner.specs.architecture import Architecture, Experts, LayerClass
from planner.specs.faults import validate
from planner.specs.mixers import GroupedAttention
from planner.specs.models import ModelSpec
from planner.specs.records import (
    ClusterSpec,
    DeviceSpec,
    Fabric,
    NodesFabric,
    TorusFabric,
)
from planner.specs.served_formats import RUN
from planner.specs.tables import Table
from planner.specs.values import Unit

RECORD = "a record"
"""The source of every value of a record's table."""

_PRICE = {"value": "1 USD/h", "source": RECORD, "date": "undated"}
"""Of every table: `checking` judges the price, which options may change."""


def model_problems(model: ModelSpec, where: str) -> list[Problem]:
    """Everything in a model that its file could not say.

    Args:
        where: the argument that holds it.
    """
    table = model_table(model)
    _, faults = validate(schemas.ModelFile, table, where)
    return [*faults, *model_coherence.model_problems(table, where)]


def cluster_problems(cluster: ClusterSpec, where: str) -> list[Problem]:
    """Everything in a cluster, and in its device, that their files could not say.

    Args:
        where: the argument that holds it.
    """
    device, table = device_table(cluster.device), cluster_table(cluster)
    faults = validate(schemas.DeviceFile, device, f"{where}.device")[1]
    faults += validate(schemas.ClusterFile, table, where)[1]
    return [
        *faults,
        *coherence.device_problems(device, f"{where}.device"),
        *coherence.cluster_problems(table, where),
    ]


def architecture_problems(model: Architecture, where: str) -> Iterator[Problem]:
    """What does not fit together in a model of classes of layers; no file of ours says one."""
    counts = [0] * len(model.layers)
    for i, index in enumerate(model.order):
        if index < len(counts):
            counts[index] += 1
        else:
            fact = f"is no class of layers: there are {len(counts)}, from 0"
            yield Problem(where=where, key=f"order[{i}]", value=str(index), fact=fact)
    if not model.order:
        yield Problem(where=where, key="order", fact="names no layer")
    for held in model.checkpoints:
        for name in {held.weights, held.experts} - {*RUN}:
            fact = f"is no number format of a checkpoint: it is {', '.join(RUN)}"
            yield Problem(where=where, key=f"checkpoints.{held.format}", value=name, fact=fact)
    for i, (one, n_layers) in enumerate(zip(model.layers, counts, strict=True)):
        key = f"layers[{i}]"
        if one.n_layers != n_layers:
            fact = f"is not how often `order` names the class, {n_layers}"
            yield Problem(where=where, key=f"{key}.n_layers", value=str(one.n_layers), fact=fact)
        for part, number, of, fact in _misfits(one):
            yield Problem(where=where, key=f"{key}.{part}", value=str(number), fact=f"{fact} {of}")


def _misfits(layers: LayerClass) -> Iterator[tuple[str, int, int, str]]:
    """Numbers of a layer that do not fit each other: which, how many, the other, and why not."""
    mixer, ffn = layers.mixer, layers.ffn
    if isinstance(mixer, GroupedAttention):
        if mixer.n_heads % mixer.n_kv_heads:
            yield "mixer.n_heads", mixer.n_heads, mixer.n_kv_heads, "is no multiple of n_kv_heads,"
        if mixer.span != "all" and mixer.n_span_tokens is None:
            yield "mixer.n_span_tokens", 0, 1, "is missing, and has to be at least"
    if isinstance(ffn, Experts) and ffn.n_active > ffn.n_experts:
        yield "ffn.n_active", ffn.n_active, ffn.n_experts, "is more than n_experts,"


def model_table(model: ModelSpec) -> Table:
    """What the file of a model would say; counts are those of its shape, not as published."""
    published = {"weights": model.published_weights, "kv": model.kv_format}
    formats = {
        "weights": model.weights_formats,
        "kv": model.kv_formats,
        "activation": model.activation_format,
    }
    table: Table = {
        "model": {"name": "model", "title": "model"},
        "shape": _section(schemas.Shape, model),
        "formats": _sourced({**formats, "published": _sourced(published)}),
        "checkpoints": {
            one.format: _sourced({"weights": one.weights, "experts": one.experts})
            for one in model.checkpoints
        },
        "quality": _each_sourced(model.quality_losses),
        "kv_quality": _each_sourced(model.kv_quality_losses),
        "check": {"n_params": {"value": float(max(1, model.n_params)), "source": RECORD}},
    }
    parts: dict[str, tuple[type[schemas.Strict], object]] = {
        "moe": (schemas.Moe, model.moe),
        "mla": (schemas.Mla, model.mla),
        "window": (schemas.Window, model.window),
        "mtp": (schemas.Mtp, model.mtp and replace(model.mtp, n_params_published=None)),
        "variant": (schemas.Variant, model.variant and replace(model.variant, quality="known")),
    }
    return table | {name: _section(*part) for name, part in parts.items() if part[1] is not None}


def device_table(device: DeviceSpec) -> Table:
    """What the file of a device would say."""
    rates = {name: f"{rate!r} FLOP/s" for name, rate in device.peak_flop_per_s.items()}
    power = {} if device.tdp_w is None else {"power": _section(schemas.Power, device)}
    return {
        "device": {"name": "device", "title": "device"},
        "peak": _each_sourced(rates),
        "memory": _section(schemas.Memory, device),
        "price": {"on_demand": _PRICE},
        **power,
        "attainable": _section(schemas.Attainable, device),
    }


def cluster_table(cluster: ClusterSpec) -> Table:
    """What the file of a cluster would say."""
    return {
        "cluster": {"name": "cluster", "title": "cluster", "device": "device"},
        "price": {"on_demand": _PRICE},
        **_fabric_table(cluster.fabric),
    }


def _fabric_table(fabric: Fabric) -> Table:
    if isinstance(fabric, TorusFabric):
        return {"torus": _section(schemas.Torus, fabric)}
    if isinstance(fabric, NodesFabric):
        return {"nodes": _nodes(fabric)}
    ends = dict.fromkeys(end for link in fabric.links for end in (link.a, link.b))
    switches = [end for end in ends if end not in fabric.devices]
    return {
        "link": [_section(schemas.LinkEntry, link) for link in fabric.links],
        "linked": _section(schemas.Linked, fabric) | {"switches": switches},
    }


def _nodes(nodes: NodesFabric) -> Table:
    scale_up = _section(schemas.ScaleUp, nodes, "scale_up_")
    if nodes.scale_up_measured is not None:
        fits = schemas.Measured.model_fields
        measured = {name: getattr(nodes.scale_up_measured, name) for name in fits}
        scale_up["measured"] = {n: _section(schemas.TwoRegimes, one) for n, one in measured.items()}
    return _section(schemas.Nodes, nodes) | {
        "scale_up": scale_up,
        "scale_out": _section(schemas.Tier, nodes, "scale_out_"),
        "protocol": [_section(schemas.NcclProtocol, one) for one in nodes.protocols],
    }


def _section(schema: type[schemas.Strict], record: object, prefix: str = "") -> Table:
    """What a section would say of a record, with units; what the record leaves out is left out."""
    said = {k: getattr(record, prefix + n, None) for k, n in schemas.field_names(schema).items()}
    units = {key: schemas.unit_of(schema.model_fields[key].annotation) for key in said}
    return _sourced({k: _text(v, units[k]) for k, v in said.items() if v is not None})


def _text(value: object, unit: Unit | None) -> object:
    if isinstance(value, tuple):
        return [_text(one, unit) for one in value]
    return f"{value!r} {unit.text}" if unit and unit.text else value


def _sourced(table: Table) -> Table:
    listed = {key: list(one) if isinstance(one, tuple) else one for key, one in table.items()}
    return {"source": RECORD, **listed}


def _each_sourced(values: Mapping[str, object]) -> Table:
    return {name: {"value": value, "source": RECORD} for name, value in values.items()}
