"""What a layer sends, and the seconds it takes on one mesh."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from planner.estimates.referee.shapes import N_AXES, Layout, RefereeMesh
from planner.specs.records import FORMAT_BYTES, Fabric


def layer_network_s(
    layout: Layout, fabric: Fabric, n_sequences: int, n_new_tokens: float
) -> tuple[float, float]:
    """Seconds of all transfers of one layer and micro-batch, and of all their hops."""
    sends = _collectives(layout, n_sequences, n_new_tokens)
    transfers = sum(_transfer_s(layout.mesh, fabric, send) for send in sends)
    return transfers, sum(_latency_s(layout.mesh, send) for send in sends)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Send:
    """One collective: `n_bytes` after an all-gather, before a reduce-scatter or all-to-all."""

    kind: str
    group: int
    n_shards: float
    n_bytes: float


def _collectives(layout: Layout, n_sequences: int, n_new_tokens: float) -> list[_Send]:
    """Everything that one layer sends for one micro-batch."""
    return [
        _weights_send(layout),
        *_block_sends(layout, n_sequences, n_new_tokens),
        *_attention_sends(layout, n_sequences, n_new_tokens),
    ]


def _weights_send(layout: Layout) -> _Send:
    mesh = layout.mesh
    needed = layout.layer_params / mesh.size(layout.rest)
    return _Send(
        kind="weights",
        group=layout.gathered,
        n_shards=mesh.size(layout.gathered),
        n_bytes=needed * FORMAT_BYTES[layout.weights_format],
    )


def _block_sends(layout: Layout, n_sequences: int, n_new_tokens: float) -> list[_Send]:
    """Rounds of four: gather E/X, scatter the hidden in, gather the hidden out, scatter E/X.

    A parallel block sends FFN and attention in one round, a serial block in two.
    """
    model, mesh = layout.model, layout.mesh
    queries, kv = model.n_heads_served * model.d_head, 2 * model.n_kv_heads * model.d_head
    ffn_in = (model.n_ffn_matrices - 1) * model.d_ff
    rounds = [(queries + kv, queries), (ffn_in, model.d_ff)]
    if model.block == "parallel":
        rounds = [(queries + kv + ffn_in, queries + model.d_ff)]
    n_tokens = ceil(n_sequences / mesh.size(layout.gathered)) * n_new_tokens
    numbers = n_tokens * FORMAT_BYTES[model.activation_format]
    x, y = mesh.size(layout.e_axes), mesh.size(layout.f_axes)
    sends = []
    for hidden_in, hidden_out in rounds:
        residual = numbers * model.d_model / x
        sends += [
            _Send(kind="gather", group=layout.f_axes, n_shards=y, n_bytes=residual),
            _Send(kind="scatter", group=layout.e_axes, n_shards=x, n_bytes=numbers * hidden_in / y),
            _Send(kind="gather", group=layout.e_axes, n_shards=x, n_bytes=numbers * hidden_out / y),
            _Send(kind="scatter", group=layout.f_axes, n_shards=y, n_bytes=residual),
        ]
    return sends


def _attention_sends(layout: Layout, n_sequences: int, n_new_tokens: float) -> list[_Send]:
    """To the sequences and back, over batch; and the heads that several devices complete.

    A device has one n-th of the projections. Where devices outnumber KV heads, or query
    heads, those that share a head gather its pieces.
    """
    model, mesh = layout.model, layout.mesh
    queries, kv = model.n_heads_served * model.d_head, 2 * model.n_kv_heads * model.d_head
    width = FORMAT_BYTES[model.activation_format]
    cut = layout.batch_axes(n_sequences)
    moved = cut & layout.rest
    n_group_tokens = ceil(n_sequences / mesh.size(layout.gathered)) * n_new_tokens
    share = n_group_tokens * width / mesh.size(layout.rest)
    n_moved = mesh.size(moved)
    n_own_tokens = ceil(n_sequences / mesh.size(cut)) * n_new_tokens
    sends = [
        _Send(kind="exchange", group=moved, n_shards=n_moved, n_bytes=share * (queries + kv)),
        _Send(kind="exchange", group=moved, n_shards=n_moved, n_bytes=share * queries),
    ]
    n_over_heads = mesh.size(~cut & 7)
    for hidden, n_heads in ((kv, model.n_kv_heads), (queries, model.n_heads_served)):
        n_cut = min(n_over_heads, n_heads)
        whole = n_own_tokens * width * hidden / n_cut
        sends.append(
            _Send(kind="gather", group=~cut & 7, n_shards=n_over_heads / n_cut, n_bytes=whole)
        )
    return sends


def _transfer_s(mesh: RefereeMesh, fabric: Fabric, send: _Send) -> float:
    """Seconds that the bytes of one collective take; (k − 1)/k of them cross the links."""
    if send.n_shards <= 1:
        return 0.0
    if send.kind == "exchange":
        return max(_exchange_s(mesh, axis, send.n_bytes) for axis in mesh.members(send.group))
    is_bulk = send.kind == "weights"
    convention = fabric.bulk_network if is_bulk else fabric.activation_network
    crossing = send.n_bytes * (send.n_shards - 1) / send.n_shards
    return crossing / _group_bytes_per_s(mesh, convention, send.group)


def _group_bytes_per_s(mesh: RefereeMesh, convention: str, group: int) -> float:
    """`ring`: the fastest axis; `axis`: all axes of the group; `flat`: all of the mesh;
    `tree`: the slowest tier."""
    rates = [_ring_bytes_per_s(mesh, axis, group) for axis in mesh.members(group)]
    if convention == "ring":
        return max(rates)
    if convention == "axis":
        return sum(rates)
    if convention == "tree":
        return min(rates)
    if convention == "flat":
        return sum(_ring_bytes_per_s(mesh, axis, group) for axis in range(N_AXES))
    raise ValueError(f"no such network convention: {convention}")


def _ring_bytes_per_s(mesh: RefereeMesh, axis: int, group: int) -> float:
    """Both links of a closed axis; one of an open one; all ports inside a tier of switches."""
    rate = mesh.axis_bytes_per_s[axis]
    if mesh.is_switch:
        return rate * prod(mesh.axes[inner] for inner in mesh.members(group) if inner < axis)
    return rate * (2 if mesh.wraps[axis] else 1)


def _exchange_s(mesh: RefereeMesh, axis: int, n_bytes: float) -> float:
    """All-to-all along one axis: the load of its busiest link.

    Each device has `n_bytes`, one k-th of it for each of the k devices of the axis.
    """
    k = mesh.axes[axis]
    each, rate = n_bytes / k, mesh.axis_bytes_per_s[axis]
    if mesh.is_switch:
        return (k - 1) * each / rate
    if mesh.wraps[axis]:
        # all shards that travel one way, times their hops, over k links
        shorter = sum(range(1, (k + 1) // 2))
        opposite = k / 2 / 2 if k % 2 == 0 else 0  # half of them goes each way
        return (shorter + opposite) * each / rate
    # the link after device i carries from all on its left to all on its right
    return max((i + 1) * (k - i - 1) for i in range(k)) * each / rate


def _latency_s(mesh: RefereeMesh, send: _Send) -> float:
    """Hops to the farthest device of the group; none where nothing is sent."""
    if send.n_shards <= 1:
        return 0.0
    return sum(_n_hops(mesh, axis) * mesh.axis_hop_s[axis] for axis in mesh.members(send.group))


def _n_hops(mesh: RefereeMesh, axis: int) -> int:
    if mesh.is_switch:
        return 1
    k = mesh.axes[axis]
    return k // 2 if mesh.wraps[axis] else k - 1


def handover_s(layout: Layout, n_sequences: int, n_new_tokens: float) -> float:
    """The residual stream of a micro-batch to the next stage, each device its share."""
    model, mesh = layout.model, layout.mesh
    if mesh.n_stages == 1:
        return 0.0
    numbers = n_sequences * n_new_tokens * model.d_model / mesh.n_devices
    n_bytes = numbers * FORMAT_BYTES[model.activation_format]
    return n_bytes / mesh.stage_bytes_per_s + mesh.stage_hop_s
