"""Layers with experts are run on numpy devices: right results, and volumes as claimed.

Tokens are gathered behind tensor-parallel attention and dispatched behind attention whose
weights have copies or are gathered; weights are cut in one dimension or in two, experts whole or
in slices; with plain and with latent attention, over heads and over batch. Tokens divide by
devices and by experts, so that every device has the same to do.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import product
from math import comb, prod

import numpy as np
import pytest

from planner.layouts import experts
from planner.layouts.geometry import ATTENTION_NAMES, LayoutTable, geometry, spread
from planner.layouts.layer import layer_work
from planner.specs.records.devices import ModelSpec
from planner.specs.records.shapes import MlaShape, MoeShape
from tests.layouts.sharded import Cluster, attend, random_weights
from tests.layouts.sharded_block import axes_of
from tests.layouts.sharded_experts import (
    ExpertBlock,
    dense_experts,
    random_expert_weights,
    spread_routes,
)
from tests.layouts.sharded_latents import (
    LatentAttention,
    dense_latent_attention,
    random_latent_weights,
)
from tests.layouts.test_sharded_simulation import (
    BYTES,
    DECODE,
    PREFILL,
    claimed_volumes,
    counted_volumes,
    mesh_row,
    same_on_all,
    tiny,
)

LATENT = MlaShape(d_kv_latent=24, d_q_latent=None, d_rope=8, d_nope=8, d_value=4)


def with_experts(
    n_experts: int, n_active: int, n_shared: int, *, kv: int = 4, mla: MlaShape | None = None
) -> ModelSpec:
    """Experts of 16 columns: they too divide by sixteen devices."""
    model = tiny("serial", 16 if mla else kv, 3)
    name = f"{n_active} of {n_experts} + {n_shared}, {'latents' if mla else 'heads'}"
    moe = MoeShape(
        n_experts=n_experts,
        n_active_experts=n_active,
        n_shared_experts=n_shared,
        d_expert=16,
        n_dense_layers=0,
    )
    return replace(model, name=name, moe=moe, mla=mla)


MODELS = (
    with_experts(16, 2, 0),
    with_experts(16, 4, 1, mla=LATENT),
    with_experts(4, 2, 2, kv=16),  # fewer experts than devices: slices
    with_experts(8, 8, 0, mla=replace(LATENT, d_q_latent=16)),  # every expert: copies to all
    with_experts(32, 3, 1, kv=1),
)
MESHES = [(2, 2, 2), (4, 2, 1), (1, 8, 1), (2, 2, 1), (4, 4, 1), (1, 1, 1)]


@dataclass(frozen=True)
class Cut:
    """Masks of axes of a layout, and its attention."""

    stored: int
    gathered: int
    data: int
    sliced: int
    attention: int

    def __str__(self) -> str:
        return (
            f"stored {self.stored}, gathered {self.gathered}, data {self.data}, "
            f"sliced {self.sliced}, {ATTENTION_NAMES[self.attention]}"
        )


def claims(sizes, cut: Cut, model, work, n_sequences):
    """What the layouts say: geometry, the work of one layer, the axes that cut the batch."""
    rows = {"mesh": 0, "n_microbatches": 1, **asdict(cut)}
    shape = geometry(LayoutTable(**{k: np.array([v]) for k, v in rows.items()}), mesh_row(sizes))
    batch = np.array([[float(n_sequences)]])
    layer = layer_work(
        model,
        shape,
        work,
        n_sequences=batch,
        weight_bytes_per_number=np.array(BYTES),
        has_experts=True,
    )
    return shape, layer, int(spread(shape, batch).batch_axes[0, 0])


def run(sizes, cut: Cut, batch_axes, n_ways, model, work, n_sequences):
    """The layer on devices, checked against the dense layer."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(n_sequences, work.n_new_tokens, model.d_model))
    n_past, moe = work.n_context_tokens - work.n_new_tokens, model.moe
    cuts_batch = cut.gathered | cut.data
    block = ExpertBlock(
        model,
        Cluster(sizes),
        weights=None,
        stored=axes_of(cut.stored),
        gathered=axes_of(cuts_batch),
        copies=tuple(axis for axis in axes_of(cut.data) if sizes[axis] > 1),
        moved=axes_of(batch_axes & ~cuts_batch),
        experts=random_expert_weights(model),
        sliced=axes_of(cut.sliced),
        routes=spread_routes(
            n_sequences * work.n_new_tokens, moe.n_experts, moe.n_active_experts, n_ways
        ),
    )
    if model.mla:
        latent = random_latent_weights(model)
        past = rng.normal(size=(n_sequences, n_past, model.d_cached))
        middle = x + dense_latent_attention(model, latent, x, past)

        def attention(at_rest):
            return LatentAttention(block, latent).run(at_rest, past)
    else:
        weights = random_weights(model)
        past = tuple(rng.normal(size=(n_sequences, n_past, model.d_kv)) for _ in range(2))
        cache = [
            np.concatenate([a, x @ b], axis=1)
            for a, b in zip(past, (weights.k, weights.v), strict=True)
        ]
        middle = x + attend(x @ weights.q, *cache, model.d_head) @ weights.o
        attention = block.plain_attention(weights, past)
    expected = middle + dense_experts(block.experts, middle, block.routes)
    for shard in block.run_layer(x, attention).values():
        np.testing.assert_allclose(shard.values, expected[np.ix_(*shard.labels)], atol=1e-9)
    return block


