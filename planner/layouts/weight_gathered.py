"""Weight-gathered layouts: weights travel, activations stay.

Weights rest as in a weight-stationary layout, E_x F_yz. Before a layer they are gathered
over the axes g (X, XY, XYZ, or any others), and the batch is cut over g; on the axes that
are left the layer runs weight-stationary with its share of the tokens.

Volume of the gather per device, before (k − 1)/k: all weights of the layer that the
device needs, P_layer / (n/|g|). Of a layer with experts, all but these.

Source: [Pope2022] §3.2.3 and appendix A.2.2.
"""

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.layouts.attention import widths_of
from planner.layouts.geometry import Geometry, LayoutTable
from planner.layouts.work import WEIGHT_GATHER, Message
from planner.specs.records.devices import ModelSpec

NAMES = ("WG",)

GATHER_BUFFERS = 2
"""Gathered matrices held at once: the one in use, and the next in flight."""


def accepts(layouts: LayoutTable) -> BoolArray:
    """Rows of this family: something is gathered."""
    return np.asarray(layouts.gathered != 0)


def gather_message(
    model: ModelSpec, shape: Geometry, weight_bytes_per_number: FloatArray
) -> Message:
    """The gather of one layer's weights; absent (one device) where nothing is gathered."""
    return Message(
        purpose="weights",
        kind=WEIGHT_GATHER,
        group=shape.gathered,
        n_devices=shape.n_gathered,
        n_bytes=weight_bytes_per_number * (model.layer_params_served / shape.n_rest),
    )


def gather_bytes(
    model: ModelSpec, shape: Geometry, weight_bytes_per_number: FloatArray
) -> FloatArray:
    """Memory of gathered weights: `GATHER_BUFFERS` of the largest matrix [bytes].

    Nothing where nothing is gathered: there the weights at rest are used in place.
    """
    mixing = widths_of(model.mixer)
    widths = [mixing.heads, mixing.attended]
    if model.n_moe_layers < model.n_layers:
        widths.append(model.d_ff)
    if model.moe:  # routed experts stay where they are
        widths.append(model.moe.n_shared_experts * model.moe.d_expert)
    largest = model.d_model * max(widths)
    buffers = GATHER_BUFFERS * weight_bytes_per_number * (largest / shape.n_rest)
    return np.where(shape.n_gathered > 1, buffers, 0.0)
