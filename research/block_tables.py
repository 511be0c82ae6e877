"""Judge the constants of `kernels/*-blocks.toml` on the tables that they were fitted to.

python -m research.block_tables --silicon systems/data [--only h100-sxm] [--fit]

Each kernel of experts, latent and linear attention is met with the rows that `plan calibrate`
reads from the wheel of aiconfigurator-core 0.12.0 (Apache-2.0; not part of the project): rows
found beside rows that the file says, errors recounted beside errors that it says. With `--fit`
they are fitted anew as `plan calibrate` does, and its errors stand in the last columns.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np

from planner.equations.kernels import FAMILIES
from planner.estimates.kernel_files import load_kernels
from planner.specs.files.reading import load_device
from planner.specs.records.devices import DeviceSpec
from planner.specs.records.kernels import Kernel
from planner_workshop.calibration.calibrating import joined
from planner_workshop.calibration.fitting import admit, fit, peak_of
from planner_workshop.calibration.tables import Measured, Reading
from research.kernel_tables import ENGINES, FOLDER, MEASURED_BY_NVIDIA
from research.published.silicon import read_silicon
from research.published.silicon_blocks import READERS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--silicon", type=Path, required=True)
    parser.add_argument("--only", default="", help="devices, separated by commas")
    parser.add_argument("--fit", action="store_true", help="fit anew, as `plan calibrate` does")
    asked = parser.parse_args()
    only = set(filter(None, asked.only.split(",")))
    print(f"{'':38}{'rows':>13}  {'as the file says':>18}  {'recounted':>14}", flush=True)
    for chip in MEASURED_BY_NVIDIA:
        for engine in ENGINES if not only or chip.name in only else ():
            name = f"{chip.name}-{engine}-blocks"
            if (FOLDER / f"{name}.toml").exists():
                device, kernels = load_device(chip.name), load_kernels(name).kernels
                sources = {kernel.fit.source for kernel in kernels.values()}
                for table in tables(asked.silicon / chip.folder, engine, sources, device):
                    kernel = kernels.get((table.family, table.format))
                    if kernel is not None and f", {engine} " in kernel.fit.source:
                        line = judged(table, kernel, device, fits=asked.fit)
                        print(f"{chip.name:10}{engine:7} {line}", flush=True)


def tables(folder: Path, engine: str, sources: set[str], device: DeviceSpec) -> list[Measured]:
    """Rows that physics allows, of the files that sources name; one table a kernel."""
    reading = Reading()
    for operation, version in sorted(files(engine, sources)):
        programs = frozenset(re.findall(r"\w+", " ".join(sources)))
        for path in folder.glob(f"*/{engine}/{version}*/{operation}.parquet"):
            peaks = device.peak_flop_per_s
            reading += read_silicon(path, engine, peaks, programs=programs)
    admitted = admit(reading, device.peak_flop_per_s, device.hbm_bytes_per_s)
    return joined(admitted.tables)[0]


def files(engine: str, sources: set[str]) -> set[tuple[str, str]]:
    """Operation and version of each source: `… moe_perf, vllm 0.24.0, …`."""
    found = (re.search(rf" (\w+_perf), {engine} ([\w.]+)", source) for source in sources)
    return {match.groups() for match in found if match and match[1] in READERS}


def judged(table: Measured, kernel: Kernel, device: DeviceSpec, *, fits: bool) -> str:
    said, off = kernel.fit, errors(table, kernel, device)
    pairs = [(said.median_error, said.p90_error), tuple(np.percentile(off, (50, 90)))]
    if fits:
        again = fit(table, rates(table, device))
        pairs += [(one.median, one.p90) for one in (again.inside, again.outside)]
    kind = f"{table.family} {table.format}"
    shown = "".join(f"{100 * a:9.1f}{100 * b:6.1f}" for a, b in pairs)
    return f"{kind:32}{table.n_rows:6} {said.n_rows:6}{shown}"


def errors(table: Measured, kernel: Kernel, device: DeviceSpec) -> np.ndarray:
    """|predicted / measured − 1| of every row by the constants of a file [1]."""
    family = FAMILIES[table.family]
    predicted = family.seconds(table.columns, rates(table, device), kernel.constants)
    return np.abs(predicted / table.measured_s - 1)


def rates(table: Measured, device: DeviceSpec) -> dict[str, float]:
    peak = peak_of(table, device.peak_flop_per_s)
    assert peak is not None
    return {"peak_flop_per_s": peak, "hbm_bytes_per_s": device.hbm_bytes_per_s}


if __name__ == "__main__":
    main()
