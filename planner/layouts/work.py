"""What one device does in one pass: FLOP, bytes and messages, never seconds.

Everything is counted for the busiest device, one layer and one micro-batch, so that the
numbers of all devices add up to the unsharded model wherever the dimensions divide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray, each_array
from planner.layouts.geometry import Pass
from planner.specs.records.architecture import Experts
from planner.specs.records.models import ModelSpec
from planner.specs.records.shapes import fullest_stage

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
        """Some rows, of arrays that have more than one for all."""
        return each_array(self, lambda values: values if len(values) == 1 else values[rows])


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

    Shapes are (N, 1), (1, B) or (N, B), to be broadcast together. Scores of an indexer are
    `index_flop`; states and its keys are `fixed_bytes`, whatever the format of the cache.
    """

    matmul_flop: FloatArray
    attention_flop: FloatArray
    index_flop: FloatArray
    weight_bytes: FloatArray
    kv_bytes: FloatArray
    fixed_bytes: FloatArray
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
        fixed_bytes: of it, states of recurrences, whatever the format of the cache.
    """

    weight_bytes: FloatArray
    kv_bytes: FloatArray
    written_bytes: FloatArray
    activation_bytes: FloatArray
    gather_bytes: FloatArray
    fixed_bytes: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """Layers that do the same work.

    Args:
        model: of such layers alone where they are a class of its; else the model itself.
        has_experts: whether the FFN is made of experts.
        n_window_tokens: tokens that they attend to and keep; `None` for all.
        n_layers: layers of the kind in the busiest pipeline stage, (N, 1).
        is_chunk: the window stands still until it is full, and the next begins empty.
    """

    model: ModelSpec
    has_experts: bool
    n_window_tokens: int | None
    n_layers: FloatArray
    is_chunk: bool = False

    def within(self, work: Pass) -> Pass:
        """The pass as these layers see it: never more context than the window, half on average of
        a chunk of which one token after the other is written."""
        width = self.n_window_tokens
        if width is None:
            return work
        is_long = self.is_chunk and work.n_context_tokens > width and work.is_decode
        return Pass(
            n_new_tokens=work.n_new_tokens,
            n_context_tokens=width / 2.0 if is_long else min(work.n_context_tokens, width),
            n_cached_tokens=min(work.n_cached_tokens, width),
            n_found_tokens=min(work.n_found_tokens, width),
        )


def kinds_alone(model: ModelSpec) -> tuple[ModelSpec, ...]:
    """A model of each class of layers; the model itself where one kind says all."""
    return tuple(map(model.alone, model.layers)) or (model,)


def layer_kinds(model: ModelSpec, n_stages: FloatArray) -> tuple[LayerKind, ...]:
    """The kinds of a model, and how many layers of each the busiest stage has.

    Of classes of layers, that is `fullest_stage`. Else it has as many layers with experts as it
    can: the first layers are the dense ones. Layers with a window alternate with those without, so
    a stage has its share of them, rounded so that no stage has more without.
    """
    if model.layers:
        return _class_kinds(model, n_stages)
    stage = np.ceil(model.n_layers / n_stages)
    with_experts = np.minimum(stage, model.n_moe_layers)
    n_windowed = model.window.n_layers if model.window else 0
    both, expert_part = (
        np.floor(n_layers * n_windowed / model.n_layers) for n_layers in (stage, with_experts)
    )
    window = model.window.n_tokens if model.window else None
    kinds = [
        LayerKind(model=model, has_experts=experts, n_window_tokens=width, n_layers=n_layers)
        for experts, width, n_layers in (
            (True, None, with_experts - expert_part),
            (True, window, expert_part),
            (False, None, stage - with_experts - (both - expert_part)),
            (False, window, both - expert_part),
        )
    ]
    return tuple(kind for kind in kinds if kind.n_layers.any())


def _class_kinds(model: ModelSpec, n_stages: FloatArray) -> tuple[LayerKind, ...]:
    counts = np.zeros((len(model.layers), *n_stages.shape))
    for n in np.unique(n_stages):
        stage = fullest_stage(model.layers, model.order, model.d_model, int(n))
        counts[:, n_stages == n] = [[stage.count(i)] for i in range(len(model.layers))]
    kinds = [
        LayerKind(
            model=model.alone(each),
            has_experts=isinstance(each.ffn, Experts),
            n_window_tokens=getattr(each.mixer, "n_span_tokens", None),
            n_layers=n_layers,
            is_chunk=getattr(each.mixer, "span", "all") == "chunk",
        )
        for each, n_layers in zip(model.layers, counts, strict=True)
    ]
    return tuple(kind for kind in kinds if kind.n_layers.any())
