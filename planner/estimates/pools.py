"""Decode with attention and experts on devices of their own: messages, phases and bytes.

Micro-batches of each attention rank go to and fro between both pools. In a layer with experts each
passes four stations, of which all work at once: attention, the links out, experts, the links back.
With M micro-batches that take t₁ … t₄ there, and come around again for the next layer,

    period of a layer = max(M · max t, Σ t)

the cycle of a flow shop of M alike jobs: the busiest station is never idle, or the batch is too
small to hide the way around. A pass ends when its last micro-batch does, min(Σ t − max t,
(M − 1) max t) after what periods count. Layers without experts are attention's alone, M times.
Source: MegaScale-Infer, arXiv 2504.02263, §4.1, where t₂ = t₄ and experts take as long as
attention: M ≥ 2 (1 + t₂ / t₃) hides the links; Step-3, arXiv 2507.19427, has three stages.

A token is sent as a copy for each expert that it visits, at the width that experts read, and one
for the shared experts, of which each device has all; in the format in which experts read it there,
and in 16 bits back:

    bytes = max(tokens of a device · copies, copies of the fullest device of experts)
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.operations import (
    Operation,
    Part,
    elementwise,
    input_bytes,
    kernel,
    message,
    number_bytes,
)
from planner.estimates.serving.popularity import reached
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.served_formats import ServedFormats


def between_pools(
    ffn: Experts, d_model: int, table: DeploymentTable, tokens: FloatArray, formats: ServedFormats
) -> Iterator[Operation]:
    """Tokens of a micro-batch to their experts and back, and what attention makes of the sums.

    Args:
        tokens: of an attention rank; its devices send them by turns, and gather what comes back.
    """
    own, everywhere = tokens / table.n_tensor, tokens * table.n_data
    sent, visits = own * copies_width(ffn, d_model), reached(ffn, everywhere, table)[0]
    received = visits * (ffn.d_latent or d_model)
    if ffn.d_shared:
        received = received + everywhere / table.n_experts_group * d_model
    ways: tuple[tuple[Part, float], ...] = (
        ("dispatch", input_bytes(formats.experts)),
        ("combine", 2.0),
    )
    for part, number in ways:
        n_bytes = np.maximum(sent, received) * number
        yield kernel(part, part, "between", n_bytes=n_bytes, n_devices=table.n_devices)
    yield elementwise("sums of experts", "project", (sent + own * d_model) * 2.0, n_kernels=1)
    name, volume = "gather of sums", tokens * (d_model * 2.0)
    yield message(name, "reduce", "all_gather", n_bytes=volume, n_devices=table.n_tensor)


def to_and_fro_s(
    model: Architecture,
    parts: Mapping[str, Mapping[Part, FloatArray]],
    n_microbatches: FloatArray,
) -> FloatArray:
    """Micro-batches through all layers, until the last one has left the last (N,) [s].

    Args:
        parts: of each class of layers, of one micro-batch in all of them.
    """
    total, last = np.zeros(1), np.zeros(1)
    for layer in model.layers:
        spent, after = layer_phases(parts[layer.name], n_microbatches, layer.n_layers)
        total, last = total + spent, np.maximum(last, after)
    return total + last


def layer_phases(
    parts: Mapping[Part, FloatArray], n_microbatches: FloatArray, n_layers: float
) -> tuple[FloatArray, FloatArray]:
    """What layers of a class take, and until a pass of one of them has ended beyond that [s].

    Args:
        parts: of one micro-batch in all layers of the class.
    """
    of_experts: tuple[Part, ...] = ("feed", "share", "dispatch", "combine")
    if not any(np.any(parts[name]) for name in of_experts[2:] if name in parts):
        return n_microbatches * sum(parts.values(), np.zeros(1)), np.zeros(1)
    attention = sum((s for name, s in parts.items() if name not in of_experts), np.zeros(1))
    there, back = parts["dispatch"], parts["combine"]
    experts = parts["feed"] + parts.get("share", np.zeros(1))
    around = attention + there + experts + back
    longest = np.max(np.broadcast_arrays(attention, there, experts, back), axis=0)
    last = np.minimum(around - longest, (n_microbatches - 1.0) * longest)
    return np.maximum(n_microbatches * longest, around), last / n_layers


def pool_bytes(
    model: Architecture, table: DeploymentTable, formats: ServedFormats
) -> tuple[FloatArray, FloatArray]:
    """Weights and activations of one device of experts (N,) [bytes]; none without such devices."""
    weights, widest = np.zeros(len(table)), np.zeros(len(table))
    for layer in model.layers:
        if isinstance(layer.ffn, Experts):
            each = layer.ffn.expert_params(model.d_model) * number_bytes(formats.experts)
            held = (layer.ffn.n_experts + table.n_redundant) * each / table.n_experts_group
            held = held + shared_bytes(layer.ffn, model.d_model, formats)
            weights = weights + layer.n_layers * held
            widest = np.maximum(widest, _width(layer.ffn, model.d_model))
    share = np.where(table.n_expert_devices > 0, table.n_data / table.n_experts_group, 0.0)
    return np.where(share > 0.0, weights, 0.0), table.chunk_tokens * 2.0 * widest * share


def nearest_pools(counts: Sequence[int], n_devices: int) -> list[int]:
    """The next numbers of devices that hold so many experts of a layer in equal parts.

    Args:
        counts: of the layers' experts, each number once.
        n_devices: of which some are wanted; where these do, there are no others.
    """
    sizes = np.arange(1, min(counts) + 1)
    able = sizes[~np.any(np.array(counts) % sizes[:, None], axis=1)]
    if n_devices in able:
        return []
    return [*able[able < n_devices][-1:].tolist(), *able[able > n_devices][:1].tolist()]


def shared_bytes(ffn: Experts, d_model: int, formats: ServedFormats) -> float:
    """Weights of the shared experts of a layer [bytes]."""
    return ffn.n_matrices * d_model * ffn.d_shared * number_bytes(formats.weights)


def copies_width(ffn: Experts, d_model: int) -> int:
    """Numbers of all copies of a token that are sent to experts."""
    return ffn.n_active * (ffn.d_latent or d_model) + (d_model if ffn.d_shared else 0)


def _width(ffn: Experts, d_model: int) -> int:
    """Numbers that experts read of a token, and make of it."""
    return copies_width(ffn, d_model) + ffn.n_active * ffn.d_expert + ffn.d_shared
