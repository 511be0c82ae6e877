"""Time of a decode pass that no kernel fills: of its layers, and of the host."""

from __future__ import annotations

from planner.specs.architecture import Architecture, LayerClass
from planner.specs.kernels import EngineSpec


def decode_gaps_s(model: Architecture, engine: EngineSpec) -> float:
    """Of a whole pass, beside its kernels [s]."""
    layers = sum(layer.n_layers * layer_gap_s(layer, engine) for layer in model.layers)
    return engine.decode_host_s + layers


def layer_gap_s(layer: LayerClass, engine: EngineSpec) -> float:
    """Of one layer of a decode pass [s]."""
    has_norms = layer.mixer is not None and layer.mixer.has_inner_norms
    return engine.layer_gap_s + (engine.inner_norms_s if has_norms else 0.0)
