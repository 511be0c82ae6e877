"""The array code and the scalar referee were written apart: they must say the same.

Each example draws a model, a mesh and a pass, and compares all 64 pairs of axis masks, both
kinds of attention and several batches: some six hundred cases an example.
"""

from __future__ import annotations

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from planner.estimates.networks import network_table
from planner.estimates.referee import RefereeMesh, held_bytes, step_time
from planner.estimates.steps import Machine, StepTimes, step_times
from planner.layouts.geometry import Geometry, Pass, geometry
from planner.layouts.layer import residence
from planner.layouts.table import ATTENTION_NAMES, LayoutTable
from planner.layouts.work import Residence
from planner.specs.records import FORMAT_BYTES, DeviceSpec, ModelSpec, TorusFabric
from planner.topology.meshes import MeshTable

RELATIVE = 1e-9
EXAMPLES = settings(
    max_examples=60,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # an example is big: shrinking is slow
)

BATCHES = st.lists(
    st.sampled_from([1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 97, 128, 500, 512, 1024]),
    min_size=5,
    max_size=5,
)


@st.composite
def models(draw):
    """Multi-head, grouped and multi-query; gated and plain; serial and parallel; tiny to huge."""
    n_kv_heads = draw(st.sampled_from([1, 2, 3, 8, 16, 64]))
    n_heads = n_kv_heads * draw(st.sampled_from([1, 2, 6, 8]))
    return ModelSpec(
        name="drawn",
        title="",
        n_layers=draw(st.integers(1, 120)),
        d_model=draw(st.sampled_from([16, 100, 4096, 18_432])),
        d_ff=draw(st.sampled_from([48, 1000, 16_384, 73_728])),
        n_heads=n_heads,
        n_heads_served=n_heads + draw(st.sampled_from([0, 0, n_kv_heads])),
        n_kv_heads=n_kv_heads,
        d_head=draw(st.sampled_from([4, 64, 128, 256])),
        vocab_size=draw(st.sampled_from([100, 32_000, 256_000])),
        n_ffn_matrices=draw(st.sampled_from([2, 3])),
        block=draw(st.sampled_from(["parallel", "serial"])),
        tied_embeddings=draw(st.booleans()),
        n_params_published=1.0,
        weights_formats=("bf16", "int8"),
        kv_format=draw(st.sampled_from(["bf16", "int8"])),
        activation_format=draw(st.sampled_from(["bf16", "fp32"])),
    )


DEVICES = st.builds(
    DeviceSpec,
    name=st.just("drawn"),
    title=st.just(""),
    peak_flop_per_s=st.just({"bf16": 275e12, "fp32": 30e12}),
    hbm_bytes=st.just(32e9),
    hbm_bytes_per_s=st.sampled_from([1.2e12, 3e11]),
    reserve_bytes=st.just(0.0),
    usd_per_hour=st.just(1.0),
    price_date=st.just(""),
    compute_fraction=st.sampled_from([1.0, 0.8]),
    hbm_fraction=st.sampled_from([1.0, 0.7]),
    layer_overhead_s=st.sampled_from([0.0, 1e-4]),
    roofline_exponent=st.sampled_from([1.0, 2.5, 3.0, np.inf]),
)


@st.composite
def torus_meshes(draw):
    """One slice of a torus: closed or open, with axes of unequal links."""
    axes = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 8]), min_size=3, max_size=3)))
    closed = draw(st.booleans())
    return RefereeMesh(
        axes=axes,
        wraps=tuple(closed and k > 2 for k in axes),
        is_switch=False,
        axis_bytes_per_s=draw(st.sampled_from([(45e9,) * 3, (45e9, 30e9, 90e9)])),
        axis_hop_s=draw(st.sampled_from([(1e-6,) * 3, (0.0, 2e-6, 5e-6)])),
        n_stages=draw(st.sampled_from([1, 1, 2, 3, 7])),
        stage_bytes_per_s=45e9,
        stage_hop_s=1e-6,
    )


