"""Seconds of one pass."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

from planner.estimates.referee.memory import kv_layer_bytes
from planner.estimates.referee.network import handover_s, layer_network_s
from planner.estimates.referee.shapes import Layout, RefereeMesh
from planner.specs.records import FORMAT_BYTES, DeviceSpec, Fabric, ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RefereeTime:
    """Seconds of one pass; the parts add up to the total."""

    compute_s: float
    weights_s: float
    attention_s: float
    network_s: float
    overhead_s: float
    total_s: float


def step_time(
    model: ModelSpec,
    device: DeviceSpec,
    fabric: Fabric,
    mesh: RefereeMesh,
    *,
    stored: int,
    gathered: int,
    attention: str,
    n_microbatches: int,
    batch: int,
    n_new_tokens: float,
    n_context_tokens: float,
    weights_format: str,
) -> RefereeTime:
    """Seconds of one pass of `batch` sequences through the whole pipeline.

    Args:
        model: what is served.
        device: peaks, and the fractions of them that are attained.
        fabric: names the conventions of group bandwidth.
        mesh: the devices.
        stored: mask of the axes that cut E of the weights at rest.
        gathered: mask of the axes over which weights are gathered before use.
        attention: `heads` or `batch`.
        n_microbatches: parts that the pass is cut into.
        batch: sequences of the pass.
        n_new_tokens: tokens of each sequence that enter.
        n_context_tokens: tokens that each of them attends to.
        weights_format: format of the weights.
    """
    layout = Layout(
        model=model,
        mesh=mesh,
        stored=stored,
        gathered=gathered,
        attention=attention,
        n_microbatches=n_microbatches,
        weights_format=weights_format,
    )
    n_sequences = ceil(batch / n_microbatches)
    compute, weights = _matmul_s(layout, device, n_sequences, n_new_tokens)
    by_compute, by_weights = _overlap(compute, weights, device.roofline_exponent)
    attention_s = _attention_s(
        layout, device, n_sequences, n_new_tokens * n_context_tokens, n_context_tokens
    )
    transfer, hops = layer_network_s(layout, fabric, n_sequences, n_new_tokens)
    network = layout.n_layers * transfer + handover_s(layout, n_sequences, n_new_tokens)
    overhead = layout.n_layers * (device.layer_overhead_s + hops)
    n_beats = n_microbatches + mesh.n_stages - 1
    return RefereeTime(
        compute_s=n_beats * by_compute,
        weights_s=n_beats * by_weights,
        attention_s=n_beats * attention_s,
        network_s=n_beats * network,
        overhead_s=n_beats * overhead,
        total_s=n_beats * (by_compute + by_weights + attention_s + network + overhead),
    )


def _matmul_s(
    layout: Layout, device: DeviceSpec, n_sequences: int, n_new_tokens: float
) -> tuple[float, float]:
    """Seconds of the matrix products of one stage alone, and of reading their weights alone.

    The last stage also turns the last position of each sequence into logits.
    """
    model, mesh = layout.model, layout.mesh
    n_tokens = ceil(n_sequences / mesh.size(layout.gathered)) * n_new_tokens
    layer_share = layout.n_layers * layout.layer_params / mesh.size(layout.rest)
    head_share = model.vocab_size * model.d_model / mesh.n_devices
    flop = 2 * n_tokens * layer_share + 2 * n_sequences * head_share
    n_bytes = (layer_share + head_share) * FORMAT_BYTES[layout.weights_format]
    return flop / _flop_per_s(layout, device), n_bytes / _hbm_bytes_per_s(device)


def _attention_s(
    layout: Layout, device: DeviceSpec, n_sequences: int, n_pairs: float, n_context_tokens: float
) -> float:
    """Scores and weighted values of one stage, or the reading of KV, whichever is longer.

    A pair of a new token and a context token costs 2 FLOP for the score and 2 for the value,
    for each number of a query.
    """
    model, mesh = layout.model, layout.mesh
    cut = layout.batch_axes(n_sequences)
    own_sequences = ceil(n_sequences / mesh.size(cut))
    own_heads = ceil(model.n_heads_served / mesh.size(~cut & 7))
    flop = 4 * own_heads * model.d_head * n_pairs * own_sequences
    kv = kv_layer_bytes(layout, n_sequences, n_context_tokens, cut=cut)
    return layout.n_layers * max(flop / _flop_per_s(layout, device), kv / _hbm_bytes_per_s(device))


def _flop_per_s(layout: Layout, device: DeviceSpec) -> float:
    """Attained; arithmetic is done in the format of the activations."""
    return device.peak_flop_per_s[layout.model.activation_format] * device.compute_fraction


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
