"""Sums of kernels over a decode layer, beside measured ones of shapes that no fit has seen.

PLANNER_BENCH=bench_data python -m research.infersim_kernels [--write]

`bench_data` is the folder of alibaba/InferSim f2293da (Apache-2.0), which is not part of the
project. A layer is its products, its attention, and the two products of its experts, each as
measured; contexts are 1K to 16K.

* Qwen3-30B-A3B on H20. Left out of the fits: all rows of its experts, of its two products, and
  of its attention (32 heads over 4).
* DeepSeek-V3 on H800. Left out: experts over 4, 16, 64 and 256 devices, and every second row of
  latent attention. Its products are all there is for this device, and stay in.

`--write` writes the constants of these fits, and a selection of the rows, for the test that runs
without the folder.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.equations.kernels import FAMILIES
from planner.estimates.kernel_files import load_kernels
from planner.specs.files.reading import load_device
from planner_workshop.calibration.fitting import Errors, admit, errors, fit, peak_of
from planner_workshop.calibration.tables import Measured
from research.published.infersim import read_infersim

BENCH = "PLANNER_BENCH"
DATA = Path(__file__).parents[1] / "tests" / "data"
CONSTANTS, ROWS = DATA / "infersim_held_out.csv", DATA / "infersim_rows.csv"
CONTEXTS = (1024, 4096, 8192, 16384)

Constants = dict[str, dict[str, float]]
Tables = dict[str, Measured]


@dataclass(frozen=True)
class Model:
    """A decode layer: its products (k, n), its attention, its experts (k, n) up and down."""

    name: str
    device: str
    products: tuple[tuple[int, int], ...]
    attention: str
    n_kv_heads: int
    experts: tuple[tuple[int, int], tuple[int, int]]
    n_experts: int
    held_out_devices: tuple[int, ...]
    chosen: tuple[tuple[int, int, int], ...]  # batch, devices, context, for the selection


QWEN = Model(
    name="Qwen3-30B-A3B",
    device="h20",
    products=((2048, 5120), (4096, 2048)),
    attention="decode_attention",
    n_kv_heads=4,
    experts=((2048, 1536), (768, 2048)),
    n_experts=128,
    held_out_devices=(1, 4, 8, 16, 32, 64, 128),
    chosen=tuple(
        (batch, devices, context)
        for batch in (32, 128, 256)
        for devices in (4, 16, 64)
        for context in (4096, 16384)
    ),
)
DEEPSEEK = Model(
    name="DeepSeek-V3",
    device="h800",
    products=(
        (7168, 1536),
        (1536, 24576),
        (7168, 576),
        (16384, 512),
        (65536, 128),
        (16384, 7168),
        (7168, 4096),
        (2048, 7168),
    ),
    attention="latent_decode",
    n_kv_heads=0,
    experts=((7168, 4096), (2048, 7168)),
    n_experts=256,
    held_out_devices=(4, 16, 64, 256),
    chosen=tuple((64, devices, context) for devices in (16, 64) for context in (4096, 16384)),
)
MODELS = (QWEN, DEEPSEEK)
EXPERTS = "grouped_gemm_decode"


def bench() -> Path | None:
    """The folder of measured rows, if there is one."""
    folder = os.environ.get(BENCH)
    return Path(folder) if folder else None


def measured(model: Model, folder: Path) -> Tables:
    """The rows of a device that physics allows, by family, in the format that is the usual."""
    device = load_device(model.device)
    read = read_infersim(folder, device.name, dict(device.peak_flop_per_s))
    found = admit(read, device.peak_flop_per_s, device.hbm_bytes_per_s)
    usual = {"gemm": "fp8_block", model.attention: "bf16", EXPERTS: "fp8_block"}
    tables: dict[str, list[Measured]] = {}
    for one in found.tables:
        if usual.get(one.family) == one.format:
            tables.setdefault(one.family, []).append(one)
    return {family: _joined(parts) for family, parts in tables.items()}


def _joined(parts: list[Measured]) -> Measured:
    first = parts[0]
    return Measured(
        family=first.family,
        format=first.format,
        peak_format=first.peak_format,
        columns={
            name: np.concatenate([one.columns[name] for one in parts]) for name in first.columns
        },
        measured_s=np.concatenate([one.measured_s for one in parts]),
        file=first.file,
        lines=np.concatenate([one.lines for one in parts]),
    )


def held_out(model: Model, tables: Tables) -> dict[str, np.ndarray]:
    """Rows that no fit may see, by family."""
    products, experts = tables["gemm"].columns, tables[EXPERTS].columns
    attention = tables[model.attention]
    if model is DEEPSEEK:
        local = [model.n_experts // devices for devices in model.held_out_devices]
        return {
            "gemm": np.zeros(tables["gemm"].n_rows, dtype=bool),
            model.attention: np.arange(attention.n_rows) % 2 == 1,
            EXPERTS: np.isin(experts["n_groups_hit"], local),
        }
    return {
        "gemm": _has(products, model.products),
        model.attention: attention.columns["n_kv_heads"] == model.n_kv_heads,
        EXPERTS: _has(experts, model.experts),
    }


def _has(columns: dict[str, np.ndarray], shapes: tuple[tuple[int, int], ...]) -> np.ndarray:
    hits = [(columns["k"] == k) & (columns["n"] == n) for k, n in shapes]
    return np.logical_or.reduce(hits)


def fitted(model: Model, tables: Tables) -> Constants:
    """Constants of the rows that are not held out."""
    out = held_out(model, tables)
    return {
        family: dict(
            fit(
                table.taking(~out[family]), rates(model, table), n_sms=n_sms_of(model.device)
            ).constants
        )
        for family, table in tables.items()
    }


def rates(model: Model, table: Measured) -> dict[str, float]:
    device = load_device(model.device)
    peak = peak_of(table, device.peak_flop_per_s)
    assert peak is not None
    return {"peak_flop_per_s": peak, "hbm_bytes_per_s": device.hbm_bytes_per_s}


def n_sms_of(device: str) -> int:
    return load_kernels(f"{device}-deepgemm").n_sms


@dataclass(frozen=True)
class Layer:
    """One measured layer: predicted and measured time [s], and what it is of."""

    batch: int
    devices: int
    context: int
    predicted_s: float
    measured_s: float


def layers(model: Model, tables: Tables, constants: Constants) -> Iterator[Layer]:
    """Layers all of whose kernels are measured."""
    times = {
        family: (
            np.asarray(
                FAMILIES[family].seconds(table.columns, rates(model, table), constants[family])
            ),
            table.measured_s,
        )
        for family, table in tables.items()
    }
    own = held_out(model, tables)[EXPERTS] if model is QWEN else None
    experts, attention = tables[EXPERTS], tables[model.attention]
    for line in sorted(set(experts.lines.tolist())):
        rows = np.flatnonzero(experts.lines == line)
        if len(rows) != 2 or (own is not None and not own[rows].all()):
            continue
        local = int(experts.columns["n_groups_hit"][rows[0]])
        devices, batch = model.n_experts // local, _batch(experts, line)
        parts = [(tables["gemm"], times["gemm"], shape) for shape in model.products]
        found = [
            np.flatnonzero(_has(table.columns, (shape,)) & (table.columns["m"] == batch))
            for table, _, shape in parts
        ]
        if devices not in model.held_out_devices or not all(len(one) for one in found):
            continue
        for context in CONTEXTS:
            seen = (attention.columns["batch"] == batch) & (attention.columns["context"] == context)
            if model.n_kv_heads:
                seen &= attention.columns["n_kv_heads"] == model.n_kv_heads
            if not seen.any():
                continue
            core = np.flatnonzero(seen)[0]
            sums = [
                sum(times["gemm"][side][one].mean() for one in found)
                + times[model.attention][side][core]
                + times[EXPERTS][side][rows].sum()
                for side in (0, 1)
            ]
            yield Layer(batch, devices, context, *map(float, sums))


def _batch(experts: Measured, line: int) -> int:
    """Sequences of a device in a row of the table of experts."""
    with Path(experts.file).open(newline="", encoding="utf-8") as stream:
        row = list(csv.DictReader(stream))[line - 2]
    return int(row.get("batch_size_per_gpu") or row["batch"])


def judged(found: list[Layer]) -> Errors:
    return errors(
        np.array([one.predicted_s for one in found]), np.array([one.measured_s for one in found])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    folder = bench()
    assert folder is not None, f"${BENCH} names no folder"
    kept: list[str] = []
    for model in MODELS:
        tables = measured(model, folder)
        constants = fitted(model, tables)
        found = list(layers(model, tables, constants))
        all_errors = judged(found)
        largest = max(abs(one.predicted_s / one.measured_s - 1) for one in found)
        print(
            f"{model.name} on {model.device}: {all_errors.n_rows} layers, median "
            f"{all_errors.median:.1%}, p90 {all_errors.p90:.1%}, largest {largest:.1%}"
        )
        for family, out in held_out(model, tables).items():
            print(f"  {family}: {int(out.sum())} of {len(out)} rows left out, {constants[family]}")
        kept += [
            f"{model.name},{family},{name},{value:.6g}"
            for family, values in constants.items()
            for name, value in values.items()
        ]
    if write:
        CONSTANTS.write_text("\n".join(["model,family,constant,value", *kept]) + "\n")
        ROWS.write_text(selection(folder))


HEADER = "model,family,m,n,k,batch,context,devices,tokens,latency_us"


def selection(folder: Path) -> str:
    """Some rows of each model, each named once."""
    lines: dict[str, None] = {}
    for model in MODELS:
        tables = measured(model, folder)
        for batch, devices, context in model.chosen:
            for line in _selected(model, tables, (batch, devices, context)):
                lines[line] = None
    return "\n".join([HEADER, *lines]) + "\n"


def _selected(model: Model, tables: Tables, chosen: tuple[int, int, int]) -> Iterator[str]:
    batch, devices, context = chosen
    gemm, attention, experts = tables["gemm"], tables[model.attention], tables[EXPERTS]
    for k, n in model.products:
        hit = _has(gemm.columns, ((k, n),)) & (gemm.columns["m"] == batch)
        for row in np.flatnonzero(hit)[:1]:
            yield f"{model.name},gemm,{batch},{n},{k},,,,,{gemm.measured_s[row] * 1e6:.6g}"
    core = (attention.columns["batch"] == batch) & (attention.columns["context"] == context)
    if model.n_kv_heads:
        core &= attention.columns["n_kv_heads"] == model.n_kv_heads
    for row in np.flatnonzero(core)[:1]:
        time = f"{attention.measured_s[row] * 1e6:.6g}"
        yield f"{model.name},{model.attention},,,,{batch},{context},,,{time}"
    local = model.n_experts // devices
    own = _has(experts.columns, model.experts) & (experts.columns["n_groups_hit"] == local)
    for row in np.flatnonzero(own):
        if _batch(experts, int(experts.lines[row])) == batch:
            columns = experts.columns
            sizes = f"{columns['n'][row]:.0f},{columns['k'][row]:.0f},{batch},,{devices}"
            time = f"{experts.measured_s[row] * 1e6:.6g}"
            yield f"{model.name},{EXPERTS},,{sizes},{columns['tokens'][row]:.1f},{time}"


if __name__ == "__main__":
    main()