@st.composite
def switched_meshes(draw):
    """Tensor groups inside a node, or over nodes."""
    return RefereeMesh(
        axes=(draw(st.sampled_from([1, 2, 4, 8])), draw(st.sampled_from([1, 2, 4])), 1),
        wraps=(False, False, False),
        is_switch=True,
        axis_bytes_per_s=(150e9, 12.5e9, 12.5e9),
        axis_hop_s=(2e-6, 5e-6, 5e-6),
        n_stages=draw(st.sampled_from([1, 1, 2, 3, 7])),
        stage_bytes_per_s=12.5e9,
        stage_hop_s=5e-6,
    )


CONVENTIONS = st.sampled_from(["flat", "axis", "ring", "tree"])


@st.composite
def passes(draw):
    n_new = draw(st.sampled_from([1, 1, 7, 64, 2048]))
    return Pass(
        n_new_tokens=n_new,
        n_context_tokens=draw(st.sampled_from([n_new, n_new + 20.5, 4096])),
        n_cached_tokens=draw(st.sampled_from([n_new, 4096])),
    )


def as_table(mesh: RefereeMesh) -> MeshTable:
    """The same mesh, as the one row of a table."""
    return MeshTable(
        label=("drawn",),
        axis_size=np.array([mesh.axes]),
        axis_wraps=np.array([mesh.wraps]),
        axis_is_switch=np.array([[mesh.is_switch] * 3]),
        axis_bytes_per_s=np.array([mesh.axis_bytes_per_s]),
        axis_hop_s=np.array([mesh.axis_hop_s]),
        n_stages=np.array([mesh.n_stages]),
        stage_bytes_per_s=np.array([mesh.stage_bytes_per_s]),
        stage_hop_s=np.array([mesh.stage_hop_s]),
        n_devices=np.array([mesh.n_devices * mesh.n_stages]),
        n_positions=np.array([1]),
    )


def every_layout(n_microbatches: int) -> LayoutTable:
    """All 64 pairs of masks with both kinds of attention: more than anyone enumerates."""
    stored, gathered, attention = (
        axis.ravel() for axis in np.meshgrid(np.arange(8), np.arange(8), np.arange(2))
    )
    return LayoutTable(
        mesh=np.zeros(128, np.int64),
        stored=stored,
        gathered=gathered,
        attention=attention,
        n_microbatches=np.full(128, n_microbatches),
    )


def fabric_like(activation: str, bulk: str) -> TorusFabric:
    """Only the names of the conventions are read from a fabric."""
    return TorusFabric(
        shape=(1, 1, 1),
        link_bytes_per_s=1.0,
        hop_s=0.0,
        wrap_multiple=4,
        slice_dims=(1,),
        activation_network=activation,
        bulk_network=bulk,
    )


def scalar_arguments(layouts: LayoutTable, row: int) -> dict[str, object]:
    return {
        "stored": int(layouts.stored[row]),
        "gathered": int(layouts.gathered[row]),
        "attention": ATTENTION_NAMES[layouts.attention[row]],
        "n_microbatches": int(layouts.n_microbatches[row]),
    }


def assert_same(arrays: StepTimes | Residence, scalars: list, shape: tuple[int, int]) -> None:
    """Every field of every case to 1e-9; names may differ in a plural."""
    for theirs in type(scalars[0]).__dataclass_fields__:
        ours = theirs if hasattr(arrays, theirs) else theirs.replace("weights", "weight")
        expected = np.array([getattr(scalar, theirs) for scalar in scalars]).reshape(shape)
        actual = np.broadcast_to(getattr(arrays, ours), shape)
        # terms of one sum: what is next to nothing beside the total is nothing
        scale = np.abs(np.array([_scale(scalar) for scalar in scalars])).reshape(shape)
        wrong = np.abs(actual - expected) > RELATIVE * np.maximum(np.abs(expected), 1e-6 * scale)
        assert not wrong.any(), (
            f"{theirs}: {actual[wrong][0]} is {expected[wrong][0]} to the referee, "
            f"and {wrong.sum()} of {wrong.size}; first at {np.argwhere(wrong)[0]}"
        )


