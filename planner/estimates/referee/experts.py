"""Layers whose FFN is made of experts: what lies where, and what a pass touches."""

from __future__ import annotations

from math import ceil

from planner.estimates.referee.heads import attention_params
from planner.estimates.referee.shapes import N_AXES, Layout
from planner.specs.records import ModelSpec, MoeShape


def moe_of(model: ModelSpec) -> MoeShape:
    assert model.moe is not None
    return model.moe


def dense_layer_params(model: ModelSpec) -> int:
    """Attention and an FFN that is whole."""
    return attention_params(model) + model.n_ffn_matrices * model.d_model * model.d_ff


def common_params(model: ModelSpec) -> int:
    """What every token meets in a layer with experts: attention, router, shared experts."""
    moe = moe_of(model)
    router = model.d_model * moe.n_experts
    return attention_params(model) + router + moe.n_shared_experts * one_expert(model)


def own_common_params(layout: Layout) -> float:
    """Those of one device: its cut, but all of the router where it routes its own tokens."""
    model, n_rest = layout.model, layout.mesh.size(layout.rest)
    if not layout.is_dispatched:
        return common_params(model) / n_rest
    router = model.d_model * moe_of(model).n_experts
    return (common_params(model) - router) / n_rest + router


def one_expert(model: ModelSpec) -> int:
    return model.n_ffn_matrices * model.d_model * moe_of(model).d_expert


def expert_ways(layout: Layout) -> int:
    """Devices that share out whole experts: the largest group of axes with one for each."""
    sizes = [layout.mesh.size(group) for group in range(1 << N_AXES)]
    return max(size for size in sizes if size <= moe_of(layout.model).n_experts)


def n_slices(layout: Layout) -> int:
    """Devices that share each expert, cut along its FFN dimension."""
    return layout.mesh.n_devices // expert_ways(layout)


def own_experts(layout: Layout) -> int:
    """Experts, or slices of them, on the busiest device."""
    return ceil(moe_of(layout.model).n_experts / expert_ways(layout))


def own_expert_params(layout: Layout) -> float:
    return own_experts(layout) * one_expert(layout.model) / n_slices(layout)


def n_touched(layout: Layout, n_tokens: float) -> float:
    """Experts of the busiest device that some token is expected to visit.

    A token visits K of E experts, each with probability K/E; that none of T tokens visits
    one has probability (1 - K/E)^T.
    """
    moe = moe_of(layout.model)
    missed: float = (1 - moe.n_active_experts / moe.n_experts) ** n_tokens
    return own_experts(layout) * (1 - missed)


def n_visits(layout: Layout, n_tokens: float) -> float:
    """Visits of tokens to the experts of the busiest device, if every expert has as many."""
    moe = moe_of(layout.model)
    return n_tokens * moe.n_active_experts / moe.n_experts * own_experts(layout)


def n_token_copies(layout: Layout) -> int:
    """Devices that one token is sent to, each once: all slices of its experts.

    Balanced routing spreads the experts of a token over as many devices as there are.
    """
    n_places = min(moe_of(layout.model).n_active_experts, expert_ways(layout))
    return n_places * n_slices(layout)
