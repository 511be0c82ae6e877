"""An attention rank, and what it is one of: who shares the work, over which links."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

from planner.specs.ask.stages import StageGroup, StagesRequest
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.devices import Fabric, NodesFabric, TorusFabric
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.runtimes import ModelKind
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.findings import Invalid
from planner.verifier.scalar.tiers import fitted_s, group_bytes_per_s
from planner.verifier.serving.kernels import STATIC, Kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One of `n_data` ranks of each of `n_stages` stages.

    Args:
        n_tensor: devices that share its heads.
        n_expert_parallel: groups that experts are dealt to among the devices of a stage.
        n_expert_tensor: devices that each expert is cut over.
        n_redundant: copies of experts beside the first of each, of a layer.
        exchanges: tokens are sent to their experts; else all ranks gather all tokens.
        n_small_kernels: of each layer.
        n_expert_devices: of their own that hold the experts; 0 where those of attention do.
        n_microbatches: that go to and fro between both.
    """

    model: Architecture
    formats: ServedFormats
    kernels: Kernels
    links: Links
    n_small_kernels: int
    n_tensor: int
    n_data: int = 1
    n_stages: int = 1
    n_expert_parallel: int = 1
    n_expert_tensor: int = 1
    n_redundant: int = 0
    exchanges: bool = False
    n_expert_devices: int = 0
    n_microbatches: int = 1

    @property
    def n_group(self) -> int:
        """Devices of one stage, those of attention."""
        return self.n_tensor * self.n_data

    @property
    def n_devices(self) -> int:
        """Of all stages and pools."""
        return self.n_group * self.n_stages + self.n_expert_devices


def has_experts(model: Architecture) -> bool:
    """Whether any layer routes tokens to experts."""
    return any(isinstance(layer.ffn, Experts) for layer in model.layers)


def kind_of(model: Architecture) -> ModelKind:
    """What errors of a model's times are judged with."""
    return "mixture" if has_experts(model) else "dense"


def usual_copies(engine: EngineSpec, model: Architecture, n_groups: int) -> int:
    """Copies of experts that so many groups have under an engine, if none of its rules forbids it.

    The fewest that go evenly into the groups, from as many as its users give them on.
    """
    ffns = [layer.ffn for layer in model.layers if isinstance(layer.ffn, Experts)]
    counts = {one.n_experts for one in ffns if len(set(one.expected_loads[0])) > 1}
    if len(counts) != 1 or not 0 < engine.n_balanced_groups <= n_groups:
        return 0
    least = engine.n_redundant_experts
    more = -(min(counts) + least) % n_groups
    return 0 if more and min(counts) % n_groups else least + more


