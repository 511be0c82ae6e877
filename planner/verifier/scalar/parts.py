"""Parts of a layer: what mixes tokens, in numbers of one token, and experts.

Of the former parameters, widths, caches and states; of the latter what lies where, and what a pass
touches.
"""

from math import ceil

from planner.specs.records.architecture import state_bytes
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Mixer, Recurrence
from planner.verifier.scalar.shapes import N_AXES, Layout

STATE_FLOP = 8.0  # of one token on one number of a state: read, decayed, corrected, written


def whole_params(mixer: Mixer | None) -> int:
    """Queries of an indexer, made of a latent that every device has; all else is cut."""
    if not isinstance(mixer, LatentAttention) or mixer.own_indexer is None:
        return 0
    return (mixer.d_q_latent or 0) * mixer.own_indexer.n_heads * mixer.own_indexer.d_head


def index_width(mixer: LatentAttention) -> int:
    """A key, a weight a head, and the queries where they have no latent: made of E."""
    index = mixer.own_indexer
    if index is None:
        return 0
    queries = 0 if mixer.d_q_latent else index.n_heads * index.d_head
    return index.d_head + index.n_heads + queries


def hidden_widths(mixer: Mixer) -> tuple[int, int]:
    """Widths of what the projections make of a token's E, and of what they take back.

    Of queries with a latent of their own only that is made of E.
    """
    if isinstance(mixer, Recurrence):
        return mixer.n_input_columns, mixer.n_output_rows
    back = mixer.n_heads * mixer.d_value_head
    if isinstance(mixer, GroupedAttention):
        return mixer.d_queries + mixer.d_keys_and_values, back
    first = mixer.d_q_latent or query_width(mixer)
    return first + mixer.d_cached + index_width(mixer), back


def query_width(mixer: Mixer) -> int:
    """All heads of queries, or of states."""
    return mixer.n_heads * (mixer.d_value if isinstance(mixer, Recurrence) else mixer.d_head)


def widest(mixer: Mixer | None) -> int:
    """Numbers of a token that projections leave, before they are scattered."""
    return max(hidden_widths(mixer)[0], query_width(mixer) + mixer.d_read) if mixer else 0


def shared_heads(mixer: Mixer | None) -> int:
    """Pieces that the cache of a token falls into, a latent is whole; or groups of states."""
    if isinstance(mixer, Recurrence):
        return mixer.n_groups
    return mixer.n_kv_heads if isinstance(mixer, GroupedAttention) else 1


def shared_width(mixer: Mixer) -> int:
    """What devices that share such a piece complete: keys and values, a latent; what writes to
    and reads from the states of a group."""
    if isinstance(mixer, Recurrence):
        return 2 * mixer.n_groups * mixer.d_key
    return mixer.d_cached


def pair_width(mixer: Mixer, *, on_latents: bool) -> int:
    """Multiply-adds of one head for one pair of tokens: the score, and the weighted value."""
    if isinstance(mixer, Recurrence):
        return 0
    if isinstance(mixer, GroupedAttention):
        return mixer.d_head + mixer.d_value_head
    if on_latents:
        return (mixer.d_kv_latent + mixer.d_rope) + mixer.d_kv_latent
    return (mixer.d_nope + mixer.d_rope) + mixer.d_value_head


def moved_widths(mixer: Mixer, *, on_latents: bool) -> tuple[int, int]:
    """What travels to a token's sequence, and what comes back, when heads are elsewhere.

    The matrices that make keys and values of a latent, or bring queries to it, lie with the
    heads; so what they make travels. Keys made from latents do, but not the latents, which
    every device has had for making them.
    """
    if isinstance(mixer, Recurrence):
        return mixer.n_input_columns, mixer.n_output_rows
    heads, back = mixer.n_heads, mixer.n_heads * mixer.d_value_head
    if isinstance(mixer, GroupedAttention):
        return query_width(mixer) + mixer.d_cached, back
    if on_latents:
        return heads * mixer.d_cached + mixer.d_cached, heads * mixer.d_kv_latent
    return query_width(mixer) + heads * (mixer.d_nope + mixer.d_value_head), back


def met_tokens(mixer: Mixer | None, n_context: float) -> float:
    """Tokens that queries meet, of those in reach."""
    if isinstance(mixer, LatentAttention) and mixer.indexer:
        return min(n_context, mixer.indexer.n_selected_tokens)
    return n_context


def state_work(mixer: Recurrence, n_new: float, *, decodes: bool) -> tuple[float, float]:
    """(FLOP, bytes) of one sequence: decode reads and writes states for each token; over a prompt
    what counts is the convolution, which reads and writes its channels."""
    numbers = mixer.n_heads * mixer.d_key * mixer.d_value
    flop = STATE_FLOP * numbers * n_new
    if not decodes:
        return flop, 4.0 * mixer.d_conv * n_new
    io = mixer.d_conv + mixer.n_heads * mixer.d_value
    return flop, n_new * (2.0 * state_bytes(mixer) + 4.0 * io)


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
