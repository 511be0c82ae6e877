"""What each layer costs on each kind of group: the coefficients of a cut into stages.

A *group* is one attention rank: devices of one kind that share every layer of their stage. Units
are the embedding, each layer by itself, and the head; layers of one class cost the same. Times
are those of `passes` and `steps`, so a stage that holds all units takes what a whole pass does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.memory import activation_bytes, cache_bytes, state_bytes
from planner.estimates.serving.networks import ServingNetwork, serving_network
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.passes import parameter_bytes
from planner.estimates.serving.steps import OUTSIDE, layer_gap_s, pass_time, prefill_gap_s
from planner.specs.ask.stages import StageGroup, StagesRequest, StageWork
from planner.specs.records.architecture import LayerClass
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.served_formats import as_run

EMBEDDING, HEAD = "embedding", "head"
_OF_THE_EMBEDDING = "all-reduce after the embedding"


def clock_of(group: StageGroup, engine: EngineSpec) -> KernelClock:
    """What times the layers of a group.

    Raises:
        ValueError: the fabric of its cluster has no nodes.
    """
    return KernelClock(
        device=group.cluster.device,
        table=group.kernels,
        engine=engine,
        network=serving_network(group.cluster.fabric),
    )


def shape_of(work: StageWork, chunk_tokens: int) -> PassShape:
    """Tokens of one pass: decode at its mean context, or a chunk in the middle of a prompt."""
    if work.phase == "decode":
        context = work.n_input_tokens + work.n_output_tokens / 2.0
        return PassShape(n_decoding=float(work.batch), context=context)
    chunk = float(min(chunk_tokens, work.n_input_tokens))
    past = (work.n_input_tokens - chunk) / 2.0
    return PassShape(n_prompts=1.0, prompt_tokens=chunk, past_tokens=past)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitTable:
    """Units along the model, on each kind of group.

    Args:
        names: `embedding`, the class of each layer, `head` [U].
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
    run_s: FloatArray
    weights_bytes: FloatArray
    cache_bytes: FloatArray
    fixed_bytes: FloatArray
    limit_bytes: FloatArray
    shared_bytes: FloatArray
    hand_s: FloatArray
    n_tokens: float


def group_table(group: StageGroup, request: StagesRequest) -> DeploymentTable:
    """The group as the one deployment of a stage."""
    return deployments(
        formats=request.formats,
        n_tensor=group.n_tensor,
        n_expert_parallel=group.n_expert_parallel,
        batch=float(request.work.batch),
        chunk_tokens=float(request.engine.n_chunk_tokens),
    )


def unit_table(request: StagesRequest) -> UnitTable:
    """Seconds and bytes of every unit on every kind of group."""
    model, groups, engine = request.model, request.groups, request.engine
    order = np.array(model.order)
    rows = [_units(group, request) for group in groups]
    run, weights, cache, fixed = zip(*rows, strict=True)
    tied = [model.tied_embeddings * row[-1] for row in weights]
    n_tokens = float(np.max(shape_of(request.work, engine.n_chunk_tokens).n_tokens))
    limits = [group.cluster.device.hbm_bytes * engine.memory_fraction for group in groups]
    return UnitTable(
        names=(EMBEDDING, *(model.layers[k].name for k in order), HEAD),
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
    group: StageGroup, request: StagesRequest
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Seconds, weights and caches of each unit; activations and the engine's own."""
    model, engine, work = request.model, request.engine, request.work
    table, clock = group_table(group, request), clock_of(group, engine)
    shape = shape_of(work, engine.n_chunk_tokens)
    timed = pass_time(model, table, shape, as_run(model, request.formats, engine), clock)
    ends = [0.0, 0.0]
    for one in timed.operations:
        if one.operation.layer == OUTSIDE:
            ends[one.operation.name != _OF_THE_EMBEDDING] += float(one.total_s[0])
    decodes = work.phase == "decode"
    writing_s = engine.decode_host_s + work.batch * engine.decode_sequence_s
    ends[1] += writing_s if decodes else engine.prefill_host_s
    inside = [
        (layer_gap_s if decodes else prefill_gap_s)(layer, engine)
        + sum(
            float(one.total_s[0]) for one in timed.operations if one.operation.layer == layer.name
        )
        / layer.n_layers
        for layer in model.layers
    ]
    held = [_held_bytes(layer, table, request) for layer in model.layers]
    matrix = model.vocab_size * model.d_model * 2.0 / group.n_tensor
    order = np.array(model.order)
    run = np.concatenate([[ends[0]], np.array(inside)[order], [ends[1]]])
    first = matrix + model.n_encoder_params * 2.0 / group.n_tensor
    weights = np.concatenate([[first], np.array([w for w, _ in held])[order], [matrix]])
    cache = np.concatenate([[0.0], np.array([c for _, c in held])[order], [0.0]])
    fixed = float(activation_bytes(model, table)[0]) + engine.workspace_bytes
    return run, weights, cache, fixed


def _held_bytes(
    layer: LayerClass, table: DeploymentTable, request: StagesRequest
) -> tuple[float, float]:
    """Weights and caches of one layer of a class on one device [bytes]."""
    formats, work = as_run(request.model, request.formats, request.engine), request.work
    layers = (replace(layer, n_layers=1),)
    alone = replace(request.model, layers=layers, order=(0,), vocab_size=0, n_encoder_params=0)
    n_tokens = work.n_input_tokens + work.n_output_tokens
    each = cache_bytes(alone, table, formats, n_tokens, request.engine.n_block_tokens)
    each = each + state_bytes(alone, table)
    return float(parameter_bytes(alone, table, formats)[0]), work.n_sequences * float(each[0])


def handing_s(groups: Sequence[StageGroup], n_bytes: float) -> FloatArray:
    """Handing a micro-batch from a group of one kind to one of another (T, T) [s].

    All devices of a group send their shares at once, and all of the next receive theirs, so the
    slower of both sides counts. Groups of one kind that fill one server stay inside it; all
    others are taken to be in different servers.
    """
    times = np.empty((len(groups), len(groups)))
    networks = [serving_network(group.cluster.fabric) for group in groups]
    for a, sender in enumerate(groups):
        in_one_node = sender.n_tensor * sender.n_groups <= networks[a].n_per_node
        for b, receiver in enumerate(groups):
            stays = a == b and in_one_node
            ends = [
                _port(group.n_tensor, network, stays=stays)
                for group, network in ((sender, networks[a]), (receiver, networks[b]))
            ]
            times[a, b] = n_bytes / min(rate for rate, _ in ends) + max(s for _, s in ends)
    return times


def _port(n_tensor: int, network: ServingNetwork, *, stays: bool) -> tuple[float, float]:
    """Bytes/s of all devices of a group together, and latency [s]."""
    if stays:
        return n_tensor * float(network.group_bytes_per_s(2)), network.up_latency_s
    return n_tensor * network.out_bytes_per_s, network.out_latency_s
