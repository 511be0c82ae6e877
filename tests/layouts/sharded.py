"""Transformer blocks that really run sharded, on devices that are entries of a dict.

Every tensor is cut into shards whose rows and columns carry their global numbers. Devices
see only their own shards; whatever else they need comes through `Cluster.exchange`, which
counts every number that a device receives from another one. So the counted volumes are what
a correct execution takes, and the layouts' claims can be held against them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import prod

import numpy as np

from planner.specs.records.devices import ModelSpec

Device = tuple[int, int, int]
Labels = tuple[np.ndarray, ...]
ALL = (0, 1, 2)


@dataclass(frozen=True)
class Shard:
    """Part of a tensor: its values, and the global indices along each dimension."""

    values: np.ndarray
    labels: Labels

    def part(self, wanted: Labels) -> Shard:
        """What of this shard lies in the wanted rows and columns."""
        if all(map(np.array_equal, self.labels, wanted)):
            return self
        kept = [np.flatnonzero(np.isin(a, b)) for a, b in zip(self.labels, wanted, strict=True)]
        labels = tuple(a[k] for a, k in zip(self.labels, kept, strict=True))
        return Shard(self.values[np.ix_(*kept)], labels)


Shards = Mapping[Device, Shard]


@cache
def _owned(
    sizes: Device, n: int, device: Device, cut: tuple[int, ...], order: tuple[int, ...]
) -> np.ndarray:
    blocks = np.arange(n) * prod(sizes[axis] for axis in order) // n
    mine = np.full(n, True)
    for axis in reversed(order):
        blocks, coordinate = np.divmod(blocks, sizes[axis])
        if axis in cut:
            mine &= coordinate == device[axis]
    return np.flatnonzero(mine)


def n_common(a: np.ndarray, b: np.ndarray) -> int:
    """Numbers that two lists of distinct numbers share."""
    return len(set(a.tolist()) & set(b.tolist()))


class _Union:
    """The shards of a group side by side: their sum, and how many of them hold each number."""

    def __init__(self, shards: list[Shard]) -> None:
        n_dims = len(shards[0].labels)
        shape = [max(s.labels[i].max() for s in shards) + 1 for i in range(n_dims)]
        self.total, self.n_holders = np.zeros(shape), np.zeros(shape, int)
        for shard in shards:
            self.total[np.ix_(*shard.labels)] += shard.values
            self.n_holders[np.ix_(*shard.labels)] += 1

    def at(self, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
        here = np.ix_(*labels)
        return self.total[here], self.n_holders[here]


@dataclass
class Cluster:
    """A mesh of devices, and what each of them has received and computed."""

    sizes: Device
    received: dict[str, dict[Device, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )
    matmul_flop: dict[Device, int] = field(default_factory=lambda: defaultdict(int))
    attention_flop: dict[Device, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def devices(self) -> list[Device]:
        return list(product(*(range(k) for k in self.sizes)))

    def peers(self, device: Device, axes: tuple[int, ...]) -> list[Device]:
        """Devices that differ only along the axes; the device itself is one of them."""
        free = (range(k) if axis in axes else (device[axis],) for axis, k in enumerate(self.sizes))
        return list(product(*free))

    def owned(
        self, n: int, device: Device, cut: tuple[int, ...], order: tuple[int, ...]
    ) -> np.ndarray:
        """Which of n indices a device owns: equal blocks over `order`, cut only over `cut`."""
        return _owned(self.sizes, n, device, cut, order)

    def exchange(
        self,
        purpose: str,
        shards: Shards,
        peers: Callable[[Device], list[Device]],
        wanted: Callable[[Device], Labels],
        *,
        adds: bool = False,
    ) -> dict[Device, Shard]:
        """Every device takes what it wants from its peers' shards, or adds it up.

        Gathers, scatters and all-to-alls differ only in what is wanted. A number that two
        peers hold, or none, is an error unless parts are added.
        """
        groups: dict[tuple[Device, ...], _Union] = {}
        result = {}
        for device in self.devices:
            group = tuple(peers(device))
            if group == (device,):
                result[device] = shards[device].part(wanted(device))
                assert result[device].values.size == prod(map(len, wanted(device))), purpose
                continue
            if group not in groups:
                groups[group] = _Union([shards[peer] for peer in group])
            labels = wanted(device)
            values, n_holders = groups[group].at(labels)
            assert (n_holders == (len(group) if adds else 1)).all(), purpose
            own = prod(n_common(a, b) for a, b in zip(shards[device].labels, labels, strict=True))
            self.received[purpose][device] += int(n_holders.sum()) - own
            result[device] = Shard(values, labels)
        return result

    def place(self, dense: np.ndarray, labels: Callable[[Device], Labels]) -> dict[Device, Shard]:
        """Shards of a tensor that lies there before anything runs."""
        return {d: Shard(dense[np.ix_(*labels(d))], labels(d)) for d in self.devices}

    def multiply(self, left: Shards, right: Shards) -> dict[Device, Shard]:
        """[batch, tokens, a] × [a, b] on every device."""
        result = {}
        for d in self.devices:
            np.testing.assert_array_equal(left[d].labels[-1], right[d].labels[0])
            self.matmul_flop[d] += 2 * left[d].values.size * right[d].values.shape[1]
            labels = (*left[d].labels[:-1], right[d].labels[1])
            result[d] = Shard(left[d].values @ right[d].values, labels)
        return result


@dataclass(frozen=True)
class Weights:
    """Dense weights of one layer, with random values."""

    inputs: tuple[np.ndarray, ...]
    output: np.ndarray
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    o: np.ndarray


def random_weights(model: ModelSpec, seed: int = 0) -> Weights:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape) / np.sqrt(shape[0])

    e, f = model.d_model, model.d_ff
    return Weights(
        inputs=tuple(draw(e, f) for _ in range(model.n_ffn_inputs)),
        output=draw(f, e),
        q=draw(e, model.d_query),
        k=draw(e, model.d_kv),
        v=draw(e, model.d_kv),
        o=draw(model.d_query, e),
    )


def activate(*inputs: np.ndarray) -> np.ndarray:
    """Plain or gated: tanh of the first, times the second."""
    return np.tanh(inputs[0]) * (inputs[1] if len(inputs) > 1 else 1.0)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, d_head: int) -> np.ndarray:
    """Causal attention of [batch, new, H D] to [batch, context, Hkv D]; H a multiple of Hkv."""
    split = [a.reshape(*a.shape[:2], -1, d_head) for a in (q, k, v)]
    queries, keys, values = (
        split[0],
        *(np.repeat(a, split[0].shape[2] // a.shape[2], axis=2) for a in split[1:]),
    )
    scores = np.einsum("bthd,bshd->bhts", queries, keys) / np.sqrt(d_head)
    n_new, n_context = scores.shape[2:]
    future = np.arange(n_context) > np.arange(n_new)[:, None] + n_context - n_new
    scores = np.exp(np.where(future, -np.inf, scores))
    mean = np.einsum("bhts,bshd->bthd", scores / scores.sum(-1, keepdims=True), values)
    return mean.reshape(q.shape)


def dense_block(
    model: ModelSpec, w: Weights, x: np.ndarray, past: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """The unsharded block; `past` holds the cached keys and values [batch, tokens, Hkv D]."""

    def attention(a: np.ndarray) -> np.ndarray:
        keys, values = (
            np.concatenate([cached, a @ new], axis=1)
            for cached, new in zip(past, (w.k, w.v), strict=True)
        )
        return attend(a @ w.q, keys, values, model.d_head) @ w.o

    def ffn(a: np.ndarray) -> np.ndarray:
        return activate(*(a @ matrix for matrix in w.inputs)) @ w.output

    if model.is_parallel:
        return x + attention(x) + ffn(x)
    middle = x + attention(x)
    return middle + ffn(middle)
