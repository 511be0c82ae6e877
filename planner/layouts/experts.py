"""Mixture-of-experts FFNs: which device has which experts, and how tokens get there.

Experts are cut over as many axes as there are experts for (expert parallel), the FFN
dimension of each over the axes that are left. Two ways bring the tokens:

    gathered    attention is tensor parallel over all axes: each device gathers all tokens,
                computes its own experts, and the outputs are reduce-scattered
    dispatched  attention is data parallel over some axes: each device sends its tokens to
                the devices of their experts, and takes the outputs back, two all-to-alls

Shared experts are cut like attention. What the router says of a token, a few numbers beside
its E, is left out.

Routing is taken as uniform and independent: T tokens touch E (1 − (1 − K/E)^T) of E experts.

Source: [Erdil2025] Eq. 22, with E/K exact; dispatch and combine: [DeepSeek2024] §3.
"""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray
from planner.layouts.geometry import Geometry
from planner.layouts.work import ALL_TO_ALL, Message
from planner.specs.records import FORMAT_BYTES, ModelSpec


def touched_fraction(model: ModelSpec, n_tokens: FloatArray) -> FloatArray:
    """Expected share of the experts that at least one of the tokens visits [1].

    Source: [Erdil2025] Eq. 22.
    """
    assert model.moe is not None
    missed = 1.0 - model.moe.n_active_experts / model.moe.n_experts
    return np.asarray(1.0 - np.power(missed, n_tokens))


def expert_ways(model: ModelSpec, shape: Geometry) -> FloatArray:
    """Devices among which whole experts are divided, (N, 1) [1]."""
    assert model.moe is not None
    sizes = shape.axis_group_size.astype(float)
    return np.asarray(np.where(sizes <= model.moe.n_experts, sizes, 1.0).max(axis=1, keepdims=True))


def device_expert_params(model: ModelSpec, shape: Geometry) -> FloatArray:
    """Routed parameters of one layer on the busiest device: whole experts, or slices, (N, 1)."""
    assert model.moe is not None
    ways = expert_ways(model, shape)
    per_device = np.ceil(model.moe.n_experts / ways)
    return per_device * model.expert_params / (shape.n_tensor / ways)


def common_params(model: ModelSpec) -> int:
    """Parameters of a layer that every token meets: attention, router, shared experts."""
    assert model.moe is not None
    shared = model.moe.n_shared_experts * model.expert_params
    return model.attention_params + model.router_params + shared


def device_common_params(model: ModelSpec, shape: Geometry) -> FloatArray:
    """Those of one device; where it sends tokens itself, it has all of the router, (N, 1)."""
    cut = common_params(model) / shape.n_rest
    whole_router = model.router_params * (1.0 - 1.0 / shape.n_rest)
    return cut + np.where(shape.n_data > 1, whole_router, 0.0)


def routed_flop(model: ModelSpec, shape: Geometry, n_tokens: FloatArray) -> FloatArray:
    """Routed experts of the busiest device, when every expert has as many visits [FLOP].

    Args:
        n_tokens: tokens of the whole micro-batch, on all devices together, to (N, B).
    """
    assert model.moe is not None
    visits_per_expert = model.moe.n_active_experts / model.moe.n_experts
    return n_tokens * (2.0 * visits_per_expert * device_expert_params(model, shape))


def dispatch_messages(
    model: ModelSpec, shape: Geometry, n_device_tokens: FloatArray
) -> tuple[Message, ...]:
    """Dispatch and combine of one layer: a token goes once to each device that needs it.

    It needs all slices of its experts, and balanced routing spreads these over as many
    devices as there are.

    Args:
        n_device_tokens: tokens that one device sends, its own share, to (N, B).
    """
    assert model.moe is not None
    ways = expert_ways(model, shape)
    n_copies = np.minimum(ways, model.moe.n_active_experts) * (shape.n_tensor / ways)
    held = n_device_tokens * (n_copies * model.d_model * FORMAT_BYTES[model.activation_format])
    return tuple(
        Message(
            purpose=purpose,
            kind=ALL_TO_ALL,
            group=shape.data | shape.rest,
            n_devices=shape.n_tensor,
            n_bytes=held,
        )
        for purpose in ("tokens to their experts", "expert outputs to their tokens")
    )
