"""Bytes on the busiest device, by either rule of `request.MEMORY_RULES`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.equations.economics.transformer import (
    kv_bytes_per_token,
    n_attention_params,
    n_ffn_params,
    n_params,
)
from planner.estimates.economics.degrees import ffn_padding
from planner.estimates.economics.passes import Ways
from planner.specs.economics.records import EconomicsModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """Bytes on the busiest device of each layout (R,): weights, and caches of one request.

    `n_cached` is how many requests count at each batch (R, B).
    """

    weights_bytes: FloatArray
    request_bytes: FloatArray
    n_cached: IntArray

    def total_bytes(self, rows: slice | IntArray) -> FloatArray:
        """Weights and caches of some layouts (R', B)."""
        caches = self.request_bytes[rows, None] * self.n_cached[rows]
        return np.asarray(self.weights_bytes[rows, None] + caches)

    def most_bytes(self, starts: IntArray) -> FloatArray:
        """A bound on what any layout of each run holds at any batch (S,).

        Args:
            starts: the first row of each run (S,); the last ends with the last row.
        """
        most = np.maximum.reduceat
        n_cached = self.n_cached.max(axis=1)
        caches = most(self.request_bytes, starts) * most(n_cached, starts)
        return np.asarray(most(self.weights_bytes, starts) + caches)


def held(
    model: EconomicsModel, ways: Ways, batches: IntArray, *, n_cached_tokens: float, rule: str
) -> Held:
    """What every layout holds at every batch.

    In flight: a device of the fullest stage has ⌈L/P⌉ layers, of each its 1/t of attention and
    the fullest share of the FFN, its 1/T of one embedding, or of both where there is one
    stage, and its 1/T of the caches of all requests.

    One micro-batch: 1/N of all parameters, and of the caches of ⌈B/P⌉ requests.

    Source: [Erdil2025] §3.6 for the latter.
    """
    request = kv_bytes_per_token(model) * n_cached_tokens
    shape = (len(ways), len(batches))
    if rule == "one-microbatch":
        n_devices = ways.n_devices.astype(float)
        return Held(
            weights_bytes=n_params(model) * model.weight_bytes / n_devices,
            request_bytes=request / n_devices,
            n_cached=-(-batches // ways.n_stages[:, None]),
        )
    n_layers = np.ceil(model.n_layers / ways.n_stages)
    padding = ffn_padding(model, ways.n_tensor, ways.n_expert)
    ffn = n_ffn_params(model) / model.n_layers * padding / ways.n_tensor
    attention = n_attention_params(model) / ways.n_attention
    n_embeddings = np.where(ways.n_stages > 1, 1, 2)
    embedding = n_embeddings * model.vocab_size * model.d_model / ways.n_tensor
    return Held(
        weights_bytes=(n_layers * (attention + ffn) + embedding) * model.weight_bytes,
        request_bytes=request * (n_layers / model.n_layers / ways.n_tensor),
        n_cached=np.broadcast_to(batches, shape),
    )
