"""Latent attention, dense and on the devices of a `Cluster`.

Where the context is older than the pass, queries are brought to the latents, and what they
find there to values, by matrices that lie with the heads. Where all of the context is new,
these matrices make keys and values of the latents.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.specs.records.devices import ModelSpec
from tests.layouts.sharded import Device, Labels, Shard, Shards
from tests.layouts.sharded_block import ShardedBlock

HEAD_AXIS = 2


@dataclass(frozen=True)
class LatentWeights:
    """Weights of one layer's attention; `queries` has one matrix, or two around a latent."""

    queries: tuple[np.ndarray, ...]
    down: np.ndarray
    up_keys: np.ndarray
    up_values: np.ndarray
    output: np.ndarray


def random_latent_weights(model: ModelSpec, seed: int = 1) -> LatentWeights:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape) / np.sqrt(shape[0])

    mla, e, heads = model.mla, model.d_model, model.n_heads_served
    widths = (e, model.d_query) if mla.d_q_latent is None else (e, mla.d_q_latent, model.d_query)
    return LatentWeights(
        queries=tuple(draw(*pair) for pair in pairwise(widths)),
        down=draw(e, mla.d_kv_latent + mla.d_rope),
        up_keys=draw(mla.d_kv_latent, heads * mla.d_nope),
        up_values=draw(mla.d_kv_latent, heads * mla.d_value),
        output=draw(heads * mla.d_value, e),
    )


def in_heads(a: np.ndarray, width: int) -> np.ndarray:
    return a.reshape(*a.shape[:-1], -1, width)


