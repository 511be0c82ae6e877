"""Every layout is run on numpy devices: its result is right, and its volumes are as claimed.

The blocks really run: weights rest as E_x F_yz, devices see only their shards, and all they
take from each other is counted. The result must be that of the dense block, and every
device must have received exactly what `layer_work` says of the busiest one.
"""

from __future__ import annotations

from itertools import cycle, product

import numpy as np
import pytest

from planner.layouts.geometry import ATTENTION_NAMES, LayoutTable, Pass, geometry, spread
from planner.layouts.layer import layer_work
from planner.layouts.work import LayerWork
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec
from planner.topology.meshes import MeshTable
from tests.layouts.sharded import Cluster, dense_block, random_weights
from tests.layouts.sharded_block import ShardedBlock, axes_of

BYTES = FORMAT_BYTES["bf16"]
N_PAST = 5

PREFILL = Pass(n_new_tokens=3, n_context_tokens=3, n_cached_tokens=3)
DECODE = Pass(n_new_tokens=1, n_context_tokens=N_PAST + 1, n_cached_tokens=N_PAST + 1)


def tiny(block: str, n_kv_heads: int, n_ffn_matrices: int, n_heads: int = 16) -> ModelSpec:
    """E = 32, F = 48 and heads of 16: all divide by sixteen devices."""
    return ModelSpec(
        name=f"{block}-{n_heads}/{n_kv_heads}-{n_ffn_matrices}",
        title="",
        n_layers=1,
        d_model=32,
        d_ff=48,
        n_heads=n_heads,
        n_heads_served=n_heads,
        n_kv_heads=n_kv_heads,
        d_head=16,
        vocab_size=64,
        n_ffn_matrices=n_ffn_matrices,
        block=block,
        tied_embeddings=True,
        n_params_published=1.0,
        weights_formats=("bf16",),
        kv_format="bf16",
        activation_format="bf16",
    )


PALM, MT_NLG = tiny("parallel", 1, 3), tiny("serial", 16, 2)
GROUPED, FEW_HEADS = tiny("serial", 4, 3), tiny("parallel", 2, 2, n_heads=4)
MODELS = (PALM, MT_NLG, GROUPED, FEW_HEADS)

MESHES = [(2, 2, 2), (4, 2, 2), (2, 2, 4), (2, 2, 1), (1, 1, 4), (1, 8, 1), (1, 1, 1)]


def mesh_row(sizes) -> MeshTable:
    return MeshTable(
        label=("drawn",),
        axis_size=np.array([sizes]),
        axis_wraps=np.zeros((1, 3), bool),
        axis_is_switch=np.zeros((1, 3), bool),
        axis_bytes_per_s=np.ones((1, 3)),
        axis_hop_s=np.ones((1, 3)),
        n_stages=np.array([1]),
        stage_bytes_per_s=np.ones(1),
        stage_hop_s=np.ones(1),
        n_devices=np.array([np.prod(sizes)]),
        n_positions=np.array([1]),
    )


def mask_pairs(sizes):
    """(stored, gathered), without axes of one device; of swaps of equal axes, the first."""
    seen = {}
    used = sum(1 << axis for axis in range(3) if sizes[axis] > 1)
    for stored, gathered in product(range(8), range(8)):
        if (stored | gathered) & ~used:
            continue
        roles = zip(sizes, axes_in(stored), axes_in(gathered), strict=True)
        seen.setdefault(tuple(sorted(roles)), (stored, gathered))
    return list(seen.values())


def axes_in(mask):
    return [mask >> axis & 1 for axis in range(3)]