def _scale(scalar: object) -> float:
    return max(getattr(scalar, name) for name in type(scalar).__dataclass_fields__)


def times_agree(model, device, fabric, mesh, work, batches, weights, n_microbatches=1):
    meshes, layouts = as_table(mesh), every_layout(n_microbatches)
    machine = Machine(device=device, meshes=meshes, network=network_table(meshes, fabric))
    arrays = step_times(
        model,
        machine,
        layouts,
        geometry(layouts, meshes),
        work=work,
        n_sequences=np.array(batches),
        weights_formats=FORMAT_BYTES[weights],
    )
    scalars = [
        step_time(
            model,
            device,
            fabric,
            mesh,
            batch=batch,
            n_new_tokens=work.n_new_tokens,
            n_context_tokens=work.n_context_tokens,
            weights_format=weights,
            **scalar_arguments(layouts, row),
        )
        for row in range(len(layouts))
        for batch in batches
    ]
    assert_same(arrays, scalars, (len(layouts), len(batches)))


@EXAMPLES
@given(
    model=models(),
    device=DEVICES,
    conventions=st.tuples(CONVENTIONS, CONVENTIONS),
    mesh=st.one_of(torus_meshes(), switched_meshes()),
    work=passes(),
    batches=BATCHES,
    weights=st.sampled_from(["bf16", "int8"]),
    n_microbatches=st.sampled_from([1, 2, 3, 8]),
)
def test_the_referee_gives_every_step_the_same_time(
    model, device, conventions, mesh, work, batches, weights, n_microbatches
):
    fabric = fabric_like(*conventions)
    times_agree(model, device, fabric, mesh, work, batches, weights, n_microbatches)


@EXAMPLES
@given(
    model=models(),
    mesh=st.one_of(torus_meshes(), switched_meshes()),
    work=passes(),
    batches=BATCHES,
    weights=st.sampled_from(["bf16", "int8"]),
    n_microbatches=st.sampled_from([1, 2, 3, 8]),
)
def test_the_referee_holds_the_same_bytes(model, mesh, work, batches, weights, n_microbatches):
    meshes, layouts = as_table(mesh), every_layout(n_microbatches)
    shape: Geometry = geometry(layouts, meshes)
    arrays = residence(
        model,
        shape,
        work,
        n_sequences=np.array([batches], dtype=float),
        weight_bytes_per_number=np.array(FORMAT_BYTES[weights]),
    )
    scalars = [
        held_bytes(
            model,
            mesh,
            batch=batch,
            n_new_tokens=work.n_new_tokens,
            n_cached_tokens=work.n_cached_tokens,
            weights_format=weights,
            **scalar_arguments(layouts, row),
        )
        for row in range(len(layouts))
        for batch in batches
    ]
    assert_same(arrays, scalars, (len(layouts), len(batches)))


# by hand, so that both are not wrong together


TINY = ModelSpec(
    name="tiny",
    title="",
    n_layers=2,
    d_model=10,
    d_ff=20,
    n_heads=2,
    n_heads_served=2,
    n_kv_heads=1,
    d_head=5,
    vocab_size=100,
    n_ffn_matrices=2,
    block="parallel",
    tied_embeddings=True,
    n_params_published=1.0,
    weights_formats=("bf16",),
    kv_format="bf16",
    activation_format="bf16",
)
UNIT = DeviceSpec(
    name="unit",
    title="",
    peak_flop_per_s={"bf16": 1.0},
    hbm_bytes=1e9,
    hbm_bytes_per_s=1.0,
    reserve_bytes=0.0,
    usd_per_hour=1.0,
    price_date="",
    compute_fraction=1.0,
    hbm_fraction=1.0,
    layer_overhead_s=1.0,
    roofline_exponent=1.0,
)


