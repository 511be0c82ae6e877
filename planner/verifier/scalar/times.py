"""Seconds of one pass."""

from dataclasses import dataclass, replace
from math import ceil, inf, prod

from planner.specs.records.devices import DeviceSpec, Fabric, NodesFabric
from planner.specs.records.mixers import LatentAttention, Recurrence
from planner.verifier.findings import Invalid
from planner.verifier.scalar import parts, shapes
from planner.verifier.scalar.memory import kv_layer_bytes
from planner.verifier.scalar.sends import Send, Tokens, layer_sends
from planner.verifier.scalar.tiers import CONVENTIONS, stage_by_protocol_s, tiered_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarTime:
    """Seconds of one pass; the parts add up to the total."""

    compute_s: float
    weights_s: float
    attention_s: float
    network_s: float
    overhead_s: float
    total_s: float


def step_time(
    layout: shapes.Layout,
    device: DeviceSpec,
    fabric: Fabric,
    *,
    batch: int,
    n_new_tokens: float,
    n_context_tokens: float,
    n_logits: float = 1.0,
) -> ScalarTime:
    """Seconds of one pass of `batch` sequences through the whole pipeline.

    Args:
        device: peaks, and the fractions of them that are attained.
        fabric: names the conventions of group bandwidth.
        batch: sequences of the pass.
        n_new_tokens: tokens of each sequence that enter.
        n_context_tokens: tokens that each of them attends to.
        n_logits: positions of each sequence that are turned into logits.
    """
    n_microbatches = layout.n_microbatches
    tokens = Tokens(
        n_sequences=ceil(batch / n_microbatches), n_new=n_new_tokens, n_context=n_context_tokens
    )
    compute, weights = _matmul_s(layout, device, tokens, n_logits)
    by_compute, by_weights = _overlap(compute, weights, device.roofline_exponent)
    attention_s = overhead = 0.0
    network = handover_s(layout, fabric, tokens.n_sequences, n_new_tokens)
    for layers in shapes.stage_layers(layout):
        seen = replace(tokens, n_context=layers.seen(n_context_tokens, n_new_tokens))
        attention_s += layers.n_layers * _attention_s(layers.layout, device, seen)
        sends = layer_sends(layers.layout, seen, has_experts=layers.has_experts)
        transfer, hops = network_s(layout, fabric, sends)
        network += layers.n_layers * transfer
        overhead += layers.n_layers * (device.layer_overhead_s + hops)
    n_beats = n_microbatches + layout.mesh.n_stages - 1
    return ScalarTime(
        compute_s=n_beats * by_compute,
        weights_s=n_beats * by_weights,
        attention_s=n_beats * attention_s,
        network_s=n_beats * network,
        overhead_s=n_beats * overhead,
        total_s=n_beats * (by_compute + by_weights + attention_s + network + overhead),
    )


def _matmul_s(
    layout: shapes.Layout, device: DeviceSpec, tokens: Tokens, n_logits: float
) -> tuple[float, float]:
    """Seconds of the matrix products of one stage alone, and of reading their weights alone.

    Of experts only those are read that some token visits. The last stage also turns the last
    position of each sequence into logits, or more of them.
    """
    model, mesh = layout.model, layout.mesh
    n_group_tokens = layout.group_sequences(tokens.n_sequences) * tokens.n_new
    n_all_tokens = tokens.n_sequences * tokens.n_new
    head_share = model.vocab_size * model.d_model / mesh.n_devices
    flop, params = 2 * tokens.n_sequences * n_logits * head_share, head_share
    n_own = ceil(tokens.n_sequences / mesh.size(layout.batch_axes(tokens.n_sequences)))
    n_own_tokens = n_own * tokens.n_new
    for layers in shapes.stage_layers(layout):
        on, whole = layers.layout, parts.whole_params(layers.layout.mixer)
        everywhere = parts.common_params if layers.has_experts else parts.dense_layer_params
        share = everywhere(on) / mesh.size(layout.rest)
        flop += layers.n_layers * 2 * (n_group_tokens * share + n_own_tokens * whole)
        params += layers.n_layers * whole
        params += layers.n_layers * (parts.own_common_params(on) if layers.has_experts else share)
        if layers.has_experts:
            piece = parts.own_piece(on)
            flop += layers.n_layers * 2 * parts.n_visits(on, n_all_tokens) * piece
            params += layers.n_layers * parts.n_touched(on, n_all_tokens) * piece
    matmul_flop_per_s = _flop_per_s(device, layout.product_format)
    return flop / matmul_flop_per_s, params * layout.weight_bytes / _hbm_bytes_per_s(device)


