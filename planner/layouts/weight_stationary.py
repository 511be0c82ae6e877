"""Weight-stationary layouts: weights stay, activations travel.

1D: each weight is cut along its F or heads dimension only. A layer gathers its input
over all devices and reduce-scatters its output. 2D: weights are cut along E over the
axes x and along F over the axes yz, so that each collective spans only some axes.
Activations rest cut over all axes, E_xyz.

Volumes per device, T tokens, before (k − 1)/k:

    all-gather     yz   T E / X                    input
    reduce-scatter x    T (hidden inputs) / YZ     partial sums over E
    all-gather     x    T (hidden outputs) / YZ
    reduce-scatter yz   T E / X                    output

With X = 1 the middle two vanish: that is 1D. A parallel block does attention and FFN in
one such round, a serial block in two.

Source: [Pope2022] §3.2.1-3.2.2 and appendix A.2, extended to gated FFN and to the
attention projections, which the paper leaves out of its counts.
"""

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.layouts.attention import widths_of
from planner.layouts.geometry import Geometry, LayoutTable
from planner.layouts.work import ALL_GATHER, REDUCE_SCATTER, Message
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec

NAMES = ("WS 1D", "WS 2D")


def accepts(layouts: LayoutTable) -> BoolArray:
    """Rows of this family: nothing is gathered."""
    return np.asarray(layouts.gathered == 0)


def messages(model: ModelSpec, shape: Geometry, n_tokens: FloatArray) -> tuple[Message, ...]:
    """Collectives of a layer without experts; `n_tokens` (to (N, B)) share the weights."""
    ffn_in = model.n_ffn_inputs * model.d_ff
    mixing = attention_messages(model, shape, n_tokens)
    if not model.d_ff:
        return mixing
    if model.is_parallel and mixing:
        widths = widths_of(model.mixer)
        hidden = ffn_in + widths.made, model.d_ff + widths.attended
        return _round(model, shape, n_tokens, name="block", hidden=hidden)
    ffn = _round(model, shape, n_tokens, name="FFN", hidden=(ffn_in, model.d_ff))
    return (*mixing, *ffn)


def attention_messages(
    model: ModelSpec, shape: Geometry, n_tokens: FloatArray
) -> tuple[Message, ...]:
    """Collectives of the half of a serial layer that mixes tokens; none without."""
    if model.mixer is None:
        return ()
    widths = widths_of(model.mixer)
    hidden = widths.made, widths.attended
    return _round(model, shape, n_tokens, name="attention", hidden=hidden)


def expert_messages(model: ModelSpec, shape: Geometry, n_tokens: FloatArray) -> tuple[Message, ...]:
    """Collectives of experts whose tokens are gathered and whose outputs are scattered."""
    assert model.moe is not None
    width = (model.moe.n_active_experts + model.moe.n_shared_experts) * model.moe.d_expert
    hidden = model.n_ffn_inputs * width, width
    return _round(model, shape, n_tokens, name="experts", hidden=hidden)


def shared_expert_messages(
    model: ModelSpec, shape: Geometry, n_tokens: FloatArray
) -> tuple[Message, ...]:
    """Collectives of shared experts by themselves, where tokens are sent to the routed ones."""
    assert model.moe is not None
    if not model.moe.n_shared_experts:
        return ()
    width = model.moe.n_shared_experts * model.moe.d_expert
    hidden = model.n_ffn_inputs * width, width
    return _round(model, shape, n_tokens, name="shared experts", hidden=hidden)


def _round(
    model: ModelSpec, shape: Geometry, n_tokens: FloatArray, *, name: str, hidden: tuple[int, int]
) -> tuple[Message, ...]:
    token_bytes = n_tokens * FORMAT_BYTES[model.activation_format]
    hidden_in, hidden_out = hidden
    residual = token_bytes * (model.d_model / shape.n_x)

    def over_y(purpose: str, kind: str, n_bytes: FloatArray) -> Message:
        return Message(
            purpose=f"{name} {purpose}",
            kind=kind,
            group=shape.rest_y,
            n_devices=shape.n_y,
            n_bytes=n_bytes,
            is_half_of_all_reduce=True,  # the next round gathers what this one scatters
        )

    def over_x(purpose: str, kind: str, width: int) -> Message:
        return Message(
            purpose=f"{name} {purpose}",
            kind=kind,
            group=shape.rest_x,
            n_devices=shape.n_x,
            n_bytes=token_bytes * (width / shape.n_y),
        )

    return (
        over_y("input", ALL_GATHER, residual),
        over_x("hidden partial sums", REDUCE_SCATTER, hidden_in),
        over_x("hidden", ALL_GATHER, hidden_out),
        over_y("output", REDUCE_SCATTER, residual),
    )
