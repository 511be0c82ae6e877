"""Passes by one roofline a layer, beside measured times, and how far off these are.

    python -m research.sets.rooflines    errors by kind of model and device, and intervals

`plan` without an engine times passes so. It knows of no prompts that ride on a decode pass, of no
scheduler, and of formats by their bytes alone; what it leaves out is part of its error here. Rows
of attention on ranks of their own are left out, and models that no layout shards.

Intervals need one deviation for each quantity, which `intervals` finds as it does for engines,
here without errors of kernels. On GPUs a decode pass is held against TPOT of all rows, and the
pass of one prompt against TTFT of rows with at most four requests in flight, the fewest there are:
a plan's TTFT is without a queue. Devices of which nobody says what they attain are in none. Each
device counts alike, however many rows it has: of devices left out in turn such intervals of dense
models' TPOT hold 66, 78 and 87 % where they say 80, 90 and 95; with all rows alike 56, 72 and 80.
On TPU v4 they are of PaLM 540B in Pope's tables, prefill and generate; all other rows of that paper
that no constant saw judge them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.errors import SpecError
from planner.estimates.networks import network_table
from planner.estimates.steps import Machine
from planner.layouts.geometry import Pass
from planner.specs.records.correspondence import model_spec_of
from planner.specs.records.model_errors import ANY, ModelError, Quantity, why_unmeasured
from planner.specs.records.models import FORMAT_BYTES, ModelSpec
from planner.specs.records.runtimes import ROOFLINE, ModelKind
from planner.topology.meshes import mesh_table
from research import rows as pope
from research.one_pass import pass_s
from research.sets import folds, intervals
from research.sets.constants import constants
from research.sets.predicted import architecture, cluster, traffic
from research.sets.rows import Served
from research.tables import errors

BYTES = {
    "": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "nvfp4": 0.5625,
    "mxfp4": FORMAT_BYTES["mxfp4"],
    "int4_wo": FORMAT_BYTES["int4"],
}
"""Of a weight, by the format that a source names."""

MULTIPLIED = {"": "bf16", "nvfp4": "fp4", "mxfp4": "fp4", "int4_wo": "bf16"}
"""Formats of products, where they are not fp8."""

FEW = 4
"""Requests in flight with which a prompt hardly waits for others."""

POPE = "fitted: [Pope2022] Tables D.2-D.4, PaLM 540B: papers/pope2022.csv"
PALM = "palm-540b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A row, with what a decode step of it takes, and the pass of one prompt [s]."""

    row: Served
    step_s: float
    prompt_s: float

    @property
    def error(self) -> float:
        return 1e3 * self.step_s / self.row.tpot_ms - 1.0

    @property
    def first_token_error(self) -> float:
        return 1e3 * self.prompt_s / self.row.ttft_ms - 1.0


def rows(chosen: Iterable[Served]) -> list[Served]:
    """Models that layouts shard, whose heads all devices share."""
    return [row for row in chosen if row.data == 1 and model_of(row.series.model) is not None]


@cache
def judged() -> tuple[Step, ...]:
    """Every row, with overheads of layers that its own fold was not seen by."""
    return tuple(steps(folds.rows()))


def steps(chosen: Iterable[Served]) -> list[Step]:
    """All rows of one model, device, degree, format and fold at once."""
    groups: dict[tuple[object, ...], list[Served]] = defaultdict(list)
    for row in rows(chosen):
        series = row.series
        what = (series.model, series.gpu, series.weights, series.experts, row.tensor, row.expert)
        sent = (row.n_input, row.n_output, series.harness, folds.fold_of(row))
        groups[(*what, *sent)].append(row)
    return [one for group in groups.values() for one in _steps(group)]


def _steps(group: list[Served]) -> list[Step]:
    row, series = group[0], group[0].series
    machine, model, sent = (
        machine_without(series.gpu, folds.fold_of(row)),
        model_of(series.model),
        traffic(row),
    )
    most = series.weights if series.is_dense else series.experts  # of the weights
    assert model is not None
    decode = Pass(
        n_new_tokens=1.0,
        n_context_tokens=sent.n_input_tokens + sent.n_output_tokens / 2,
        n_cached_tokens=sent.n_tokens,
    )
    prefill = Pass(
        n_new_tokens=sent.n_input_tokens,
        n_context_tokens=sent.n_input_tokens,
        n_cached_tokens=sent.n_input_tokens,
    )

    def seconds(work: Pass, batches: list[float]) -> np.ndarray:
        return pass_s(
            model,
            machine,
            row.tensor,
            work,
            batches,
            weight_bytes=BYTES[most],
            multiplied=MULTIPLIED.get(most, "fp8"),
            cuts_experts=row.expert == 1,
        )

    decodes = seconds(decode, [max(1.0, one.batch) for one in group])
    (prompt_s,) = seconds(prefill, [1.0])
    return [
        Step(row=one, step_s=float(step_s), prompt_s=float(prompt_s))
        for one, step_s in zip(group, decodes, strict=True)
    ]


