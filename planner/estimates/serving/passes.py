"""All operations of one pass through a model: layers class by class, then the head."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.serving.deployments import (
    DeploymentTable,
    cached_numbers_per_device,
    kv_heads_per_device,
)
from planner.estimates.serving.feeding import encoder_operations, ffn_operations
from planner.estimates.serving.mixing import AFTER_MIXING, mixer_operations
from planner.estimates.serving.operations import (
    INPUT_BYTES,
    Operation,
    Part,
    PassShape,
    all_reduce,
    elementwise,
    gemm,
    kernel,
    message,
    number_bytes,
)
from planner.specs.records.architecture import Architecture, FeedForward, LayerClass
from planner.specs.records.mixers import GroupedAttention, LatentAttention
from planner.specs.records.served_formats import STATIC, ServedFormats


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
    operations: list[Operation] = []
    for layer in model.layers:
        inside = list(_layer(layer, model.d_model, table, work, formats, families))
        if model.is_parallel_block and layer.ffn is not None:  # one sum for both
            inside = [one for one in inside if one.name != AFTER_MIXING]
        inside += _quantisation(inside) if quantises else []
        operations += [operation.within(layer.name, layer.n_layers) for operation in inside]
        traffic = _small_traffic(layer, model.d_model, table, work, formats)
        small = elementwise("norms and rotations", "project", traffic, n_kernels=n_small_kernels)
        operations.append(small.within(layer.name, layer.n_layers))
    return operations + [one.within("model", 1) for one in _outside(model, table, whole or work)]


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
    by_part: dict[Part, list[Operation]] = {}
    for one in operations:
        if one.family == "gemm" and one.format.removesuffix(STATIC) in INPUT_BYTES:
            by_part.setdefault(one.part, []).append(one)
    return [
        elementwise(
            "quantisation",
            part,
            sum(
                np.multiply(operation.arguments["m"], operation.arguments["k"])
                * (2.0 + operation.arguments["input_bytes"])
                for operation in products
            ),
            n_kernels=len(products),
        )
        for part, products in by_part.items()
    ]


def _small_traffic(
    layer: LayerClass, d_model: int, table: DeploymentTable, work: PassShape, formats: ServedFormats
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
    name = "all-reduce after the embedding"
    yield all_reduce(name, "model", work.n_tokens, model.d_model, table.n_tensor)
    yield gemm("head", "model", rows, n=local, k=model.d_model, number_format="bf16")
    yield message(
        "gather of logits",
        "model",
        "all_gather",
        n_bytes=rows * (model.vocab_size * 2.0),
        n_devices=table.n_tensor,
    )
    yield kernel("sampling", "model", "sampling", batch=rows, vocab=model.vocab_size)
    yield hand_over(model, table, work)
    if model.encoder is not None and np.any(work.read_tokens) and model.encoder.images:
        yield from encoder_operations(model.encoder, model.d_model, table, work)


def hand_over(model: Architecture, table: DeploymentTable, work: PassShape) -> Operation:
    """What each device of a stage sends to one of the next."""
    handed = work.n_tokens * (model.d_model * 2.0) / table.n_tensor
    sends, group = table.n_stages - 1, table.n_group
    return kernel(
        "hand-over between stages", "model", "send", n_bytes=handed, n_sends=sends, n_group=group
    )


def parameter_bytes(
    model: Architecture, table: DeploymentTable, formats: ServedFormats
) -> FloatArray:
    """Weights that the fullest device holds, (N,) [bytes].

    Stages hold equal numbers of layers, rounded up; the last one holds the head besides,
    the first the embedding and what sees or hears, cut over its ranks (vLLM,
    `--mm-encoder-tp-mode weights`). These, routers and norms stay in 16 bits.
    """
    total: FloatArray = np.zeros(len(table))
    for layer in model.layers:
        total = total + layer.n_layers * layer_bytes(layer, model.d_model, table, formats)
    staged = np.ceil(model.n_layers / table.n_stages) / model.n_layers
    ends = np.where((table.n_stages == 1) & (not model.tied_embeddings), 2.0, 1.0)
    words = ends * model.vocab_size * model.d_model
    return total * staged + (words + model.n_encoder_params) * 2.0 / table.n_tensor


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
        if not table.has_pools:
            held = held + (layer.ffn.n_experts + table.n_redundant) * each / table.n_group
            shared = layer.ffn.n_matrices * d_model * layer.ffn.d_shared
            held = held + shared / table.n_tensor * dense
        held = held + d_model * layer.ffn.n_experts * 2.0
        held = held + 2 * d_model * (layer.ffn.d_latent or 0) * dense  # whole on each device
    return held


WORTH = 0.5
"""Groups for each deployment beyond which nothing is gained."""

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
_APART = tuple(float(np.sqrt(n) * 10.0 ** (n % 4)) for n in _PRIMES)
"""Weights of columns in a key; if two groups share one, their operations are timed row by row."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouping:
    """Groups of deployments.

    Of some thousand deployments most operations see a few numbers only: a product its tokens and
    the degree that cuts it, whatever the stages, the groups of experts and the chunk.

    Args:
        first: a deployment of each group (G,).
        group: of each deployment (N,).
    """

    first: IntArray
    group: IntArray
    _even: dict[int, tuple[Any, bool]] = field(default_factory=dict)

    def one_of_each(self, operation: Operation) -> Operation | None:
        """The operation on a deployment of each group; None if some group differs in it."""
        if not all(map(self._is_even, operation.arguments.values())):
            return None
        taken = {name: self._taken(value) for name, value in operation.arguments.items()}
        return replace(operation, arguments=taken)

    def spread(self, values: FloatArray) -> FloatArray:
        """Values of the groups, to each deployment (N,)."""
        return np.broadcast_to(values, self.first.shape)[self.group]

    def _taken(self, value: Any) -> Any:  # noqa: ANN401 a number, a flag or an array
        return value[self.first] if np.shape(value) == self.group.shape else value

    def _is_even(self, value: Any) -> bool:  # noqa: ANN401
        """Whether a value is the same for all deployments of each group."""
        if np.ndim(value) == 0 or np.shape(value) == (1,):
            return True
        if np.shape(value) != self.group.shape:
            return False
        known = self._even.get(id(value))
        if known is None or known[0] is not value:
            known = (value, bool((value[self.first][self.group] == value).all()))
            self._even[id(value)] = known  # kept, so that nothing else has its id
        return known[1]


def grouping_of(columns: Sequence[Any]) -> Grouping | None:
    """Deployments with equal columns (N,) each, or numbers; None if few are.

    Args:
        columns: as many as there are weights in `_APART`, at most.
    """
    arrays = np.broadcast_arrays(*columns)
    if np.ndim(arrays[0]) == 0:
        return None
    first, group = _by_key(arrays)
    if len(first) > WORTH * len(group):
        return None
    return Grouping(first=first, group=group)


def equal_rows(columns: Sequence[Any]) -> tuple[IntArray, IntArray]:
    """Rows that are equal in all columns (N,): one of each group (G,), and the group of each.

    Args:
        columns: as many as there are weights in `_APART`, at most.
    """
    first, group = _by_key(columns)
    if all((one[first][group] == one).all() for one in columns):
        return first, group
    return np.arange(len(group)), np.arange(len(group))  # two groups share a key


def _by_key(columns: Sequence[Any]) -> tuple[IntArray, IntArray]:
    key = sum(np.asarray(one, dtype=float) * w for one, w in zip(columns, _APART, strict=False))
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return first, group
