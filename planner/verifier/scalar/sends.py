"""What one layer sends for one micro-batch."""

from dataclasses import dataclass
from math import ceil

from planner.specs.records.mixers import LatentAttention
from planner.verifier.scalar import parts
from planner.verifier.scalar.shapes import Layout

HALF = "half"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One collective: `n_bytes` after an all-gather, before a reduce-scatter or all-to-all.

    Two of the kind `HALF`, a scatter and then a gather of the same, are one all-reduce.
    """

    kind: str
    group: int
    n_shards: float
    n_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of a micro-batch: its sequences, what enters of each, what that attends to."""

    n_sequences: int
    n_new: float
    n_context: float


def layer_sends(layout: Layout, tokens: Tokens, *, has_experts: bool) -> list[Send]:
    """Everything that one layer sends for one micro-batch."""
    block = _expert_block(layout, tokens) if has_experts else _dense_block(layout, tokens)
    return [
        *(_gathered_with_experts(layout) if has_experts else [_weights_send(layout)]),
        *block,
        *_latent_sends(layout, tokens),
        *_attention_sends(layout, tokens),
    ]


def _group_numbers(layout: Layout, tokens: Tokens) -> float:
    """Bytes of one number of each token of the busiest group that shares its weights."""
    n_tokens = layout.group_sequences(tokens.n_sequences) * tokens.n_new
    return n_tokens * layout.activation_bytes


def _weights_send(layout: Layout) -> Send:
    mesh = layout.mesh
    return Send(
        kind="weights",
        group=layout.gathered,
        n_shards=mesh.size(layout.gathered),
        n_bytes=parts.dense_layer_params(layout) / mesh.size(layout.rest) * layout.weight_bytes,
    )


def _gathered_with_experts(layout: Layout) -> list[Send]:
    """All but the experts and the router; and the router, to every device from all others.

    Where there are copies of the weights, there is one of the router for each device already.
    """
    mesh, router = layout.mesh, parts.router_params(layout)
    cut_params = (parts.common_params(layout) - router) / mesh.size(layout.rest)
    n_gathered = mesh.size(layout.gathered)
    weights = Send(
        kind="weights",
        group=layout.gathered,
        n_shards=n_gathered,
        n_bytes=cut_params * layout.weight_bytes,
    )
    if n_gathered == 1 or mesh.size(layout.data) > 1:
        return [weights]
    whole = Send(
        kind="weights",
        group=~layout.e_axes & 7,
        n_shards=layout.n_expert_devices,
        n_bytes=router / mesh.size(layout.e_axes) * layout.weight_bytes,
    )
    return [weights, whole]


def _dense_block(layout: Layout, tokens: Tokens) -> list[Send]:
    """A parallel block sends FFN and attention in one round, a serial block in two.

    What a layer does not have sends nothing.
    """
    dense = layout.dense
    ffn, attention = ((dense.n_matrices - 1) * dense.d_ff, dense.d_ff), _attention_hidden(layout)
    if layout.model.block == "parallel":
        return _round(layout, tokens, attention[0] + ffn[0], attention[1] + ffn[1])
    return [*_round(layout, tokens, *attention), *_round(layout, tokens, *ffn)]


def _expert_block(layout: Layout, tokens: Tokens) -> list[Send]:
    """A round for attention, then tokens to their experts and back.

    Where every device has had all tokens for attention, it gathers all of them for its
    experts and its part of the shared ones: a second round. Where attention has replicas,
    tokens are sent to the devices of their experts, and shared experts, cut within a
    replica, need a round there.
    """
    model, moe = layout.model, layout.experts
    n_ffn_in = moe.n_matrices - 1

    def of_experts(width: int) -> list[Send]:
        return _round(layout, tokens, n_ffn_in * width, width)

    sends = _round(layout, tokens, *_attention_hidden(layout))
    if not layout.is_dispatched:
        return sends + of_experts(moe.n_active * moe.d_expert + moe.d_shared)
    sends += of_experts(moe.d_shared)
    own_share = _group_numbers(layout, tokens) / layout.mesh.size(layout.rest)
    exchange = Send(
        kind="exchange",
        group=~layout.e_axes & 7,
        n_shards=layout.n_expert_devices,
        n_bytes=own_share * parts.n_token_copies(layout) * model.d_model,
    )
    return [*sends, exchange, *_sums_over_x(layout, tokens), exchange]