def rank_of(group: StageGroup, request: StagesRequest) -> Rank:
    """The one rank of a group of devices that has a stage to itself."""
    return Rank(
        model=request.model,
        formats=loaded(request.model, request.formats, request.engine),
        kernels=Kernels(group.cluster.device, group.kernels, request.engine),
        links=Links(group.cluster.fabric),
        n_small_kernels=request.engine.n_small_kernels,
        n_tensor=group.n_tensor,
        n_expert_parallel=group.n_expert_parallel,
        n_expert_tensor=max(1, group.n_tensor // group.n_expert_parallel),
    )


_ALIKE = ({"fp4", "nvfp4"},)
"""Words for one thing."""

_CALIBRATED = {"fp8": "fp8", "fp4": "nvfp4", "nvfp4": "nvfp4"}
"""What checkpoints with the scales of inputs have, where these are needed."""


def _means(word: str, name: str) -> bool:
    return word == name or any({word, name} <= alike for alike in _ALIKE)


def loaded(model: Architecture, formats: ServedFormats, engine: EngineSpec) -> ServedFormats:
    """Formats of what is loaded: of the model's own checkpoint, or of one that the engine needs."""
    dense, routed = formats.weights, formats.experts.removesuffix(STATIC)
    if engine.needs_input_scales and dense in _CALIBRATED:
        dense = _CALIBRATED[dense] + STATIC
    for checkpoint in model.checkpoints:
        if _means(formats.weights, checkpoint.format):
            dense = checkpoint.weights
        if _means(formats.experts, checkpoint.format):
            routed = checkpoint.experts
    return ServedFormats(weights=dense, experts=routed, cache=formats.cache)


MEASURED, COUNTED = "two regimes", "latency + bytes / bandwidth"
"""How messages are timed: by what was measured inside a node, or by links."""

ERRORS = {MEASURED: 0.07, COUNTED: 0.3}
"""Relative errors of both, `assumed`: fits miss their tables by 3 to 14 %."""

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")


class Links:
    """What connects the devices of a cluster; a torus counts as one node.

    Args:
        fabric: of the cluster.

    Raises:
        Refused: it is a list of links, which has no nodes.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        if isinstance(fabric, NodesFabric):
            self.n_per_node = fabric.n_devices_per_node
            inside = group_bytes_per_s(fabric, 2) * fabric.scale_up_fraction  # to one other
            outside = fabric.scale_out_bytes_per_s * fabric.scale_out_fraction
            self.near = (inside, fabric.scale_up_latency_s)
            self.far = (outside, fabric.scale_out_latency_s)
        elif isinstance(fabric, TorusFabric):
            self.n_per_node = fabric.n_devices
            self.near = self.far = (2.0 * fabric.link_bytes_per_s, fabric.hop_s)
        else:
            raise Invalid("is a fabric of listed links, which has no nodes")

    def collective_s(self, kind: str, n_bytes: float, n_devices: float) -> float:
        """Over consecutive devices; in steps where they are in several nodes.

        Args:
            kind: one of `COLLECTIVES`.
            n_bytes: the whole buffer of a device.
        """
        inside, nodes = min(n_devices, self.n_per_node), ceil(n_devices / self.n_per_node)
        if nodes == 1:
            return self._inside_s(kind, n_bytes, inside)
        between = _stepped_s(kind, n_bytes / inside, nodes, self.far)
        if kind == "all_reduce":
            halves = ("reduce_scatter", "all_gather")
            return between + sum(self._inside_s(half, n_bytes, inside) for half in halves)
        return between + self._inside_s(kind, n_bytes, inside)

    @property
    def is_measured(self) -> bool:
        """Whether collectives inside a node were measured."""
        return isinstance(self.fabric, NodesFabric) and bool(self.fabric.scale_up_measured)

    def send_s(self, n_bytes: float, *, leaves_node: bool) -> float:
        """To one device of the next stage."""
        rate, latency = self.far if leaves_node else self.near
        return n_bytes / rate + latency

    def _inside_s(self, kind: str, n_bytes: float, n_devices: float) -> float:
        known = self.fabric.scale_up_measured if isinstance(self.fabric, NodesFabric) else None
        if known is not None:
            return fitted_s(getattr(known, kind), n_devices, n_bytes)
        rate, latency = self.near
        if isinstance(self.fabric, NodesFabric):
            rate = group_bytes_per_s(self.fabric, n_devices) * self.fabric.scale_up_fraction
        return _stepped_s(kind, n_bytes, n_devices, (rate, latency))


def _stepped_s(kind: str, n_bytes: float, n: float, link: tuple[float, float]) -> float:
    """Steps of a tree, and the share of a buffer that goes to others; twice to reduce it all."""
    rate, latency = link
    once = log2(n) * latency + n_bytes * (n - 1) / n / rate
    return 2 * once if kind == "all_reduce" else once


def handing_s(sender: StageGroup, receiver: StageGroup, n_bytes: float) -> float:
    """From all devices of a group to all of the next: the slower side, and the longer wait.

    Groups of a kind that together fill one node stay in it; others are in nodes of their own.
    """
    stays = sender.name == receiver.name and (
        sender.n_tensor * sender.n_groups <= Links(sender.cluster.fabric).n_per_node
    )
    ports = []
    for group in (sender, receiver):
        links = Links(group.cluster.fabric)
        rate, latency = links.near if stays else links.far
        ports.append((group.n_tensor * rate, latency))
    return n_bytes / min(rate for rate, _ in ports) + max(wait for _, wait in ports)
