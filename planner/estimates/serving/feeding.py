"""Operations of FFNs and experts, how tokens reach their experts, and of towers."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.estimates.pools import between_pools
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.operations import (
    INPUT_BYTES,
    Operation,
    Part,
    PassShape,
    all_reduce,
    elementwise,
    gemm,
    grouped_gemm,
    input_bytes,
    kernel,
    message,
    number_bytes,
)
from planner.estimates.serving.popularity import reached
from planner.specs.records.architecture import Experts, FeedForward, Ffn
from planner.specs.records.encoders import Encoder
from planner.specs.records.served_formats import ServedFormats


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
        width, cut, tokens = ffn.d_ff, table.n_tensor, work.n_tokens
        yield from _dense(width, ffn.n_matrices, d_model, cut, tokens, formats, "feed", "FFN")
        name = "all-reduce after the FFN"
        yield all_reduce(name, "reduce", work.n_tokens, d_model, table.n_tensor)
    else:
        yield from _experts(ffn, d_model, table, work, formats, fused=fused)


def _dense(
    width: int,
    n_matrices: int,
    d_model: int,
    cut: ArrayLike,
    tokens: FloatArray,
    formats: ServedFormats,
    part: Part,
    name: str,
) -> Iterator[Operation]:
    local = np.divide(width, cut)
    n_up = n_matrices - 1
    weights = formats.weights
    yield gemm(f"{name} up", part, tokens, n=n_up * local, k=d_model, number_format=weights)
    yield elementwise(f"{name} activation", part, tokens * local * (2.0 * n_matrices), n_kernels=1)
    yield gemm(f"{name} down", part, tokens, n=d_model, k=local, number_format=weights)


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
    # what experts on devices of their own leave to those of attention is done ahead of them
    part: Part = "project" if table.has_pools else "feed"
    yield gemm("router", part, tokens, n=ffn.n_experts, k=d_model, number_format="bf16")
    inside = ffn.d_latent or d_model
    if ffn.d_latent is not None:
        weights = formats.weights
        yield gemm("to latents", part, tokens, n=inside, k=d_model, number_format=weights)
        yield gemm("from latents", part, tokens, n=d_model, k=inside, number_format=weights)
    reads = bool(np.any(work.n_prompts))
    everywhere, cut, read = tokens * table.n_data, table.n_tensor, tokens
    if table.has_pools:  # each device has all shared experts, for its part of the tokens
        yield from between_pools(ffn, d_model, table, tokens, formats)
        cut, read = np.ones_like(cut), everywhere / table.n_experts_group
    else:
        yield from _sent(ffn, inside, table, tokens, formats, is_short=not reads)
    if fused:
        yield _fused(ffn, inside, table, everywhere, formats)
    else:
        yield from _two_products(ffn, inside, table, everywhere, formats, reads=reads)
    if ffn.d_shared:
        name, width = "shared expert", ffn.d_shared
        yield from _dense(width, ffn.n_matrices, d_model, cut, read, formats, "share", name)


def _sent(
    ffn: Experts,
    d_model: int,
    table: DeploymentTable,
    tokens: FloatArray,
    formats: ServedFormats,
    *,
    is_short: bool,
) -> Iterator[Operation]:
    """Tokens to experts and back: by exchange, by gathering all tokens, or not at all."""
    group = np.where(table.exchanges, table.n_group, 1)
    own = tokens / np.maximum(table.n_tensor, 1)  # devices of a rank send its tokens by turns
    shape: dict[str, Any] = {
        "d_model": d_model,
        "n_active": ffn.n_active,
        "n_devices": group,
        "is_short": is_short,
    }
    ways: tuple[tuple[Part, float], ...] = (
        ("dispatch", input_bytes(formats.experts)),
        ("combine", 2.0),
    )
    for part, number in ways:
        yield kernel(
            part,
            part,
            part,
            tokens=own,
            bytes_per_number=number,
            n_groups=ffn.n_groups,
            n_active_groups=ffn.n_active_groups,
            **shape,
        )
    gathered = np.where(table.exchanges, 1, table.n_data)
    volume = tokens * table.n_data * (d_model * 2.0)
    yield message("gather of tokens", "dispatch", "all_gather", n_bytes=volume, n_devices=gathered)
    yield message(
        "scatter of sums", "combine", "reduce_scatter", n_bytes=volume, n_devices=gathered
    )
    reduced = np.where(table.exchanges, 1, table.n_tensor)
    yield all_reduce("all-reduce after experts", "reduce", tokens, d_model, reduced)


def received(n_active: int, tokens: FloatArray, n_expert_parallel: ArrayLike) -> FloatArray:
    """Tokens that have at least one expert on a device, on average (N,)."""
    missed = np.power(1.0 - 1.0 / np.asarray(n_expert_parallel, dtype=float), n_active)
    return tokens * (1.0 - missed)


def _fused(
    ffn: Experts, d_model: int, table: DeploymentTable, tokens: FloatArray, formats: ServedFormats
) -> Operation:
    local = (ffn.n_experts + table.n_redundant) / table.n_expert_parallel
    width = ffn.d_expert / table.n_expert_tensor
    pairs, hit = reached(ffn, tokens, table)
    return kernel(
        "experts",
        "feed",
        "experts",
        formats.experts,
        tokens=tokens,
        n_experts=ffn.n_experts,
        n_experts_local=local,
        n_active=ffn.n_active,
        d_model=d_model,
        d_expert=width,
        n_up=ffn.n_matrices - 1.0,
        rows=pairs,
        n_hit=hit,
        # without a dispatch, a kernel walks through the rows of all experts
        walked_rows=np.where(table.exchanges, pairs, tokens * ffn.n_active),
        weight_bytes=number_bytes(formats.experts),
        input_bytes=input_bytes(formats.experts),
    )


def _two_products(
    ffn: Experts,
    d_model: int,
    table: DeploymentTable,
    tokens: FloatArray,
    formats: ServedFormats,
    *,
    reads: bool,
) -> Iterator[Operation]:
    width = ffn.d_expert / table.n_expert_tensor
    pairs, hit = reached(ffn, tokens, table)
    n_up = ffn.n_matrices - 1
    weights = formats.experts
    # short exchanges write tokens where experts read them, and add experts' outputs themselves
    moves = np.where(table.exchanges & (not reads), 0.0, 1.0)
    number = input_bytes(weights)
    arrived = received(ffn.n_active, tokens, table.n_expert_parallel)
    copied = moves * (arrived + pairs) * d_model
    yield elementwise("tokens to their experts", "feed", copied * number, n_kernels=moves)
    product = partial(grouped_gemm, n_hit=hit, number_format=weights, reads=reads)
    yield product("experts up", "feed", pairs, n=n_up * width, k=d_model)
    # masked products of decode take an activation that quantises; those of prefill do not
    after = 2.0 + number if reads and weights in INPUT_BYTES else 0.0
    yield elementwise(
        "experts' activation",
        "feed",
        pairs * width * (2.0 * ffn.n_matrices + after),
        n_kernels=2 if after else 1,
    )
    yield product("experts down", "feed", pairs, n=d_model, k=width)
    yield elementwise("sums of experts", "feed", copied * 2.0, n_kernels=moves)


def encoder_operations(
    tower: Encoder, d_model: int, table: DeploymentTable, work: PassShape
) -> Iterator[Operation]:
    """What a tower does of the images or sound of the prompts of a pass.

    Devices of a rank divide its matrices and add up as in the decoder (vLLM,
    `--mm-encoder-tp-mode weights`). A patch attends to all of its image, or of its window, which
    is as much arithmetic as a causal kernel has with half as many tokens before.
    """
    patches = np.multiply(work.read_tokens, tower.patches_per_token)
    heads = tower.width / 64 / table.n_tensor  # attention takes as long however width is divided
    shape: dict[str, Any] = {"n_heads": heads, "n_kv_heads": heads, "d_head": 64}
    for name, n_layers, k, n_params in tower.matrices:
        rows, columns = patches * tower.width / k, n_params / k / table.n_tensor
        product = gemm(f"tower: {name}", "model", rows, n=columns, k=k, number_format="bf16")
        yield product.within("model", n_layers)
    for name, n_layers, seen in tower.spans:
        shape |= {"tokens": seen, "past_tokens": seen / 2, "cache_bytes": 2.0}
        runs = kernel(f"tower: {name}", "model", "prefill_attention", batch=patches / seen, **shape)
        yield runs.within("model", n_layers)
    reduced = all_reduce("tower: all-reduces", "model", patches, tower.width, table.n_tensor)
    yield reduced.within("model", 2 * tower.n_layers)
    tokens = patches / tower.n_joined
    yield all_reduce("tower: all-reduce after it", "model", tokens, d_model, table.n_tensor)
