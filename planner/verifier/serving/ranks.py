"""An attention rank, and what it is one of: who shares which part of the work."""

from __future__ import annotations

from dataclasses import dataclass

from planner.specs.architecture import Architecture, Experts
from planner.specs.judged import ModelKind
from planner.specs.kernels import EngineSpec
from planner.specs.served_formats import ServedFormats
from planner.specs.stages_request import StageGroup, StagesRequest
from planner.verifier.serving.kernels import STATIC, Kernels
from planner.verifier.serving.links import Links


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

    @property
    def n_group(self) -> int:
        """Devices of one stage."""
        return self.n_tensor * self.n_data


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


def rank_of(group: StageGroup, asked: StagesRequest) -> Rank:
    """The one rank of a group of devices that has a stage to itself."""
    return Rank(
        model=asked.model,
        formats=loaded(asked.model, asked.formats, asked.engine),
        kernels=Kernels(group.cluster.device, group.kernels, asked.engine),
        links=Links(group.cluster.fabric),
        n_small_kernels=asked.engine.n_small_kernels,
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


def loaded(model: Architecture, asked: ServedFormats, engine: EngineSpec) -> ServedFormats:
    """Formats of what is loaded: of the model's own checkpoint, or of one that the engine needs."""
    dense, routed = asked.weights, asked.experts.removesuffix(STATIC)
    if engine.needs_input_scales and dense in _CALIBRATED:
        dense = _CALIBRATED[dense] + STATIC
    for one in model.checkpoints:
        if _means(asked.weights, one.format):
            dense = one.weights
        if _means(asked.experts, one.format):
            routed = one.experts
    return ServedFormats(weights=dense, experts=routed, cache=asked.cache)
