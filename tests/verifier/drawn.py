"""Random models, devices and meshes, of every kind that a file can describe."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from planner.layouts.geometry import Pass
from planner.specs.records.architecture import Experts, FeedForward, LayerClass
from planner.specs.records.devices import (
    DeviceSpec,
    MeasuredCollectives,
    ModelSpec,
    NcclProtocol,
    NodesFabric,
    TorusFabric,
    TwoRegimes,
)
from planner.specs.records.mixers import GroupedAttention, Indexer, LatentAttention, Recurrence
from planner.specs.records.shapes import MlaShape, MoeShape, WindowShape
from planner.specs.validation.hints import from_fields
from planner.verifier.scalar.shapes import ScalarMesh

BATCHES = st.lists(
    st.sampled_from([1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 97, 128, 500, 512, 1024]),
    min_size=5,
    max_size=5,
)


@st.composite
def dense_models(draw):
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


@st.composite
def experts(draw, n_layers: int):
    """A few experts or many, every token to one or to all, with and without shared ones."""
    n_experts = draw(st.sampled_from([2, 4, 6, 8, 16, 60, 64]))
    return MoeShape(
        n_experts=n_experts,
        n_active_experts=min(n_experts, draw(st.sampled_from([1, 2, 4, 8, 64]))),
        n_shared_experts=draw(st.sampled_from([0, 0, 1, 2])),
        d_expert=draw(st.sampled_from([24, 1000, 2048])),
        n_dense_layers=min(n_layers - 1, draw(st.sampled_from([0, 0, 1, 3]))),
    )


@st.composite
def latents(draw):
    return MlaShape(
        d_kv_latent=draw(st.sampled_from([12, 512])),
        d_q_latent=draw(st.sampled_from([None, 24, 1536])),
        d_rope=draw(st.sampled_from([4, 64])),
        d_nope=draw(st.sampled_from([8, 128])),
        d_value=draw(st.sampled_from([8, 100, 128])),
    )


@st.composite
def windows(draw, n_layers: int):
    return WindowShape(
        n_tokens=draw(st.sampled_from([1, 16, 128, 4096])), n_layers=draw(st.integers(1, n_layers))
    )


@st.composite
def models(draw, *, with_experts: bool | None = None):
    """Any of them: dense or of experts, with latent attention or windows or neither."""
    model = draw(dense_models())
    if draw(st.booleans()) if with_experts is None else with_experts:
        model = replace(model, moe=draw(experts(model.n_layers)))
    if draw(st.sampled_from([True, False, False])):
        mla = draw(latents())
        width, n_heads = mla.d_nope + mla.d_rope, model.n_heads
        model = replace(model, mla=mla, d_head=width, n_kv_heads=n_heads)
    if draw(st.sampled_from([True, False, False])):
        model = replace(model, window=draw(windows(model.n_layers)))
    return model


GROUPS = st.builds(
    GroupedAttention,
    n_heads=st.sampled_from([2, 8, 48]),
    n_kv_heads=st.sampled_from([1, 2]),
    d_head=st.sampled_from([4, 64]),
    d_value_head=st.sampled_from([4, 96]),
    span=st.sampled_from(["window", "chunk"]),
    n_span_tokens=st.sampled_from([None, 1, 100, 4096]),
    is_gated=st.booleans(),
    makes_keys=st.booleans(),
    shares_values=st.booleans(),
    shares_projection=st.booleans(),
    n_other_params=st.sampled_from([0, 7]),
)
INDEXERS = st.builds(
    Indexer,
    n_heads=st.sampled_from([2, 64]),
    d_head=st.sampled_from([8, 128]),
    n_selected_tokens=st.sampled_from([3, 2048]),
    n_other_params=st.sampled_from([0, 16]),
    is_shared=st.sampled_from([False, False, True]),
)
LATENTS = st.builds(
    LatentAttention,
    n_heads=st.sampled_from([2, 16, 128]),
    d_kv_latent=st.sampled_from([12, 512]),
    d_q_latent=st.sampled_from([None, 24]),
    d_rope=st.sampled_from([4, 64]),
    d_nope=st.sampled_from([8, 128]),
    d_value_head=st.sampled_from([8, 100]),
    indexer=st.none() | INDEXERS,
)
STATES = st.builds(
    Recurrence,
    kind=st.sampled_from(["delta", "mamba1", "mamba2", "convolution", "rwkv6"]),
    n_heads=st.sampled_from([2, 24, 4096]),
    d_key=st.sampled_from([0, 16, 128]),
    d_value=st.sampled_from([1, 64]),
    n_groups=st.sampled_from([1, 2]),
    n_conv_taps=st.sampled_from([0, 4]),
    d_conv=st.sampled_from([0, 1000]),
    n_input_columns=st.sampled_from([100, 9000]),
    n_output_rows=st.sampled_from([50, 4096]),
    n_other_params=st.sampled_from([0, 99]),
    state_bytes_per_number=st.sampled_from([2.0, 4.0]),
)


@st.composite
def class_models(draw):
    """Of a few classes of layers in any order, each with a mixer of any kind or an FFN or both."""
    model, moe = draw(dense_models()), draw(st.none() | experts(1))
    ffns: list[object] = [
        FeedForward(d_ff=draw(st.sampled_from([48, 1000])), n_matrices=n, n_other_params=n_others)
        for n, n_others in ((2, 0), (3, 5))
    ]
    if moe is not None:
        n_shared = moe.n_shared_experts
        ffn = from_fields(
            Experts,
            moe,
            n_active=moe.n_active_experts,
            d_shared=n_shared * moe.d_expert,
            n_matrices=3,
        )
        ffns += [ffn, ffn]
    layers = []
    for number in range(draw(st.integers(1, 4))):
        mixer = draw(st.one_of(GROUPS, LATENTS, STATES))
        mixed, fed = draw(
            st.sampled_from([(True, True), (True, True), (True, False), (False, True)])
        )
        layers.append(
            LayerClass(
                name=str(number),
                n_layers=draw(st.integers(1, 20)),
                mixer=mixer if mixed else None,
                ffn=draw(st.sampled_from(ffns)) if fed else None,
                n_other_params=draw(st.sampled_from([0, 64])),
                n_borrowed_params=draw(st.sampled_from([0, 0, 20])),
            )
        )
    order = draw(st.permutations([i for i, one in enumerate(layers) for _ in range(one.n_layers)]))
    has_experts = any(isinstance(one.ffn, Experts) for one in layers)
    return replace(
        model,
        n_layers=len(order),
        moe=moe if has_experts else None,
        layers=tuple(layers),
        order=tuple(order),
    )


DEVICES = st.builds(
    DeviceSpec,
    name=st.just("drawn"),
    title=st.just(""),
    peak_flop_per_s=st.sampled_from(
        [
            {"bf16": 275e12, "fp32": 30e12},
            {"bf16": 275e12, "int8": 550e12},
            {"fp16": 125e12},
            {"fp16": 990e12, "bf16": 989e12, "fp8": 1979e12},
        ]
    ),
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
    axes = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 8, 12]), min_size=3, max_size=3)))
    closed = draw(st.booleans())
    return ScalarMesh(
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
    """Tensor groups inside a node, or over nodes; a node along one axis, or along two."""
    inside, across = draw(st.sampled_from([1, 2, 4, 8])), draw(st.sampled_from([1, 2, 4, 12]))
    second = draw(st.sampled_from([None, 1, 2, 3]))
    tiers = {"axes": (inside, across, 1)}
    rates, hops = (150e9, 12.5e9, 12.5e9), (2e-6, 5e-6, 5e-6)
    if second is not None:
        tiers = {"axes": (inside, second, across), "tiers": (0, 0, 1)}
        rates, hops = (150e9, 150e9, 12.5e9), (2e-6, 2e-6, 5e-6)
    return ScalarMesh(
        **tiers,
        wraps=(False, False, False),
        is_switch=True,
        axis_bytes_per_s=rates,
        axis_hop_s=hops,
        n_stages=draw(st.sampled_from([1, 1, 2, 3, 7])),
        stage_bytes_per_s=12.5e9,
        stage_hop_s=5e-6,
    )


CONVENTIONS = st.sampled_from(["flat", "axis", "ring", "tree"])
SWITCHED_CONVENTIONS = st.sampled_from(["axis", "ring", "tree", *["two-regime", "nccl"] * 3])
LATENCIES = st.sampled_from([0.0, 1e-6, 4.8e-6, 60e-6])
RATES = st.sampled_from([3.5e9, 42.8e9, 212.1e9, 900e9])


@st.composite
def fits(draw):
    """Two regimes at some sizes, in no order of speed: a larger group may be faster."""
    sizes = draw(st.sampled_from([(2, 4, 8), (2, 4), (8,), (2, 3, 16), (4, 8)]))

    def column(values):
        return tuple(draw(values) for _ in sizes)

    return TwoRegimes(
        n_devices=sizes,
        short_latency_s=column(LATENCIES),
        short_bytes_per_s=column(RATES),
        long_latency_s=column(LATENCIES),
        long_bytes_per_s=column(RATES),
    )


PROTOCOLS = st.lists(
    st.builds(
        NcclProtocol,
        name=st.just("drawn"),
        algorithm=st.sampled_from(["tree", "ring"]),
        scale_up_hop_s=LATENCIES,
        scale_out_hop_s=LATENCIES,
        base_s=LATENCIES,
        bandwidth_fraction=st.sampled_from([0.5, 0.95, 1.0]),
    ),
    min_size=1,
    max_size=4,
).map(tuple)


@st.composite
def nodes_fabrics(draw):
    """What conventions read of nodes; rates and latencies are the mesh's."""
    return NodesFabric(
        n_nodes=64,
        n_devices_per_node=draw(st.sampled_from([4, 8])),
        scale_up_bytes_per_s=1.0,
        scale_up_latency_s=0.0,
        scale_up_fraction=1.0,
        scale_out_bytes_per_s=1.0,
        scale_out_latency_s=0.0,
        scale_out_fraction=1.0,
        activation_network=draw(SWITCHED_CONVENTIONS),
        bulk_network=draw(SWITCHED_CONVENTIONS),
        scale_up_measured=draw(
            st.builds(
                MeasuredCollectives,
                all_reduce=fits(),
                all_gather=fits(),
                reduce_scatter=fits(),
                all_to_all=fits(),
            )
        ),
        protocols=draw(PROTOCOLS),
    )


@st.composite
def passes(draw):
    n_new = draw(st.sampled_from([1, 1, 7, 64, 2048]))
    n_cached = draw(st.sampled_from([n_new, 4096]))
    return Pass(
        n_new_tokens=n_new,
        n_context_tokens=draw(st.sampled_from([n_new, n_new + 20.5, 4096])),
        n_cached_tokens=n_cached,
        n_found_tokens=draw(st.sampled_from([0, n_cached // 3])),
    )


WEIGHTS = st.sampled_from(["bf16", "int8", "llm_int8", "fp8", "mxfp4"])
KV = st.sampled_from([None, "bf16", "int8", "fp8", "fp4"])


@st.composite
def networks(draw):
    """A mesh, and a fabric whose conventions it can have."""
    if draw(st.booleans()):
        return draw(switched_meshes()), draw(nodes_fabrics())
    return draw(torus_meshes()), fabric_like(draw(CONVENTIONS), draw(CONVENTIONS))


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
