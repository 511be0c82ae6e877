"""Deployments of a model on an engine, as parallel arrays: degrees, batches, formats.

An attention rank is a group of `n_tensor` devices that share the heads; `n_data` such ranks
serve sequences of their own. The same n_tensor · n_data devices hold the experts, cut into
`n_expert_parallel` groups of experts, each cut further `n_expert_tensor` ways. Stages of a
pipeline repeat all of it. Where experts have devices of their own, these hold them instead: a
whole share each, and the batch goes to and fro between both pools in micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.equations.arrays import BoolArray, FloatArray, IntArray, each_array
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Recurrence
from planner.specs.records.runtimes import ModelKind
from planner.specs.records.served_formats import ServedFormats


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentTable:
    """N deployments; every array has shape (N,).

    Args:
        n_tensor: devices that share the heads of one attention rank.
        n_data: attention ranks.
        n_stages: stages of the pipeline.
        n_expert_parallel: groups that the experts are dealt to.
        n_expert_tensor: devices that each expert is cut over.
        n_redundant: copies of experts beside the first of each, of a layer, which a balancer deals.
        batch: sequences that decode at once on one attention rank.
        chunk_tokens: most tokens of one pass while prompts are read.
        overlaps: two micro-batches hide each other's messages.
        exchanges: tokens are sent to their experts, instead of gathered everywhere.
        n_expert_devices: devices of their own that experts lie on; 0 where they lie on those of
            attention. Of one table all have some, or none has.
        n_microbatches: parts of the batch that go to and fro between both.
        formats: distinct choices of formats.
        format_index: which of them each deployment has.
    """

    n_tensor: IntArray
    n_data: IntArray
    n_stages: IntArray
    n_expert_parallel: IntArray
    n_expert_tensor: IntArray
    n_redundant: IntArray
    batch: FloatArray
    chunk_tokens: FloatArray
    overlaps: BoolArray
    exchanges: BoolArray
    n_expert_devices: IntArray
    n_microbatches: IntArray
    formats: tuple[ServedFormats, ...]
    format_index: IntArray

    def __len__(self) -> int:
        return len(self.n_tensor)

    @property
    def n_group(self) -> IntArray:
        """Devices of one stage's attention; experts lie there too, or on devices of their own."""
        return self.n_tensor * self.n_data

    @property
    def n_devices(self) -> IntArray:
        return self.n_group * self.n_stages + self.n_expert_devices

    @property
    def has_pools(self) -> bool:
        """Whether experts have devices of their own."""
        return bool(self.n_expert_devices.any())

    @property
    def n_experts_group(self) -> IntArray:
        """Devices that hold every expert of a stage once."""
        return np.where(self.n_expert_devices > 0, self.n_expert_devices, self.n_group)

    def take(self, rows: IntArray | BoolArray) -> DeploymentTable:
        if rows.dtype == np.bool_ and rows.all():
            return self
        return each_array(self, lambda column: column[rows])

    def with_chunk(self, chunk_tokens: FloatArray | float) -> DeploymentTable:
        """The deployments with another chunk, or one for each (N,)."""
        chunk = np.asarray(chunk_tokens, dtype=float)
        return replace(self, chunk_tokens=np.broadcast_to(chunk, len(self)))

    def cut_runs(self, *others: FloatArray) -> Runs:
        """Rows that follow each other and are of one cut, alike in other arrays (N,) too.

        Returns:
            the first of each run (H,), and of each row the run that it is in (N,).
        """
        apart = (self.batch, self.chunk_tokens, self.formats)
        columns = (getattr(self, one.name) for one in fields(self))
        return runs(*(one for one in columns if not any(one is it for it in apart)), *others)


Runs = tuple[IntArray, IntArray]


def runs(*columns: NDArray[Any]) -> Runs:
    """Rows that follow each other and are alike: the first of each run (H,), and whose each is."""
    begins = np.zeros(len(columns[0]), dtype=np.bool_)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(begins), np.cumsum(begins) - 1


def deployments(
    *,
    formats: ServedFormats | Iterable[ServedFormats],
    n_tensor: ArrayLike = 1,
    n_data: ArrayLike = 1,
    n_stages: ArrayLike = 1,
    n_expert_parallel: ArrayLike = 1,
    n_expert_tensor: ArrayLike | None = None,
    n_redundant: ArrayLike = 0,
    batch: ArrayLike = 1.0,
    chunk_tokens: ArrayLike = 8192.0,
    overlaps: ArrayLike = False,
    exchanges: ArrayLike | None = None,
    n_expert_devices: ArrayLike = 0,
    n_microbatches: ArrayLike = 1,
    format_index: ArrayLike = 0,
) -> DeploymentTable:
    """A table from scalars and arrays, broadcast together.

    Experts are cut over what the groups leave: n_tensor · n_data / n_expert_parallel, unless
    told otherwise; they exchange tokens where there is more than one attention rank, or where
    they have devices of their own.
    """
    listed = (formats,) if isinstance(formats, ServedFormats) else tuple(formats)
    tensor, data, expert = (np.asarray(x) for x in (n_tensor, n_data, n_expert_parallel))
    pool = np.asarray(n_expert_devices)
    if n_expert_tensor is None:
        group = np.where(pool > 0, pool, tensor * data)
        n_expert_tensor = np.maximum(group // np.maximum(expert, 1), 1)
    if exchanges is None:
        exchanges = ((data > 1) & (expert > 1)) | (pool > 0)
    given = {
        "n_tensor": (tensor, np.int64),
        "n_data": (data, np.int64),
        "n_stages": (n_stages, np.int64),
        "n_expert_parallel": (expert, np.int64),
        "n_expert_tensor": (n_expert_tensor, np.int64),
        "n_redundant": (n_redundant, np.int64),
        "batch": (batch, np.float64),
        "chunk_tokens": (chunk_tokens, np.float64),
        "overlaps": (overlaps, np.bool_),
        "exchanges": (exchanges, np.bool_),
        "n_expert_devices": (pool, np.int64),
        "n_microbatches": (n_microbatches, np.int64),
        "format_index": (format_index, np.int64),
    }
    arrays: list[NDArray[np.generic]] = [
        np.asarray(value, dtype=kind) for value, kind in given.values()
    ]
    columns = [np.array(np.atleast_1d(a)) for a in np.broadcast_arrays(*arrays)]
    named: dict[str, Any] = dict(zip(given, columns, strict=True))
    return DeploymentTable(**named, formats=listed)


def has_experts(model: Architecture) -> bool:
    """Whether any layer routes tokens to experts."""
    return any(isinstance(layer.ffn, Experts) for layer in model.layers)


def kind_of(model: Architecture) -> ModelKind:
    """Whether a model is dense or a mixture of experts."""
    return "mixture" if has_experts(model) else "dense"


def kv_heads_per_device(mixer: GroupedAttention, table: DeploymentTable) -> FloatArray:
    """Key-value heads on one device: at least one, then held several times over (N,)."""
    return np.maximum(1.0, np.ceil(mixer.n_kv_heads / table.n_tensor))


def cached_numbers_per_device(
    mixer: GroupedAttention | LatentAttention | Recurrence, table: DeploymentTable
) -> FloatArray:
    """Numbers that one token leaves on one device in one such layer (N,)."""
    if isinstance(mixer, GroupedAttention):
        heads = kv_heads_per_device(mixer, table)
        return heads * (mixer.d_cached / mixer.n_kv_heads)
    return np.full(len(table), float(mixer.d_kept))  # the latent has no heads to be cut by
