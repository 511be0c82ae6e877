"""What each layer costs on each kind of group: the coefficients of a cut into stages.

A *group* is one attention rank: devices of one kind that share every layer of their stage. Units
are the embedding, each layer by itself, and the head; layers of one class cost the same. Times
are those of `passes` and `steps`, so a stage that holds all units takes what a whole pass does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.serving.deployments import DeploymentTable, ServedFormats, deployments
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.memory import activation_bytes, cache_bytes, state_bytes
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.passes import parameter_bytes
from planner.estimates.serving.steps import OUTSIDE, PassTime, pass_time
from planner.specs.architecture import Architecture, LayerClass

EMBEDDING, HEAD = "embedding", "head"
PHASES = ("decode", "prefill")
_OF_THE_EMBEDDING = "all-reduce after the embedding"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageGroup:
    """A kind of group, and how many of them there are.

    Args:
        name: what the request calls it: `h100-sxm TP 8`.
        clock: its device under the engine, with the network of its servers.
        n_tensor: devices that share each layer.
        n_expert_parallel: groups that experts are dealt to among them.
        n_groups: groups that there are.
    """

    name: str
    clock: KernelClock
    n_tensor: int
    n_expert_parallel: int
    n_groups: int

    @property
    def is_in_one_node(self) -> bool:
        """Whether all groups of this kind are in one server, as they are filled."""
        return self.n_tensor * self.n_groups <= self.clock.network.n_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """What flows through the stages.

    Args:
        phase: one of `PHASES`; prefill reads one chunk of a prompt in each pass.
        batch: sequences of one micro-batch.
        n_microbatches: micro-batches in flight; all of them have their caches.
    """

    phase: str
    batch: int
    n_microbatches: int
    n_input_tokens: int
    n_output_tokens: int

    @property
    def n_sequences(self) -> int:
        return self.batch * self.n_microbatches

    def shape(self, chunk_tokens: int) -> PassShape:
        """Tokens of one pass: decode at its mean context, or a chunk in the middle of a prompt."""
        if self.phase == "decode":
            context = self.n_input_tokens + self.n_output_tokens / 2.0
            return PassShape(n_decoding=float(self.batch), context=context)
        chunk = float(min(chunk_tokens, self.n_input_tokens))
        past = (self.n_input_tokens - chunk) / 2.0
        return PassShape(n_prompts=1.0, prompt_tokens=chunk, past_tokens=past)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitTable:
    """Units along the model, on each kind of group.

    Args:
        names: `embedding`, the class of each layer, `head` [U].
        class_of: class of each unit; −1 for the embedding and the head (U,).
        run_s: time of each unit in a pass (T, U) [s].
        weights_bytes, cache_bytes: of each, on its fullest device (T, U) [bytes].
        fixed_bytes: activations and the engine's own (T,) [bytes].
        limit_bytes: what the engine may take of a device (T,) [bytes].
        shared_bytes: of the embedding, where the head is the same matrix and both are in one
            stage; 0 otherwise (T,) [bytes].
        hand_s: handing a micro-batch from a group of one kind to one of another (T, T) [s].
        n_tokens: of one pass.
    """

    names: tuple[str, ...]
    class_of: IntArray
    run_s: FloatArray
    weights_bytes: FloatArray
    cache_bytes: FloatArray
    fixed_bytes: FloatArray
    limit_bytes: FloatArray
    shared_bytes: FloatArray
    hand_s: FloatArray
    n_tokens: float


def group_table(group: StageGroup, work: StageWork, formats: ServedFormats) -> DeploymentTable:
    """The group as the one deployment of a stage."""
    return deployments(
        formats=formats,
        n_tensor=group.n_tensor,
        n_expert_parallel=group.n_expert_parallel,
        batch=float(work.batch),
        chunk_tokens=float(group.clock.engine.n_chunk_tokens),
    )


def unit_table(
    model: Architecture,
    formats: ServedFormats,
    groups: Sequence[StageGroup],
    work: StageWork,
) -> UnitTable:
    """Seconds and bytes of every unit on every kind of group."""
    order = np.array(model.order)
    rows = [_units(model, formats, group, work) for group in groups]
    run, weights, cache, fixed = zip(*rows, strict=True)
    tied = [model.tied_embeddings * row[0] for row in weights]
    n_tokens = float(np.max(work.shape(groups[0].clock.engine.n_chunk_tokens).n_tokens))
    limits = [group.clock.device.hbm_bytes * group.clock.engine.memory_fraction for group in groups]
    return UnitTable(
        names=(EMBEDDING, *(model.layers[k].name for k in order), HEAD),
        class_of=np.concatenate([[-1], order, [-1]]),
        run_s=np.array(run),
        weights_bytes=np.array(weights),
        cache_bytes=np.array(cache),
        fixed_bytes=np.array(fixed),
        limit_bytes=np.array(limits),
        shared_bytes=np.array(tied),
        hand_s=handing_s(groups, n_tokens * model.d_model * 2.0),
        n_tokens=n_tokens,
    )


def _units(
    model: Architecture, formats: ServedFormats, group: StageGroup, work: StageWork
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Seconds, weights and caches of each unit; activations and the engine's own."""
    table, engine = group_table(group, work, formats), group.clock.engine
    timed = _timed(model, group, work, formats)
    ends = [0.0, 0.0]
    for one in timed.operations:
        if one.operation.layer == OUTSIDE:
            ends[one.operation.name != _OF_THE_EMBEDDING] += float(one.total_s[0])
    ends[1] += host_s(group, work)
    inside = [
        sum(float(one.total_s[0]) for one in timed.operations if one.operation.layer == layer.name)
        / layer.n_layers
        for layer in model.layers
    ]
    held = [_held_bytes(model, layer, table, formats, work, group) for layer in model.layers]
    matrix = model.vocab_size * model.d_model * 2.0 / group.n_tensor
    order = np.array(model.order)
    run = np.concatenate([[ends[0]], np.array(inside)[order], [ends[1]]])
    weights = np.concatenate([[matrix], np.array([w for w, _ in held])[order], [matrix]])
    cache = np.concatenate([[0.0], np.array([c for _, c in held])[order], [0.0]])
    fixed = float(activation_bytes(model, table)[0]) + engine.workspace_bytes
    return run, weights, cache, fixed


