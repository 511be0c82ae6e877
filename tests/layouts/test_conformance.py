"""The layout conformance suite: what must hold for every family of `planner.layouts.FAMILIES`."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest

from planner.estimates.networks import network_table
from planner.estimates.steps import Machine
from planner.layouts import FAMILIES, degrees
from planner.layouts.geometry import (
    ALL_AXES,
    BY_DECODE_ALONE,
    BY_PREFILL,
    OVER_BATCH,
    OVER_HEADS,
    Geometry,
    LayoutTable,
    Pass,
    geometry,
)
from planner.layouts.layer import head_work, layer_work, residence
from planner.layouts.options import all_layouts, offered
from planner.layouts.work import LayerWork
from planner.specs.records.devices import ModelSpec, TorusFabric
from planner.topology.meshes import MeshTable, mesh_table
from tests.estimates.step_times import step_times
from tests.topology.pools import nodes, torus

PREFILL = Pass(n_new_tokens=8, n_context_tokens=8, n_cached_tokens=8)
DECODE = Pass(n_new_tokens=1, n_context_tokens=40, n_cached_tokens=64)
BATCHES = np.array([[64.0, 128.0, 512.0]])
WEIGHT_BYTES = np.array(2.0)

MULTI_HEAD = ModelSpec(
    name="multi-head",
    title="",
    n_layers=4,
    d_model=256,
    d_ff=1024,
    n_heads=64,
    n_heads_served=64,
    n_kv_heads=64,
    d_head=8,
    vocab_size=512,
    n_ffn_matrices=2,
    block="serial",
    tied_embeddings=True,
    n_params_published=1.0,
    weights_formats=("bf16", "int8"),
    kv_format="bf16",
    activation_format="bf16",
)
MULTI_QUERY = replace(
    MULTI_HEAD, name="multi-query", n_kv_heads=1, n_ffn_matrices=3, block="parallel"
)
MODELS = (MULTI_HEAD, MULTI_QUERY)

POOLS = {"4×4×4": torus(4, 4, 4), "2×4×8": torus(2, 4, 8), "4 nodes": nodes(4)}

families = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__.split(".")[-1])
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)


def of_family(family, meshes: MeshTable) -> LayoutTable:
    layouts = all_layouts(meshes, microbatches=(1, 2, 4))
    return layouts.take(np.flatnonzero(family.accepts(layouts)))


def without_stages(layouts: LayoutTable, meshes: MeshTable) -> LayoutTable:
    return layouts.take(np.flatnonzero(meshes.n_stages[layouts.mesh] == 1))


def times(model, cluster, meshes, layouts, work, batches=BATCHES, fabric=None):
    network = network_table(meshes, fabric or cluster.fabric)
    machine = Machine(device=cluster.device, meshes=meshes, network=network)
    return step_times(
        model,
        machine,
        layouts,
        geometry(layouts, meshes),
        work=work,
        n_sequences=batches,
        weights_formats=WEIGHT_BYTES,
    ).total_s


def one_layer(model: ModelSpec, shape: Geometry, work: Pass, batches=BATCHES) -> LayerWork:
    return layer_work(model, shape, work, n_sequences=batches, weight_bytes_per_number=WEIGHT_BYTES)


def held(model, shape, work, batches=BATCHES):
    return residence(model, shape, work, n_sequences=batches, weight_bytes_per_number=WEIGHT_BYTES)


def assert_equal(actual, expected) -> None:
    np.testing.assert_allclose(*np.broadcast_arrays(actual, expected))


@families
def test_a_family_says_its_names_and_takes_the_rows_that_are_called_so(family):
    meshes = mesh_table(torus(4, 4, 4))
    layouts = of_family(family, meshes)
    names = {degrees.layout_name(meshes, layouts, row) for row in range(len(layouts))}
    assert names - {"one device"}
    assert all(name.startswith(family.NAMES) for name in names - {"one device"})


def test_every_layout_belongs_to_exactly_one_family():
    layouts = all_layouts(mesh_table(torus(4, 4, 4)))
    n_owners = sum(family.accepts(layouts).astype(int) for family in FAMILIES)
    assert (n_owners == 1).all()


@families
@models
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("work", [PREFILL, DECODE], ids=["prefill", "decode"])
def test_work_over_all_devices_adds_up_to_the_unsharded_model(family, model, pool, work):
    """Heads and batches divide by 64 devices, so every share is exact.

    A layer of P parameters costs 2 P FLOP a token; attention 4 H D a token and context token;
    logits 2 V E a sequence.
    """
    meshes = mesh_table(POOLS[pool], max_stages=1)
    layouts = of_family(family, meshes)
    shape = geometry(layouts, meshes)
    layer, n = one_layer(model, shape, work), shape.n_tensor
    tokens = BATCHES * work.n_new_tokens
    head = head_work(model, shape, n_sequences=BATCHES, weight_bytes_per_number=WEIGHT_BYTES)
    pairs = tokens * work.n_context_tokens
    assert_equal(layer.matmul_flop * n, tokens * 2 * model.layer_params_served)
    assert_equal(layer.attention_flop * n, pairs * 4 * model.d_query)
    logits = BATCHES * 2 * model.vocab_size * model.d_model
    assert_equal(head.matmul_flop * n, logits)
    weights = held(model, shape, work).weight_bytes * n
    assert_equal(weights, 2.0 * model.n_params_served)


@families
@pytest.mark.parametrize("pool", POOLS)
def test_the_kv_cache_over_all_devices_is_that_of_the_model_where_heads_suffice(family, pool):
    """64 KV heads on at most 64 devices: no copies, 2 × 64 × 8 numbers of 2 bytes a token."""
    meshes = mesh_table(POOLS[pool], max_stages=1)
    shape = geometry(of_family(family, meshes), meshes)
    n = shape.n_tensor
    whole = BATCHES * DECODE.n_cached_tokens * MULTI_HEAD.kv_bytes_per_token
    assert_equal(held(MULTI_HEAD, shape, DECODE).kv_bytes * n, whole)


@families
def test_the_layers_of_all_stages_cover_the_model(family):
    """10 layers on 1 to 4 stages: the longest has 10, 5, 4 and 3 of them."""
    meshes = mesh_table(nodes(4), max_stages=4)
    layouts = of_family(family, meshes)
    shape = geometry(layouts, meshes)
    model = replace(MULTI_HEAD, n_layers=10, vocab_size=0)
    longest = np.array([10, 5, 4, 3])[shape.n_stages.astype(int) - 1]
    expected = longest * model.layer_params_served * 2.0 / shape.n_tensor
    np.testing.assert_allclose(held(model, shape, DECODE).weight_bytes, expected)


@models
@pytest.mark.parametrize("work", [PREFILL, DECODE], ids=["prefill", "decode"])
def test_one_device_sends_no_message(model, work):
    meshes = mesh_table(torus(1, 1, 1))
    layouts = all_layouts(meshes)
    assert len(layouts) == 1
    layer = one_layer(model, geometry(layouts, meshes), work)
    for message in layer.messages:
        assert (message.received_bytes == 0).all(), message.purpose
        assert (message.n_devices == 1).all(), message.purpose


@families
@models
@pytest.mark.parametrize("pool", POOLS)
def test_an_array_call_equals_stacked_single_calls(family, model, pool):
    cluster = POOLS[pool]
    meshes = mesh_table(cluster, max_stages=2)
    layouts = of_family(family, meshes)
    layouts = layouts.take(np.arange(0, len(layouts), 7))
    together = times(model, cluster, meshes, layouts, DECODE)
    apart = [
        [
            times(model, cluster, meshes, layouts.take(np.array([row])), DECODE, batch)[0, 0]
            for batch in BATCHES[0]
        ]
        for row in range(len(layouts))
    ]
    np.testing.assert_array_equal(together, apart)


@families
@models
@pytest.mark.parametrize("work", [PREFILL, DECODE], ids=["prefill", "decode"])
@pytest.mark.parametrize("convention", ["ring", "axis", "flat"])
def test_more_bandwidth_is_never_slower(family, model, work, convention):
    slow = torus(4, 4, 4)
    assert isinstance(slow.fabric, TorusFabric)
    fast = replace(slow, fabric=replace(slow.fabric, link_bytes_per_s=90e9))
    meshes, faster = mesh_table(slow), mesh_table(fast)
    layouts = of_family(family, meshes)
    fabric = replace(slow.fabric, activation_network=convention, bulk_network=convention)
    before = times(model, slow, meshes, layouts, work, fabric=fabric)
    after = times(model, fast, faster, layouts, work, fabric=fabric)
    assert (after <= before).all()
    several = meshes.n_devices[layouts.mesh] > 1
    assert (after < before)[several].all()


@families
@models
def test_more_memory_bandwidth_and_arithmetic_are_never_slower(family, model):
    cluster = torus(4, 4, 4)
    device = cluster.device
    meshes = mesh_table(cluster)
    layouts = of_family(family, meshes)
    before = times(model, cluster, meshes, layouts, DECODE)
    for better in (
        replace(device, hbm_bytes_per_s=2 * device.hbm_bytes_per_s),
        replace(device, peak_flop_per_s={"bf16": 2 * device.peak_flop_per_s["bf16"]}),
    ):
        after = times(model, replace(cluster, device=better), meshes, layouts, DECODE)
        assert (after < before).all()


def mesh_444() -> tuple[MeshTable, int]:
    meshes = mesh_table(torus(4, 4, 4))
    return meshes, meshes.label.index("4×4×4")


def layout(mesh: int, *, stored: int = 1, gathered: int = 0, attention: int) -> LayoutTable:
    columns = (mesh, stored, gathered, attention, 1, 0, 0, 0)
    names = [field.name for field in fields(LayoutTable)]
    return LayoutTable(**{n: np.array([c]) for n, c in zip(names, columns, strict=True)})


@models
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_cutting_the_batch_gains_nothing_below_the_size_of_an_axis(model, batch):
    """Axes of four cannot cut three sequences: attention over batch is attention over heads."""
    meshes, mesh = mesh_444()
    batches = np.array([[float(batch)]])
    shapes = [geometry(layout(mesh, attention=a), meshes) for a in (OVER_HEADS, OVER_BATCH)]
    works = [one_layer(model, shape, DECODE, batches) for shape in shapes]
    for name in ("matmul_flop", "attention_flop", "weight_bytes", "kv_bytes"):
        np.testing.assert_array_equal(getattr(works[0], name), getattr(works[1], name))
    received = [sum(m.received_bytes.item() for m in work.messages) for work in works]
    assert received[0] == received[1]


@pytest.mark.parametrize(
    ("batch", "ways"), [(4, 4), (15, 4), (16, 16), (63, 16), (64, 64), (500, 64)]
)
def test_the_batch_is_cut_by_the_largest_product_of_axes_within_it(batch, ways):
    """On 4×4×4 the products are 4, 16 and 64; a device keeps ceil(batch / ways) sequences."""
    meshes, mesh = mesh_444()
    shape = geometry(layout(mesh, attention=OVER_BATCH), meshes)
    kv = held(MULTI_QUERY, shape, DECODE, np.array([[float(batch)]])).kv_bytes.item()
    per_sequence = DECODE.n_cached_tokens * MULTI_QUERY.kv_bytes_per_token
    assert kv == -(-batch // ways) * per_sequence


@pytest.mark.parametrize(("n_kv_heads", "ways"), [(1, 1), (8, 8), (64, 64)])
def test_kv_heads_are_copied_where_devices_outnumber_them(n_kv_heads, ways):
    """Over heads on 64 devices a device holds one KV head, however few there are."""
    meshes, mesh = mesh_444()
    model = replace(MULTI_HEAD, n_kv_heads=n_kv_heads)
    shape = geometry(layout(mesh, attention=OVER_HEADS), meshes)
    kv = held(model, shape, DECODE).kv_bytes
    whole = BATCHES * DECODE.n_cached_tokens * model.kv_bytes_per_token
    np.testing.assert_allclose(kv, whole / ways)


@pytest.mark.parametrize(("n_parts", "n_held"), [(1, 1), (2, 2), (4, 4), (8, 8)])
def test_a_cache_is_cut_only_as_far_as_its_micro_batch_is(n_parts, n_held):
    """Eight sequences on 2×2×2 are cut 8 ways; in fours 4 ways, in pairs 2, one by one not at all.

    A device holds what it reads: in the end every device holds all eight.
    """
    meshes = mesh_table(torus(4, 4, 4))
    mesh = meshes.label.index("2×2×2")
    parts = replace(layout(mesh, attention=OVER_BATCH), n_microbatches=np.array([n_parts]))
    shape, eight = geometry(parts, meshes), np.array([[8.0]])
    kv = held(MULTI_QUERY, shape, DECODE, eight).kv_bytes.item()
    assert kv == n_held * DECODE.n_cached_tokens * MULTI_QUERY.kv_bytes_per_token


def test_a_head_is_never_cut():
    """40 heads on 32 devices: the busiest has two of them, not one and a quarter."""
    meshes = mesh_table(torus(4, 4, 4))
    mesh = meshes.label.index("2×4×4")
    model = replace(MULTI_HEAD, n_heads=40, n_heads_served=40, n_kv_heads=40)
    shape = geometry(layout(mesh, attention=OVER_HEADS), meshes)
    kv = held(model, shape, DECODE).kv_bytes
    np.testing.assert_allclose(kv * 40, 2 * BATCHES * 64 * model.kv_bytes_per_token)
    flop = one_layer(model, shape, DECODE).attention_flop
    np.testing.assert_allclose(flop, BATCHES * 40 * 4 * 2 * model.d_head)


def test_query_heads_are_worked_on_twice_where_devices_outnumber_them():
    """32 query heads on 64 devices: each is computed by two, after they complete it."""
    meshes, mesh = mesh_444()
    model = replace(MULTI_HEAD, n_heads=32, n_heads_served=32, n_kv_heads=32)
    shape = geometry(layout(mesh, attention=OVER_HEADS), meshes)
    layer = one_layer(model, shape, DECODE)
    pairs = BATCHES * DECODE.n_context_tokens
    np.testing.assert_allclose(layer.attention_flop * 32, 4 * model.d_query * pairs)
    (copies,) = (m for m in layer.messages if m.purpose == "copies of shared query heads")
    one_head = BATCHES * model.d_head * 2.0
    np.testing.assert_allclose(copies.received_bytes, one_head / 2)


# enumeration


def raw_layouts(mesh: int) -> LayoutTable:
    """Every pair of masks and kind of attention, told apart or not."""
    rows = list(product(range(8), range(8), (OVER_HEADS, OVER_BATCH)))
    stored, gathered, attention = np.array(rows).T
    return LayoutTable(
        mesh=np.full(len(rows), mesh),
        stored=stored,
        gathered=gathered,
        attention=attention,
        n_microbatches=np.ones(len(rows), np.int64),
    )


def costs(cluster, meshes, layouts) -> np.ndarray:
    return costs_of(MULTI_QUERY, cluster, meshes, layouts)


def costs_of(model, cluster, meshes, layouts) -> np.ndarray:
    """Rows of everything that a plan is chosen by: times and bytes of both phases [N, …]."""
    batches, columns = np.array([[1.0, 3.0, 8.0, 64.0]]), []
    shape = geometry(layouts, meshes)
    for work in (PREFILL, DECODE):
        columns.append(times(model, cluster, meshes, layouts, work, batches))
        memory = held(model, shape, work, batches)
        columns += [memory.kv_bytes, memory.activation_bytes, memory.gather_bytes]
    rows = np.concatenate([np.broadcast_to(c, (len(layouts), c.shape[1])) for c in columns], axis=1)
    scale = np.abs(rows).max(axis=0)
    return np.round(rows / np.where(scale > 0, scale, 1.0), 12)


def by_stored(layouts: LayoutTable, rows: np.ndarray) -> dict[int, set[bytes]]:
    """Of each way to store weights, the different costs that its layouts have."""
    found: dict[int, set[bytes]] = {}
    for stored, row in zip(layouts.stored.tolist(), rows, strict=True):
        found.setdefault(stored, set()).add((row + 0.0).tobytes())
    return found


@pytest.mark.parametrize("pool", ["4×4×4", "2×4×8", "4 nodes"])
def test_enumeration_leaves_out_only_layouts_that_cost_the_same(pool):
    """Weights at rest are shared by the phases, so a whole class of `stored` must survive.

    Whatever can be done with some `stored` (all `gathered`, both kinds of attention) can be
    done at the same cost, in time and in memory, with a `stored` that is enumerated.
    """
    cluster = POOLS[pool]
    meshes = mesh_table(cluster, max_stages=1)
    everything = all_layouts(meshes)
    for mesh in range(len(meshes)):
        raw = raw_layouts(mesh)
        kept = everything.take(np.flatnonzero(everything.mesh == mesh))
        together = LayoutTable(
            **{
                field.name: np.concatenate([getattr(raw, field.name), getattr(kept, field.name)])
                for field in fields(LayoutTable)
            }
        )
        rows = costs(cluster, meshes, together)
        of_raw, of_kept = by_stored(raw, rows[: len(raw)]), by_stored(kept, rows[len(raw) :])
        for stored, possible in of_raw.items():
            assert any(possible == offered for offered in of_kept.values()), (
                f"{meshes.label[mesh]}: nothing enumerated does what E over {stored:03b} does"
            )


@pytest.mark.parametrize("cuts", ["", "×2", "×4"])
def test_prefill_that_has_not_to_tell_two_axes_of_a_switch_apart_costs_what_it_does_on_one(cuts):
    """8 devices as 2×4, alone and in two and four nodes: beside decodes that tell the axes apart
    stand those prefills, and no others, that the mesh with one axis has too."""
    cluster, n_nodes = nodes(4), int(cuts[1:] or 1)
    meshes = mesh_table(cluster, max_stages=1)
    whole = meshes.label.index(f"TP {8 * n_nodes}")
    split = meshes.label.index(f"TP {8 * n_nodes} (2×4{cuts})")
    layouts = all_layouts(meshes)
    rows = np.flatnonzero((layouts.mesh == split) & (layouts.apart == BY_DECODE_ALONE))
    two = layouts.take(rows)
    one = replace(
        two,
        mesh=np.full(len(two), whole),
        stored=as_one_axis(two.stored),
        gathered=as_one_axis(two.gathered),
    )
    batches = np.array([1, 2, 3, 4, 7, 8, 31, 32, 33])
    may = offered(meshes, two, "prefill", batches)
    both = [
        times(MULTI_QUERY, cluster, meshes, each, PREFILL, batches[None]) for each in (one, two)
    ]
    alike = (two.gathered & 1) == (two.gathered >> 1 & 1)
    np.testing.assert_array_equal(may[alike], (both[0] == both[1])[alike])
    assert not may[~alike].any()
    assert 0 < may[alike].sum() < may[alike].size
    decodes = offered(meshes, two, "decode", batches)
    np.testing.assert_array_equal(decodes, ~may)
    by_prefill = replace(two, apart=np.full(len(two), BY_PREFILL))
    np.testing.assert_array_equal(offered(meshes, by_prefill, "prefill", batches), ~may)
    assert offered(meshes, by_prefill, "decode", batches).all()


def as_one_axis(masks: np.ndarray) -> np.ndarray:
    """Masks over the axis of a node and that of nodes, of those over two in a node."""
    return (masks & 1) | (masks >> 2 & 1) << 1


def test_enumeration_names_every_layout_once():
    meshes = mesh_table(torus(4, 4, 4))
    layouts = all_layouts(meshes)
    rows = list(zip(*(getattr(layouts, f.name).tolist() for f in fields(LayoutTable)), strict=True))
    assert len(set(rows)) == len(rows)
    assert set(layouts.mesh.tolist()) == set(range(len(meshes)))
    assert layouts.gathered.max() <= ALL_AXES
