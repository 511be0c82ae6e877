"""A plan and a conflict made by hand: figures that are easy to find again in a report."""

from __future__ import annotations

from dataclasses import replace

from planner.results.conflicts import Conflict, Relaxation, RelaxedLimit
from planner.results.deployments import Deployment, Memory, Mesh, PhasePlan, StepTime
from planner.results.obstacles import Obstacle
from planner.results.plans import Alternative, LimitUse, Plan
from planner.specs.ask.request import Request
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.records.certificates import Certificate, Proof, Screen
from planner.specs.records.devices import (
    ClusterSpec,
    DeviceSpec,
    ModelSpec,
    Provenance,
    TorusFabric,
    Workload,
)

PROVENANCE = (
    Provenance(key="memory.hbm", source="[Pope2022] §4"),
    Provenance(key="memory.reserve", source="assumed"),
    Provenance(key="torus.hop", source="assumed"),
)

MODEL = ModelSpec(
    name="tiny-7b",
    title="Tiny 7B",
    n_layers=32,
    d_model=4096,
    d_ff=16384,
    n_heads=30,
    n_heads_served=32,
    n_kv_heads=1,
    d_head=128,
    vocab_size=32_000,
    n_ffn_matrices=3,
    block="parallel",
    tied_embeddings=True,
    n_params_published=7e9,
    weights_formats=("bf16", "int8"),
    kv_format="bf16",
    activation_format="bf16",
    provenance=(Provenance(key="shape.n_layers", source="[Chowdhery2022] Table 1"),),
)

DEVICE = DeviceSpec(
    name="toy",
    title="Toy chip",
    peak_flop_per_s={"bf16": 100e12},
    hbm_bytes=32e9,
    hbm_bytes_per_s=1e12,
    reserve_bytes=1e9,
    usd_per_hour=3.0,
    price_date="2026-05",
    compute_fraction=0.8,
    hbm_fraction=0.9,
    layer_overhead_s=1e-4,
    roofline_exponent=3.0,
    provenance=PROVENANCE[:2],
)

CLUSTER = ClusterSpec(
    name="toy-4x4x4",
    title="Toy torus 4×4×4 (64 chips)",
    device=DEVICE,
    fabric=TorusFabric(
        shape=(4, 4, 4),
        link_bytes_per_s=45e9,
        hop_s=1e-6,
        wrap_multiple=4,
        slice_dims=(1, 2, 4),
        activation_network="ring",
        bulk_network="axis",
    ),
    usd_per_hour=3.0,
    provenance=PROVENANCE[2:],
)

REQUEST = Request(
    model=MODEL,
    cluster=CLUSTER,
    workload=Workload(n_input_tokens=2048, n_output_tokens=64),
    targets=Targets(tpot_s=0.030, usd_per_token=50e-6, min_batch=16),
    weights_formats=("bf16", "int8"),
    batches=tuple(range(1, 129)),
    prefill_batches=(1,),
    prefill="latency",
    objective="cost",
    options=SolverOptions(time_limit_s=10.0),
)

MESH = Mesh(
    label="2×4×4",
    axes=(2, 4, 4),
    axes_wrap=(False, False, False),
    is_torus=True,
    n_stages=1,
    n_devices=32,
    n_positions=6,
)

PREFILL = PhasePlan(
    phase="prefill",
    batch=1,
    n_microbatches=1,
    layout="WG XYZ",
    attention="heads",
    n_kv_ways=1,
    step=StepTime(
        compute_s=0.100, weights_s=0.010, attention_s=0.020, network_s=0.060, overhead_s=0.010
    ),
    n_tokens=2048,
    mfu_fraction=0.45,
)

DECODE = PhasePlan(
    phase="decode",
    batch=64,
    n_microbatches=1,
    layout="WS 2D",
    attention="batch",
    n_kv_ways=32,
    step=StepTime(
        compute_s=0.004, weights_s=0.008, attention_s=0.001, network_s=0.005, overhead_s=0.010
    ),
    n_tokens=64,
    mfu_fraction=0.0612,
)

DEPLOYMENT = Deployment(
    mesh=MESH,
    weights_format="int8",
    kv_format="bf16",
    storage="E_x F_yz",
    prefill=PREFILL,
    decode=DECODE,
    memory=Memory(
        fullest="prefill",
        weights_bytes=16e9,
        decode_kv_bytes=4e9,
        prefill_kv_bytes=0.5e9,
        written_kv_bytes=1e9,
        activation_bytes=0.25e9,
        gather_bytes=0.25e9,
        reserve_bytes=1e9,
        capacity_bytes=32e9,
    ),
    usd_per_hour=96.0,
    usd_per_token=40e-6,
    prefill_usd_per_token=10e-6,
    request_s=0.25,
    n_output_tokens=64,
)

