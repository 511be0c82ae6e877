"""Layers with experts, dense and on the devices of a `Cluster`.

Which experts a token visits is given, so that loads are even and counts exact; how much each
counts is the router's to say. What it says travels besides, as `routes`: a few numbers a
token, which the layouts leave out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from planner.specs.records.devices import ModelSpec
from tests.layouts.sharded import ALL, Device, Shard, Shards, Weights, activate
from tests.layouts.sharded_block import ShardedBlock, add


@dataclass(frozen=True)
class Expert:
    """One FFN, whole or a slice of it."""

    inputs: tuple[np.ndarray, ...]
    output: np.ndarray

    @property
    def n_params(self) -> int:
        return sum(matrix.size for matrix in (*self.inputs, self.output))

    def sliced(self, rows: np.ndarray, columns: np.ndarray) -> Expert:
        """A part of E and of F."""
        inputs = tuple(m[np.ix_(rows, columns)] for m in self.inputs)
        return Expert(inputs, self.output[np.ix_(columns, rows)])

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
class Visits:
    """Tokens on a device for its experts.

    Args:
        tokens: their part of E [tokens, E/X].
        numbers: which tokens of the batch they are.
        gates: what each expert's word counts [tokens, experts].
    """

    tokens: np.ndarray
    numbers: np.ndarray
    gates: np.ndarray


@dataclass
class ExpertBlock(ShardedBlock):
    """A serial block whose FFN is made of experts.

    E of each expert is cut over x. Experts lie over the largest group of the axes that are left,
    without `sliced`, that has at most one device for each; the others cut their FFN dimension.
    """

    experts: ExpertWeights = None
    routes: np.ndarray = None
    sliced: tuple[int, ...] = ()
    read_experts: dict[Device, int] = field(default_factory=dict)

    def size(self, axes: tuple[int, ...]) -> int:
        return prod(self.cluster.sizes[axis] for axis in axes)

    @property
    def is_dispatched(self) -> bool:
        return self.size(self.gathered) > 1

    @property
    def beside_x(self) -> tuple[int, ...]:
        return tuple(axis for axis in ALL if axis not in self.x)

    @property
    def expert_axes(self) -> tuple[int, ...]:
        groups = [tuple(a for a in ALL if mask >> a & 1) for mask in range(8)]
        busy = {*self.x, *self.sliced}
        fitting = [
            group
            for group in groups
            if not busy & set(group) and self.size(group) <= len(self.experts.routed)
        ]
        return max(fitting, key=self.size)

    def resting(self):
        """Tokens that are dispatched are cut over sequences instead of E, but for E over x."""
        if not self.is_dispatched:
            return super().resting()
        return self.activations(self.model.d_model, self.x, self.beside_x)

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
        whole = self.activations(self.model.d_model, self.x, ())
        inputs = cluster.exchange("experts input", middle, self.over(self.y), whole)
        visits = {}
        for device, shard in inputs.items():
            tokens = shard.values.reshape(-1, shard.values.shape[-1])
            gates = gates_of(routing[device].values.reshape(len(tokens), -1))
            visits[device] = Visits(tokens, np.arange(len(tokens)), gates)
        sums = {
            device: Shard(out.reshape(inputs[device].values.shape), inputs[device].labels)
            for device, out in self.visited(visits).items()
        }
        if self.experts.shared:
            sums = add(sums, self.shared("experts", inputs))
        over = self.over(self.y)
        return cluster.exchange("experts output", sums, over, self.resting(), adds=True)

    def router_rows(self, middle: Shards) -> Shards:
        """The router, cut along E as the stream is."""
        every = np.arange(len(self.experts.routed))
        placed = self.cluster.place(self.experts.router, lambda d: (middle[d].labels[2], every))
        return self.read(placed)

    # tokens dispatched

    def dispatched(self, middle: Shards) -> dict[Device, Shard]:
        """Every token to the devices of its experts, and what each of them makes of it back."""
        cluster, n_experts = self.cluster, len(self.experts.routed)
        logits = cluster.multiply(middle, self.own_router())
        whole = self.activations(n_experts, (), self.beside_x)
        routing = cluster.exchange("routes", logits, self.over(self.x), whole, adds=True)
        own = {d: self.token_numbers(shard) for d, shard in middle.items()}
        flat = {d: shard.values.reshape(len(own[d]), -1) for d, shard in middle.items()}
        gates = {d: gates_of(routing[d].values.reshape(len(own[d]), -1)) for d in own}
        sent = {d: self.sent_to(d, own) for d in cluster.devices}
        visits = {
            device: Visits(
                *(
                    np.concatenate([held[source][rows] for source, rows in parts])
                    for held in (flat, own, gates)
                )
            )
            for device, parts in sent.items()
        }
        out = {d: np.zeros_like(tokens) for d, tokens in flat.items()}
        for device, made in self.visited(visits).items():
            start = 0
            for source, rows in sent[device]:
                out[source][rows] += made[start : start + len(rows)]
                start += len(rows)
                if source != device:
                    n_numbers = len(rows) * made.shape[1]
                    cluster.received["tokens to their experts"][device] += n_numbers
                    cluster.received["expert outputs to their tokens"][source] += n_numbers
        routed = {d: Shard(out[d].reshape(middle[d].values.shape), middle[d].labels) for d in out}
        return add(routed, self.shared_apart(middle)) if self.experts.shared else routed

    def own_router(self) -> Shards:
        """All of it, but for E over x; where there are no copies it comes from all devices."""
        every, width = np.arange(len(self.experts.routed)), self.model.d_model
        resting = self.x if self.copies else ALL
        placed = self.cluster.place(
            self.experts.router, lambda d: (self.columns(width, d, resting), every)
        )
        over = self.over(() if self.copies else self.beside_x)
        wanted = self.cluster.exchange(
            "router", placed, over, lambda d: (self.columns(width, d, self.x), every)
        )
        return self.read(wanted)

    def sent_to(self, device: Device, own: dict) -> list[tuple[Device, np.ndarray]]:
        """Of every device with the same part of E, which of its tokens visit this one."""
        here = self.experts_of(device)
        return [
            (source, np.flatnonzero(np.isin(self.routes[own[source]], here).any(axis=1)))
            for source in self.cluster.peers(device, self.beside_x)
        ]

    def token_numbers(self, shard: Shard) -> np.ndarray:
        sequences, tokens = shard.labels[:2]
        return (sequences[:, None] * self.n_new + tokens).ravel()

    def shared_apart(self, middle: Shards) -> dict[Device, Shard]:
        """Shared experts gather the tokens of their part of the batch."""
        over = self.over(self.y)
        whole = self.activations(self.model.d_model, self.x, self.gathered)
        inputs = self.cluster.exchange("shared experts input", middle, over, whole)
        sums = self.shared("shared experts", inputs)
        return self.cluster.exchange("shared experts output", sums, over, self.resting(), adds=True)

    # experts

    def shared(self, name: str, inputs: Shards) -> dict[Device, Shard]:
        """As any FFN: partial sums are scattered over x, and hidden activations gathered."""
        over, weights = self.over(self.x), self.experts.shared
        width = weights.output.shape[0]
        hidden = [
            self.cluster.exchange(
                f"{name} hidden partial sums",
                self.cluster.multiply(inputs, self.gather_weights(matrix, hidden=1)),
                over,
                self.activations(width, self.rest, self.gathered),
                adds=True,
            )
            for matrix in weights.inputs
        ]
        labels = self.activations(width, self.y, self.gathered)
        whole = self.cluster.exchange(f"{name} hidden", self.ffn(hidden), over, labels)
        return self.cluster.multiply(whole, self.gather_weights(weights.output, hidden=0))

    def experts_of(self, device: Device) -> np.ndarray:
        n_experts, axes = len(self.experts.routed), self.expert_axes
        return self.cluster.owned(n_experts, device, axes, axes)

    def own_slices(self, device: Device) -> dict[int, Expert]:
        """The device's experts, its part of E and of F of each."""
        others = tuple(axis for axis in self.beside_x if axis not in self.expert_axes)
        columns = self.cluster.owned(self.model.moe.d_expert, device, others, others)
        rows = self.columns(self.model.d_model, device, self.x)
        found = {n: self.experts.routed[n].sliced(rows, columns) for n in self.experts_of(device)}
        self.read_experts[device] = sum(expert.n_params for expert in found.values())
        return found

    def visited(self, visits: dict[Device, Visits]) -> dict[Device, np.ndarray]:
        """What the devices' experts, or parts of them, add to the tokens on each."""
        own = {device: self.own_slices(device) for device in visits}
        partial = {}
        for device, here in visits.items():
            for number, expert in own[device].items():
                visitors = np.flatnonzero((self.routes[here.numbers] == number).any(axis=1))
                self.cluster.matmul_flop[device] += 2 * len(visitors) * expert.n_params
                sums = [here.tokens[visitors] @ matrix for matrix in expert.inputs]
                partial[device, number] = visitors, np.stack(sums)
        out = {device: np.zeros_like(here.tokens) for device, here in visits.items()}
        for (device, number), (visitors, _) in partial.items():
            peers = self.cluster.peers(device, self.x)
            total = sum(partial[peer, number][1] for peer in peers)
            hidden = activate(*total) @ own[device][number].output
            out[device][visitors] += visits[device].gates[visitors][:, [number]] * hidden
        self.count_sums({d: sum(p[1].size for (o, _), p in partial.items() if o == d) for d in own})
        return out

    def count_sums(self, n_numbers: dict[Device, int]) -> None:
        """Each device along x takes the others' sums for its share, and gathers the shares."""
        n_ways, n_inputs = self.size(self.x), self.model.n_ffn_inputs
        for device, n_partial in n_numbers.items():
            share, remainder = divmod(n_partial, n_ways * n_inputs)
            assert remainder == 0, "visits that devices along x cannot share evenly"
            received, n_others = self.cluster.received, n_ways - 1
            received["experts hidden partial sums"][device] += n_others * share * n_inputs
            received["experts hidden"][device] += n_others * share
