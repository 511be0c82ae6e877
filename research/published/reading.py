"""Tables of measured kernels as others publish them, as the CSV that `plan calibrate` reads.

python -m research.published.reading systems/data/h100_sxm --device h100-sxm --engine vllm > own.csv

Two formats are told apart by themselves: `bench_data` of alibaba/InferSim, CSV whose folders name
family and device, and `systems/data/DEVICE` of aiconfigurator-core, Parquet whose folders name the
engine. `--kernels NAME,NAME` chooses among kernels of experts that a table holds for one format.
What is left out, and why, is said on standard error.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from planner.errors import Problem, RequestError
from planner.specs.files.reading import load_device
from planner.specs.records.devices import DeviceSpec
from planner_workshop.calibration.plain import PEAK, WORDS
from planner_workshop.calibration.tables import FITTED, Measured, Reading
from research.published.infersim import is_infersim, read_infersim
from research.published.silicon import is_silicon, read_silicon


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--device", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--kernels", default="", help="names, separated by commas")
    asked = parser.parse_args()
    programs = frozenset(filter(None, asked.kernels.split(",")))
    device = load_device(asked.device)
    parts = [published(path, device, asked.engine, programs=programs) for path in asked.paths]
    reading = sum(parts, start=Reading())
    for one in reading.refused:
        print(one, file=sys.stderr)
    write_plain(reading.tables, sys.stdout)


def published(
    path: Path, device: DeviceSpec, engine: str, *, programs: frozenset[str] = frozenset()
) -> Reading:
    """Rows of a file or a folder that others published.

    Raises:
        RequestError: it is of neither format.
    """
    if is_silicon(path):
        return read_silicon(path, engine, device.peak_flop_per_s, programs=programs)
    if is_infersim(path):
        return read_infersim(path, device.name, dict(device.peak_flop_per_s))
    raise RequestError([Problem(where=str(path), fact="holds no tables that are published so")])


def write_plain(tables: Iterable[Measured], stream: IO[str]) -> None:
    """Write rows so that `plan calibrate` reads the same of them."""
    families = FITTED.values()
    names = dict.fromkeys(one for kind in families for one in (*kind.dimensions, *kind.optional))
    writer = csv.DictWriter(stream, [*WORDS, PEAK, *names], lineterminator="\n")
    writer.writeheader()
    for table in tables:
        same = {"family": table.family, "format": table.format, PEAK: table.peak_format}
        for i in range(table.n_rows):
            row = {name: f"{column[i]:.12g}" for name, column in table.columns.items()}
            writer.writerow({**same, **row, "latency_us": f"{table.measured_s[i] * 1e6:.12g}"})


if __name__ == "__main__":
    main()
