"""Closed forms of [Pope2022] §3.2 and appendix A, out of the planner's own messages.

The paper counts a plain FFN without attention, F = 4E, and takes (k − 1)/k as 1.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st

from planner.estimates.networks import network_table
from planner.estimates.steps import Machine
from planner.layouts.geometry import OVER_HEADS, LayoutTable, geometry
from planner.layouts.layer import layer_work
from planner.specs.records.devices import FORMAT_BYTES, DeviceSpec, ModelSpec, NodesFabric
from planner.topology.meshes import MeshTable
from research.bench import Bench, Step, with_layouts

E, F = 4096, 4 * 4096
T = 640
X_AXIS, Y_AXIS = 1, 2

DEVICE = DeviceSpec(
    name="unit",
    title="one of everything",
    peak_flop_per_s={"bf16": 1e12},
    hbm_bytes=1e12,
    hbm_bytes_per_s=1e12,
    reserve_bytes=0.0,
    usd_per_hour=1.0,
    price_date="undated",
    compute_fraction=1.0,
    hbm_fraction=1.0,
    layer_overhead_s=0.0,
    roofline_exponent=1.0,
)


def model_of(*, n_heads: int = 1, d_head: int = 0, n_ffn: int = 2, block: str = "parallel"):
    """A layer of E and F; by default its attention has no width at all."""
    return ModelSpec(
        name="paper",
        title="",
        n_layers=1,
        d_model=E,
        d_ff=F,
        n_heads=n_heads,
        n_heads_served=n_heads,
        n_kv_heads=n_heads,
        d_head=d_head,
        vocab_size=0,
        n_ffn_matrices=n_ffn,
        block=block,
        tied_embeddings=True,
        n_params_published=1.0,
        weights_formats=("bf16",),
        kv_format="bf16",
        activation_format="bf16",
    )


def mesh_of(sizes: tuple[int, int, int], rates=(1e9, 1e9, 1e9), wraps=(True, True, True), n=1):
    """One mesh, repeated for as many layouts as want it."""
    return MeshTable(
        label=("mesh",) * n,
        axis_size=np.array([sizes] * n),
        axis_wraps=np.array([wraps] * n),
        axis_is_switch=np.zeros((n, 3), bool),
        axis_bytes_per_s=np.array([rates] * n),
        axis_hop_s=np.zeros((n, 3)),
        n_stages=np.ones(n, np.int64),
        stage_bytes_per_s=np.ones(n),
        stage_hop_s=np.zeros(n),
        n_devices=np.full(n, np.prod(sizes)),
        n_positions=np.ones(n, np.int64),
    )


def volume(model: ModelSpec, n_x: int, n_y: int, *, stored: int, gathered: int) -> float:
    """Elements of all collectives of a layer, per device, before (k − 1)/k."""
    return float(sum(volumes(model, n_x, n_y, stored=stored, gathered=gathered)))


def volumes(model: ModelSpec, n_x: int, n_y: int, *, stored: int, gathered: int, n_tokens=T):
    """The same, collective by collective; those among one device are no collectives."""
    layouts = LayoutTable(
        mesh=np.array([0]),
        stored=np.array([stored]),
        gathered=np.array([gathered]),
        attention=np.array([OVER_HEADS]),
        n_microbatches=np.array([1]),
    )
    n_sequences = n_x if gathered else 1
    work = layer_work(
        model,
        geometry(layouts, mesh_of((n_x, n_y, 1))),
        Step(n_sequences=n_sequences, n_new_tokens=n_tokens / n_sequences, n_context_tokens=1).work,
        n_sequences=np.array([[float(n_sequences)]]),
        weight_bytes_per_number=np.array([[2.0]]),
    )
    return [
        message.n_bytes.item() / 2.0 if message.n_devices.item() > 1 else 0.0
        for message in work.messages
    ]


def splits(n: int) -> list[int]:
    return [x for x in range(1, n + 1) if n % x == 0]


@pytest.mark.parametrize("n", [16, 64, 256])
def test_two_dimensional_volume_is_least_at_half_the_root_of_the_chips(n: int):
    """2T(E/X + F/YZ): X = ½√n and YZ = 2√n, with volume 8TE/√n; exact."""
    model = model_of()
    by_x = {x: volume(model, x, n // x, stored=X_AXIS, gathered=0) for x in splits(n)[1:]}
    best = min(by_x, key=by_x.__getitem__)
    assert best == sqrt(n) / 2
    assert n // best == 2 * sqrt(n)
    assert by_x[best] == 8 * T * E / sqrt(n)


def test_sixteen_chips_are_where_one_and_two_dimensions_cost_the_same():
    """8TE/√16 = 2TE."""
    one = volume(model_of(), 1, 16, stored=0, gathered=0)
    assert one == volume(model_of(), 2, 8, stored=X_AXIS, gathered=0)


@pytest.mark.parametrize("n", [16, 64, 256])
def test_one_dimensional_volume_is_twice_the_activations(n: int):
    """2TE, whatever the chips."""
    assert volume(model_of(), 1, n, stored=0, gathered=0) == 2 * T * E


@pytest.mark.parametrize("n", [16, 64, 256])
@pytest.mark.parametrize("x", [2, 4, 8])
def test_two_dimensional_volume_is_the_papers_at_any_split(n: int, x: int):
    expected = 2 * T * (E / x + F / (n // x))
    assert volume(model_of(), x, n // x, stored=X_AXIS, gathered=0) == expected


@pytest.mark.parametrize("n_gathered", [2, 4, 8, 16])
def test_weight_gathered_volume_is_the_papers(n_gathered: int):
    """Weights 2EF N/n, activations 2TE/N, over n = 64 chips."""
    n = 64
    weights, *activations = volumes(
        model_of(), n_gathered, n // n_gathered, stored=X_AXIS, gathered=X_AXIS
    )
    assert weights == 2 * E * F * n_gathered / n
    assert sum(activations) == 2 * T * E / n_gathered


@pytest.mark.parametrize("best", [2, 4, 8, 16])
def test_weight_gathered_volume_is_least_at_the_root_of_tokens_times_chips_over_width(best: int):
    """N = √(Tn/F), with volume 4E √(TF/n); exact where N divides the chips."""
    n = 64
    n_tokens = best * best * F / n
    by_n = {
        g: sum(volumes(model_of(), g, n // g, stored=X_AXIS, gathered=X_AXIS, n_tokens=n_tokens))
        for g in splits(n)[1:-1]
    }
    assert min(by_n, key=by_n.__getitem__) == best
    assert by_n[best] == pytest.approx(4 * E * sqrt(n_tokens * F / n), rel=1e-15)


def test_gathering_over_ever_more_axes_pays_at_the_papers_sizes_of_batch():
    """PaLM 540B's FFN on 4×4×4, plain: X at T = E, XY at F, XYZ at 12 F tokens.

    X and XY: 2EF N/n + 2TE/N is equal for N = 4 and 16 at T = F. For N = n no activation
    moves: 2EF is equal to 2EF/4 + 2TE/16 at T = 12 F.
    """

    def cost(n_gathered: int, n_tokens: float) -> float:
        if n_gathered == 1:
            return sum(volumes(model_of(), 4, 16, stored=X_AXIS, gathered=0, n_tokens=n_tokens))
        return sum(
            volumes(
                model_of(),
                n_gathered,
                64 // n_gathered,
                stored=X_AXIS,
                gathered=X_AXIS,
                n_tokens=n_tokens,
            )
        )

    for fewer, more, n_tokens in ((1, 4, E), (4, 16, F), (16, 64, 12 * F)):
        assert cost(fewer, n_tokens) == cost(more, n_tokens)
        assert cost(fewer, n_tokens * 0.99) < cost(more, n_tokens * 0.99)
        assert cost(fewer, n_tokens * 1.01) > cost(more, n_tokens * 1.01)


SIZES = st.tuples(*[st.sampled_from([1, 2, 3, 4, 8])] * 3)
RATES = st.tuples(*[st.floats(1e6, 1e12)] * 3)
WRAPS = st.tuples(*[st.booleans()] * 3)
MODELS = st.builds(
    model_of,
    n_heads=st.just(512),  # as many key-value heads as chips at most: none is copied
    d_head=st.sampled_from([16, 64, 128]),
    n_ffn=st.sampled_from([2, 3]),
    block=st.sampled_from(["parallel", "serial"]),
)


@given(
    sizes=SIZES,
    rates=RATES,
    wraps=WRAPS,
    model=MODELS,
    convention=st.sampled_from(["ring", "axis", "flat", "tree"]),
    stored=st.integers(1, 7),
    weights=st.sampled_from(["bf16", "int8"]),
    nearby=st.floats(1e-6, 0.9),
)
def test_gathering_weights_over_x_pays_from_exactly_so_many_tokens_on(
    sizes, rates, wraps, model, convention, stored, weights, nearby
):
    """T = E × (bytes of a weight / bytes of an activation), on any mesh and bandwidth.

    WS 2D sends T (w_in + w_out)/YZ activations along x, WG X sends E (w_in + w_out)/YZ
    weights along x, and what both send along yz is the same.
    """
    on_x = [size for axis, size in enumerate(sizes) if stored >> axis & 1]
    if np.prod(on_x) == 1:
        sizes, stored = (2, *sizes[1:]), 1
    bench = _pair(sizes, rates, wraps, model, stored, (convention, convention))
    _switches_at(bench, weights, nearby)


@given(sizes=SIZES, rates=RATES, wraps=WRAPS, model=MODELS, nearby=st.floats(1e-6, 0.9))
def test_along_one_axis_rings_and_sums_of_axes_switch_alike(sizes, rates, wraps, model, nearby):
    """The conventions of `topologies/tpu-v4.toml` differ on groups of several axes only."""
    sizes = (max(sizes[0], 2), *sizes[1:])
    bench = _pair(sizes, rates, wraps, model, X_AXIS, ("ring", "axis"))
    _switches_at(bench, "bf16", nearby)


def _pair(sizes, rates, wraps, model, stored, conventions) -> Bench:
    """Two layouts with the same weights at rest: WS 2D, and WG over the same axes."""
    meshes = mesh_of(sizes, rates, wraps)
    fabric = NodesFabric(
        n_nodes=1,
        n_devices_per_node=1,
        scale_up_bytes_per_s=1.0,
        scale_up_latency_s=0.0,
        scale_up_fraction=1.0,
        scale_out_bytes_per_s=1.0,
        scale_out_latency_s=0.0,
        scale_out_fraction=1.0,
        activation_network=conventions[0],
        bulk_network=conventions[1],
    )
    machine = Machine(device=DEVICE, meshes=meshes, network=network_table(meshes, fabric))
    layouts = LayoutTable(
        mesh=np.array([0, 0]),
        stored=np.array([stored, stored]),
        gathered=np.array([0, stored]),
        attention=np.array([OVER_HEADS, OVER_HEADS]),
        n_microbatches=np.array([1, 1]),
    )
    return with_layouts(model, machine, layouts)


def _switches_at(bench: Bench, weights: str, nearby: float) -> None:
    bytes_per_weight = FORMAT_BYTES[weights]
    switch = E * bytes_per_weight / FORMAT_BYTES["bf16"]
    n_sequences = int(bench.shape.n_gathered[1, 0])

    def network_s(n_tokens: float) -> tuple[float, float]:
        step = Step(
            n_sequences=n_sequences,
            n_new_tokens=n_tokens / n_sequences,
            n_context_tokens=1,
            bytes_per_weight=bytes_per_weight,
        )
        stationary, gathered = np.broadcast_to(bench.times(step).network_s, (2, 1))[:, 0]
        return float(stationary), float(gathered)

    stationary, gathered = network_s(switch)
    assert stationary == pytest.approx(gathered, rel=1e-12)
    stationary, gathered = network_s(switch * (1 - nearby))
    assert stationary < gathered
    stationary, gathered = network_s(switch * (1 + nearby))
    assert stationary > gathered
