"""What must hold for every layout of models with experts, latents and windows."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from planner.layouts import experts
from planner.layouts.attention import widths_of
from planner.layouts.degrees import expert_layout_name
from planner.layouts.geometry import OVER_HEADS, Geometry, LayoutTable, Pass, geometry
from planner.layouts.layer import head_work, layer_work, residence
from planner.layouts.options import all_layouts
from planner.layouts.work import layer_kinds
from planner.specs.records.devices import ModelSpec
from planner.specs.records.shapes import MlaShape, MoeShape, WindowShape
from planner.topology.meshes import MeshTable, mesh_table
from tests.layouts.test_conformance import (
    BATCHES,
    DECODE,
    MULTI_HEAD,
    POOLS,
    PREFILL,
    WEIGHT_BYTES,
    assert_equal,
    costs_of,
    held,
    times,
)
from tests.topology.pools import nodes, torus

MOE = MoeShape(n_experts=128, n_active_experts=4, n_shared_experts=1, d_expert=64, n_dense_layers=1)
FEW = replace(MOE, n_experts=16, n_active_experts=2, n_shared_experts=0)
LATENT = MlaShape(d_kv_latent=96, d_q_latent=64, d_rope=32, d_nope=16, d_value=16)

MANY_EXPERTS = replace(MULTI_HEAD, name="many experts", moe=MOE)
FEW_EXPERTS = replace(MULTI_HEAD, name="few experts", moe=FEW, n_ffn_matrices=3)
LATENTS = replace(MANY_EXPERTS, name="latents", mla=LATENT, d_head=48)
MODELS = (MANY_EXPERTS, FEW_EXPERTS, LATENTS)

models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
pools = pytest.mark.parametrize("pool", POOLS)
works = pytest.mark.parametrize("work", [PREFILL, DECODE], ids=["prefill", "decode"])


def layouts_on(cluster, moe: MoeShape = MOE, max_stages: int = 1) -> tuple[MeshTable, LayoutTable]:
    meshes = mesh_table(cluster, max_stages=max_stages)
    return meshes, all_layouts(meshes, moe=moe)


def expert_layer(model: ModelSpec, shape: Geometry, work: Pass):
    return layer_work(
        model,
        shape,
        work,
        n_sequences=BATCHES,
        weight_bytes_per_number=WEIGHT_BYTES,
        has_experts=True,
    )


@models
@pools
@works
def test_work_over_all_devices_adds_up_to_the_unsharded_model(model, pool, work):
    """Heads, experts and batches divide: 2 FLOP a token for each parameter that it meets."""
    meshes, layouts = layouts_on(POOLS[pool])
    shape = geometry(layouts, meshes)
    layer, n = expert_layer(model, shape, work), shape.n_tensor
    tokens = BATCHES * work.n_new_tokens
    met = (model.n_params_active - model.embedding_params) - model.layer_params_served
    assert_equal(layer.matmul_flop * n, tokens * 2 * met / (model.n_layers - 1))
    per_pair = widths_of(model.mixer, on_latents=work is DECODE).pair_flop
    assert_equal(layer.attention_flop * n, tokens * work.n_context_tokens * per_pair)
    head = head_work(model, shape, n_sequences=BATCHES, weight_bytes_per_number=WEIGHT_BYTES)
    assert_equal(head.matmul_flop * n, BATCHES * 2 * model.vocab_size * model.d_model)


@models
@pools
def test_resident_weights_are_the_parameters_and_the_copies_of_those_that_have_any(model, pool):
    """Along the axes of data all but routed experts and embeddings; then routers everywhere,
    each device with its part of E."""
    meshes, layouts = layouts_on(POOLS[pool])
    shape = geometry(layouts, meshes)
    n_replicas, n = shape.n_data, shape.n_tensor
    assert (shape.n_x > 1).any()
    copied = model.layer_params_served + (model.n_layers - 1) * experts.common_params(model)
    n_routers = np.where(n_replicas > 1, n / shape.n_x - n_replicas, 0)
    routers = (model.n_layers - 1) * model.router_params * n_routers
    whole = model.n_params_served + (n_replicas - 1) * copied + routers
    assert (n_replicas == n).any()
    assert_equal(held(model, shape, DECODE).weight_bytes * n, 2.0 * whole)


@pools
def test_a_latent_is_held_by_every_device_that_shares_its_sequence(pool):
    """It is one head: 128 numbers a token and layer, as often as devices work on a sequence."""
    meshes, layouts = layouts_on(POOLS[pool])
    shape = geometry(layouts, meshes)
    whole = BATCHES * DECODE.n_cached_tokens * LATENTS.kv_bytes_per_token
    assert LATENTS.kv_bytes_per_token == 4 * 128 * 2
    kv = held(LATENTS, shape, DECODE).kv_bytes * np.ones_like(BATCHES)
    over_heads = shape.attention[:, 0] == OVER_HEADS
    n_sharing = shape.n_tensor / shape.n_cut
    assert_equal((kv * shape.n_tensor)[over_heads], (whole * n_sharing)[over_heads])
    replicated = (shape.n_cut == shape.n_tensor)[:, 0]
    assert replicated.any()
    np.testing.assert_allclose((kv * shape.n_tensor)[replicated], whole.repeat(replicated.sum(), 0))


@models
@works
def test_one_device_sends_no_message(model, work):
    meshes, layouts = layouts_on(torus(1, 1, 1))
    assert len(layouts) == 1
    for message in expert_layer(model, geometry(layouts, meshes), work).messages:
        assert (message.received_bytes == 0).all(), message.purpose


@models
def test_attention_that_is_all_data_parallel_sends_nothing_but_dispatches(model):
    """Whatever is 4×4×4: 64 devices, each with its own sequences, and a round trip of tokens."""
    meshes, layouts = layouts_on(torus(4, 4, 4))
    rows = np.flatnonzero(meshes.group_size[layouts.mesh, layouts.data] == 64)
    assert rows.size
    layer = expert_layer(model, geometry(layouts.take(rows), meshes), DECODE)
    sent = {m.purpose for m in layer.messages if (m.received_bytes > 0).any()}
    assert sent == {"tokens to their experts", "expert outputs to their tokens"}


def test_the_busiest_device_has_whole_experts_and_their_visits():
    """16 experts on 12 devices: two on the busiest, an eighth of all visits, not a twelfth."""
    meshes, layouts = layouts_on(replace_slices(torus(1, 1, 12)))
    mesh = int(np.flatnonzero(meshes.n_devices == 12)[0])
    whole = (layouts.mesh == mesh) & (layouts.stored == 0) & (layouts.sliced == 0)
    layouts = layouts.take(np.flatnonzero(whole))
    shape = geometry(layouts, meshes)
    model = FEW_EXPERTS
    params = experts.device_expert_params(model, shape)
    np.testing.assert_array_equal(params, 2 * model.expert_params)
    flop = experts.routed_flop(model, shape, np.array([[96.0]]))
    np.testing.assert_array_equal(flop, 2 * (96 * 2 / 8) * model.expert_params)


def replace_slices(cluster):
    return replace(cluster, fabric=replace(cluster.fabric, slice_dims=(1, 2, 4, 12)))


@pytest.mark.parametrize("n_dense", [0, 1, 3])
@pytest.mark.parametrize("n_windowed", [0, 1, 5, 6, 10])
def test_the_layers_of_all_kinds_are_those_of_the_model(n_dense, n_windowed):
    """On one device exactly; in stages the busiest has no fewer without a window than any.

    Windows take turns with the others, so that of ten layers in stages of five, four and three
    floor(5 w / 10) and so on have one.
    """
    window = WindowShape(n_tokens=16, n_layers=n_windowed) if n_windowed else None
    moe = replace(MOE, n_dense_layers=n_dense)
    model = replace(MULTI_HEAD, n_layers=10, moe=moe, window=window)
    stages = np.array([[1.0], [2.0], [3.0], [4.0]])
    longest = np.array([10, 5, 4, 3])
    kinds = layer_kinds(model, stages)
    np.testing.assert_array_equal(sum(kind.n_layers for kind in kinds)[:, 0], longest)
    with_experts = sum(kind.n_layers for kind in kinds if kind.has_experts)
    np.testing.assert_array_equal(with_experts[:, 0], np.minimum(longest, 10 - n_dense))
    windowed = sum(
        (k.n_layers for k in kinds if k.n_window_tokens is not None), start=np.zeros((4, 1))
    )
    np.testing.assert_array_equal(windowed[:, 0], longest * n_windowed // 10)
    meshes, layouts = layouts_on(torus(1, 1, 1))
    kv = held(model, geometry(layouts, meshes), DECODE).kv_bytes
    assert_equal(kv, BATCHES * model.kv_bytes(DECODE.n_cached_tokens))


def test_one_stage_has_exactly_the_windows_of_the_model():
    """Also where a share of n in n layers, as a fraction times n, would be a little below n."""
    for n_layers in (3, 10, 49, 98, 103):
        assert n_layers != 49 or n_layers * (1 / n_layers) < 1
        for n_windowed in range(1, n_layers + 1):
            window = WindowShape(n_tokens=16, n_layers=n_windowed)
            model = replace(MULTI_HEAD, n_layers=n_layers, window=window)
            kinds = layer_kinds(model, np.array([[1.0]]))
            counts = {kind.n_window_tokens: kind.n_layers.item() for kind in kinds}
            assert counts.get(16) == n_windowed
            assert counts.get(None, 0) == n_layers - n_windowed


@models
@pytest.mark.parametrize("pool", ["4×4×4", "2×4×8", "4 nodes"])
def test_enumeration_leaves_out_only_layouts_that_cost_the_same(model, pool):
    """What can be done with weights that rest in some way can be done at the same cost with a
    way that is kept; whole experts here, slices below."""
    cluster = POOLS[pool]
    meshes, everything = layouts_on(cluster, model.moe)
    for mesh in range(len(meshes)):
        raw = raw_layouts(mesh)
        kept = everything.take(np.flatnonzero((everything.mesh == mesh) & (everything.sliced == 0)))
        rows = costs_of(model, cluster, meshes, joined(raw, kept))
        of_raw, of_kept = by_resting(raw, rows[: len(raw)]), by_resting(kept, rows[len(raw) :])
        for resting, possible in of_raw.items():
            assert any(possible <= offered for offered in of_kept.values()), (
                f"{meshes.label[mesh]}: nothing enumerated does what {resting} does"
            )


def raw_layouts(mesh: int) -> LayoutTable:
    """Copies along some axes beside E over others, or beside gathers over others."""
    rests = [(s, d) for s in range(8) for d in range(8) if not s & d]
    rows = [(s, 0, d, a) for s, d in rests for a in (0, 1)]
    rows += [(0, g, d, a) for g, d in rests if g for a in (0, 1)]
    stored, gathered, data, attention = np.array(rows).T
    nothing = np.zeros_like(data)
    return LayoutTable(
        mesh=nothing + mesh,
        stored=stored,
        gathered=gathered,
        data=data,
        attention=attention,
        n_microbatches=nothing + 1,
    )


def joined(one: LayoutTable, other: LayoutTable) -> LayoutTable:
    return LayoutTable(
        **{
            f.name: np.concatenate([getattr(one, f.name), getattr(other, f.name)])
            for f in fields(LayoutTable)
        }
    )


def by_resting(layouts: LayoutTable, rows: np.ndarray) -> dict[tuple[int, int], set[bytes]]:
    """Of each (stored, data), the different costs that its layouts have."""
    found: dict[tuple[int, int], set[bytes]] = {}
    resting = zip(layouts.stored.tolist(), layouts.data.tolist(), strict=True)
    for way, row in zip(resting, rows, strict=True):
        found.setdefault(way, set()).add((row + 0.0).tobytes())
    return found


@pytest.mark.parametrize("n_experts", [6, 8, 9, 20, 24, 64])
def test_slices_of_experts_that_are_left_out_are_never_better(n_experts):
    """For every layout on 2×3×4 devices with every set of slicing axes: one that is kept, and
    otherwise the same, costs no more in any time or memory."""
    fabric = replace(torus(2, 3, 4).fabric, slice_dims=(1, 2, 3, 4))
    cluster = replace(torus(2, 3, 4), fabric=fabric)
    model = replace(FEW_EXPERTS, moe=replace(FEW, n_experts=n_experts, n_active_experts=3))
    meshes, kept = layouts_on(cluster, model.moe)
    mesh = int(np.flatnonzero(meshes.n_devices == 24)[0])
    kept = kept.take(np.flatnonzero(kept.mesh == mesh))
    whole = kept.take(np.flatnonzero(kept.sliced == 0))
    every = [
        replace(whole, sliced=np.full(len(whole), mask)).take(
            np.flatnonzero(whole.stored & mask == 0)
        )
        for mask in range(8)
    ]
    kept_size = weights_and_costs(model, cluster, meshes, kept)
    n_gained = 0
    for raw in every:
        for row, cost in enumerate(weights_and_costs(model, cluster, meshes, raw)):
            alike = np.logical_and.reduce(
                [
                    getattr(kept, name) == getattr(raw, name)[row]
                    for name in ("stored", "data", "gathered", "attention")
                ]
            )
            assert (kept_size[alike] <= cost * (1 + 1e-12)).all(axis=1).any()
            n_gained += bool((kept_size[alike & (kept.sliced > 0)] < cost).any())
    assert bool(n_gained) == bool((kept.sliced > 0).any()) == (n_experts != 24)


def weights_and_costs(model, cluster, meshes, layouts) -> np.ndarray:
    """Everything that a plan is chosen by, weights at rest included, SI [N, …]."""
    shape, batches = geometry(layouts, meshes), np.array([[1.0, 3.0, 24.0, 500.0]])
    columns = [held(model, shape, DECODE, batches).weight_bytes]
    for work in (PREFILL, DECODE):
        columns.append(times(model, cluster, meshes, layouts, work, batches))
        columns.append(held(model, shape, work, batches).activation_bytes)
    return np.concatenate(columns, axis=1)


def test_a_longer_window_keeps_and_meets_more_until_it_holds_everything():
    """Without a window a layer holds 64 tokens and meets 40."""
    meshes, layouts = layouts_on(nodes(4))
    shape = geometry(layouts, meshes)
    model = replace(MANY_EXPERTS, window=WindowShape(n_tokens=16, n_layers=2))
    sizes = [
        residence(
            replace(model, window=WindowShape(n_tokens=n, n_layers=2)) if n else MANY_EXPERTS,
            shape,
            DECODE,
            n_sequences=BATCHES,
            weight_bytes_per_number=WEIGHT_BYTES,
        ).kv_bytes
        for n in (8, 16, 64, 4096, None)
    ]
    assert (sizes[0] < sizes[1]).all()
    assert (sizes[1] < sizes[2]).all()
    np.testing.assert_array_equal(sizes[2], sizes[3])
    np.testing.assert_array_equal(sizes[3], sizes[4])


def test_a_node_of_eight_has_every_product_of_data_tensor_and_expert_parallelism():
    """16 experts on 8 devices; and 12, that come out even only where experts are sliced."""

    def names(n_experts: int) -> set[str]:
        moe = replace(FEW, n_experts=n_experts)
        meshes, layouts = layouts_on(nodes(1), moe)
        rows = np.flatnonzero(meshes.n_devices[layouts.mesh] == 8)
        return {expert_layout_name(meshes, layouts, int(row), n_experts) for row in rows}

    data = {"TP 8, EP 8", "DP 8, EP 8", "DP 2 × TP 4, EP 8", "DP 4 × TP 2, EP 8"}
    in_two = {"TP 8 2D, EP 4", "TP 8 2D, EP 2", "DP 2 × TP 4 2D, EP 2", "DP 4 × TP 2 2D, EP 4"}
    gathered = {"WG 8, EP 8", "DP 2 × WG 4, EP 8", "DP 4 × WG 2, EP 8"}
    assert names(16) >= data | in_two | gathered
    assert not any("EP 4 × TP" in name for name in names(16))
    assert names(12) >= {"TP 8, EP 4 × TP 2", "DP 2 × TP 4, EP 4 × TP 2", "DP 8, EP 4 × TP 2"}
