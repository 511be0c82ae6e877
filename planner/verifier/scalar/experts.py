"""Layers whose FFN is made of experts: what lies where, and what a pass touches."""

from math import ceil

from planner.specs.records.devices import ModelSpec, MoeShape
from planner.verifier.scalar.shapes import N_AXES, Layout, attention_params


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


def router_params(model: ModelSpec) -> int:
    return model.d_model * moe_of(model).n_experts


def own_common_params(layout: Layout) -> float:
    """Those that one device uses: its cut, but all of the router where it routes its own tokens.

    Of tokens that it has a part of E of, it needs that part of the router.
    """
    model, mesh = layout.model, layout.mesh
    n_rest, router = mesh.size(layout.rest), router_params(model)
    if not layout.is_dispatched:
        return common_params(model) / n_rest
    return (common_params(model) - router) / n_rest + router / mesh.size(layout.e_axes)


def resting_common_params(layout: Layout) -> float:
    """Those that one device keeps: copies along `data`, and with these the router it uses."""
    model, mesh = layout.model, layout.mesh
    n_copies, router = mesh.size(layout.data), router_params(model)
    if n_copies == 1:
        return common_params(model) / mesh.n_devices
    kept = (common_params(model) - router) * n_copies / mesh.n_devices
    return kept + router / mesh.size(layout.e_axes)


def one_expert(model: ModelSpec) -> int:
    return model.n_ffn_matrices * model.d_model * moe_of(model).d_expert


def expert_ways(layout: Layout) -> int:
    """Devices that share out whole experts: the largest group of axes with one for each."""
    busy = layout.e_axes | layout.sliced
    sizes = [layout.mesh.size(group) for group in range(1 << N_AXES) if not group & busy]
    return max(size for size in sizes if size <= moe_of(layout.model).n_experts)


def n_slices(layout: Layout) -> int:
    """Devices that share each expert, cut along its FFN dimension."""
    return layout.n_expert_devices // expert_ways(layout)


def own_experts(layout: Layout) -> int:
    """Experts, or slices of them, on the busiest device."""
    return ceil(moe_of(layout.model).n_experts / expert_ways(layout))


def own_expert_params(layout: Layout) -> float:
    return own_experts(layout) * own_piece(layout)


def own_piece(layout: Layout) -> float:
    """Parameters of each expert of a device: a part of F for each slice, of E for each of x."""
    n_pieces = n_slices(layout) * layout.mesh.size(layout.e_axes)
    return one_expert(layout.model) / n_pieces


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
