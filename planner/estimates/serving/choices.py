"""Deployments that an engine would start, with times and bytes, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from planner.equations.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    divisors,
    each_array,
    joined_arrays,
)
from planner.equations.tails import planned_sigmas
from planner.estimates.serving.deployments import DeploymentTable, deployments, has_experts
from planner.estimates.serving.popularity import with_copies
from planner.estimates.serving.rules import Context, is_valid
from planner.estimates.serving.times import place_s
from planner.estimates.serving.traffic import Traffic
from planner.specs.ask.engine import EngineRequest
from planner.specs.records.architecture import Architecture
from planner.specs.records.roles import MICROBATCHES, TOGETHER
from planner.specs.region import INSIDE, MEDIAN


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoices:
    """Deployments that an engine would start, (J,) each.

    Args:
        table: the deployments.
        tpot_s, ttft_s: as predicted.
        prompt_s: from a free engine to a prompt's first token.
        tpot_error, ttft_error: relative standard deviations.
        outside_error: the part of them for what was not measured; 0 inside the measured region.
        fixed_bytes: weights and workspace of the fullest device.
        moving_bytes: activations and caches beside them, with the whole batch; the drafter.
        n_drafted: tokens drafted at once; 0 without drafts.
        model_index: which of the request's models each serves.
        limit_bytes: what the engine may take of a device.
        decode_s: a token without others' prompts, as predicted.
        n_considered: deployments that break no rule of the engine, whether they fit or not.
        traffic: the requests, and what they do of them.
        confidence: share of cases in which what is planned holds; 0 plans what is predicted, and
            without one so does what was measured, while what was not is planned for `CONFIDENCE`.
        is_cut: whether time ended before all of them were timed.
    """

    table: DeploymentTable
    tpot_s: FloatArray
    ttft_s: FloatArray
    prompt_s: FloatArray
    tpot_error: FloatArray
    ttft_error: FloatArray
    outside_error: FloatArray
    fixed_bytes: FloatArray
    moving_bytes: FloatArray
    n_drafted: IntArray
    model_index: IntArray
    decode_s: FloatArray
    limit_bytes: float
    n_considered: int
    traffic: Traffic
    confidence: float | None
    is_cut: bool = False

    def __len__(self) -> int:
        return len(self.table)

    @property
    def role(self) -> str:
        return self.traffic.role

    @property
    def beyond(self) -> FloatArray:
        """Standard deviations beyond what is predicted that are planned."""
        outside = self.outside_error > 0.0
        return np.broadcast_to(planned_sigmas(self.confidence, outside), outside.shape)

    @property
    def tpot_high_s(self) -> FloatArray:
        """What is planned against."""
        return np.asarray(self.tpot_s * (1.0 + self.beyond * self.tpot_error))

    @property
    def ttft_high_s(self) -> FloatArray:
        """What is planned against."""
        return np.asarray(self.ttft_s * (1.0 + self.beyond * self.ttft_error))

    @property
    def place_s(self) -> FloatArray:
        """What a place takes for a token that is written and its part of the prompt, as planned."""
        prompt_s = self.prompt_s * (1.0 + self.beyond * self.ttft_error)
        ttft_s, tpot_s = self.ttft_high_s, self.tpot_high_s
        stay_s = place_s(self.traffic, ttft_s=ttft_s, tpot_s=tpot_s, prompt_s=prompt_s)
        return np.asarray(stay_s / self.traffic.n_place_tokens)

    def counts(self, belief: str) -> BoolArray:
        """Which of them a belief has (N,)."""
        return np.asarray((self.outside_error == 0.0) | (belief != INSIDE))

    def believing(self, belief: str) -> EngineChoices:
        """As a belief has them, timed as they are."""
        confidence = 0.0 if belief == MEDIAN else self.confidence
        return replace(self.take(self.counts(belief)), confidence=confidence)

    def within(self, memory_scale: float) -> EngineChoices:
        """Those that fit so many times what the engine may take of a device."""
        held = self.fixed_bytes + self.moving_bytes
        return self.take(held <= self.limit_bytes * memory_scale)

    def take(self, rows: IntArray | BoolArray) -> EngineChoices:
        if rows.dtype == np.bool_ and rows.all():
            return self
        some = each_array(self, lambda column: column[rows])
        return replace(some, table=self.table.take(rows))


def traffic_of(request: EngineRequest, role: str = TOGETHER) -> Traffic:
    """The requests that come, at random times, to deployments of one role."""
    return Traffic(
        n_input_tokens=float(request.workload.n_input_tokens),
        n_output_tokens=float(request.workload.n_output_tokens),
        hit_fraction=request.workload.hit_fraction,
        n_shared_tokens=float(request.workload.n_shared_tokens),
        n_samples=request.workload.n_samples,
        offload=request.workload.offload,
        n_block_tokens=request.records.engine.n_block_tokens,
        host_bytes_per_s=request.records.cluster.device.host_bytes_per_s,
        role=role,
    )


def ground_of(request: EngineRequest) -> Context:
    """What is known of all cuts of a request."""
    records = request.records
    return Context(
        rules=records.engine.rules,
        device=records.cluster.device,
        n_per_node=request.cluster.n_devices_per_node,
    )


def degrees(model: Architecture, request: EngineRequest) -> DeploymentTable:
    """Every cut of the model over devices of the pool that the engine starts, of one sequence.

    Formats are the first of the request; the table is empty if no cut is left.
    """
    cuts = equal_degrees(model, request)
    return cuts.take(is_valid(model, cuts, ground_of(request)))


def equal_degrees(model: Architecture, request: EngineRequest) -> DeploymentTable:
    """Every cut into equal parts, whether the engine starts it or not: nobody can time others."""
    cuts = all_degrees(model, request, request.cluster.n_devices)
    return cuts.take(is_valid(model, cuts))


def all_degrees(model: Architecture, request: EngineRequest, n_devices: int) -> DeploymentTable:
    """Every cut of the request's degrees over so many devices, whether it starts or not."""
    heads = frozenset(one.mixer.n_heads for one in model.layers if one.mixer is not None)
    routes = has_experts(model)
    tensor, data, stages, expert = _cuts(heads, model.n_layers, n_devices, routes)
    table = deployments(
        formats=request.formats,
        n_tensor=tensor,
        n_data=data,
        n_stages=stages,
        n_expert_parallel=expert,
    )
    return _asked_for(
        with_copies(model, table, request.records.engine, ground_of(request)), request
    )


