"""Latency of one pass, minimised over every layout that the reference model knows.

A layout is a number P of pipeline stages, a share 1/a of a stage's devices that run the
attention projections, and tensor parallelism in one or two dimensions. Stages and shares
come from short geometric lists, 1 to min(B, L) and 1 to all devices of a stage.

Source: [Erdil2025] §3.5-3.6; the paper leaves the casework to its published program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import BoolArray, FloatArray
from planner.equations.economics.transformer import attention_flop, ffn_flop
from planner.equations.economics.work import (
    ROUNDING,
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
from planner.specs.records.economics import DecodePass
from research.economics.model.sizes import fits_memory

N_STAGE_STEPS = 9
N_SHARE_STEPS = 5
BLOCK = 8192
"""Points evaluated at a time: their arrays stay in a core's second-level cache."""


def shared_memory_s(decode: DecodePass, degrees: Degrees) -> FloatArray:
    """Reading caches, experts and the output embedding: all but the projections [s].

    Every stage reads its weights for every micro-batch, and a token passes all stages.

    Source: [Erdil2025] Eqs. 31-35 with §3.5.
    """
    model = decode.model
    experts = model.n_layers * ffn_bytes(model, degrees.n_tokens, degrees.n_ffn)
    embedding = model.weight_bytes * model.vocab_size * model.d_model
    n_bytes = kv_bytes(decode, degrees.n_microbatch) + experts + embedding
    return n_bytes / (degrees.n_per_stage * decode.device.hbm_bytes_per_s)


def shared_compute_s(decode: DecodePass, degrees: Degrees) -> FloatArray:
    """Arithmetic of the experts and of the scores [s]. Source: [Erdil2025] Eqs. 36-37."""
    shared = ffn_flop(decode, degrees.n_requests) + attention_flop(decode, degrees.n_requests)
    return shared / (degrees.n_devices * decode.device.flop_per_s_of(decode.model))


@dataclass(frozen=True, slots=True, kw_only=True)
class Casework:
    """Which layouts are tried, and what counts against the memory.

    Stages go up to the layers, or to the smaller of layers and requests; the capacity
    has to hold the caches of one micro-batch, or of the whole batch.
    """

    has_1d: bool = True
    has_stages: bool = True
    stages_within_batch: bool = True
    splits_experts: bool = True
    scales_attention_down: bool = True
    holds_one_microbatch: bool = True


FULL = Casework()
"""What the paper's tables are made with, Table 5 aside."""

