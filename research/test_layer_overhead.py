"""What a layer of H100, H200 and B200 costs beside everything that is modelled.

Measured time per output token, less what the model says with no overhead, over 80 layers: the
median of the rows of a device. Requests of 1024 tokens: longer prompts disturb decoding by
prefill of other requests, which a decode pass has not.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from planner.estimates.networks import network_table
from planner.estimates.steps import Machine
from planner.layouts.geometry import Pass
from planner.specs.files.reading import load_cluster, load_model
from planner.topology.meshes import mesh_table
from research.one_pass import pass_s

ROWS = Path(__file__).parents[1] / "tests" / "data" / "tpot.csv"
MODEL = "llama-3.1-70b"
CLUSTERS = {"h100-sxm": "h100-nvl8-x1", "h200": "h200-nvl8-x1", "b200": "b200-nvl8-x1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What is left of one row, for each layer."""

    tensor_parallel: int
    overhead_s: float


@cache
def rests(device: str, convention: str) -> tuple[Rest, ...]:
    """What is left of the rows of a device, its collectives by a convention."""
    with ROWS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["device"] == device]
    return tuple(_rest(row, device, convention) for row in rows)


def _rest(row: dict[str, str], device: str, convention: str) -> Rest:
    machine, model = _machine(device, convention), load_model(MODEL)
    n_tensor, n_input = int(row["tensor_parallel"]), int(row["n_input_tokens"])
    n_output = int(row["n_output_tokens"])
    work = Pass(
        n_new_tokens=1.0,
        n_context_tokens=n_input + n_output / 2,
        n_cached_tokens=n_input + n_output,
    )
    batch = [float(row["batch"])]
    (told_s,) = pass_s(model, machine, n_tensor, work, batch, weight_bytes=1.0, multiplied="fp8")
    left_s = float(row["tpot_ms"]) / 1e3 - told_s
    return Rest(tensor_parallel=n_tensor, overhead_s=left_s / model.n_layers)


@cache
def _machine(device: str, convention: str) -> Machine:
    cluster = load_cluster(CLUSTERS[device])
    meshes = mesh_table(cluster)
    fabric = replace(cluster.fabric, activation_network=convention, bulk_network=convention)
    idle = replace(cluster.device, layer_overhead_s=0.0)
    return Machine(device=idle, meshes=meshes, network=network_table(meshes, fabric))


def by_group(device: str, convention: str) -> dict[int, float]:
    """Median for each number of GPUs that share a layer."""
    left = rests(device, convention)
    sizes = sorted({rest.tensor_parallel for rest in left if rest.tensor_parallel > 1})
    return {n: median(rest.overhead_s for rest in left if rest.tensor_parallel == n) for n in sizes}


@pytest.mark.parametrize("device", CLUSTERS)
def test_the_overhead_in_the_file_is_the_median_of_what_is_left(device):
    left = median(rest.overhead_s for rest in rests(device, "two-regime"))
    assert load_cluster(CLUSTERS[device]).device.layer_overhead_s == pytest.approx(left, abs=0.5e-6)


@pytest.mark.parametrize("device", ["h100-sxm", "h200"])
def test_measured_collectives_leave_less_that_depends_on_the_group(device):
    """A layer's overhead should not know how many GPUs share it.

    From two to eight GPUs it differs by a third less than with one latency and one bandwidth.
    """
    measured, linear = (
        max(medians.values()) - min(medians.values())
        for medians in (by_group(device, "two-regime"), by_group(device, "tree"))
    )
    assert measured < 0.75 * linear