def weighted(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Causal mean of values [b, context, heads, width] by scores [b, heads, new, context]."""
    n_new, n_context = scores.shape[2:]
    future = np.arange(n_context) > np.arange(n_new)[:, None] + n_context - n_new
    odds = np.exp(np.where(future, -np.inf, scores))
    mean = np.einsum("bhts,bshd->bthd", odds / odds.sum(-1, keepdims=True), values)
    return mean.reshape(*mean.shape[:2], -1)


def scores_of(queries: np.ndarray, keys: np.ndarray, d_head: int) -> np.ndarray:
    return np.einsum("bthd,bshd->bhts", queries, keys) / np.sqrt(d_head)


def dense_latent_attention(
    model: ModelSpec, w: LatentWeights, x: np.ndarray, past: np.ndarray
) -> np.ndarray:
    """Keys and values of every token, made of its latent; `past` holds cached latents."""
    mla, queries = model.mla, x
    for matrix in w.queries:
        queries = queries @ matrix
    cache = np.concatenate([past, x @ w.down], axis=1)
    latents, rotated = cache[..., : mla.d_kv_latent], cache[..., mla.d_kv_latent :]
    unrotated = in_heads(latents @ w.up_keys, mla.d_nope)
    shared = np.broadcast_to(rotated[:, :, None], (*unrotated.shape[:3], mla.d_rope))
    keys = np.concatenate([unrotated, shared], axis=-1)
    scores = scores_of(in_heads(queries, model.d_head), keys, model.d_head)
    return weighted(scores, in_heads(latents @ w.up_values, mla.d_value)) @ w.output


@dataclass
class LatentAttention:
    """The attention half of a layer, on the devices of a block."""

    block: ShardedBlock
    weights: LatentWeights

    def run(self, at_rest: Shards, past: np.ndarray) -> dict[Device, Shard]:
        """From the residual stream at rest to what attention adds to it."""
        block, w = self.block, self.weights
        first, latents = block.enter("attention", at_rest, [w.queries[0], w.down])
        queries = first
        if len(w.queries) == 2:
            whole = self.gathered("latents of queries", first, w.queries[0].shape[1])
            matrix = block.read(block.gather_heads(w.queries[1]))
            queries = block.cluster.multiply(whole, matrix)
        for up in (w.up_keys, w.up_values):
            block.gather_heads(up)  # then they rest on the device that has their heads
        attend = self.on_latents if past.shape[1] else self.on_keys
        return block.leave("attention", [attend(queries, latents, past)], [w.output])

    def on_latents(self, queries: Shards, latents: Shards, past: np.ndarray) -> Shards:
        block, mla = self.block, self.block.model.mla
        width = mla.d_kv_latent + mla.d_rope
        brought = self.each_head(queries, self.bring_to_latents, width)
        there = block.send_heads(brought, block.model.n_heads_served * width)
        pieces = block.send_heads(latents, width)
        over = block.over(block.heads)
        cache = block.cluster.exchange(
            "copies of shared KV heads",
            pieces,
            over,
            lambda d: (*pieces[d].labels[:2], every(width)),
        )
        found = {}
        for device, new in cache.items():
            kept = self.keep(device, new, past)
            own = in_heads(there[device].values, width)
            scores = scores_of(own, kept[:, :, None], block.model.d_head)
            values = kept[:, :, None, : mla.d_kv_latent]
            heads = np.broadcast_to(values, (*values.shape[:2], own.shape[2], mla.d_kv_latent))
            self.count(device, scores, width + mla.d_kv_latent)
            labels = self.relabel(there[device], width, mla.d_kv_latent)
            found[device] = Shard(weighted(scores, heads), labels)
        back = block.return_heads(found, block.model.n_heads_served * mla.d_kv_latent)
        return self.each_head(back, self.make_values, mla.d_value, mla.d_kv_latent)

    def on_keys(self, queries: Shards, latents: Shards, past: np.ndarray) -> Shards:
        block, mla, n_heads = self.block, self.block.model.mla, self.block.model.n_heads_served
        width = mla.d_kv_latent + mla.d_rope
        cache = self.gathered("latents of keys and values", latents, width)
        made = [
            {d: self.make(d, cache[d], queries[d], kind) for d in cache}
            for kind in ("keys", "values")
        ]
        widths = (block.model.d_query, n_heads * mla.d_nope, n_heads * mla.d_value)
        there = [
            block.send_heads(shards, total)
            for shards, total in zip((queries, *made), widths, strict=True)
        ]
        found = {}
        for device in cache:
            own, unrotated, values = (
                in_heads(shards[device].values, n)
                for shards, n in zip(
                    there, (block.model.d_head, mla.d_nope, mla.d_value), strict=True
                )
            )
            new = cache[device].part((*there[0][device].labels[:2], every(width)))
            kept = self.keep(device, new, past)
            rotated = np.broadcast_to(
                kept[:, :, None, mla.d_kv_latent :], (*unrotated.shape[:3], mla.d_rope)
            )
            keys = np.concatenate([unrotated, rotated], axis=-1)
            scores = scores_of(own, keys, block.model.d_head)
            self.count(device, scores, block.model.d_head + mla.d_value)
            found[device] = Shard(weighted(scores, values), there[2][device].labels)
        return block.return_heads(found, n_heads * mla.d_value)

    # pieces

    def gathered(self, purpose: str, shards: Shards, width: int) -> dict[Device, Shard]:
        """All columns, to every device that has a share of the heads."""
        block = self.block
        return block.cluster.exchange(
            purpose,
            shards,
            block.over(block.rest),
            lambda d: (*shards[d].labels[:2], every(width)),
        )

    def each_head(self, shards: Shards, step, width: int, old: int = 0) -> dict[Device, Shard]:
        """A step of every head by itself; `width` is what it leaves of a head."""
        old = old or self.block.model.d_head
        result = {}
        for device, shard in shards.items():
            heads = np.unique(shard.labels[HEAD_AXIS] // old)
            pieces = in_heads(shard.values, old)
            values = np.concatenate(
                [step(device, h, pieces[:, :, i]) for i, h in enumerate(heads)], axis=-1
            )
            result[device] = Shard(values, self.relabel(shard, old, width))
        return result

    def relabel(self, shard: Shard, old: int, new: int) -> Labels:
        heads = np.unique(shard.labels[HEAD_AXIS] // old)
        return (*shard.labels[:2], (heads[:, None] * new + np.arange(new)).ravel())

    def bring_to_latents(self, device: Device, head: int, query: np.ndarray) -> np.ndarray:
        mla = self.block.model.mla
        matrix = self.weights.up_keys[:, head * mla.d_nope : (head + 1) * mla.d_nope].T
        unrotated, rotated = query[..., : mla.d_nope], query[..., mla.d_nope :]
        return np.concatenate([self.product(device, unrotated, matrix), rotated], axis=-1)

    def make_values(self, device: Device, head: int, found: np.ndarray) -> np.ndarray:
        mla = self.block.model.mla
        matrix = self.weights.up_values[:, head * mla.d_value : (head + 1) * mla.d_value]
        return self.product(device, found, matrix)

    def make(self, device: Device, cache: Shard, queries: Shard, kind: str) -> Shard:
        """Keys or values of the device's heads, of all tokens of its group."""
        up, of_head = {
            "keys": (self.weights.up_keys, self.block.model.mla.d_nope),
            "values": (self.weights.up_values, self.block.model.mla.d_value),
        }[kind]
        labels = self.relabel(queries, self.block.model.d_head, of_head)
        latents = cache.values[..., : self.block.model.mla.d_kv_latent]
        return Shard(self.product(device, latents, up[:, labels[HEAD_AXIS]]), labels)

    def product(self, device: Device, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """By a matrix that rests on the device."""
        block = self.block
        block.cluster.matmul_flop[device] += 2 * left.size * right.shape[1]
        block.read_weights[device] = block.read_weights.get(device, 0) + right.size
        return left @ right

    def keep(self, device: Device, new: Shard, past: np.ndarray) -> np.ndarray:
        """The cache of the device's sequences, with what is new."""
        cache = np.concatenate([self.block.cached(past, new.labels), new.values], axis=1)
        self.block.held_kv[device] = cache.size
        return cache

    def count(self, device: Device, scores: np.ndarray, width: int) -> None:
        self.block.cluster.attention_flop[device] += 2 * scores.size * width


def every(width: int) -> np.ndarray:
    return np.arange(width)
