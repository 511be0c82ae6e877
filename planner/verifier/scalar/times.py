"""Seconds of one pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf

from planner.specs.records import DeviceSpec, Fabric, ModelSpec
from planner.verifier.scalar.experts import (
    common_params,
    dense_layer_params,
    n_touched,
    n_visits,
    own_common_params,
    own_piece,
)
from planner.verifier.scalar.heads import meets_latents, own_heads, pair_width
from planner.verifier.scalar.memory import kv_layer_bytes
from planner.verifier.scalar.network import handover_s, network_s
from planner.verifier.scalar.sends import Tokens, layer_sends
from planner.verifier.scalar.shapes import Layout, ScalarMesh, stage_layers


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
    model: ModelSpec,
    device: DeviceSpec,
    fabric: Fabric,
    mesh: ScalarMesh,
    *,
    stored: int,
    gathered: int,
    attention: str,
    n_microbatches: int,
    batch: int,
    n_new_tokens: float,
    n_context_tokens: float,
    weights_format: str,
    kv_format: str | None = None,
    data: int = 0,
    sliced: int = 0,
) -> ScalarTime:
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
        kv_format: format of the cache; the model's own without it.
        data: mask of the axes along which all but experts has copies.
        sliced: mask of the axes that cut the FFN dimension of each expert.
    """
    layout = Layout(
        model=model,
        mesh=mesh,
        stored=stored,
        gathered=gathered,
        data=data,
        sliced=sliced,
        attention=attention,
        n_microbatches=n_microbatches,
        weights_format=weights_format,
        kv_format=kv_format,
    )
    tokens = Tokens(
        n_sequences=ceil(batch / n_microbatches), n_new=n_new_tokens, n_context=n_context_tokens
    )
    compute, weights = _matmul_s(layout, device, tokens)
    by_compute, by_weights = _overlap(compute, weights, device.roofline_exponent)
    attention_s = overhead = 0.0
    network = handover_s(layout, fabric, tokens.n_sequences, n_new_tokens)
    for layers in stage_layers(layout):
        seen = replace(tokens, n_context=min(n_context_tokens, layers.window))
        attention_s += layers.n_layers * _attention_s(layout, device, seen)
        sends = layer_sends(layout, seen, has_experts=layers.has_experts)
        transfer, hops = network_s(layout, fabric, sends)
        network += layers.n_layers * transfer
        overhead += layers.n_layers * (device.layer_overhead_s + hops)
    n_beats = n_microbatches + mesh.n_stages - 1
    return ScalarTime(
        compute_s=n_beats * by_compute,
        weights_s=n_beats * by_weights,
        attention_s=n_beats * attention_s,
        network_s=n_beats * network,
        overhead_s=n_beats * overhead,
        total_s=n_beats * (by_compute + by_weights + attention_s + network + overhead),
    )


def _matmul_s(layout: Layout, device: DeviceSpec, tokens: Tokens) -> tuple[float, float]:
    """Seconds of the matrix products of one stage alone, and of reading their weights alone.

    Of experts only those are read that some token visits. The last stage also turns the last
    position of each sequence into logits.
    """
    model, mesh = layout.model, layout.mesh
    n_group_tokens = layout.group_sequences(tokens.n_sequences) * tokens.n_new
    n_all_tokens = tokens.n_sequences * tokens.n_new
    head_share = model.vocab_size * model.d_model / mesh.n_devices
    flop, params = 2 * tokens.n_sequences * head_share, head_share
    for layers in stage_layers(layout):
        everywhere = common_params if layers.has_experts else dense_layer_params
        share = everywhere(model) / mesh.size(layout.rest)
        flop += layers.n_layers * 2 * n_group_tokens * share
        params += layers.n_layers * (own_common_params(layout) if layers.has_experts else share)
        if layers.has_experts:
            piece = own_piece(layout)
            flop += layers.n_layers * 2 * n_visits(layout, n_all_tokens) * piece
            params += layers.n_layers * n_touched(layout, n_all_tokens) * piece
    matmul_flop_per_s = _flop_per_s(device, layout.weights_format)
    return flop / matmul_flop_per_s, params * layout.weight_bytes / _hbm_bytes_per_s(device)


def _attention_s(layout: Layout, device: DeviceSpec, tokens: Tokens) -> float:
    """Scores and weighted values of one layer, or the reading of KV, whichever is longer."""
    model, mesh = layout.model, layout.mesh
    cut = layout.batch_axes(tokens.n_sequences)
    own_sequences = ceil(tokens.n_sequences / mesh.size(cut))
    n_heads = own_heads(model.n_heads_served, mesh.size(~cut & 7))
    on_latents = meets_latents(model, tokens.n_new, tokens.n_context)
    flop_of_pair = 2 * n_heads * pair_width(model, on_latents=on_latents)
    flop = flop_of_pair * tokens.n_new * tokens.n_context * own_sequences
    kv = kv_layer_bytes(layout, tokens.n_sequences, tokens.n_context, cut=cut)
    attained_flop_per_s = _flop_per_s(device, model.activation_format)
    return max(flop / attained_flop_per_s, kv / _hbm_bytes_per_s(device))


def _flop_per_s(device: DeviceSpec, number_format: str) -> float:
    """Attained in a format, or in 16 bits where the device does not multiply the format."""
    for name in (number_format, "bf16", "fp16"):
        if name in device.peak_flop_per_s:
            return device.peak_flop_per_s[name] * device.compute_fraction
    raise ValueError(f"no peak for {number_format}, nor for 16 bits")


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
