"""What is loaded where a number format is asked for, in words."""

from __future__ import annotations

from planner.report.launch.words import saved_as
from planner.specs.architecture import Architecture, Experts
from planner.specs.kernels import EngineSpec
from planner.specs.served_formats import ServedFormats, as_run, checkpoint_of


def loaded_words(model: Architecture, asked: ServedFormats, engine: EngineSpec) -> str:
    """`Qwen/Qwen3-32B-FP8, in fp8 with a scale for each block of 128 × 128`; empty where formats
    say it all."""
    run = as_run(model, asked, engine)
    if run == asked:
        return ""
    known = checkpoint_of(model, asked.weights)
    which = known.repository or model.repository or model.name if known else "a checkpoint"
    has_experts = any(isinstance(layer.ffn, Experts) for layer in model.layers)
    source = f" ({known.source})" if known and known.source else ""
    return f"{which} {saved_as(run, has_experts=has_experts)}{source}"
