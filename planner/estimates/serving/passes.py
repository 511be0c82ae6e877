"""All operations of one pass through a model: layers class by class, then the head."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.deployments import (
    DeploymentTable,
    cached_numbers_per_device,
    kv_heads_per_device,
)
from planner.estimates.serving.feeding import ffn_operations
from planner.estimates.serving.mixing import AFTER_MIXING, mixer_operations
from planner.estimates.serving.operations import (
    INPUT_BYTES,
    STATIC,
    Operation,
    Part,
    PassShape,
    elementwise,
    gemm,
    message,
    number_bytes,
)
from planner.specs.architecture import Architecture, FeedForward, LayerClass
from planner.specs.mixers import GroupedAttention, LatentAttention
from planner.specs.served_formats import ServedFormats


def pass_operations(
    model: Architecture,
    table: DeploymentTable,
    work: PassShape,
    formats: ServedFormats,
    *,
    families: Collection[str],
    n_small_kernels: int,
    quantises: bool = False,
    whole: PassShape | None = None,
) -> list[Operation]:
    """Operations of one pass on one device; with a pipeline, of all its stages one by one.

    Args:
        families: closed forms that the device has constants for; decides whether experts are
            one measured kernel or two grouped products.
        n_small_kernels: elementwise kernels of a layer.
        quantises: inputs of products are quantised by kernels of their own.
        whole: the pass of which `work` is a micro-batch; the head sees it all.
    """
    found: list[Operation] = []
    for layer in model.layers:
        inside = list(_layer(layer, model.d_model, table, work, formats, families))
        if model.is_parallel_block and layer.ffn is not None:  # one sum for both
            inside = [one for one in inside if one.name != AFTER_MIXING]
        inside += _quantisation(inside) if quantises else []
        found += [operation.within(layer.name, layer.n_layers) for operation in inside]
        traffic = _small_traffic(layer, model.d_model, table, work, formats)
        small = elementwise("norms and rotations", "project", traffic, n_kernels=n_small_kernels)
        found.append(small.within(layer.name, layer.n_layers))
    return found + list(_outside(model, table, whole or work))


def _layer(
    layer: LayerClass,
    d_model: int,
    table: DeploymentTable,
    work: PassShape,
    formats: ServedFormats,
    families: Collection[str],
) -> Iterator[Operation]:
    if layer.mixer is not None:
        yield from mixer_operations(layer.mixer, d_model, table, work, formats)
    if layer.ffn is not None:
        fused = "experts" in families
        yield from ffn_operations(layer.ffn, d_model, table, work, formats, fused=fused)


def _quantisation(operations: list[Operation]) -> list[Operation]:
    """Kernels that read an input of 16 bits and write one of 8 or fewer, before each product."""
    found: dict[Part, list[Operation]] = {}
    for one in operations:
        if one.family == "gemm" and one.format.removesuffix(STATIC) in INPUT_BYTES:
            found.setdefault(one.part, []).append(one)
    return [
        elementwise(
            "quantisation",
            part,
            sum(
                np.multiply(one.arguments["m"], one.arguments["k"])
                * (2.0 + one.arguments["input_bytes"])
                for one in products
            ),
            n_kernels=len(products),
        )
        for part, products in found.items()
    ]


def _small_traffic(
    layer: LayerClass,
    d_model: int,
    table: DeploymentTable,
    work: PassShape,
    formats: ServedFormats,
) -> FloatArray:
    """Bytes of norms with their residuals, of rotations, and of what enters the cache (N,).

    A norm reads the residual and what is added to it, and writes both sums: four numbers of
    two bytes for each of d_model. Rotated heads are read and written once.
    """
    n_norms = sum(part is not None for part in (layer.mixer, layer.ffn))
    numbers = np.full(len(table), n_norms * 4.0 * d_model)
    cached: FloatArray = np.zeros(len(table))
    if layer.mixer is not None and hasattr(layer.mixer, "d_head"):
        numbers = numbers + 2.0 * layer.mixer.n_heads * layer.mixer.d_head / table.n_tensor
        cached = cached_numbers_per_device(layer.mixer, table)
    written = cached * (2.0 + number_bytes(formats.cache))
    total: FloatArray = work.n_tokens * (2.0 * numbers + written)
    if isinstance(layer.mixer, LatentAttention):  # keys made from latents, joined to rotated ones
        joined = layer.mixer.d_nope + layer.mixer.d_head
        total = total + work.read_tokens * (2.0 * layer.mixer.n_heads * joined) / table.n_tensor
    return total


def _outside(model: Architecture, table: DeploymentTable, work: PassShape) -> Iterator[Operation]:
    """Embedding, head and sampling, and what is handed from stage to stage."""
    local = model.vocab_size / table.n_tensor
    rows = work.n_logits
    yield message(
        "all-reduce after the embedding",
        "model",
        "all_reduce",
        n_bytes=work.n_tokens * (model.d_model * 2.0),
        n_devices=table.n_tensor,
    ).within("model", 1)
    yield gemm("head", "model", rows, n=local, k=model.d_model, number_format="bf16").within(
        "model", 1
    )
    yield message(
        "gather of logits",
        "model",
        "all_gather",
        n_bytes=rows * (model.vocab_size * 2.0),
        n_devices=table.n_tensor,
    ).within("model", 1)
    yield Operation(
        name="sampling",
        layer="model",
        part="model",
        family="sampling",
        arguments={"batch": rows, "vocab": model.vocab_size},
    )
    yield hand_over(model, table, work)


def hand_over(model: Architecture, table: DeploymentTable, work: PassShape) -> Operation:
    """What each device of a stage sends to one of the next."""
    handed = work.n_tokens * (model.d_model * 2.0) / table.n_tensor
    return Operation(
        name="hand-over between stages",
        layer="model",
        part="model",
        family="send",
        arguments={"n_bytes": handed, "n_sends": table.n_stages - 1, "n_group": table.n_group},
    )


def parameter_bytes(
    model: Architecture, table: DeploymentTable, formats: ServedFormats
) -> FloatArray:
    """Weights that the fullest device holds, (N,) [bytes].

    Stages hold equal numbers of layers, rounded up; the last one holds the head besides,
    the first the embedding. Routers and norms stay in 16 bits.
    """
    total: FloatArray = np.zeros(len(table))
    for layer in model.layers:
        total = total + layer.n_layers * layer_bytes(layer, model.d_model, table, formats)
    staged = np.ceil(model.n_layers / table.n_stages) / model.n_layers
    ends = np.where((table.n_stages == 1) & (not model.tied_embeddings), 2.0, 1.0)
    embedding = ends * model.vocab_size * model.d_model * 2.0 / table.n_tensor
    return total * staged + embedding


def layer_bytes(
    layer: LayerClass, d_model: int, table: DeploymentTable, formats: ServedFormats
) -> FloatArray:
    """Weights of one layer of a class on one device, (N,) [bytes]."""
    dense, held = number_bytes(formats.weights), np.full(len(table), layer.n_norm_params * 2.0)
    if layer.mixer is not None:
        params = layer.mixer.n_params(d_model)
        if isinstance(layer.mixer, GroupedAttention):
            keys = d_model * layer.mixer.d_keys_and_values
            copies = kv_heads_per_device(layer.mixer, table) / layer.mixer.n_kv_heads
            held = held + ((params - keys) / table.n_tensor + keys * copies) * dense
        else:
            held = held + params / table.n_tensor * dense
    if isinstance(layer.ffn, FeedForward):
        held = held + layer.ffn.n_params(d_model) / table.n_tensor * dense
    elif layer.ffn is not None:
        each = layer.ffn.expert_params(d_model) * number_bytes(formats.experts)
        held = held + (layer.ffn.n_experts + table.n_redundant) * each / table.n_group
        shared = layer.ffn.n_matrices * d_model * layer.ffn.d_shared
        held = held + shared / table.n_tensor * dense + d_model * layer.ffn.n_experts * 2.0
        held = held + 2 * d_model * (layer.ffn.d_latent or 0) * dense  # whole on each device
    return held