SECOND = replace(
    DEPLOYMENT,
    mesh=replace(MESH, label="4×4×4", axes=(4, 4, 4), n_devices=64, n_positions=1),
    decode=replace(DECODE, batch=128),
    usd_per_token=42e-6,
)

CERTIFICATE = Certificate(
    status="optimal",
    objective_name="cost",
    objective=40e-6,
    bound=40e-6,
    gap=0.0,
    dimension="USD/token",
    proofs=(
        Proof(prover="highs 1.13.1", outcome="optimal", value=40e-6, bound=40e-6, wall_s=0.049),
        Proof(
            prover="enumeration of 45", outcome="optimal", value=40e-6, bound=40e-6, wall_s=0.001
        ),
    ),
    vouched_by=("highs 1.13.1", "enumeration of 45"),
    vouched_bound=40e-6,
    n_candidates=12_345,
    n_contexts=27,
    screens=(
        Screen(name="memory", n_candidates=12_000, reason="they exceed a device's memory"),
        Screen(name="tpot", n_candidates=300, reason="they break `tpot` by themselves"),
    ),
    n_solved=45,
    verified=("every constraint holds", "seconds and bytes recounted"),
    wall_s=1.25,
    solve_s=0.05,
)

PLAN = Plan(
    request=REQUEST,
    deployment=DEPLOYMENT,
    alternatives=(Alternative(deployment=SECOND, objective=42e-6, loss_fraction=0.05),),
    limits=(
        LimitUse(
            name="tpot", used=0.028, limit=0.030, dimension="s", relief=1.1, gain_fraction=0.08
        ),
        LimitUse(
            name="cost",
            used=40e-6,
            limit=50e-6,
            dimension="USD/token",
            relief=1.1,
            gain_fraction=0.0,
        ),
        LimitUse(name="batch", used=64.0, limit=16.0, dimension="1", relief=0.5, gain_fraction=0.0),
        LimitUse(name="hbm", used=22e9, limit=32e9, dimension="B", relief=1.1, gain_fraction=0.0),
    ),
    certificate=CERTIFICATE,
    provenance=PROVENANCE,
)

CONFLICT = Conflict(
    request=replace(REQUEST, targets=Targets(tpot_s=0.005, usd_per_token=20e-6)),
    obstacles=(
        Obstacle(
            name="tpot",
            asked=0.005,
            reachable=0.012,
            dimension="s",
            reason="a decode step reads all 7 GB of weights, which takes at least 11.8 ms",
        ),
        Obstacle(
            name="cost",
            asked=20e-6,
            reachable=31e-6,
            dimension="USD/token",
            reason="every batch that is fast enough costs at least $31/Mtoken",
        ),
    ),
    closest=DEPLOYMENT,
    command="plan --model tiny-7b --latency-target 13ms --max-cost '$20/Mtoken'",
    n_candidates=12_345,
    verified=("HiGHS found no plan", "each limit left out alone admits one"),
)

RELAXED = replace(
    CONFLICT,
    cores=(("tpot", "cost"),),
    command="plan --model tiny-7b --latency-target 6.5ms --max-cost '$25/Mtoken'",
    relaxations=(
        Relaxation(
            changes=(
                RelaxedLimit(name="tpot", requested=0.005, needed=0.0064, limit=0.0064),
                RelaxedLimit(name="cost", requested=20e-6, needed=25e-6, limit=25e-6),
            ),
            price_fraction=0.53,
            deployment=DEPLOYMENT,
            objective=40e-6,
            command="plan --model tiny-7b --latency-target 6.5ms --max-cost '$25/Mtoken'",
        ),
        Relaxation(
            changes=(
                RelaxedLimit(name="tpot", requested=0.005, needed=0.012, limit=0.012),
                RelaxedLimit(name="batch", requested=32.0, needed=16.0, limit=16.0),
                RelaxedLimit(name="prefill_batch", requested=1.0, needed=64.0, limit=64.0),
            ),
            price_fraction=2.4,
            deployment=DEPLOYMENT,
            objective=40e-6,
            command="plan --model tiny-7b --latency-target 12ms --prefill cost",
        ),
    ),
)
