"""Time of a pass that no kernel fills: of its layers, and of the host."""

from __future__ import annotations

from planner.specs.architecture import Architecture, Experts, LayerClass
from planner.specs.kernels import EngineSpec
from planner.specs.mixers import LatentAttention, Recurrence


def decode_gaps_s(model: Architecture, engine: EngineSpec) -> float:
    """Of a whole decode pass, beside its kernels [s]."""
    layers = sum(layer.n_layers * layer_gap_s(layer, engine) for layer in model.layers)
    return engine.decode_host_s + layers


def layer_gap_s(layer: LayerClass, engine: EngineSpec) -> float:
    """Of one layer of a decode pass [s]."""
    has_norms = layer.mixer is not None and layer.mixer.has_inner_norms
    return engine.layer_gap_s + (engine.inner_norms_s if has_norms else 0.0)


def prefill_gaps_s(model: Architecture, engine: EngineSpec) -> float:
    """Of a whole pass that reads prompts, beside its kernels [s]."""
    layers = sum(layer.n_layers * prefill_gap_s(layer, engine) for layer in model.layers)
    return engine.prefill_host_s + layers


def prefill_gap_s(layer: LayerClass, engine: EngineSpec) -> float:
    """Of one layer of a pass that reads prompts [s]."""
    has_experts = isinstance(layer.ffn, Experts)
    return has_experts * engine.prefill_experts_s + _scans(layer) * engine.prefill_scans_s


def _scans(layer: LayerClass) -> bool:
    """Whether it carries a state over the prompt, or chooses what each token attends to."""
    mixer = layer.mixer
    if isinstance(mixer, LatentAttention):
        return mixer.indexer is not None and not mixer.indexer.is_shared
    return isinstance(mixer, Recurrence)