def cases(sizes):
    """All layouts of a mesh; models, phases and batches take turns, on small meshes more."""
    phases = [(PREFILL, 16), (DECODE, 4), (DECODE, 16), (PREFILL, 4), (DECODE, 16)]
    turns = cycle((model, *phase) for phase in phases for model in MODELS)
    n_turns = 3 if np.prod(sizes) <= 8 else 1
    every = product(range(n_turns), (0, 1), mask_pairs(sizes))
    for (_, attention, (stored, gathered)), (model, work, batch) in zip(every, turns, strict=False):
        n_gathered = int(np.prod([sizes[axis] for axis in axes_of(gathered)]))
        yield stored, gathered, attention, model, work, batch if batch >= n_gathered else 16


def claims(sizes, stored, gathered, attention, model, work, n_sequences):
    """What the layouts say: the work of one layer, and the axes that cut the batch."""
    one = np.array
    table = LayoutTable(
        mesh=one([0]),
        stored=one([stored]),
        gathered=one([gathered]),
        attention=one([attention]),
        n_microbatches=one([1]),
    )
    shape = geometry(table, mesh_row(sizes))
    batch = np.array([[float(n_sequences)]])
    layer = layer_work(
        model, shape, work, n_sequences=batch, weight_bytes_per_number=np.array(BYTES)
    )
    return layer, int(spread(shape, batch).batch_axes[0, 0])


def run(sizes, stored, gathered, batch_axes, model, work, n_sequences):
    """The block on devices, checked against the dense block."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(n_sequences, work.n_new_tokens, model.d_model))
    n_past = work.n_context_tokens - work.n_new_tokens
    past = tuple(rng.normal(size=(n_sequences, n_past, model.d_kv)) for _ in range(2))
    cluster, weights = Cluster(sizes), random_weights(model)
    block = ShardedBlock(
        model,
        cluster,
        weights,
        stored=axes_of(stored),
        gathered=axes_of(gathered),
        moved=axes_of(batch_axes & ~gathered),
    )
    expected = dense_block(model, weights, x, past)
    for shard in block.run(x, past).values():
        np.testing.assert_allclose(shard.values, expected[np.ix_(*shard.labels)], atol=1e-9)
    return block


def claimed_volumes(layer: LayerWork) -> dict[str, float]:
    volumes: dict[str, float] = {}
    for message in layer.messages:
        n_received = float(message.received_bytes.squeeze()) / BYTES
        volumes[message.purpose] = volumes.get(message.purpose, 0.0) + n_received
    return {purpose: n for purpose, n in volumes.items() if n > 0}


def counted_volumes(cluster: Cluster) -> dict[str, float]:
    """Of the busiest device; all receive the same, since everything divides."""
    for purpose, by_device in cluster.received.items():
        assert len(set(by_device.values())) == 1, purpose
    volumes = {purpose: max(by.values()) for purpose, by in cluster.received.items()}
    return {purpose: n for purpose, n in volumes.items() if n > 0}


def same_on_all(by_device: dict[object, int]) -> int:
    (value,) = set(by_device.values())
    return value


@pytest.mark.parametrize("sizes", MESHES, ids=str)
def test_every_layout_computes_the_dense_block_and_receives_what_it_claims(sizes):
    for case in cases(sizes):
        stored, gathered, attention, model, work, n_sequences = case
        layer, batch_axes = claims(sizes, *case)
        block = run(sizes, stored, gathered, batch_axes, model, work, n_sequences)
        where = (
            f"stored {stored}, gathered {gathered}, {ATTENTION_NAMES[attention]}, {model.name}, "
            f"{work}, {n_sequences} sequences"
        )
        assert counted_volumes(block.cluster) == pytest.approx(claimed_volumes(layer)), where
        flop, kv, weights = layer.matmul_flop, layer.kv_bytes, layer.weight_bytes
        assert same_on_all(block.cluster.matmul_flop) == pytest.approx(flop.item()), where
        assert same_on_all(block.cluster.attention_flop) == layer.attention_flop.item(), where
        assert same_on_all(block.held_kv) * BYTES == kv.item(), where
        assert same_on_all(block.read_weights) * BYTES == weights.item(), where
