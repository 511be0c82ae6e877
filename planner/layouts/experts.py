"""Mixture-of-experts FFNs: which device has which experts, and how tokens get there.

The axes x that cut E of the other weights cut E of each expert too. Over the axes that are
left whole experts are dealt out (expert parallel), over as many devices as there are experts
for; axes beyond that, and those of `sliced`, cut the FFN dimension of each (tensor parallel
inside experts). Two ways bring the tokens:

    gathered    attention is tensor parallel over all axes: each device gathers all tokens,
                computes its own experts, and the outputs are reduce-scattered
    dispatched  the batch is cut over some axes, along which the weights of attention have
                copies or are gathered: each device sends its tokens to the devices of their
                experts, and takes the outputs back, two all-to-alls

In both, the devices along x have the same experts and the same tokens, 1/X of E of each; they
add up their hidden partial sums. Routed experts are never gathered: of E/K times more weights
than a token visits, a gather would bring most for nothing.

Shared experts are cut like attention. What the router says of a token, a few numbers beside
its E, is left out.

Routing is taken as uniform and independent: T tokens touch E (1 − (1 − K/E)^T) of E experts.

Source: [Erdil2025] Eq. 22, with E/K exact; dispatch and combine: [DeepSeek2024] §3; 2D:
[Pope2022] §3.2.2, applied to the experts that a token visits.
"""

import numpy as np

from planner.equations.arrays import FloatArray
from planner.layouts import work
from planner.layouts.geometry import ALL_AXES, Geometry
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec


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
    whole = (np.arange(ALL_AXES + 1) & (shape.rest_x | shape.sliced)) == 0
    offered = whole & (sizes <= model.moe.n_experts)
    return np.asarray(np.where(offered, sizes, 1.0).max(axis=1, keepdims=True))


def expert_slices(model: ModelSpec, shape: Geometry) -> FloatArray:
    """Devices that have a slice of the FFN dimension of each expert, (N, 1) [1]."""
    return shape.n_tensor / (shape.n_x * expert_ways(model, shape))


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


def resident_common_params(model: ModelSpec, shape: Geometry) -> FloatArray:
    """Those that rest on one device, (N, 1).

    Along the axes of copies all of it; the router too has one then for every device that
    routes its own tokens.
    """
    n_holders = shape.n_tensor / shape.n_data
    cut = (common_params(model) - model.router_params) / n_holders
    router_ways = np.where(shape.n_data > 1, shape.n_x, n_holders)
    return cut + model.router_params / router_ways


def device_common_params(model: ModelSpec, shape: Geometry) -> FloatArray:
    """Those that one device works with; where it sends tokens, all of the router, (N, 1)."""
    cut = (common_params(model) - model.router_params) / shape.n_rest
    router_ways = np.where(shape.n_cut > 1, shape.n_x, shape.n_rest)
    return cut + model.router_params / router_ways


def gather_messages(
    model: ModelSpec, shape: Geometry, weight_bytes_per_number: FloatArray
) -> tuple[work.Message, ...]:
    """Gathers of what every token meets; absent (one device) where nothing is gathered.

    The router comes from all devices, to each whole; of copies each device has it already.
    """
    cut = (common_params(model) - model.router_params) / shape.n_rest
    routes_apart = (shape.n_gathered > 1) & (shape.n_data == 1)
    router = work.Message(
        purpose="router",
        kind=work.WEIGHT_GATHER,
        group=shape.gathered | shape.rest_y,
        n_devices=shape.n_tensor / shape.n_x,
        n_bytes=weight_bytes_per_number * (model.router_params / shape.n_x),
    )
    return (
        work.Message(
            purpose="weights",
            kind=work.WEIGHT_GATHER,
            group=shape.gathered,
            n_devices=shape.n_gathered,
            n_bytes=weight_bytes_per_number * cut,
        ),
        work.only_where(router, routes_apart),
    )


def routed_flop(model: ModelSpec, shape: Geometry, n_tokens: FloatArray) -> FloatArray:
    """Routed experts of the busiest device, when every expert has as many visits [FLOP].

    Args:
        n_tokens: tokens of the whole micro-batch, on all devices together, to (N, B).
    """
    assert model.moe is not None
    visits_per_expert = model.moe.n_active_experts / model.moe.n_experts
    return n_tokens * (2.0 * visits_per_expert * device_expert_params(model, shape))


def dispatch_messages(
    model: ModelSpec, shape: Geometry, n_device_tokens: FloatArray, n_all_tokens: FloatArray
) -> tuple[work.Message, ...]:
    """Dispatch and combine of one layer: a token goes once to each device that needs it.

    It needs all slices of its experts, and balanced routing spreads these over as many
    devices as there are. Each device along x sends and has its own part of E, and the
    partial sums of the visits to their experts are added up among them.

    Args:
        n_device_tokens: tokens that one device sends, its own share, to (N, B).
        n_all_tokens: tokens of the whole micro-batch, to (N, B).
    """
    moe = model.moe
    assert moe is not None
    ways, slices = expert_ways(model, shape), expert_slices(model, shape)
    n_bytes = FORMAT_BYTES[model.activation_format]
    n_copies = np.minimum(ways, moe.n_active_experts) * slices
    held = n_device_tokens * (n_copies * model.d_model * n_bytes)
    visits = n_all_tokens * (moe.n_active_experts * moe.d_expert * n_bytes)
    hidden = visits * (shape.n_x / shape.n_tensor)

    def exchange(purpose: str) -> work.Message:
        return work.Message(
            purpose=purpose,
            kind=work.ALL_TO_ALL,
            group=ALL_AXES & ~shape.rest_x,
            n_devices=shape.n_tensor / shape.n_x,
            n_bytes=held,
        )

    def over_x(purpose: str, kind: str, n_inputs: int) -> work.Message:
        return work.Message(
            purpose=purpose,
            kind=kind,
            group=shape.rest_x,
            n_devices=shape.n_x,
            n_bytes=hidden * n_inputs,
        )

    return (
        exchange("tokens to their experts"),
        over_x("experts hidden partial sums", work.REDUCE_SCATTER, model.n_ffn_inputs),
        over_x("experts hidden", work.ALL_GATHER, 1),
        exchange("expert outputs to their tokens"),
    )