def _attention_s(layout: shapes.Layout, device: DeviceSpec, tokens: Tokens) -> float:
    """Scores, weighted values and states of one layer, or the reading of what is kept, whichever
    is longer."""
    mixer = layout.mixer
    if mixer is None:
        return 0.0
    cut = layout.batch_axes(tokens.n_sequences)
    own_sequences = ceil(tokens.n_sequences / layout.mesh.size(cut))
    n_heads, decodes = layout.own_heads(mixer.n_heads, cut=cut), tokens.n_new < tokens.n_context
    n_met = parts.met_tokens(mixer, tokens.n_context)
    flop_of_pair = 2 * n_heads * parts.pair_width(mixer, on_latents=decodes)
    flop = flop_of_pair * tokens.n_new * n_met * own_sequences
    read = kv_layer_bytes(layout, tokens.n_sequences, n_met, cut=cut, width=mixer.d_read)
    scored_s = 0.0
    if isinstance(mixer, Recurrence):
        of_state, moved = parts.state_work(mixer, tokens.n_new, decodes=decodes)
        own = own_sequences * n_heads / mixer.n_heads
        flop, read = flop + own * of_state, read + own * moved
    elif isinstance(mixer, LatentAttention) and mixer.own_indexer:
        # all of its heads meet the keys of all tokens, of one byte a number
        keys = own_sequences * tokens.n_context * mixer.own_indexer.d_head
        scores = 2 * mixer.own_indexer.n_heads * tokens.n_new * keys
        scored_s, read = scores / _flop_per_s(device, "fp8"), read + keys
    attained_flop_per_s = _flop_per_s(device, layout.model.activation_format)
    return max(flop / attained_flop_per_s + scored_s, read / _hbm_bytes_per_s(device))


def _flop_per_s(device: DeviceSpec, number_format: str) -> float:
    return peak_flop_per_s(device, number_format) * device.compute_fraction


def peak_flop_per_s(device: DeviceSpec, number_format: str) -> float:
    """Of a format, or of 16 bits where the device does not multiply the format.

    Of LLM.int8() one column of a thousand is multiplied in 16 bits, the others in int8.
    """
    if number_format == "llm_int8":
        main, beside = (peak_flop_per_s(device, name) for name in ("int8", "bf16"))
        return 1.0 / (0.999 / main + 0.001 / beside)
    for name in (number_format, "bf16", "fp16"):
        if name in device.peak_flop_per_s:
            return device.peak_flop_per_s[name]
    raise Invalid("is no format that the device computes", says=number_format)


def _hbm_bytes_per_s(device: DeviceSpec) -> float:
    return device.hbm_bytes_per_s * device.hbm_fraction


def _overlap(compute: float, weights: float, exponent: float) -> tuple[float, float]:
    """(cᵖ + wᵖ)^(1/p), split into parts in the proportion cᵖ : wᵖ."""
    longer = max(compute, weights)
    if longer == 0:
        return 0.0, 0.0
    if exponent == inf:
        return (compute, 0.0) if compute >= weights else (0.0, weights)
    c, w = (compute / longer) ** exponent, (weights / longer) ** exponent
    total = longer * (c + w) ** (1 / exponent)
    return total * c / (c + w), total * w / (c + w)