@cache
def model_of(name: str) -> ModelSpec | None:
    """The model as layouts shard it; None of one that they do not."""
    try:
        return model_spec_of(architecture(name))
    except SpecError:
        return None


@cache
def machine_without(gpu: str, fold: int) -> Machine:
    """A device whose layers take what other folds say."""
    machine = machine_of(gpu)
    overheads = constants(fold).overheads
    layer_s = overheads.get(gpu, machine.device.layer_overhead_s)
    return replace(machine, device=replace(machine.device, layer_overhead_s=layer_s))


@cache
def machine_of(gpu: str) -> Machine:
    there = cluster(gpu)
    meshes = mesh_table(there)
    return Machine(device=there.device, meshes=meshes, network=network_table(meshes, there.fabric))


def model_errors(found: Sequence[Step]) -> list[ModelError]:
    """What intervals need under a roofline, on GPUs and on TPU v4."""
    of_gpus = (
        _deviation((ANY, kind, quantity), off, groups, intervals.SOURCE)
        for kind, quantity, off, groups in _of_gpus(found)
    )
    of_tpus = (
        _deviation(
            ("tpu-v4", "dense", quantity),
            errors(_palm(phase)),
            [(PALM, "tpu-v4")] * len(_palm(phase)),
            POPE,
        )
        for quantity, phase in (("TPOT", "generate"), ("TTFT", "prefill"))
    )
    return [*of_gpus, *of_tpus]


def _of_gpus(
    found: Sequence[Step],
) -> Iterator[tuple[ModelKind, Quantity, np.ndarray, list[tuple[str, str]]]]:
    """Errors of each kind and quantity, and the models on devices that they are of."""
    known = [one for one in found if not why_unmeasured(machine_of(one.row.series.gpu).device)]
    kinds: tuple[ModelKind, ...] = ("dense", "mixture")
    for kind in kinds:
        all_of = [one for one in known if one.row.series.is_dense is (kind == "dense")]
        few = [one for one in all_of if one.row.in_flight <= FEW and one.row.series.harness]
        for quantity, some, off in (
            ("TPOT", all_of, [one.error for one in all_of]),
            ("TTFT", few, [one.first_token_error for one in few]),
        ):
            groups = [(one.row.series.model, one.row.series.gpu) for one in some]
            yield kind, quantity, np.array(off), groups


def _palm(phase: str) -> list[pope.Row]:
    return [row for row in pope.tpu_held_out() if (row.model, row.phase) == (PALM, phase)]


def missed(off: np.ndarray, devices: Sequence[str] = ()) -> intervals.Missed:
    """How far off rows are; where their devices are named, each of these counts alike."""
    ratios = 1.0 + off
    far = np.maximum(ratios, 1.0 / ratios) - 1.0
    n_alike = np.array([devices.count(one) for one in devices])
    weights = 1.0 / n_alike if len(n_alike) else None
    return intervals.Missed(off=far, kernels=np.zeros(len(far)), weights=weights)


def _deviation(
    of: tuple[str, ModelKind, Quantity],
    off: np.ndarray,
    groups: Sequence[tuple[str, str]],
    source: str,
) -> ModelError:
    device, kind, quantity = of
    return ModelError(
        runtime=ROOFLINE.name,
        device=device,
        kind=kind,
        quantity=quantity,
        deviation_fraction=round(intervals.deviation(missed(off, [gpu for _, gpu in groups])), 3),
        n_rows=len(off),
        n_groups=len(set(groups)),
        source=source,
    )


def coverage(found: Sequence[Step], table: Sequence[ModelError]) -> str:
    """How often intervals hold that say 80, 90 and 95 %, of GPUs and of what is not PaLM 540B."""
    wide = {
        (one.device, one.kind, one.quantity): one.deviation_fraction
        for one in table
        if one.runtime == ROOFLINE.name
    }
    others = [row for row in pope.tpu_held_out() if row.model != PALM]
    cases = [
        (f"{quantity}, {kind}, GPUs", off, wide[ANY, kind, quantity])
        for kind, quantity, off, _ in _of_gpus(found)
        if len(off)
    ]
    cases.append(("TPU v4, other models", errors(others), wide["tpu-v4", "dense", "TPOT"]))
    lines = [f"{'intervals that say':32s} {'rows':>5s}    80    90    95"]
    for name, off, deviation in cases:
        held = (missed(off).held(deviation, share) for share in intervals.SHARES)
        lines.append(f"{name:32s} {len(off):5d}" + "".join(f"{100 * one:6.1f}" for one in held))
    return "\n".join(lines)


def main() -> None:
    found = judged()
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in found:
        groups["dense" if one.row.series.is_dense else "mixture", one.row.series.gpu].append(
            one.error
        )
    for (kind, gpu), listed in sorted(groups.items()):
        off = np.array(listed)
        print(
            f"{kind:8s} {gpu:10s} n {len(off):4d}  mean {100 * np.abs(off).mean():5.1f} %"
            f"  median {100 * np.median(np.abs(off)):5.1f} %  bias {100 * off.mean():+6.1f} %"
        )
    print(coverage(found, model_errors(found)))


if __name__ == "__main__":
    main()