def host_s(group: StageGroup, work: StageWork) -> float:
    """What the host adds to a pass, where its tokens are sampled [s]."""
    engine = group.clock.engine
    return engine.decode_host_s if work.phase == "decode" else engine.prefill_host_s


def _timed(
    model: Architecture, group: StageGroup, work: StageWork, formats: ServedFormats
) -> PassTime:
    shape = work.shape(group.clock.engine.n_chunk_tokens)
    return pass_time(model, group_table(group, work, formats), shape, formats, group.clock)


def _held_bytes(
    model: Architecture,
    layer: LayerClass,
    table: DeploymentTable,
    formats: ServedFormats,
    work: StageWork,
    group: StageGroup,
) -> tuple[float, float]:
    """Weights and caches of one layer of a class on one device [bytes]."""
    alone = replace(model, layers=(replace(layer, n_layers=1),), order=(0,), vocab_size=0)
    return _weights_and_caches(alone, table, formats, work, group)


def _weights_and_caches(
    part: Architecture,
    table: DeploymentTable,
    formats: ServedFormats,
    work: StageWork,
    group: StageGroup,
) -> tuple[float, float]:
    n_tokens = work.n_input_tokens + work.n_output_tokens
    blocks = group.clock.engine.n_block_tokens
    each = cache_bytes(part, table, formats, n_tokens, blocks) + state_bytes(part, table)
    return float(parameter_bytes(part, table, formats)[0]), work.n_sequences * float(each[0])


def handing_s(groups: Sequence[StageGroup], n_bytes: float) -> FloatArray:
    """Handing a micro-batch from a group of one kind to one of another (T, T) [s].

    All devices of a group send their shares at once, and all of the next receive theirs, so the
    slower of both sides counts. Groups of one kind that fill one server stay inside it; all
    others are taken to be in different servers.
    """
    times = np.empty((len(groups), len(groups)))
    for a, sender in enumerate(groups):
        for b, receiver in enumerate(groups):
            stays = a == b and sender.is_in_one_node
            ends = [_port(group, stays=stays) for group in (sender, receiver)]
            times[a, b] = n_bytes / min(rate for rate, _ in ends) + max(s for _, s in ends)
    return times


def _port(group: StageGroup, *, stays: bool) -> tuple[float, float]:
    """Bytes/s of all devices of a group together, and latency [s]."""
    network = group.clock.network
    if stays:
        return group.n_tensor * network.up_bytes_per_s, network.up_latency_s
    return group.n_tensor * network.out_bytes_per_s, network.out_latency_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRecount:
    """One stage, evaluated as a model of its own layers: seconds and bytes of a device."""

    run_s: float
    held_bytes: float


def recount(
    model: Architecture,
    formats: ServedFormats,
    group: StageGroup,
    work: StageWork,
    units: range,
) -> StageRecount:
    """A stage counted another way: not unit by unit, but as a model that has its layers only.

    Args:
        units: 0 is the embedding, n_layers + 1 the head.
    """
    table = group_table(group, work, formats)
    layers = [u - 1 for u in units if 1 <= u <= model.n_layers]
    counts = [sum(model.order[i] == k for i in layers) for k in range(len(model.layers))]
    has_embedding, has_head = 0 in units, model.n_layers + 1 in units
    seconds = weights = caches = 0.0
    if layers:
        kept = [k for k, n in enumerate(counts) if n]
        part = replace(
            model,
            layers=tuple(replace(model.layers[k], n_layers=counts[k]) for k in kept),
            order=tuple(kept.index(model.order[i]) for i in layers),
            vocab_size=0,
        )
        timed = _timed(part, group, work, formats)
        inside = (one for one in timed.operations if one.operation.layer != OUTSIDE)
        seconds += sum(float(one.total_s[0]) for one in inside)
        weights, caches = _weights_and_caches(part, table, formats, work, group)
    for one in _timed(model, group, work, formats).operations:
        is_first = one.operation.name == _OF_THE_EMBEDDING
        if one.operation.layer == OUTSIDE and (has_embedding if is_first else has_head):
            seconds += float(one.total_s[0])
    copies = has_embedding + has_head
    if copies == 2 and model.tied_embeddings:
        copies = 1
    weights += copies * model.vocab_size * model.d_model * 2.0 / group.n_tensor
    fixed = float(activation_bytes(model, table)[0]) + group.clock.engine.workspace_bytes
    return StageRecount(
        run_s=seconds + (host_s(group, work) if has_head else 0.0),
        held_bytes=weights + caches + fixed,
    )
