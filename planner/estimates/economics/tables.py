"""Passes of one model as tables, and the walk down the layouts of a draft.

The draft has stages and ranks of its own, on exactly the target's devices. For a number of
devices and a batch only its fastest layout matters, and the fastest of those that hold
less, and so on: a staircase that is walked down as far as memory asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray, joined_arrays
from planner.equations.economics import transformer
from planner.estimates.economics.degrees import ffn_padding
from planner.estimates.economics.passes import LayoutRows, all_ways, pass_latency_s
from planner.specs.ask.targets import FREE, Degrees
from planner.specs.records.economics import DecodePass, EconomicsModel, EconomicsRequest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PassTable:
    """A pass of one model: layouts, time (R, B) [s], and bytes on the busiest device."""

    ways: LayoutRows
    latency_s: FloatArray
    held: Footprint

    def bytes_at(self, row: IntArray, place: IntArray) -> FloatArray:
        """What layouts hold at batches, one each (J,)."""
        caches = self.held.request_bytes[row] * self.held.n_cached[row, place]
        return np.asarray(self.held.weights_bytes[row] + caches)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DraftStep:
    """The fastest layout of a draft at each batch among those that hold less than the last.

    `row` is a row of the draft's table (B,); time is infinite where nothing is left.
    """

    row: IntArray
    latency_s: FloatArray
    held_bytes: FloatArray


def pass_table(request: EconomicsRequest, decode: DecodePass, degrees: Degrees = FREE) -> PassTable:
    """Every layout of a model on the pool at every batch, with degrees that are fixed."""
    sizes = np.asarray(request.batches, dtype=np.int64)
    ways = all_ways(decode, request.n_devices, most_stages=int(sizes.max()))
    fixed = (
        (ways.n_tensor, degrees.tensor),
        (ways.n_stages, degrees.pipeline),
        (ways.n_expert, degrees.expert),
    )
    kept = [of_way == degree for of_way, degree in fixed if degree is not None]
    if kept:
        ways = ways.take(np.flatnonzero(np.all(kept, axis=0)))
    return PassTable(
        ways=ways,
        latency_s=pass_latency_s(decode, ways, request.batches),
        held=footprints(
            decode.model, ways, sizes, n_cached_tokens=request.n_cached_tokens, rule=request.memory
        ),
    )


def draft_table(request: EconomicsRequest, decode: DecodePass | None) -> PassTable:
    """The same for a draft, with a last row that stands for none: no devices, no bytes."""
    zero = np.zeros(1, dtype=np.int64)
    nothing = LayoutRows(n_stages=zero, n_tensor=zero, n_expert=zero, n_attention=zero)
    n_batches = len(request.batches)
    absent = PassTable(
        ways=nothing,
        latency_s=np.full((1, n_batches), np.inf),
        held=Footprint(
            weights_bytes=np.zeros(1),
            request_bytes=np.zeros(1),
            n_cached=np.zeros((1, n_batches), dtype=np.int64),
        ),
    )
    if decode is None:
        return absent
    table = pass_table(request, decode)
    parts = (table, absent)
    ways, held = ([getattr(part, name) for part in parts] for name in ("ways", "held"))
    return joined_arrays(parts, ways=joined_arrays(ways), held=joined_arrays(held))


def staircase(drafts: PassTable, n_devices: int, *, room_bytes: float) -> Iterator[DraftStep]:
    """The draft's layouts on `n_devices`, from the fastest that fits down to the smallest."""
    rows = np.flatnonzero(drafts.ways.n_devices == n_devices)
    if rows.size == 0:
        return
    latency, size = drafts.latency_s[rows], drafts.held.total_bytes(rows)
    batch = np.arange(latency.shape[1])
    below = np.full(len(batch), np.nextafter(room_bytes, np.inf))
    while True:
        possible = np.where(size < below, latency, np.inf)
        best = possible.argmin(axis=0)
        chosen = possible[best, batch]
        if not np.isfinite(chosen).any():
            return
        below = np.where(np.isfinite(chosen), size[best, batch], 0.0)
        yield DraftStep(row=rows[best], latency_s=chosen, held_bytes=below)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Footprint:
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


def footprints(
    model: EconomicsModel, ways: LayoutRows, batches: IntArray, *, n_cached_tokens: float, rule: str
) -> Footprint:
    """What every layout holds at every batch.

    In flight: a device of the fullest stage has ⌈L/P⌉ layers, of each its 1/t of attention and
    the fullest share of the FFN, its 1/T of one embedding, or of both where there is one
    stage, and its 1/T of the caches of all requests.

    One micro-batch: 1/N of all parameters, and of the caches of ⌈B/P⌉ requests.

    Source: [Erdil2025] §3.6 for the latter.
    """
    request = transformer.kv_bytes_per_token(model) * n_cached_tokens
    shape = (len(ways), len(batches))
    if rule == "one-microbatch":
        n_devices = ways.n_devices.astype(float)
        return Footprint(
            weights_bytes=transformer.n_params(model) * model.weight_bytes / n_devices,
            request_bytes=request / n_devices,
            n_cached=-(-batches // ways.n_stages[:, None]),
        )
    n_layers = np.ceil(model.n_layers / ways.n_stages)
    padding = ffn_padding(model, ways.n_tensor, ways.n_expert)
    ffn = transformer.n_ffn_params(model) / model.n_layers * padding / ways.n_tensor
    attention = transformer.n_attention_params(model) / ways.n_attention
    n_embeddings = np.where(ways.n_stages > 1, 1, 2)
    embedding = n_embeddings * model.vocab_size * model.d_model / ways.n_tensor
    return Footprint(
        weights_bytes=(n_layers * (attention + ffn) + embedding) * model.weight_bytes,
        request_bytes=request * (n_layers / model.n_layers / ways.n_tensor),
        n_cached=np.broadcast_to(batches, shape),
    )
