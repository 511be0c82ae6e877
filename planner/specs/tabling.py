"""Records as the files that would say the same, so that the checks of files judge records too.

A record that was altered (`dataclasses.replace`) has passed no loader. Its table goes through the
schema and the coherence of its file, where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

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
    LinkedFabric,
    NodesFabric,
    TorusFabric,
    TwoRegimes,
)
from planner.specs.served_formats import RUN, Checkpoint
from planner.specs.tables import Table
from planner.specs.variants import Variant

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
    plain = [
        "n_layers",
        "d_model",
        "d_ff",
        "n_heads",
        "n_heads_served",
        "n_kv_heads",
        "d_head",
        "vocab_size",
    ]
    plain += ["n_ffn_matrices", "block", "tied_embeddings", "norms_heads"]
    table: Table = {
        "model": {"name": "model", "title": "model"},
        "shape": _sourced({name: getattr(model, name) for name in plain}),
        "formats": _sourced(
            {
                "published": _sourced(
                    {"weights": list(model.published_weights), "kv": model.kv_format}
                ),
                "weights": list(model.weights_formats),
                "kv": list(model.kv_formats),
                "activation": model.activation_format,
            }
        ),
        "checkpoints": {one.format: _checkpoint(one) for one in model.checkpoints},
        "quality": _each_sourced(model.quality_losses),
        "kv_quality": _each_sourced(model.kv_quality_losses),
        "check": {"n_params": {"value": float(max(1, model.n_params)), "source": RECORD}},
    }
    parts = {"moe": model.moe, "mla": model.mla, "window": model.window}
    for name, part in parts.items():
        if part is not None:
            table[name] = _sourced(_said(part))
    if model.mtp is not None:
        table["mtp"] = _sourced({"n_modules": model.mtp.n_modules})
    if model.variant is not None:
        table["variant"] = _sourced(_variant(model.variant))
    return table


def _checkpoint(one: Checkpoint) -> Table:
    return _sourced({"weights": one.weights, "experts": one.experts})


def _variant(variant: Variant) -> Table:
    said = {"of": variant.of, "how": variant.how, "quality": "known"}
    numbers = {
        "quality_loss": variant.quality_loss_fraction,
        "n_denoising_steps": variant.n_denoising_steps,
        "n_block_tokens": variant.n_block_tokens,
    }
    return {**said, **{key: value for key, value in numbers.items() if value is not None}}


def device_table(device: DeviceSpec) -> Table:
    """What the file of a device would say."""
    rates = {name: f"{rate!r} FLOP/s" for name, rate in device.peak_flop_per_s.items()}
    return {
        "device": {"name": "device", "title": "device"},
        "peak": _each_sourced(rates),
        "memory": _sourced(
            {
                "hbm": f"{device.hbm_bytes!r} B",
                "hbm_bandwidth": f"{device.hbm_bytes_per_s!r} B/s",
                "reserve": f"{device.reserve_bytes!r} B",
            }
        ),
        "price": {"on_demand": _PRICE},
        **({} if device.tdp_w is None else {"power": _sourced({"tdp": f"{device.tdp_w!r} W"})}),
        "attainable": _sourced(
            {
                "compute_fraction": device.compute_fraction,
                "hbm_fraction": device.hbm_fraction,
                "layer_overhead": f"{device.layer_overhead_s!r} s",
                "roofline_exponent": device.roofline_exponent,
            }
        ),
    }


def cluster_table(cluster: ClusterSpec) -> Table:
    """What the file of a cluster would say."""
    return {
        "cluster": {"name": "cluster", "title": "cluster", "device": "device"},
        "price": {"on_demand": _PRICE},
        **_fabric_table(cluster.fabric),
    }


def _fabric_table(fabric: Fabric) -> Table:
    networks = {
        "activation_network": fabric.activation_network,
        "bulk_network": fabric.bulk_network,
    }
    if isinstance(fabric, TorusFabric):
        return {"torus": _sourced({**_torus(fabric), **networks})}
    if isinstance(fabric, NodesFabric):
        return {"nodes": _sourced({**_nodes(fabric), **networks})}
    return {**_links(fabric), "linked": _sourced({**_linked(fabric), **networks})}


def _torus(torus: TorusFabric) -> Table:
    return {
        "shape": list(torus.shape),
        "link_bandwidth": f"{torus.link_bytes_per_s!r} B/s",
        "hop": f"{torus.hop_s!r} s",
        "wrap_multiple": torus.wrap_multiple,
        "slice_dims": list(torus.slice_dims),
        "wraps_each_axis": torus.wraps_each_axis,
    }


def _nodes(nodes: NodesFabric) -> Table:
    scale_up = _tier(nodes, "scale_up")
    if nodes.scale_up_pair_bytes_per_s is not None:
        scale_up["pair_bandwidth"] = f"{nodes.scale_up_pair_bytes_per_s!r} B/s"
    if nodes.scale_up_measured is not None:
        measured = nodes.scale_up_measured
        scale_up["measured"] = {
            field.name: _regimes(getattr(measured, field.name)) for field in fields(measured)
        }
    return {
        "n_nodes": nodes.n_nodes,
        "n_devices_per_node": nodes.n_devices_per_node,
        "scale_up": scale_up,
        "scale_out": _tier(nodes, "scale_out"),
        "protocol": [
            _sourced(
                {
                    "name": one.name,
                    "algorithm": one.algorithm,
                    "scale_up_hop": f"{one.scale_up_hop_s!r} s",
                    "scale_out_hop": f"{one.scale_out_hop_s!r} s",
                    "base": f"{one.base_s!r} s",
                    "bandwidth_fraction": one.bandwidth_fraction,
                }
            )
            for one in nodes.protocols
        ],
    }


def _tier(nodes: NodesFabric, tier: str) -> Table:
    return _sourced(
        {
            "bandwidth": f"{getattr(nodes, f'{tier}_bytes_per_s')!r} B/s",
            "latency": f"{getattr(nodes, f'{tier}_latency_s')!r} s",
            "attainable_fraction": getattr(nodes, f"{tier}_fraction"),
        }
    )


def _regimes(fits: TwoRegimes) -> Table:
    units = {"latency_s": ("latency", "s"), "bytes_per_s": ("bandwidth", "B/s")}
    table: Table = {"n_devices": list(fits.n_devices)}
    for length in ("short", "long"):
        for name, (key, unit) in units.items():
            values = getattr(fits, f"{length}_{name}")
            table[f"{length}_{key}"] = [f"{value!r} {unit}" for value in values]
    return _sourced(table)


def _linked(linked: LinkedFabric) -> Table:
    ends = dict.fromkeys(end for link in linked.links for end in (link.a, link.b))
    switches = [end for end in ends if end not in linked.devices]
    return {"devices": list(linked.devices), "switches": switches}


def _links(linked: LinkedFabric) -> Table:
    return {
        "link": [
            _sourced(
                {
                    "a": link.a,
                    "b": link.b,
                    "bandwidth": f"{link.bytes_per_s!r} B/s",
                    "latency": f"{link.latency_s!r} s",
                }
            )
            for link in linked.links
        ]
    }


def _sourced(table: Table) -> Table:
    return {"source": RECORD, **table}


def _each_sourced(values: Mapping[str, object]) -> Table:
    return {name: {"value": value, "source": RECORD} for name, value in values.items()}


def _said(part: object) -> Table:
    """The fields of a record that say something."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}  # type: ignore[arg-type]
    return {name: value for name, value in values.items() if value is not None}
