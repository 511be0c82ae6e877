"""Records that were altered: what no file could say of them together.

A record that was altered (`dataclasses.replace`) has passed no loader. What its values cannot be
one by one its types say; what does not fit together is told as of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from planner.errors import Problem
from planner.specs.architecture import Architecture, Experts, LayerClass
from planner.specs.coherence import cluster_faults, device_faults
from planner.specs.mixers import GroupedAttention
from planner.specs.model_coherence import shape_faults
from planner.specs.models import ModelSpec
from planner.specs.records import ClusterSpec, LinkedFabric, NodesFabric, TorusFabric
from planner.specs.validation.arguments import record_problems
from planner.specs.validation.problems import Finding


def model_problems(model: ModelSpec, where: str) -> list[Problem]:
    """What cannot be in a model, and what does not fit together.

    Args:
        where: the argument that holds it.
    """
    return [*record_problems(model, where), *_problems(_said(model), where, shape_faults)]


def cluster_problems(cluster: ClusterSpec, where: str) -> list[Problem]:
    """What cannot be in a cluster and in its device, and what does not fit together.

    Args:
        where: the argument that holds it.
    """
    fabric = cluster.fabric
    said: dict[str, object] = {_KINDS[type(fabric)]: fabric}
    if isinstance(fabric, LinkedFabric):
        said["link"] = fabric.links
    return [
        *record_problems(cluster, where),
        *_problems(_said(cluster.device), f"{where}.device", device_faults),
        *_problems(said, where, cluster_faults),
    ]


def _said(record: Any) -> dict[str, object]:  # noqa: ANN401
    return {one.name: getattr(record, one.name) for one in fields(record)}


def _problems(
    said: Mapping[str, object], where: str, faults: Callable[[Mapping[str, Any]], Iterator[Finding]]
) -> list[Problem]:
    found = []
    for one in faults(said):
        name, _, inner = one.field.partition(".")
        value = getattr(said.get(name), inner, "") if inner else said.get(name, "")
        shown = str(value if one.value is None else one.value)
        problem = Problem(where=where, key=one.field, value=shown, fact=one.fact, remedy=one.remedy)
        found.append(problem)
    return found


_KINDS = {TorusFabric: "torus", NodesFabric: "nodes", LinkedFabric: "linked"}


def architecture_problems(model: Architecture, where: str) -> Iterator[Problem]:
    """What cannot be in a model of classes of layers, of which no file of ours says one."""
    yield from record_problems(model, where)
    counts = [0] * len(model.layers)
    for i, index in enumerate(model.order):
        if index < len(counts):
            counts[index] += 1
        else:
            fact = f"is no class of layers: there are {len(counts)}, from 0"
            yield Problem(where=where, key=f"order[{i}]", value=str(index), fact=fact)
    if not model.order:
        yield Problem(where=where, key="order", fact="names no layer")
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
