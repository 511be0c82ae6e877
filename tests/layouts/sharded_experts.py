"""Layers with experts, dense and on the devices of a `Cluster`.

Which experts a token visits is given, so that loads are even and counts exact; how much each
counts is the router's to say. What it says travels besides, as `routes`: a few numbers a
token, which the layouts leave out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from planner.specs.records import ModelSpec
from tests.layouts.sharded import ALL, Device, Labels, Shard, Shards, Weights, activate
from tests.layouts.sharded_block import ShardedBlock, add


@dataclass(frozen=True)
class Expert:
    """One FFN, whole or a slice of it."""

    inputs: tuple[np.ndarray, ...]
    output: np.ndarray

    @property
    def n_params(self) -> int:
        return sum(matrix.size for matrix in (*self.inputs, self.output))

    def sliced(self, columns: np.ndarray) -> Expert:
        return Expert(tuple(m[:, columns] for m in self.inputs), self.output[columns])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return activate(*(x @ matrix for matrix in self.inputs)) @ self.output


@dataclass(frozen=True)
class ExpertWeights:
    """Router [E, experts], routed experts, and the shared ones as one FFN."""

    router: np.ndarray
    routed: tuple[Expert, ...]
    shared: Expert | None


def random_expert_weights(model: ModelSpec, seed: int = 2) -> ExpertWeights:
    rng = np.random.default_rng(seed)

    def draw(width: int) -> Expert:
        inputs = [rng.normal(size=(model.d_model, width)) for _ in range(model.n_ffn_inputs)]
        output = rng.normal(size=(width, model.d_model))
        return Expert(tuple(m / np.sqrt(model.d_model) for m in inputs), output / np.sqrt(width))

    moe = model.moe
    return ExpertWeights(
        router=rng.normal(size=(model.d_model, moe.n_experts)) / np.sqrt(model.d_model),
        routed=tuple(draw(moe.d_expert) for _ in range(moe.n_experts)),
        shared=draw(moe.n_shared_experts * moe.d_expert) if moe.n_shared_experts else None,
    )


def spread_routes(n_tokens: int, n_experts: int, n_active: int, n_ways: int) -> np.ndarray:
    """Experts of each token [tokens, K], on as many of the devices that share them as can be.

    Turn by turn, so that of `n_experts` tokens in a row every expert has equally many.
    """
    tokens, turns = np.arange(n_tokens)[:, None], np.arange(n_active)
    device = (tokens + turns) % n_ways
    per_device = n_experts // n_ways
    return device * per_device + (tokens // n_ways + turns // n_ways) % per_device


def gates_of(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits)
    return odds / odds.sum(-1, keepdims=True)


def dense_experts(w: ExpertWeights, x: np.ndarray, routes: np.ndarray) -> np.ndarray:
    """Every expert computed for every token [batch, tokens, E], and weighted."""
    flat = x.reshape(-1, x.shape[-1])
    gates = gates_of(flat @ w.router)
    out = np.zeros_like(flat) if w.shared is None else w.shared(flat)
    for number, expert in enumerate(w.routed):
        visits = (routes == number).any(axis=1)[:, None]
        out = out + np.where(visits, gates[:, [number]] * expert(flat), 0.0)
    return out.reshape(x.shape)


@dataclass
class ExpertBlock(ShardedBlock):
    """A serial block whose FFN is made of experts; `gathered` are the axes of copies.

    Experts lie over the largest group of axes that has at most one device for each, and are
    cut along their FFN dimension over the others.
    """

    experts: ExpertWeights = None
    routes: np.ndarray = None
    read_experts: dict[Device, int] = field(default_factory=dict)

    @property
    def is_dispatched(self) -> bool:
        return prod(self.cluster.sizes[axis] for axis in self.gathered) > 1

    @property
    def expert_axes(self) -> tuple[int, ...]:
        groups = [tuple(a for a in ALL if mask >> a & 1) for mask in range(8)]
        sizes = [prod(self.cluster.sizes[axis] for axis in group) for group in groups]
        return groups[
            max(range(8), key=lambda i: (sizes[i] <= len(self.experts.routed)) * sizes[i])
        ]

    def resting(self):
        """Tokens that are dispatched are whole: the stream is cut over sequences instead of E."""
        if not self.is_dispatched:
            return super().resting()
        return self.activations(self.model.d_model, (), ALL)

    def gather_weights(self, dense: np.ndarray, *, hidden: int) -> dict[Device, Shard]:
        """Nothing travels: a device has its columns or rows, along `gathered` a copy."""

        def labels(device: Device) -> Labels:
            own = self.columns(dense.shape[hidden], device, self.y)
            whole = np.arange(dense.shape[1 - hidden])
            return (whole, own) if hidden == 1 else (own, whole)

        placed = self.cluster.place(dense, labels)
        for device, shard in placed.items():
            self.read_weights[device] = self.read_weights.get(device, 0) + shard.values.size
        return placed

    def run_layer(self, x: np.ndarray, attention) -> dict[Device, Shard]:
        """`attention` is called with the residual stream at rest, and returns what it adds."""
        self.n_sequences, self.n_new = x.shape[:2]
        at_rest = self.cluster.place(x, self.resting())
        middle = add(at_rest, attention(at_rest))
        return add(middle, self.dispatched(middle) if self.is_dispatched else self.taken(middle))

    def plain_attention(self, weights: Weights, past: tuple):
        """Attention without latents."""

        def attention(at_rest: Shards) -> dict[Device, Shard]:
            qkv = self.enter("attention", at_rest, [weights.q, weights.k, weights.v])
            return self.leave("attention", [self.attention(*qkv, past)], [weights.o])

        return attention

    # tokens gathered

    def taken(self, middle: Shards) -> dict[Device, Shard]:
        """Every device gathers all tokens for its experts, and their sums are scattered."""
        cluster = self.cluster
        logits = cluster.multiply(middle, self.router_rows(middle))
        everything = self.activations(len(self.experts.routed), (), ())
        routing = cluster.exchange("routes", logits, self.over(ALL), everything, adds=True)
        whole = self.activations(self.model.d_model, (), ())
        inputs = cluster.exchange("experts input", middle, self.over(ALL), whole)
        sums = {}
        for device in cluster.devices:
            tokens = inputs[device].values.reshape(-1, self.model.d_model)
            gates = gates_of(routing[device].values.reshape(len(tokens), -1))
            out = self.visited(device, tokens, np.arange(len(tokens)), gates)
            sums[device] = Shard(out.reshape(inputs[device].values.shape), inputs[device].labels)
        if self.experts.shared:
            sums = add(sums, self.shared(inputs))
        return cluster.exchange("experts output", sums, self.over(ALL), self.resting(), adds=True)

    def router_rows(self, middle: Shards) -> dict[Device, Shard]:
        """The router, cut along E as the stream is."""
        every = np.arange(len(self.experts.routed))
        rows = self.cluster.place(self.experts.router, lambda d: (middle[d].labels[2], every))
        self.read(rows)
        return rows

    # tokens dispatched

    def dispatched(self, middle: Shards) -> dict[Device, Shard]:
        """Every token to the devices of its experts, and what each of them makes of it back."""
        cluster, d_model = self.cluster, self.model.d_model
        every = (np.arange(d_model), np.arange(len(self.experts.routed)))
        router = cluster.place(self.experts.router, lambda device: every)
        self.read(router)
        logits = cluster.multiply(middle, router)
        own = {d: self.token_numbers(shard) for d, shard in middle.items()}
        flat = {d: shard.values.reshape(-1, d_model) for d, shard in middle.items()}
        gates = {d: gates_of(logits[d].values.reshape(len(own[d]), -1)) for d in own}
        out = {d: np.zeros_like(tokens) for d, tokens in flat.items()}
        for device in cluster.devices:
            here = self.experts_of(device)
            for source in cluster.devices:
                sent = np.flatnonzero(np.isin(self.routes[own[source]], here).any(axis=1))
                out[source][sent] += self.visited(
                    device, flat[source][sent], own[source][sent], gates[source][sent]
                )
                if source != device:
                    cluster.received["tokens to their experts"][device] += len(sent) * d_model
                    back = cluster.received["expert outputs to their tokens"]
                    back[source] += len(sent) * d_model
        routed = {d: Shard(out[d].reshape(middle[d].values.shape), middle[d].labels) for d in out}
        return add(routed, self.shared_apart(middle)) if self.experts.shared else routed

    def token_numbers(self, shard: Shard) -> np.ndarray:
        sequences, tokens = shard.labels[:2]
        return (sequences[:, None] * self.n_new + tokens).ravel()

    def shared_apart(self, middle: Shards) -> dict[Device, Shard]:
        """Shared experts gather the tokens of their replica of attention."""
        over, whole = self.over(self.y), self.activations(self.model.d_model, (), self.gathered)
        inputs = self.cluster.exchange("shared experts input", middle, over, whole)
        return self.cluster.exchange(
            "shared experts output", self.shared(inputs), over, self.resting(), adds=True
        )

    # experts

    def shared(self, inputs: Shards) -> dict[Device, Shard]:
        hidden = [
            self.cluster.multiply(inputs, self.gather_weights(matrix, hidden=1))
            for matrix in self.experts.shared.inputs
        ]
        output = self.gather_weights(self.experts.shared.output, hidden=0)
        return self.cluster.multiply(self.ffn(hidden), output)

    def experts_of(self, device: Device) -> np.ndarray:
        n_experts, axes = len(self.experts.routed), self.expert_axes
        return self.cluster.owned(n_experts, device, axes, axes)

    def visited(
        self, device: Device, tokens: np.ndarray, numbers: np.ndarray, gates: np.ndarray
    ) -> np.ndarray:
        """What the device's experts, or slices of them, add to tokens [tokens, E]."""
        others = tuple(axis for axis in ALL if axis not in self.expert_axes)
        columns = self.cluster.owned(self.model.moe.d_expert, device, others, others)
        out = np.zeros_like(tokens)
        read = 0
        for number in self.experts_of(device):
            expert = self.experts.routed[number].sliced(columns)
            read += expert.n_params
            visitors = np.flatnonzero((self.routes[numbers] == number).any(axis=1))
            self.cluster.matmul_flop[device] += 2 * len(visitors) * expert.n_params
            out[visitors] += gates[visitors][:, [number]] * expert(tokens[visitors])
        self.read_experts[device] = read
        return out

    def read(self, matrices: Shards) -> None:
        for device, shard in matrices.items():
            self.read_weights[device] = self.read_weights.get(device, 0) + shard.values.size