def _sums_over_x(layout: Layout, tokens: Tokens) -> list[Send]:
    """What each visit makes of a part of E is added up, and its activation given to all of x."""
    moe = layout.experts
    n_visits = tokens.n_sequences * tokens.n_new * moe.n_active / layout.n_expert_devices
    n_bytes = n_visits * moe.d_expert * layout.activation_bytes
    x = layout.mesh.size(layout.e_axes)
    n_ffn_in = moe.n_matrices - 1
    return [
        Send(kind="scatter", group=layout.e_axes, n_shards=x, n_bytes=n_bytes * n_ffn_in),
        Send(kind="gather", group=layout.e_axes, n_shards=x, n_bytes=n_bytes),
    ]


def _attention_hidden(layout: Layout) -> tuple[int, int]:
    return parts.hidden_widths(layout.mixer) if layout.mixer else (0, 0)


def _round(layout: Layout, tokens: Tokens, hidden_in: int, hidden_out: int) -> list[Send]:
    """Four: gather E/X, scatter the hidden in, gather the hidden out, scatter E/X.

    What a round scatters last the next round gathers first.
    """
    if not hidden_out:
        return []
    mesh, numbers = layout.mesh, _group_numbers(layout, tokens)
    x, y = mesh.size(layout.e_axes), mesh.size(layout.f_axes)
    residual = numbers * layout.model.d_model / x
    return [
        Send(kind=HALF, group=layout.f_axes, n_shards=y, n_bytes=residual),
        Send(kind="scatter", group=layout.e_axes, n_shards=x, n_bytes=numbers * hidden_in / y),
        Send(kind="gather", group=layout.e_axes, n_shards=x, n_bytes=numbers * hidden_out / y),
        Send(kind=HALF, group=layout.f_axes, n_shards=y, n_bytes=residual),
    ]


def _latent_sends(layout: Layout, tokens: Tokens) -> list[Send]:
    """Made in pieces: the latent of queries, that the queries of every head are made from, and
    what an indexer scores with."""
    mixer = layout.mixer
    if not isinstance(mixer, LatentAttention):
        return []
    widths = mixer.d_q_latent or 0, parts.index_width(mixer)
    return [_gather_of_rest(layout, _group_numbers(layout, tokens) * n) for n in widths if n]


def _gather_of_rest(layout: Layout, n_bytes: float) -> Send:
    n_shards = layout.mesh.size(layout.rest)
    return Send(kind="gather", group=layout.rest, n_shards=n_shards, n_bytes=n_bytes)


def _attention_sends(layout: Layout, tokens: Tokens) -> list[Send]:
    """To the sequences and back, over batch; and the heads that several devices complete.

    A device has one n-th of the projections. Where devices outnumber KV heads, or query
    heads, those that share a head gather its pieces. A latent is one head; where keys and
    values are made from it, that is done where the heads are, so all of `rest` gathers it.
    """
    mesh, mixer = layout.mesh, layout.mixer
    if mixer is None:
        return []
    on_latents = tokens.n_new < tokens.n_context
    cut = layout.batch_axes(tokens.n_sequences)
    moved, n_over_heads = cut & layout.rest, mesh.size(~cut & 7)
    numbers = _group_numbers(layout, tokens)
    share = numbers / mesh.size(layout.rest)
    own_numbers = ceil(tokens.n_sequences / mesh.size(cut)) * tokens.n_new
    own_numbers *= layout.activation_bytes

    def exchange(width: int) -> Send:
        n_shards = mesh.size(moved)
        return Send(kind="exchange", group=moved, n_shards=n_shards, n_bytes=share * width)

    def completed(width: int, n_heads: int) -> Send:
        n_cut = min(n_over_heads, n_heads)
        n_bytes = own_numbers * width / n_cut
        return Send(kind="gather", group=~cut & 7, n_shards=n_over_heads / n_cut, n_bytes=n_bytes)

    there, back = parts.moved_widths(mixer, on_latents=on_latents)
    width = parts.shared_width(mixer)
    if isinstance(mixer, LatentAttention) and not on_latents:
        shared = _gather_of_rest(layout, numbers * width)
    else:
        shared = completed(width, parts.shared_heads(mixer))
    queries = completed(parts.query_width(mixer), mixer.n_heads)
    return [exchange(there), exchange(back), *([shared] if width else []), queries]