def batch_for(sizes, model: ModelSpec) -> int:
    """Each device has as many tokens as there are ways, and every expert as many visits."""
    return max(prod(sizes) ** 2, model.moe.n_experts)


def cuts(sizes):
    """Every pair of axes of copies and of E, or of gathering; slices take turns."""
    used = sum(1 << axis for axis in range(3) if sizes[axis] > 1)
    masks = [mask for mask in range(8) if not mask & ~used]
    found = []
    for data, other in product(masks, masks):
        if data & other:
            continue
        slices = [mask for mask in masks if not mask & other]
        found.append(Cut(other, 0, data, slices[len(found) % len(slices)], len(found) % 2))
        found.append(Cut(other, 0, data, 0, len(found) % 2))
        if other:
            found.append(Cut(0, other, data, 0, len(found) // 2 % 2))
    return found


def cases(sizes):
    """Models and phases take turns; on small meshes all models."""
    phases = (DECODE, PREFILL)
    for i, cut in enumerate(cuts(sizes)):
        for j, model in enumerate(MODELS):
            if prod(sizes) <= 4 or (i + j) % (4 if prod(sizes) <= 8 else 5) == 0:
                yield cut, model, phases[(i + j // 2) % 2]


@pytest.mark.parametrize("sizes", MESHES, ids=str)
def test_experts_compute_the_dense_layer_and_receive_what_is_claimed(sizes):
    for cut, model, work in cases(sizes):
        n_sequences = batch_for(sizes, model)
        shape, layer, batch_axes = claims(sizes, cut, model, work, n_sequences)
        n_ways = int(experts.expert_ways(model, shape).item())
        block = run(sizes, cut, batch_axes, n_ways, model, work, n_sequences)
        where = f"{cut}, {model.name}, {work}"
        counted = counted_volumes(block.cluster)
        counted.pop("routes", None)
        assert counted == pytest.approx(claimed_volumes(layer)), where
        flop, kv = layer.matmul_flop.item(), layer.kv_bytes.item()
        assert same_on_all(block.cluster.matmul_flop) == pytest.approx(flop), where
        assert same_on_all(block.cluster.attention_flop) == layer.attention_flop.item(), where
        assert same_on_all(block.held_kv) * BYTES == kv, where
        # all experts are visited: those that were not expected to be are left out
        n_tokens = n_sequences * work.n_new_tokens
        touched = experts.touched_fraction(model, np.array(float(n_tokens)))
        read = same_on_all(block.read_weights) + touched * same_on_all(block.read_experts)
        assert read * BYTES == pytest.approx(layer.weight_bytes.item()), where


def test_spread_routes_are_even_and_reach_as_many_devices_as_can_be():
    """Whoever takes as many tokens in a row as there are experts sees each as often."""
    for n_experts, n_active, n_ways in [(16, 2, 8), (8, 8, 4), (32, 3, 16), (4, 2, 1), (16, 4, 16)]:
        routes = spread_routes(3 * n_experts, n_experts, n_active, n_ways)
        assert all(len(set(row)) == n_active for row in routes)
        devices = [set(row) for row in (routes // (n_experts // n_ways)).tolist()]
        assert {len(row) for row in devices} == {min(n_active, n_ways)}
        assert set(np.bincount(routes.ravel()).tolist()) == {3 * n_active}


# experts that some token visits


@pytest.mark.parametrize(("n_experts", "n_active", "n_tokens"), [(4, 2, 3), (5, 1, 4), (3, 3, 2)])
def test_touched_experts_are_those_of_all_equally_likely_routes(n_experts, n_active, n_tokens):
    """Every way in which every token may choose K of E, enumerated."""
    model = with_experts(n_experts, n_active, 0)
    chosen = [{i for i in range(n_experts) if s >> i & 1} for s in range(1 << n_experts)]
    chosen = [experts_ for experts_ in chosen if len(experts_) == n_active]
    assert len(chosen) == comb(n_experts, n_active)
    touched = [len(set().union(*routes)) for routes in product(chosen, repeat=n_tokens)]
    expected = experts.touched_fraction(model, np.array(float(n_tokens)))
    assert np.mean(touched) / n_experts == pytest.approx(expected.item())


@pytest.mark.parametrize("n_tokens", [1, 8, 32, 128])
def test_touched_experts_are_those_of_random_routes(n_tokens):
    """8 of 256, 400 times: the mean is within four of its standard errors, below 0.5 %."""
    rng, n_experts, n_active, n_trials = np.random.default_rng(0), 256, 8, 400
    order = rng.random((n_trials, n_tokens, n_experts)).argpartition(n_active, axis=-1)
    visited = np.zeros((n_trials, n_experts), bool)
    for trial, routes in enumerate(order[..., :n_active]):
        visited[trial, routes.ravel()] = True
    shares = visited.mean(axis=1)
    error = shares.std() / np.sqrt(n_trials)
    model = with_experts(n_experts, n_active, 0)
    expected = experts.touched_fraction(model, np.array(float(n_tokens))).item()
    assert error < 0.005 * expected
    assert shares.mean() == pytest.approx(expected, abs=max(4 * error, 1e-12))
