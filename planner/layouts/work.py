"""What one device does in one pass: FLOP, bytes and messages, never seconds.

Everything is counted for the busiest device, one layer and one micro-batch, so that the
numbers of all devices add up to the unsharded model wherever the dimensions divide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.equations.arrays import BoolArray, FloatArray, IntArray

ALL_GATHER = "all-gather"
REDUCE_SCATTER = "reduce-scatter"
ALL_TO_ALL = "all-to-all"
WEIGHT_GATHER = "weight-gather"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One collective of one layer.

    Args:
        purpose: what travels, for people.
        kind: `ALL_GATHER`, `REDUCE_SCATTER`, `ALL_TO_ALL` or `WEIGHT_GATHER`.
        group: bit mask of the mesh axes that take part.
        n_devices: shards that meet; below the size of the group when several of its
            devices hold the same shard [1].
        n_bytes: volume V of the collective; of an all-to-all, what a device holds [bytes].
        is_half_of_all_reduce: whether a reduce-scatter is followed by the all-gather of the
            same numbers in the same group, or this is that gather: engines send them as one.
    """

    purpose: str
    kind: str
    group: IntArray
    n_devices: FloatArray
    n_bytes: FloatArray
    is_half_of_all_reduce: bool = False

    @property
    def received_bytes(self) -> FloatArray:
        """What the busiest device takes in: V (k − 1)/k [bytes]."""
        return self.n_bytes * (1.0 - 1.0 / self.n_devices)

    def take(self, rows: IntArray) -> Message:
        def of(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return values if len(values) == 1 else values[rows]

        return replace(
            self, group=of(self.group), n_devices=of(self.n_devices), n_bytes=of(self.n_bytes)
        )


def only_where(message: Message, rows: BoolArray) -> Message:
    """The message in some rows; in the others one device meets, and nothing is sent."""
    return replace(
        message,
        group=np.where(rows, message.group, 0),
        n_devices=np.where(rows, message.n_devices, 1.0),
        n_bytes=np.where(rows, message.n_bytes, 0.0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """Work of the busiest device in one layer, for one micro-batch.

    Shapes are (N, 1), (1, B) or (N, B), to be broadcast together.
    """

    matmul_flop: FloatArray
    attention_flop: FloatArray
    weight_bytes: FloatArray
    kv_bytes: FloatArray
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadWork:
    """Work of the busiest device to turn the last activations into logits."""

    matmul_flop: FloatArray
    weight_bytes: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Residence:
    """What lies in the memory of the busiest device [bytes].

    Args:
        kv_bytes: cache of the batch at the end of its phase.
        written_bytes: of it, what the phase adds to what it found.
    """

    weight_bytes: FloatArray
    kv_bytes: FloatArray
    written_bytes: FloatArray
    activation_bytes: FloatArray
    gather_bytes: FloatArray
