"""What a checkpoint of a model holds where a format is asked for, found again."""

from __future__ import annotations

from planner.specs.architecture import Architecture
from planner.specs.kernels import EngineSpec
from planner.specs.served_formats import ServedFormats
from planner.verifier.serving.kernels import STATIC

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
