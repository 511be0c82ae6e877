"""No command gets slower or larger than `docs/speed.md` says, and arrays are worth their while."""

from __future__ import annotations

import numpy as np
import pytest

from planner.estimates.candidates import machine_of
from planner.estimates.phases import passes
from planner.estimates.simulation.core import is_compiled
from planner.layouts.geometry import ATTENTION_NAMES, geometry
from planner.layouts.layer import residence
from planner.layouts.options import all_layouts
from planner.specs.ask.targets import DEFAULT_WORKLOAD
from planner.specs.files.reading import load_cluster, load_model
from planner.verifier.scalar.memory import held_bytes
from planner.verifier.scalar.shapes import Layout, ScalarMesh
from planner.verifier.scalar.times import step_time
from tests.benchmarks.speed import CHAT, COMMANDS, GUARDED, WORSE, Bench, Ratios, known
from tests.clocks import least_s
from tests.estimates.step_times import step_times

N_CANDIDATES = 100_000
N_SAMPLED = 300
N_ROUNDS = 8


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("line", GUARDED)
def test_a_command_takes_no_more_than_it_did(bench, line):
    """One round is enough where it is quick; what runs beside it may spoil a few."""
    if line == CHAT and not is_compiled():
        pytest.skip("the simulator is not compiled here")
    least = Ratios(np.inf, np.inf)
    for _ in range(N_ROUNDS):
        ratios, _ = bench.run(line)
        least = Ratios(min(least.cpu, ratios.cpu), min(least.memory, ratios.memory))
        if not least.worse_than(known()[line]):
            break
    assert least.worse_than(known()[line]) == []


def test_the_page_has_every_command_and_a_quarter_more_is_worse():
    listed = [line for lines in COMMANDS.values() for line in lines]
    assert known().keys() == set(listed) >= set(GUARDED)
    some = Ratios(cpu=4.0, memory=2.0)
    assert Ratios(cpu=4.0 * WORSE, memory=2.0 * WORSE).worse_than(some) == []
    assert len(Ratios(cpu=4.1 * WORSE, memory=2.1 * WORSE).worse_than(some)) == 2


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
        mesh = ScalarMesh(
            axes=tuple(map(int, meshes.axis_size[mesh_row])),
            wraps=tuple(map(bool, meshes.axis_wraps[mesh_row])),
            is_switch=False,
            axis_bytes_per_s=tuple(map(float, meshes.axis_bytes_per_s[mesh_row])),
            axis_hop_s=tuple(map(float, meshes.axis_hop_s[mesh_row])),
            n_stages=1,
            stage_bytes_per_s=1.0,
            stage_hop_s=0.0,
        )
        layout = Layout(
            model=model,
            mesh=mesh,
            stored=int(layouts.stored[row]),
            gathered=int(layouts.gathered[row]),
            attention=ATTENTION_NAMES[int(layouts.attention[row])],
            n_microbatches=1,
            weights_format="bf16",
        )
        enters = {"batch": int(batches[row, 0]), "n_new_tokens": work.n_new_tokens}
        held_bytes(layout, n_cached_tokens=work.n_cached_tokens, **enters)
        return step_time(
            layout,
            cluster.device,
            cluster.fabric,
            n_context_tokens=work.n_context_tokens,
            **enters,
        ).total_s

    def one_by_one():
        return [one(row) for row in range(N_SAMPLED)]

    def ratio(array_s, scalar_s):
        return (scalar_s / N_SAMPLED) / (array_s / N_CANDIDATES)

    np.testing.assert_allclose(in_arrays()[:N_SAMPLED], one_by_one(), rtol=1e-9)
    spent = least_s(in_arrays, one_by_one, until=lambda *spent: ratio(*spent) >= 100)
    print(f"\n{N_CANDIDATES} candidates: {ratio(*spent):.0f} times faster in arrays")
    assert ratio(*spent) >= 100