def network_s(layout: shapes.Layout, fabric: Fabric, sends: list[Send]) -> tuple[float, float]:
    """Seconds of all transfers of one layer and micro-batch, and of all their hops."""
    times = [
        _send_s(_joined(layout.mesh, send.group), fabric, send)
        for send in sends
        if send.n_shards > 1
    ]
    return sum(transfer for transfer, _ in times), sum(latency for _, latency in times)


def _joined(mesh: shapes.ScalarMesh, group: int) -> shapes.ScalarMesh:
    """The mesh as a group sees it: two of its axes behind one switch are one longer axis."""
    axes = list(mesh.axes)
    members = mesh.members(group)
    for later in members:
        for earlier in members:
            if earlier < later and mesh.tiers[earlier] == mesh.tiers[later]:
                axes[earlier] *= axes[later]
                axes[later] = 1
                break
    joined = (axes[0], axes[1], axes[2])
    return mesh if joined == mesh.axes else replace(mesh, axes=joined)


def _send_s(mesh: shapes.ScalarMesh, fabric: Fabric, send: Send) -> tuple[float, float]:
    """Seconds that the bytes of one collective take, and its hops."""
    is_bulk = send.kind == "weights"
    convention = fabric.bulk_network if is_bulk else fabric.activation_network
    if convention in CONVENTIONS and isinstance(fabric, NodesFabric):
        return tiered_s(mesh, fabric, convention, send)
    return _transfer_s(mesh, convention, send), _latency_s(mesh, send)


def _transfer_s(mesh: shapes.ScalarMesh, convention: str, send: Send) -> float:
    """Seconds that the bytes of one collective take; (k − 1)/k of them cross the links."""
    if send.kind == "exchange":
        return max(_exchange_s(mesh, axis, send.n_bytes) for axis in mesh.members(send.group))
    crossing = send.n_bytes * (send.n_shards - 1) / send.n_shards
    return crossing / _group_bytes_per_s(mesh, convention, send.group)


def _group_bytes_per_s(mesh: shapes.ScalarMesh, convention: str, group: int) -> float:
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
        return sum(_ring_bytes_per_s(mesh, axis, group) for axis in range(shapes.N_AXES))
    raise ValueError(f"no such network convention: {convention}")


def _ring_bytes_per_s(mesh: shapes.ScalarMesh, axis: int, group: int) -> float:
    """Both links of a closed axis; one of an open one; all ports inside a tier of switches."""
    rate = mesh.axis_bytes_per_s[axis]
    if mesh.is_switch:
        return rate * prod(mesh.axes[inner] for inner in mesh.members(group) if inner < axis)
    return rate * (2 if mesh.wraps[axis] else 1)


def _exchange_s(mesh: shapes.ScalarMesh, axis: int, n_bytes: float) -> float:
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


def _latency_s(mesh: shapes.ScalarMesh, send: Send) -> float:
    """Hops to the farthest device of the group."""
    return sum(_n_hops(mesh, axis) * mesh.axis_hop_s[axis] for axis in mesh.members(send.group))


def _n_hops(mesh: shapes.ScalarMesh, axis: int) -> int:
    if mesh.is_switch:
        return 1
    k = mesh.axes[axis]
    return k // 2 if mesh.wraps[axis] else k - 1


def handover_s(
    layout: shapes.Layout, fabric: Fabric, n_sequences: int, n_new_tokens: float
) -> float:
    """The residual stream of a micro-batch to the next stage, each device its share."""
    model, mesh = layout.model, layout.mesh
    if mesh.n_stages == 1:
        return 0.0
    numbers = n_sequences * n_new_tokens * model.d_model / mesh.n_devices
    n_bytes = numbers * layout.activation_bytes
    if fabric.activation_network == "nccl" and isinstance(fabric, NodesFabric):
        return stage_by_protocol_s(mesh, fabric, n_bytes)
    return n_bytes / mesh.stage_bytes_per_s + mesh.stage_hop_s
