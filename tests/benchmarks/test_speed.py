"""Speed as ratios within one run, because machines are noisy; figures are printed (`-s`)."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from planner.estimates.candidates import candidate_table, machine_of
from planner.estimates.phases import format_pairs, passes
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.estimates.steps import step_times
from planner.layouts.geometry import geometry
from planner.layouts.layer import residence
from planner.layouts.options import all_layouts
from planner.layouts.table import ATTENTION_NAMES
from planner.programs.deployment import Posing
from planner.solvers.search import search
from planner.specs.reading import load_cluster, load_model
from planner.specs.request import (
    DEFAULT_BATCHES,
    DEFAULT_WORKLOAD,
    SolverOptions,
    Targets,
    make_request,
)
from planner.verifier import scalar
from tests.clocks import least_s
from tests.estimates.serving.situations import FP8, served

N_CANDIDATES = 100_000
N_SAMPLED = 300


def cpu_s(run, *, n_runs=1):
    """Least CPU time of one call [s], and what the last one returned."""
    times = []
    for _ in range(n_runs):
        began = time.process_time()
        result = run()
        times.append(time.process_time() - began)
    return min(times), result


def test_arrays_estimate_100000_candidates_100_times_faster_than_one_at_a_time():
    """The scalar model is the referee: no arrays, one candidate a call."""
    model, cluster = load_model("palm-540b"), load_cluster("tpu-v4-4x8x8")
    machine = machine_of(cluster, model)
    every = all_layouts(machine.meshes)
    rng = np.random.default_rng(0)
    layouts = every.take(rng.integers(len(every), size=N_CANDIDATES))
    batches = rng.integers(1, 1025, size=(N_CANDIDATES, 1)).astype(float)
    work = passes(DEFAULT_WORKLOAD)["decode"]
    width = np.full((N_CANDIDATES, 1), 2.0)

    def in_arrays():
        shape = geometry(layouts, machine.meshes)
        times = step_times(
            model,
            machine,
            layouts,
            shape,
            work=work,
            n_sequences=batches,
            weights_formats=width[:, 0],
        )
        residence(model, shape, work, n_sequences=batches, weight_bytes_per_number=width)
        return times.total_s[:, 0]

    def one(row):
        mesh_row = int(layouts.mesh[row])
        meshes = machine.meshes
        mesh = scalar.ScalarMesh(
            axes=tuple(map(int, meshes.axis_size[mesh_row])),
            wraps=tuple(map(bool, meshes.axis_wraps[mesh_row])),
            is_switch=False,
            axis_bytes_per_s=tuple(map(float, meshes.axis_bytes_per_s[mesh_row])),
            axis_hop_s=tuple(map(float, meshes.axis_hop_s[mesh_row])),
            n_stages=1,
            stage_bytes_per_s=1.0,
            stage_hop_s=0.0,
        )
        layout = {
            "stored": int(layouts.stored[row]),
            "gathered": int(layouts.gathered[row]),
            "attention": ATTENTION_NAMES[int(layouts.attention[row])],
            "n_microbatches": 1,
            "batch": int(batches[row, 0]),
            "n_new_tokens": work.n_new_tokens,
            "weights_format": "bf16",
        }
        scalar.held_bytes(model, mesh, n_cached_tokens=work.n_cached_tokens, **layout)
        return scalar.step_time(
            model,
            cluster.device,
            cluster.fabric,
            mesh,
            n_context_tokens=work.n_context_tokens,
            **layout,
        ).total_s

    def one_by_one():
        return [one(row) for row in range(N_SAMPLED)]

    def ratio(array_s, scalar_s):
        return (scalar_s / N_SAMPLED) / (array_s / N_CANDIDATES)

    np.testing.assert_allclose(in_arrays()[:N_SAMPLED], one_by_one(), rtol=1e-9)
    spent = least_s(in_arrays, one_by_one, until=lambda *spent: ratio(*spent) >= 100)
    print(f"\n{N_CANDIDATES} candidates: {ratio(*spent):.0f} times faster in arrays")
    assert ratio(*spent) >= 100


@pytest.mark.parametrize("targets", [Targets(tpot_s=0.030), Targets()], ids=["30 ms", "offline"])
def test_building_takes_the_same_time_per_candidate_and_solving_grows_slower_than_the_pool(targets):
    """64 times the chips: building grows with the candidates, solving hardly at all."""
    model = load_model("palm-540b")
    times = {}
    for name in ("4x4x4", "8x8x8", "16x16x16"):
        cluster = load_cluster(f"tpu-v4-{name}")
        request = make_request(
            model,
            cluster,
            workload=DEFAULT_WORKLOAD,
            targets=targets,
            weights_formats=None,
            batches=None,
            prefill_batches=None,
            prefill=None,
            objective="cost",
            options=SolverOptions(),
        )

        def build(request=request, cluster=cluster):
            table = candidate_table(
                model,
                machine_of(cluster, model),
                request.workload,
                formats=format_pairs(request.weights_formats, request.kv_formats),
                batches=request.batches,
                prefill_batches=request.prefill_batches,
            )
            posing = Posing(table, request, objective="cost")
            return posing, sum(block.program.n_columns for block in posing.blocks())

        build_s, (posing, n_columns) = cpu_s(build, n_runs=3)
        solve_s, found = cpu_s(lambda posing=posing, r=request: search(posing, r.options))
        times[cluster.n_devices] = build_s, solve_s, n_columns
        assert found.solution.gap == 0
    print("\nchips  candidates  build s  screen and solve s")
    for n_devices, (build_s, solve_s, n_columns) in times.items():
        print(f"{n_devices:5d}  {n_columns:10d}  {build_s:7.3f}  {solve_s:7.3f}")
    (few_build_s, few_solve_s, few), (build_s, solve_s, many) = times[64], times[4096]
    per_candidate = (build_s / many) / (few_build_s / few)
    print(f"64 to 4096 chips: {per_candidate:.2f} times as long to build a candidate")
    print(f"64 to 4096 chips: {solve_s / max(few_solve_s, 0.02):.1f} times as long to solve")
    assert per_candidate < 3
    assert solve_s / max(few_solve_s, 0.02) < 64
    assert len(DEFAULT_BATCHES) == 240


def test_the_default_command_takes_at_most_two_seconds_of_cpu():
    """User and system time of the child, the best of six runs: what runs beside it slows it."""
    code = (
        "import resource, sys; from planner.commands.cli import main; "
        "code = main(['--latency-target', '30ms', '--quiet']); "
        "use = resource.getrusage(resource.RUSAGE_SELF); "
        "print(use.ru_utime + use.ru_stime, file=sys.stderr); sys.exit(code)"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    seconds: list[float] = []
    while len(seconds) < 6 and min(seconds, default=9.0) > 2.0:
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        seconds.append(float(run.stderr.strip().splitlines()[-1]))
    print(f"\nplan --latency-target 30ms: {min(seconds):.2f} s of CPU")
    assert min(seconds) <= 2.0


@pytest.mark.parametrize(
    ("name", "topology", "engine"),
    [("qwen3-32b", "h100-nvl8-x16", "vllm"), ("deepseek-v3", "h800-nvl8-x16", "sglang")],
)
def test_a_hundred_thousand_deployments_are_predicted_in_five_seconds(name, topology, engine):
    rng = np.random.default_rng(0)
    tensor, data = (rng.choice([1, 2, 4, 8], N_CANDIDATES) for _ in range(2))
    has_experts = name != "qwen3-32b"
    table = deployments(
        formats=FP8,
        n_tensor=tensor,
        n_data=data,
        n_expert_parallel=tensor * data if has_experts else 1,
        batch=rng.integers(1, 257, N_CANDIDATES),
    )
    traffic = Traffic(n_input_tokens=2048, n_output_tokens=512)

    def predicted():
        return served(name, table, traffic, topology=topology, engine=engine, formats=FP8)

    assert np.isfinite(predicted().tpot_s).all()
    (spent,) = least_s(predicted, until=lambda spent: spent < 5.0)
    print(f"{name}: {N_CANDIDATES} deployments in {spent:.2f} s")
    assert spent < 5.0
