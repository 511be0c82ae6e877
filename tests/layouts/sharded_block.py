"""One Transformer block under one layout, on the devices of a `Cluster`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.specs.records.devices import ModelSpec
from tests.layouts.sharded import (
    ALL,
    Cluster,
    Device,
    Labels,
    Shard,
    Shards,
    Weights,
    activate,
    attend,
)


def axes_of(mask: int) -> tuple[int, ...]:
    return tuple(axis for axis in ALL if mask >> axis & 1)


@dataclass
class ShardedBlock:
    """A block on a mesh.

    Args:
        stored: axes that cut E of the weights at rest; the others cut F and the heads.
        gathered: axes over which the batch is always cut, weights being gathered there or copies.
        moved: further axes over which attention cuts the batch.
        copies: those of `gathered` along which weights have copies.
    """

    model: ModelSpec
    cluster: Cluster
    weights: Weights
    stored: tuple[int, ...]
    gathered: tuple[int, ...]
    moved: tuple[int, ...]
    n_new: int = 1
    n_sequences: int = 1
    held_kv: dict[Device, int] = field(default_factory=dict)
    read_weights: dict[Device, int] = field(default_factory=dict)
    copies: tuple[int, ...] = ()

    @property
    def rest(self) -> tuple[int, ...]:
        return tuple(axis for axis in ALL if axis not in self.gathered)

    @property
    def x(self) -> tuple[int, ...]:
        return tuple(axis for axis in self.rest if axis in self.stored)

    @property
    def y(self) -> tuple[int, ...]:
        return tuple(axis for axis in self.rest if axis not in self.stored)

    @property
    def heads(self) -> tuple[int, ...]:
        """Axes that cut heads in attention."""
        return tuple(axis for axis in self.rest if axis not in self.moved)

    # labels: what a device owns

    def columns(self, width: int, device: Device, cut: tuple[int, ...]) -> np.ndarray:
        """Of E, F or heads × width. Devices next to each other in `heads` share heads."""
        order = (*self.heads, *self.moved, *self.gathered)
        return self.cluster.owned(width, device, cut, order)

    def sequences(self, device: Device, cut: tuple[int, ...]) -> np.ndarray:
        order = (*self.gathered, *self.moved, *self.heads)
        return self.cluster.owned(self.n_sequences, device, cut, order)

    def activations(self, width: int, cut: tuple[int, ...], batch: tuple[int, ...]):
        """Labels of [sequences, tokens, width], by device."""

        def labels(device: Device) -> Labels:
            columns = self.columns(width, device, cut)
            return self.sequences(device, batch), np.arange(self.n_new), columns

        return labels

    def resting(self):
        """Labels of the residual stream between halves of a layer."""
        return self.activations(self.model.d_model, self.rest, self.gathered)

    def over(self, axes: tuple[int, ...]):
        return lambda device: self.cluster.peers(device, axes)

    # weights

    @property
    def distinct(self) -> tuple[int, ...]:
        """Axes along which no weights have copies."""
        return tuple(axis for axis in ALL if axis not in self.copies)

    def gather_weights(self, dense: np.ndarray, *, hidden: int) -> dict[Device, Shard]:
        """From E_x F_yz at rest to what the device works with; `hidden` is the axis of F."""
        resting = tuple(axis for axis in self.distinct if axis not in self.stored)
        return self.read(self.brought(dense, hidden, (self.stored, resting), (self.x, self.y)))

    def gather_heads(self, dense: np.ndarray) -> dict[Device, Shard]:
        """Of a matrix that makes heads [d, heads]: columns as heads are cut, over all devices."""
        return self.brought(dense, 1, ((), self.distinct), ((), self.rest))

    def brought(
        self, dense: np.ndarray, hidden: int, at_rest: tuple, in_use: tuple
    ) -> dict[Device, Shard]:
        """Weights from the (E, F) cut at rest to that in use, over the axes of gathering."""

        def labels(cut: tuple[tuple[int, ...], tuple[int, ...]]):
            def of(device: Device) -> Labels:
                cuts = cut if hidden == 1 else cut[::-1]
                rows, columns = (
                    self.columns(n, device, axes) for n, axes in zip(dense.shape, cuts, strict=True)
                )
                return rows, columns

            return of

        over = self.over(tuple(axis for axis in self.gathered if axis not in self.copies))
        placed = self.cluster.place(dense, labels(at_rest))
        return self.cluster.exchange("weights", placed, over, labels(in_use))

    def read(self, matrices: Shards) -> Shards:
        """What a device multiplies by."""
        for device, shard in matrices.items():
            self.read_weights[device] = self.read_weights.get(device, 0) + shard.values.size
        return matrices

    # one round: gather the input, multiply, scatter the hidden, and back

    def enter(self, name: str, at_rest: Shards, matrices: list[np.ndarray]) -> list[Shards]:
        """Hidden inputs, cut over all devices that work together."""
        width = self.model.d_model
        inputs = self.cluster.exchange(
            f"{name} input",
            at_rest,
            self.over(self.y),
            self.activations(width, self.x, self.gathered),
        )
        return [
            self.cluster.exchange(
                f"{name} hidden partial sums",
                self.cluster.multiply(inputs, self.gather_weights(matrix, hidden=1)),
                self.over(self.x),
                self.activations(matrix.shape[1], self.rest, self.gathered),
                adds=True,
            )
            for matrix in matrices
        ]

    def leave(
        self, name: str, hidden: list[Shards], matrices: list[np.ndarray]
    ) -> dict[Device, Shard]:
        """Output, cut as the residual stream rests. Outputs are added before they travel."""
        sums: list[Shards] = []
        for shards, matrix in zip(hidden, matrices, strict=True):
            labels = self.activations(matrix.shape[0], self.y, self.gathered)
            whole = self.cluster.exchange(f"{name} hidden", shards, self.over(self.x), labels)
            matrix_shards = self.gather_weights(matrix, hidden=0)
            sums.append(self.cluster.multiply(whole, matrix_shards))
        total = {
            device: Shard(sum(s[device].values for s in sums), sums[0][device].labels)
            for device in self.cluster.devices
        }
        over = self.over(self.y)
        return self.cluster.exchange(f"{name} output", total, over, self.resting(), adds=True)

    # attention

    def attention(self, q: Shards, k: Shards, v: Shards, past: tuple) -> dict[Device, Shard]:
        """To the sequences, over the cache, and back."""
        model = self.model
        widths = (model.d_query, model.d_kv, model.d_kv)
        there = [self.send_heads(a, n) for a, n in zip((q, k, v), widths, strict=True)]
        whole = [
            self.whole_heads(f"copies of shared {name} heads", shards, width)
            for shards, name, width in zip(there, ("query", "KV", "KV"), widths, strict=True)
        ]
        results = {}
        for device in self.cluster.devices:
            queries, keys, values = (shards[device] for shards in whole)
            cached = [self.cached(a, keys.labels) for a in past]
            keys_values = [
                np.concatenate([old, new.values], axis=1)
                for old, new in zip(cached, (keys, values), strict=True)
            ]
            self.held_kv[device] = sum(a.size for a in keys_values)
            self.cluster.attention_flop[device] += 4 * queries.values.size * keys_values[0].shape[1]
            mean = Shard(attend(queries.values, *keys_values, model.d_head), queries.labels)
            results[device] = mean.part(there[0][device].labels)
        return self.return_heads(results, model.d_query)

    def return_heads(self, results: Shards, width: int) -> dict[Device, Shard]:
        """What attention made of each sequence, to the devices that hold the heads."""
        return self.cluster.exchange(
            "attention results to their heads",
            results,
            self.over(self.moved),
            self.activations(width, self.rest, self.gathered),
        )

    def send_heads(self, shards: Shards, width: int) -> dict[Device, Shard]:
        """What the projections made, to the devices of its sequences."""
        return self.cluster.exchange(
            "queries, keys, values to their sequences",
            shards,
            self.over(self.moved),
            self.activations(width, self.heads, (*self.gathered, *self.moved)),
        )

    def cached(self, dense: np.ndarray, labels: Labels) -> np.ndarray:
        return dense[np.ix_(labels[0], np.arange(dense.shape[1]), labels[2])]

    def whole_heads(self, purpose: str, shards: Shards, width: int) -> dict[Device, Shard]:
        """Pieces of heads are completed among the devices that hold the other pieces."""
        d_head = self.model.d_head

        def heads(device: Device) -> np.ndarray:
            return np.unique(shards[device].labels[2] // d_head)

        def sharing(device: Device) -> list[Device]:
            peers = self.cluster.peers(device, self.heads)
            return [peer for peer in peers if np.isin(heads(peer), heads(device)).any()]

        def labels(device: Device) -> Labels:
            columns = np.concatenate([np.arange(d_head) + h * d_head for h in heads(device)])
            return (*shards[device].labels[:2], columns)

        return self.cluster.exchange(purpose, shards, sharing, labels)

    def ffn(self, inputs: list[Shards]) -> dict[Device, Shard]:
        return {
            d: Shard(activate(*(s[d].values for s in inputs)), inputs[0][d].labels)
            for d in self.cluster.devices
        }

    def run(self, x: np.ndarray, past: tuple[np.ndarray, np.ndarray]) -> dict[Device, Shard]:
        """The block's output, cut as its input was."""
        self.n_sequences, self.n_new = x.shape[:2]
        w, model = self.weights, self.model
        qkv = [w.q, w.k, w.v]
        at_rest = self.cluster.place(x, self.resting())
        if model.is_parallel:
            hidden = self.enter("block", at_rest, [*qkv, *w.inputs])
            attended = self.attention(*hidden[:3], past)
            out = self.leave("block", [attended, self.ffn(hidden[3:])], [w.o, w.output])
            return add(at_rest, out)
        attended = self.attention(*self.enter("attention", at_rest, qkv), past)
        middle = add(at_rest, self.leave("attention", [attended], [w.o]))
        hidden = self.enter("FFN", middle, list(w.inputs))
        return add(middle, self.leave("FFN", [self.ffn(hidden)], [w.output]))


def add(a: Shards, b: Shards) -> dict[Device, Shard]:
    return {d: Shard(a[d].values + b[d].values, a[d].labels) for d in a}
