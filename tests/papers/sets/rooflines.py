"""Decode steps of dense models by one roofline a layer, beside times per output token.

    python -m tests.papers.sets.rooflines            errors of the calibrating half
    python -m tests.papers.sets.rooflines --judging  of the other

`plan` without an engine times a decode pass so. It knows of no prompts that ride on it, of no
scheduler, and of formats by their bytes alone; what it leaves out is part of its error here.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from planner.estimates.networks import network_table
from planner.estimates.steps import Machine, peak_of, step_times
from planner.layouts.geometry import Pass, geometry
from planner.layouts.table import OVER_HEADS, LayoutTable
from planner.specs.correspondence import model_spec_of
from planner.specs.models import ModelSpec
from planner.topology.meshes import mesh_table
from tests.papers.sets.halves import calibration_rows, judging_rows
from tests.papers.sets.predicted import architecture, cluster, traffic
from tests.papers.sets.rows import Served

BYTES = {"": 2.0, "fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5625}
"""Of a weight, by the format that a source names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A row, with what a decode step of it takes [s]."""

    row: Served
    step_s: float

    @property
    def error(self) -> float:
        return 1e3 * self.step_s / self.row.tpot_ms - 1.0


def rows(chosen: Iterable[Served]) -> list[Served]:
    """Dense models whose heads all devices share."""
    return [row for row in chosen if row.series.is_dense and row.data == 1]


def steps(chosen: Iterable[Served]) -> list[Step]:
    """All rows of one model, device, degree and format at once."""
    groups: dict[tuple[object, ...], list[Served]] = defaultdict(list)
    for row in rows(chosen):
        series = row.series
        what = (series.model, series.gpu, series.weights, row.tensor, row.n_input, row.n_output)
        groups[(*what, series.harness)].append(row)
    return [
        Step(row=row, step_s=float(seconds))
        for group in groups.values()
        for row, seconds in zip(group, _steps_s(group), strict=True)
    ]


def _steps_s(group: list[Served]) -> np.ndarray:
    row, series = group[0], group[0].series
    machine, model, sent = machine_of(series.gpu), model_of(series.model), traffic(row)
    layouts = LayoutTable(
        mesh=np.array([machine.meshes.label.index(f"TP {row.tensor}")]),
        stored=np.array([0]),
        gathered=np.array([0]),
        attention=np.array([OVER_HEADS]),
        n_microbatches=np.array([1]),
    )
    times = step_times(
        model,
        machine,
        layouts,
        geometry(layouts, machine.meshes),
        work=Pass(
            n_new_tokens=1.0,
            n_context_tokens=sent.n_input_tokens + sent.n_output_tokens / 2,
            n_cached_tokens=sent.n_tokens,
        ),
        n_sequences=np.array([max(1.0, one.batch) for one in group]),
        weights_formats=np.array(BYTES[series.weights]),
        peak_flop_per_s=np.array(peak_of(machine.device, _multiplied(series.weights))),
    )
    return np.broadcast_to(np.squeeze(times.total_s), (len(group),))


def _multiplied(weights: str) -> str:
    return {"": "bf16", "nvfp4": "fp4"}.get(weights, "fp8")


@cache
def model_of(name: str) -> ModelSpec:
    return model_spec_of(architecture(name))


@cache
def machine_of(gpu: str) -> Machine:
    there = cluster(gpu)
    meshes = mesh_table(there)
    return Machine(device=there.device, meshes=meshes, network=network_table(meshes, there.fabric))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.papers.sets.rooflines")
    parser.add_argument("--judging", action="store_true")
    is_judging = parser.parse_args().judging
    found = steps(judging_rows() if is_judging else calibration_rows())
    for gpu in sorted({one.row.series.gpu for one in found}):
        errors = np.array([one.error for one in found if one.row.series.gpu == gpu])
        print(
            f"{gpu:10s} n {len(errors):4d}  mean {100 * np.abs(errors).mean():5.1f} %"
            f"  median {100 * np.median(np.abs(errors)):5.1f} %  bias {100 * errors.mean():+6.1f} %"
        )


if __name__ == "__main__":
    main()