def ring_of(n_devices: int, n_stages: int = 1) -> RefereeMesh:
    return RefereeMesh(
        axes=(n_devices, 1, 1),
        wraps=(n_devices > 2, False, False),
        is_switch=False,
        axis_bytes_per_s=(10.0, 10.0, 10.0),
        axis_hop_s=(0.5, 0.5, 0.5),
        n_stages=n_stages,
        stage_bytes_per_s=10.0,
        stage_hop_s=0.5,
    )


def tiny_step(mesh: RefereeMesh, *, batch: int = 4, n_microbatches: int = 1):
    """Decode at context 6, weights cut along F and heads, attention over heads."""
    return step_time(
        TINY,
        UNIT,
        fabric_like("ring", "ring"),
        mesh,
        stored=0,
        gathered=0,
        attention="heads",
        n_microbatches=n_microbatches,
        batch=batch,
        n_new_tokens=1,
        n_context_tokens=6,
        weights_format="bf16",
    )


def test_one_device_by_hand():
    """P = 2·10·20 + 2·10·10 + 2·10·5 = 700 a layer, V E = 1000.

    Compute 2·4·(2·700 + 1000) = 19200 FLOP; weights (1400 + 1000)·2 = 4800 bytes; attention
    2 layers · max(4·10·6·4 = 960 FLOP, 4·6·2·5·2 = 480 bytes) = 1920; two layers' overhead.
    """
    time = tiny_step(ring_of(1))
    assert (time.compute_s, time.weights_s, time.attention_s) == (19200, 4800, 1920)
    assert (time.network_s, time.overhead_s) == (0, 2)
    assert time.total_s == 19200 + 4800 + 1920 + 2


def test_four_devices_in_a_ring_by_hand():
    """WS 1D: gather and scatter 4·10 numbers = 80 bytes each, 60 cross two links of 10: 3 s.

    The one KV head is shared by four: 4·2·5·2 = 80 bytes, 60 cross: 3 s. Of two query heads
    each is shared by two: 4·10/2·2 = 40 bytes, 20 cross: 1 s. So 10 s a layer, two layers.
    Four messages of two hops of half a second, and a second's overhead: 5 s a layer. Two
    devices work on each query head: 960/2 FLOP, beside 480 bytes of KV.
    """
    time = tiny_step(ring_of(4))
    assert (time.compute_s, time.weights_s, time.attention_s) == (4800, 1200, 960)
    assert (time.network_s, time.overhead_s) == (20, 10)


def test_two_stages_by_hand():
    """One layer a stage, two sequences a part: 2 + 2 − 1 = 3 beats.

    Compute 2·2·(700 + 1000) = 6800, weights 3400, attention 480; 2·10·2 = 40 bytes are handed
    over at 10 bytes/s after half a second: 4.5 s.
    """
    time = tiny_step(ring_of(1, n_stages=2), n_microbatches=2)
    assert (time.compute_s, time.weights_s, time.attention_s) == (3 * 6800, 3 * 3400, 3 * 480)
    assert (time.network_s, time.overhead_s) == (13.5, 3)


def test_bytes_by_hand():
    """Four devices: (1400 + 1000)·2/4 of weights; KV of 4·7 tokens·2 layers·20 bytes, copied.

    Activations of 4 tokens: 2·10/4 at rest, 10 gathered, (20 + 20)/4 hidden, 2 bytes each.
    """
    held = held_bytes(
        TINY,
        ring_of(4),
        stored=0,
        gathered=0,
        attention="heads",
        n_microbatches=1,
        batch=4,
        n_new_tokens=1,
        n_cached_tokens=7,
        weights_format="bf16",
    )
    assert (held.weights_bytes, held.kv_bytes) == (1200, 1120)
    assert (held.activation_bytes, held.gather_bytes) == (4 * (5 + 10 + 10) * 2, 0)
