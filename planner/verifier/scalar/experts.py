"""Layers whose FFN is made of experts: what lies where, and what a pass touches."""

from math import ceil

from planner.verifier.scalar.mixers import whole_params
from planner.verifier.scalar.shapes import N_AXES, Layout


def mixing_params(layout: Layout) -> int:
    """What mixes tokens, but for what every device has whole."""
    mixer = layout.mixer
    return mixer.n_params(layout.model.d_model) - whole_params(mixer) if mixer else 0


def dense_layer_params(layout: Layout) -> int:
    """What mixes tokens, an FFN that is whole, and what joins them to the rest."""
    e, ffn, layer = layout.model.d_model, layout.dense, layout.layer
    joins = layer.n_other_params if layer else 0
    return mixing_params(layout) + ffn.n_matrices * e * ffn.d_ff + ffn.n_other_params + joins


def common_params(layout: Layout) -> int:
    """What every token meets in a layer with experts: attention, router, shared experts."""
    e, moe = layout.model.d_model, layout.experts
    shared = moe.n_matrices * e * moe.d_shared
    return mixing_params(layout) + router_params(layout) + shared


def router_params(layout: Layout) -> int:
    return layout.model.d_model * layout.experts.n_experts


def own_common_params(layout: Layout) -> float:
    """Those that one device uses: its cut, but all of the router where it routes its own tokens.

    Of tokens that it has a part of E of, it needs that part of the router.
    """
    mesh = layout.mesh
    n_rest, router = mesh.size(layout.rest), router_params(layout)
    if not layout.is_dispatched:
        return common_params(layout) / n_rest
    return (common_params(layout) - router) / n_rest + router / mesh.size(layout.e_axes)


def resting_common_params(layout: Layout) -> float:
    """Those that one device keeps: copies along `data`, and with these the router it uses."""
    mesh = layout.mesh
    n_copies, router = mesh.size(layout.data), router_params(layout)
    if n_copies == 1:
        return common_params(layout) / mesh.n_devices
    kept = (common_params(layout) - router) * n_copies / mesh.n_devices
    return kept + router / mesh.size(layout.e_axes)


def one_expert(layout: Layout) -> int:
    return layout.experts.n_matrices * layout.model.d_model * layout.experts.d_expert


def expert_ways(layout: Layout) -> int:
    """Devices that share out whole experts: the largest group of axes with one for each."""
    busy = layout.e_axes | layout.sliced
    sizes = [layout.mesh.size(group) for group in range(1 << N_AXES) if not group & busy]
    assert layout.model.moe is not None
    return max(size for size in sizes if size <= layout.model.moe.n_experts)


def n_slices(layout: Layout) -> int:
    """Devices that share each expert, cut along its FFN dimension."""
    return layout.n_expert_devices // expert_ways(layout)


def own_experts(layout: Layout) -> int:
    """Experts, or slices of them, on the busiest device."""
    return ceil(layout.experts.n_experts / expert_ways(layout))


def own_expert_params(layout: Layout) -> float:
    return own_experts(layout) * own_piece(layout)


def own_piece(layout: Layout) -> float:
    """Parameters of each expert of a device: a part of F for each slice, of E for each of x."""
    n_pieces = n_slices(layout) * layout.mesh.size(layout.e_axes)
    return one_expert(layout) / n_pieces


def n_touched(layout: Layout, n_tokens: float) -> float:
    """Experts of the busiest device that some token is expected to visit.

    A token visits K of E experts, each with probability K/E; that none of T tokens visits
    one has probability (1 - K/E)^T.
    """
    moe = layout.experts
    missed: float = (1 - moe.n_active / moe.n_experts) ** n_tokens
    return own_experts(layout) * (1 - missed)


def n_visits(layout: Layout, n_tokens: float) -> float:
    """Visits of tokens to the experts of the busiest device, if every expert has as many."""
    moe = layout.experts
    return n_tokens * moe.n_active / moe.n_experts * own_experts(layout)


def n_token_copies(layout: Layout) -> int:
    """Devices that one token is sent to, each once: all slices of its experts.

    Balanced routing spreads the experts of a token over as many devices as there are.
    """
    n_places = min(layout.experts.n_active, expert_ways(layout))
    return n_places * n_slices(layout)