def pool_degrees(model: Architecture, request: EngineRequest) -> DeploymentTable:
    """Every cut with experts on devices of their own, and each number of micro-batches.

    As `degrees`; the table is empty of a model without experts.
    """
    sizes = np.arange(1, request.cluster.n_devices)
    heads = {one.mixer.n_heads for one in model.layers if one.mixer is not None}
    tensor = sizes[np.all([n % sizes == 0 for n in heads], axis=0)]
    pools = sizes[np.all([n % sizes == 0 for n in model.expert_counts] or [sizes == 0], axis=0)]
    grid = np.meshgrid(tensor, sizes, pools, MICROBATCHES, indexing="ij")
    fits = grid[0] * grid[1] + grid[2] <= request.cluster.n_devices
    t, d, n, m = (axis[fits] for axis in grid)
    table = deployments(
        formats=request.formats,
        n_tensor=t,
        n_data=d,
        n_expert_parallel=n,
        n_expert_devices=n,
        n_microbatches=m,
    )
    table = with_copies(model, table, request.records.engine, ground_of(request))
    return _asked_for(table.take(is_valid(model, table, ground_of(request))), request)


def _asked_for(table: DeploymentTable, request: EngineRequest) -> DeploymentTable:
    """Cuts of the degrees that are asked for."""
    degrees = request.targets.degrees
    kept = np.ones(len(table), dtype=np.bool_)
    for wanted, degree in (
        (degrees.tensor, table.n_tensor),
        (degrees.data, table.n_data),
        (degrees.pipeline, table.n_stages),
        (degrees.expert, table.n_expert_parallel),
    ):
        if wanted is not None:
            kept &= degree == wanted
    return table.take(kept)


@lru_cache(maxsize=4)
def _cuts(
    heads: frozenset[int], n_layers: int, n_devices: int, routes: bool
) -> tuple[IntArray, ...]:
    """Tensor, data, pipeline and expert degrees of all cuts over no more than the pool (K,).

    Args:
        routes: whether there are experts to be dealt.
    """
    sizes = np.arange(1, n_devices + 1)
    tensor = sizes[np.all([n % sizes == 0 for n in heads], axis=0)] if heads else sizes
    stages = sizes[:n_layers]
    t, s = (axis.ravel() for axis in np.meshgrid(tensor, stages, indexing="ij"))
    t, s = t[t * s <= n_devices], s[t * s <= n_devices]
    most = n_devices // (t * s)
    row, data = _repeated(np.arange(len(t)), most)
    t, s, data = t[row], s[row], data + 1
    if not routes:
        return t, data, s, np.ones_like(t)
    ways = [divisors(n) for n in sizes.tolist()]
    counts = np.array([len(one) for one in ways])
    order = np.argsort(t * data, kind="stable")
    group = (t * data)[order] - 1
    row, place = _repeated(order, counts[group])
    expert = np.concatenate(ways)[(np.cumsum(counts) - counts)[(t * data)[row] - 1] + place]
    return t[row], data[row], s[row], expert


def _repeated(rows: IntArray, times: IntArray) -> tuple[IntArray, IntArray]:
    """Rows so many times each, and which time it is, from 0."""
    starts = np.repeat(np.cumsum(times) - times, times)
    return np.repeat(rows, times), np.arange(int(times.sum())) - starts


def joined_choices(parts: Sequence[EngineChoices]) -> EngineChoices:
    """Those of the same request, one after the other."""
    if len(parts) == 1:
        return parts[0]
    n_considered = sum(each.n_considered for each in parts)
    table = joined_arrays([each.table for each in parts])
    return joined_arrays(parts, table=table, n_considered=n_considered)
