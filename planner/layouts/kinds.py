"""Kinds of layers: with a whole FFN or with experts, with a window or without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray
from planner.layouts.geometry import Pass
from planner.specs.records import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """Layers that do the same work.

    Args:
        has_experts: whether the FFN is made of experts.
        n_window_tokens: tokens that they attend to and keep; `None` for all.
        n_layers: layers of the kind in the busiest pipeline stage, (N, 1).
    """

    has_experts: bool
    n_window_tokens: int | None
    n_layers: FloatArray

    def within(self, work: Pass) -> Pass:
        """The pass as these layers see it: never more context than the window."""
        if self.n_window_tokens is None:
            return work
        return Pass(
            n_new_tokens=work.n_new_tokens,
            n_context_tokens=min(work.n_context_tokens, self.n_window_tokens),
            n_cached_tokens=min(work.n_cached_tokens, self.n_window_tokens),
            n_found_tokens=min(work.n_found_tokens, self.n_window_tokens),
        )


def layer_kinds(model: ModelSpec, n_stages: FloatArray) -> tuple[LayerKind, ...]:
    """The kinds of a model, and how many layers of each the busiest stage has.

    That stage has as many layers with experts as it can: the first layers are the dense
    ones. Layers with a window alternate with those without, so a stage has its share of
    them, rounded so that no stage has more without.
    """
    stage = np.ceil(model.n_layers / n_stages)
    with_experts = np.minimum(stage, model.n_moe_layers)
    n_windowed = model.window.n_layers if model.window else 0
    both, expert_part = (
        np.floor(n_layers * n_windowed / model.n_layers) for n_layers in (stage, with_experts)
    )
    kinds = []
    for has_experts, n_layers, windowed in (
        (True, with_experts, expert_part),
        (False, stage - with_experts, both - expert_part),
    ):
        kinds += [
            LayerKind(has_experts=has_experts, n_window_tokens=None, n_layers=n_layers - windowed),
            LayerKind(
                has_experts=has_experts,
                n_window_tokens=model.window.n_tokens if model.window else None,
                n_layers=windowed,
            ),
        ]
    return tuple(kind for kind in kinds if kind.n_layers.any())
