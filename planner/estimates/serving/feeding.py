"""Operations of FFNs and experts, and how tokens reach their experts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.deployments import DeploymentTable, ServedFormats
from planner.estimates.serving.operations import (
    FORMAT_BYTES,
    INPUT_BYTES,
    Operation,
    PassShape,
    elementwise,
    gemm,
    grouped_gemm,
    message,
)
from planner.specs.architecture import Experts, FeedForward, Ffn


def ffn_operations(
    ffn: Ffn,
    d_model: int,
    table: DeploymentTable,
    work: PassShape,
    formats: ServedFormats,
    *,
    fused: bool,
) -> Iterator[Operation]:
    """What one layer's FFN does, on one device.

    Args:
        fused: experts run as one kernel that was measured whole; two grouped products without.
    """
    if isinstance(ffn, FeedForward):
        yield from _dense(
            ffn.d_ff, ffn.n_matrices, d_model, table.n_tensor, work, formats, "feed", "FFN"
        )
        yield message(
            "all-reduce after the FFN",
            "reduce",
            "all_reduce",
            n_bytes=work.n_tokens * (d_model * 2.0),
            n_devices=table.n_tensor,
        )
    else:
        yield from _experts(ffn, d_model, table, work, formats, fused=fused)


def _dense(
    width: int,
    n_matrices: int,
    d_model: int,
    cut: FloatArray | int,
    work: PassShape,
    formats: ServedFormats,
    part: str,
    name: str,
) -> Iterator[Operation]:
    local = np.divide(width, cut)
    n_up = n_matrices - 1
    tokens, weights = work.n_tokens, formats.weights
    yield gemm(f"{name} up", part, tokens, n=n_up * local, k=d_model, number_format=weights)  # type: ignore[arg-type]
    yield elementwise(f"{name} activation", part, tokens * local * (2.0 * n_matrices), n_kernels=1)  # type: ignore[arg-type]
    yield gemm(f"{name} down", part, tokens, n=d_model, k=local, number_format=weights)  # type: ignore[arg-type]


def _experts(
    ffn: Experts,
    d_model: int,
    table: DeploymentTable,
    work: PassShape,
    formats: ServedFormats,
    *,
    fused: bool,
) -> Iterator[Operation]:
    tokens = work.n_tokens
    routed_here = tokens  # router and shared experts see the tokens of their attention rank
    yield gemm("router", "feed", routed_here, n=ffn.n_experts, k=d_model, number_format="bf16")
    yield from _sent(ffn, d_model, table, tokens, formats)
    everywhere = tokens * table.n_data
    if fused:
        yield _fused(ffn, d_model, table, everywhere, formats)
    else:
        yield from _two_products(ffn, d_model, table, everywhere, formats)
    if ffn.d_shared:
        # a rank that keeps its tokens to itself keeps its shared expert to itself
        cut = np.where(table.exchanges, table.n_tensor, table.n_tensor)
        yield from _dense(
            ffn.d_shared, ffn.n_matrices, d_model, cut, work, formats, "share", "shared expert"
        )


def _sent(
    ffn: Experts,
    d_model: int,
    table: DeploymentTable,
    tokens: FloatArray,
    formats: ServedFormats,
) -> Iterator[Operation]:
    """Tokens to experts and back: by exchange, by gathering all tokens, or not at all."""
    group = np.where(table.exchanges, table.n_group, 1)
    own = tokens / np.maximum(table.n_tensor, 1)  # devices of a rank send its tokens by turns
    shape = {"d_model": d_model, "n_active": ffn.n_active, "n_devices": group}
    for name, part, number in (
        ("dispatch", "dispatch", INPUT_BYTES.get(formats.experts, 2.0)),
        ("combine", "combine", 2.0),
    ):
        yield Operation(
            name=name,
            layer="",
            part=part,  # type: ignore[arg-type]
            family=name,
            arguments={
                "tokens": own,
                "bytes_per_number": number,
                "n_groups": ffn.n_groups,
                "n_active_groups": ffn.n_active_groups,
                **shape,
            },
            sent_bytes=np.where(group > 1, own * (ffn.n_active * d_model * number), 0.0),
        )
    gathered = np.where(table.exchanges, 1, table.n_data)
    volume = tokens * table.n_data * (d_model * 2.0)
    yield message(
        "gather of tokens", "dispatch", "all_gather", n_bytes=volume, n_devices=gathered
    )
    yield message(
        "scatter of sums", "combine", "reduce_scatter", n_bytes=volume, n_devices=gathered
    )
    reduced = np.where(table.exchanges, 1, table.n_tensor)
    yield message(
        "all-reduce after experts",
        "reduce",
        "all_reduce",
        n_bytes=tokens * (d_model * 2.0),
        n_devices=reduced,
    )


def experts_hit(n_experts: int, n_active: int, tokens: FloatArray, local: FloatArray) -> FloatArray:
    """Experts of one device that at least one of the tokens visits, on average (N,).

    local · (1 − (1 − k/E)^T): tokens choose k of E experts alike and independently.
    """
    missed = np.power(1.0 - n_active / n_experts, np.asarray(tokens, dtype=float))
    return np.maximum(local * (1.0 - missed), np.minimum(1.0, local))


def _fused(
    ffn: Experts,
    d_model: int,
    table: DeploymentTable,
    tokens: FloatArray,
    formats: ServedFormats,
) -> Operation:
    local = ffn.n_experts / table.n_expert_parallel
    width = ffn.d_expert / table.n_expert_tensor
    pairs = tokens * ffn.n_active / table.n_expert_parallel
    hit = experts_hit(ffn.n_experts, ffn.n_active, tokens, local)
    weight = FORMAT_BYTES[formats.experts]
    each = ffn.n_matrices * d_model * width
    return Operation(
        name="experts",
        layer="",
        part="feed",
        family="experts",
        format=formats.experts,
        arguments={
            "tokens": tokens,
            "n_experts": ffn.n_experts,
            "n_experts_local": local,
            "n_active": ffn.n_active,
            "d_model": d_model,
            "d_expert": width,
            "n_matrices": ffn.n_matrices,
            "weight_bytes": weight,
            "input_bytes": INPUT_BYTES.get(formats.experts, 2.0),
        },
        flop=2.0 * pairs * each,
        hbm_bytes=hit * each * weight + pairs * (4.0 * d_model),
    )


def _two_products(
    ffn: Experts,
    d_model: int,
    table: DeploymentTable,
    tokens: FloatArray,
    formats: ServedFormats,
) -> Iterator[Operation]:
    local = ffn.n_experts / table.n_expert_parallel
    width = ffn.d_expert / table.n_expert_tensor
    pairs = tokens * ffn.n_active / table.n_expert_parallel
    hit = experts_hit(ffn.n_experts, ffn.n_active, tokens, local)
    n_up = ffn.n_matrices - 1
    weights = formats.experts
    yield elementwise(
        "tokens to their experts", "feed", pairs * (4.0 * d_model), n_kernels=1
    )
    yield grouped_gemm(
        "experts up", "feed", pairs, n_hit=hit, n=n_up * width, k=d_model, number_format=weights
    )
    yield elementwise(
        "experts' activation", "feed", pairs * width * (2.0 * ffn.n_matrices), n_kernels=1
    )
    yield grouped_gemm(
        "experts down", "feed", pairs, n_hit=hit, n=d_model, k=width, number_format=weights
    )
    yield elementwise(
        "sums of experts", "feed", pairs * (2.0 * d_model) + tokens * 0.0, n_kernels=1
    )
