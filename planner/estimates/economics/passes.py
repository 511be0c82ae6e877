"""Time and bytes of one decode pass, for every deployable layout at every batch.

A *way* is a layout: stages P of T devices, experts spread e ways, attention on t ranks. Its
time is Eq. 29 with these integers, in the shape of tensor parallelism, one or two dimensions,
that is faster at the batch. Stages and experts that do not divide count as the fullest one:
a pipeline of P stages takes the time of P × ⌈L/P⌉ layers.

Source: [Erdil2025] Eq. 29 and the casework of its published program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

import numpy as np

from planner.equations.arrays import FloatArray, IntArray, each_array
from planner.equations.economics.transformer import attention_flop, ffn_flop
from planner.equations.economics.work import (
    Degrees,
    attention_network_s,
    expert_network_s,
    ffn_bytes,
    ffn_network_s,
    kv_bytes,
    launch_s,
    pipeline_network_s,
    projection_compute_s,
    projection_memory_s,
)
from planner.estimates.economics.degrees import (
    attention_degrees,
    attention_grid_s,
    expert_degrees,
    ffn_grid_s,
    ffn_padding,
    stage_counts,
    tensor_degrees,
)
from planner.specs.records.economics import DecodePass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayoutRows:
    """Layouts, one entry each, sorted by stages, then tensor degree [R]."""

    n_stages: IntArray
    n_tensor: IntArray
    n_expert: IntArray
    n_attention: IntArray

    def __len__(self) -> int:
        return len(self.n_stages)

    @property
    def n_devices(self) -> IntArray:
        return self.n_stages * self.n_tensor

    def take(self, rows: IntArray | slice) -> LayoutRows:
        return each_array(self, lambda column: column[rows])


def all_ways(decode: DecodePass, n_devices: int, *, most_stages: int) -> LayoutRows:
    """Every layout of up to `n_devices` devices; see `degrees` for the rules."""
    model, per_node = decode.model, decode.device.n_devices_per_node
    rows = [
        (n_stages, n_tensor, n_expert, n_attention)
        for n_stages in stage_counts(model.n_layers, min(n_devices, most_stages))
        for n_tensor in tensor_degrees(n_devices // n_stages, per_node)
        for n_expert in expert_degrees(model, n_tensor)
        for n_attention in attention_degrees(model, n_tensor)
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return LayoutRows(
        n_stages=columns[0], n_tensor=columns[1], n_expert=columns[2], n_attention=columns[3]
    )


def runs(values: IntArray) -> list[slice]:
    edges = np.flatnonzero(values[1:] != values[:-1]) + 1
    ends = [0, *edges.tolist(), len(values)]
    return [slice(*pair) for pair in pairwise(ends) if pair[0] < pair[1]]


def pass_latency_s(decode: DecodePass, ways: LayoutRows, batches: Sequence[int]) -> FloatArray:
    """Time of a pass of every layout at every batch (R, B) [s].

    Infinite where there are more stages than requests, or too few requests to spread experts.

    Args:
        decode: the pass.
        ways: layouts, those of equal stages and devices together, and of them every spread
            of the experts with the same ranks of attention.
        batches: requests decoded together.

    Raises:
        ValueError: spreads come with different ranks.

    Source: [Erdil2025] Eq. 29.
    """
    sizes = np.asarray(batches, dtype=np.int64)
    latency = np.full((len(ways), len(sizes)), np.inf)
    for rows in runs(ways.n_stages):
        n_stages = int(ways.n_stages[rows.start])
        columns = np.flatnonzero(sizes >= n_stages)
        micro, place = np.unique(-(-sizes[columns] // n_stages), return_inverse=True)
        times = _of_stages(_padded(decode, n_stages), n_stages, ways.take(rows), micro)
        latency[rows, _dense(columns)] = times[:, place]
    return latency


def _dense(places: IntArray) -> IntArray | slice:
    """Places in order as a slice where none is left out: to write there is many times faster."""
    if len(places) and len(places) == places[-1] - places[0] + 1:
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _padded(decode: DecodePass, n_stages: int) -> DecodePass:
    """The pass with as many layers as a pipeline of fullest stages would have."""
    n_layers = ceil(decode.model.n_layers / n_stages) * n_stages
    return replace(decode, model=replace(decode.model, n_layers=n_layers))


def _of_stages(decode: DecodePass, n_stages: int, ways: LayoutRows, micro: IntArray) -> FloatArray:
    """Time of layouts with equally many stages, for micro-batches of `micro` requests (R, b).

    What depends on T and e, and what depends on t, is computed once for each of them.
    """
    spread = runs(ways.n_tensor * (ways.n_expert.max() + 1) + ways.n_expert)
    first = [rows.start for rows in spread]
    experts = np.stack([ways.n_tensor[first], ways.n_expert[first]])
    ranks, of_rank = np.unique(ways.n_attention, return_inverse=True)
    ffn = _ffn_side(decode, n_stages, experts, micro)
    attention = _attention_side(decode, n_stages, ranks, micro)
    latency = np.empty((len(ways), len(micro)))
    for rows, e in zip(runs(ways.n_tensor), runs(experts[0]), strict=True):
        t = _ranks_of_each(of_rank[rows], e.stop - e.start)
        network = ffn.line_s[e, None] + attention.line_s[t]
        other = ffn.grid_s[e, None] + attention.grid_s[t]
        np.minimum(network, other, out=network)
        np.add(ffn.memory_s[e, None], attention.memory_s[t], out=other)
        work = np.maximum(other, ffn.compute_s[e, None] + attention.compute_s[t], out=other)
        np.add(network, work, out=latency[rows].reshape(network.shape))
    return latency


def _ranks_of_each(of_rank: IntArray, n_spreads: int) -> IntArray:
    """The ranks of attention that every spread of the experts comes with."""
    table = of_rank.reshape(n_spreads, -1) if len(of_rank) % n_spreads == 0 else of_rank[None, :0]
    if table.size == 0 or (table != table[0]).any():
        raise ValueError("layouts of one stage have to be every spread with the same ranks")
    return np.asarray(table[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """What a part of the layer adds to the times of a pass [s]."""

    line_s: FloatArray
    grid_s: FloatArray
    memory_s: FloatArray
    compute_s: FloatArray


def _ffn_side(decode: DecodePass, n_stages: int, experts: IntArray, micro: IntArray) -> _Side:
    """Everything that does not depend on the ranks of attention, rows by (T, e)."""
    model, device = decode.model, decode.device
    n_tensor, n_expert = (row[:, None] for row in experts)
    degrees = _degrees(decode, n_stages, n_tensor, n_expert, micro)
    padding = ffn_padding(model, n_tensor, n_expert)
    n_bytes = kv_bytes(decode, degrees.n_microbatch)
    n_bytes = n_bytes + padding * model.n_layers * ffn_bytes(model, degrees.n_tokens, degrees.n_ffn)
    n_bytes = n_bytes + model.weight_bytes * model.vocab_size * model.d_model
    flop = padding * ffn_flop(decode, degrees.n_requests)
    flop = flop + attention_flop(decode, degrees.n_requests)
    others = launch_s(decode) + expert_network_s(decode, degrees)
    if n_stages > 1:
        others = others + pipeline_network_s(decode, degrees)
    # [Erdil2025], published program: experts are spread only over two requests or more for each
    # active expert's share
    may_spread = (n_expert == 1) | (micro >= 2 * model.sparsity)
    others = np.where(may_spread, others, np.inf)
    return _Side(
        line_s=others + ffn_network_s(decode, degrees, is_2d=False),
        grid_s=others + ffn_grid_s(decode, degrees, experts),
        memory_s=n_bytes / (n_tensor * device.hbm_bytes_per_s),
        compute_s=flop / (degrees.n_devices * device.flop_per_s_of(model)),
    )


def _attention_side(decode: DecodePass, n_stages: int, ranks: IntArray, micro: IntArray) -> _Side:
    """What depends on the ranks of attention: its projections and their network, rows by t."""
    n_attention = ranks[:, None].astype(float)
    degrees = _degrees(decode, n_stages, n_attention, np.ones_like(n_attention), micro)
    return _Side(
        line_s=attention_network_s(decode, degrees, n_attention, is_2d=False),
        grid_s=attention_grid_s(decode, degrees, ranks),
        memory_s=projection_memory_s(decode, degrees, n_attention),
        compute_s=projection_compute_s(decode, degrees),
    )


def _degrees(
    decode: DecodePass,
    n_stages: int,
    n_tensor: FloatArray | IntArray,
    n_expert: FloatArray | IntArray,
    micro: IntArray,
) -> Degrees:
    """The degrees of the reference model; every micro-batch counts as a full one.

    Layouts run down and micro-batches across, and stay apart until a function joins them.
    """
    t, e = np.asarray(n_tensor, dtype=float), np.asarray(n_expert, dtype=float)
    b = micro.astype(float)
    return Degrees(
        n_devices=t * n_stages,
        n_requests=b * n_stages,
        n_stages=np.full(1, float(n_stages)),
        n_per_stage=t,
        n_microbatch=b,
        n_tokens=b * decode.n_scored_tokens,
        n_expert=e,
        n_ffn=t / e,
    )