FINAL = Casework(
    stages_within_batch=False,
    splits_experts=False,
    scales_attention_down=False,
    holds_one_microbatch=False,
)
"""Its predecessor in the published program: experts are not spread, nothing scales down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Stages P ≥ 1 and scale-down a ≥ 1 of the attention projections, one entry a point."""

    n_stages: FloatArray
    attention_scale_down: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Where the time of a layout goes, one entry a point."""

    degrees: Degrees
    n_attention: FloatArray
    is_2d: BoolArray
    launch_s: float
    attention_network_s: FloatArray
    ffn_network_s: FloatArray
    expert_network_s: FloatArray
    pipeline_network_s: FloatArray
    memory_s: FloatArray
    compute_s: FloatArray

    @property
    def network_s(self) -> FloatArray:
        """All exchanges between devices."""
        tensors = self.attention_network_s + self.ffn_network_s
        return tensors + self.expert_network_s + self.pipeline_network_s

    @property
    def latency_s(self) -> FloatArray:
        """Launches, networks, and the longer of memory and compute: Eq. 29."""
        return self.launch_s + self.network_s + np.maximum(self.memory_s, self.compute_s)


def latency_s(
    decode: DecodePass,
    n_devices: ArrayLike,
    n_requests: ArrayLike,
    *,
    casework: Casework = FULL,
) -> FloatArray:
    """Latency of the best layout of each point; inf where none fits [s].

    Args, broadcast together:
        n_devices: N, devices of the instance, real-valued [1].
        n_requests: B ≥ 1, requests in the instance, real-valued [1].

    Raises:
        KeyError: the device has no FLOP rate for the width of the model's weights.

    Source: [Erdil2025] Eq. 29 over the casework of the published program.
    """
    return best_layout(decode, n_devices, n_requests, casework=casework)[0]


def best_layout(
    decode: DecodePass,
    n_devices: ArrayLike,
    n_requests: ArrayLike,
    *,
    casework: Casework = FULL,
) -> tuple[FloatArray, Layout]:
    """Latency of each point and the layout that reaches it; as `latency_s`.

    Where no layout fits, one stage and no scale-down stand beside the infinite latency.
    """
    n, b = np.broadcast_arrays(np.asarray(n_devices, float), np.asarray(n_requests, float))
    found = np.empty((3, n.size))
    flat_n, flat_b = n.ravel(), b.ravel()
    for start in range(0, n.size, BLOCK):
        block = slice(start, start + BLOCK)
        found[:, block] = _best(decode, flat_n[block], flat_b[block], casework)
    latency, n_stages, scale_down = found.reshape(3, *n.shape)
    return latency, Layout(n_stages=n_stages, attention_scale_down=scale_down)


def degrees_of(
    decode: DecodePass,
    n_devices: ArrayLike,
    n_requests: ArrayLike,
    n_stages: ArrayLike,
    *,
    splits_experts: bool = True,
) -> Degrees:
    """Degrees for a number of stages; experts are spread first, tensors take what is left.

    Expert parallelism is all or nothing: as many ways as there are experts or devices,
    none where a micro-batch has fewer than two requests for each active expert's share.

    Source: [Erdil2025] §3.5; the threshold is the published program's.
    """
    model = decode.model
    n, b, p = np.broadcast_arrays(
        *(np.asarray(x, float) for x in (n_devices, n_requests, n_stages))
    )
    t, microbatch = n / p, b / p
    if splits_experts and model.n_experts > 1:
        spread = np.minimum(t, model.n_experts)
        n_expert = np.where(microbatch < 2 * model.sparsity, 1.0, spread)
    else:
        n_expert = np.ones_like(t)
    return Degrees(
        n_devices=n,
        n_requests=b,
        n_stages=p,
        n_per_stage=t,
        n_microbatch=microbatch,
        n_tokens=microbatch * decode.n_scored_tokens,
        n_expert=n_expert,
        n_ffn=np.maximum(t / np.maximum(n_expert, 1.0), 1.0),
    )


def _best(decode: DecodePass, n: FloatArray, b: FloatArray, casework: Casework) -> FloatArray:
    """Least latency, its stages and its scale-down: three rows, one column a point."""
    best = np.array([np.full(n.shape, np.inf), np.ones(n.shape), np.ones(n.shape)])
    for n_stages in _stage_candidates(decode, b, casework):
        cached = b / n_stages if casework.holds_one_microbatch else b
        # B^(9/9) may come out an ulp above B
        within = n_stages <= np.minimum(n, b) * (1.0 + ROUNDING)
        fits = np.flatnonzero(within & fits_memory(decode, n, cached))
        if fits.size == 0:
            continue
        degrees = degrees_of(
            decode, n[fits], b[fits], n_stages[fits], splits_experts=casework.splits_experts
        )
        for latency, scale_down in _over_shares(decode, degrees, casework):
            better = np.flatnonzero(latency < best[0, fits])
            at = fits[better]
            best[0, at] = latency[better]
            best[1, at] = n_stages[at]
            best[2, at] = scale_down[better]
    return best


def _stage_candidates(
    decode: DecodePass, n_requests: FloatArray, casework: Casework
) -> list[FloatArray]:
    """limit⁰ to limit¹, geometric. Source: [Erdil2025], published program."""
    if not casework.has_stages:
        return [np.ones_like(n_requests)]
    limit = np.full_like(n_requests, decode.model.n_layers)
    if casework.stages_within_batch:
        limit = np.minimum(limit, n_requests)
    return [limit ** (step / N_STAGE_STEPS) for step in range(N_STAGE_STEPS + 1)]


def _over_shares(
    decode: DecodePass, degrees: Degrees, casework: Casework
) -> list[tuple[FloatArray, FloatArray]]:
    """Latency and scale-down for each candidate; what no share changes is computed once."""
    shapes = (False, True) if casework.has_1d else (True,)
    ffn = [ffn_network_s(decode, degrees, is_2d=is_2d) for is_2d in shapes]
    others = expert_network_s(decode, degrees) + pipeline_network_s(decode, degrees)
    outside = launch_s(decode) + others
    memory, compute = shared_memory_s(decode, degrees), shared_compute_s(decode, degrees)
    projection = projection_compute_s(decode, degrees)
    found = []
    for step in range(N_SHARE_STEPS + 1 if casework.scales_attention_down else 1):
        scale_down = degrees.n_per_stage ** (step / N_SHARE_STEPS)
        n_attention = degrees.n_per_stage / scale_down
        network = [
            attention_network_s(decode, degrees, n_attention, is_2d=is_2d) + ffn_s
            for is_2d, ffn_s in zip(shapes, ffn, strict=True)
        ]
        reads = memory + projection_memory_s(decode, degrees, n_attention)
        work = np.maximum(reads, compute + scale_down * projection)
        found.append((outside + np.minimum.reduce(network) + work, scale_down))
    return found


def breakdown(
    decode: DecodePass,
    n_devices: ArrayLike,
    n_requests: ArrayLike,
    layout: Layout,
    *,
    casework: Casework = FULL,
) -> Breakdown:
    """Every term of a given layout, whether it fits the memory or not.

    Of the two tensor-parallel shapes the one with the shorter network time is taken.

    Source: [Erdil2025] Eq. 29 with the casework of the published program.
    """
    degrees = degrees_of(
        decode, n_devices, n_requests, layout.n_stages, splits_experts=casework.splits_experts
    )
    scale_down = layout.attention_scale_down
    n_attention = degrees.n_per_stage / scale_down
    is_2d, attention, ffn = _shorter_network(decode, degrees, n_attention, casework)
    reads = shared_memory_s(decode, degrees) + projection_memory_s(decode, degrees, n_attention)
    projection = projection_compute_s(decode, degrees)
    return Breakdown(
        degrees=degrees,
        n_attention=n_attention,
        is_2d=is_2d,
        launch_s=launch_s(decode),
        attention_network_s=attention,
        ffn_network_s=ffn,
        expert_network_s=expert_network_s(decode, degrees),
        pipeline_network_s=pipeline_network_s(decode, degrees),
        memory_s=reads,
        compute_s=shared_compute_s(decode, degrees) + scale_down * projection,
    )


def _shorter_network(
    decode: DecodePass, degrees: Degrees, n_attention: FloatArray, casework: Casework
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Whether two dimensions are shorter than one, and the two times of that shape."""
    in_1d, in_2d = (
        (
            attention_network_s(decode, degrees, n_attention, is_2d=is_2d),
            ffn_network_s(decode, degrees, is_2d=is_2d),
        )
        for is_2d in (False, True)
    )
    is_2d = np.full(n_attention.shape, not casework.has_1d) | (sum(in_2d) < sum(in_1d))
    attention, ffn = (np.where(is_2d, two, one) for one, two in zip(in_1d, in_2d, strict=True))
    return is_2d, attention, ffn
