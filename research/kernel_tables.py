"""Write the shipped `kernels/*.toml` from the measured tables that they are fitted to.

python -m research.kernel_tables --infersim bench_data --silicon systems/data

Each table is fitted as `plan calibrate` does; a file is written for each device and engine. The
tables themselves are not part of the project: alibaba/InferSim f2293da has the first, the wheel
of aiconfigurator-core 0.12.0 the second, both under the licence Apache-2.0. Kernels of families
that no table here holds, and entries that others wrote into a file, stay as they are.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from planner.errors import RequestError
from planner.estimates.kernel_files import load_kernels
from planner.specs.files.reading import load_device
from planner_workshop.calibration.calibrating import calibrate, kernel_file
from research.published.reading import published

FOLDER = Path(__file__).parents[1] / "kernels"
INFERSIM = "alibaba/InferSim f2293da, bench_data"
SILICON = "aiconfigurator-core 0.12.0, {version} tables"


@dataclass(frozen=True)
class Chip:
    """A device, the folder of its tables, and its multiprocessors."""

    name: str
    folder: str
    n_sms: int
    source: str


HOPPER = "nvidia-h100-whitepaper"
MEASURED_BY_INFERSIM = (
    Chip("h20", "h20", 78, "alibaba/InferSim f2293da"),
    Chip("h800", "h800", 132, "alibaba/InferSim f2293da"),
)
MEASURED_BY_NVIDIA = (
    Chip("a100-80gb", "a100_sxm", 108, "nvidia-a100-whitepaper"),
    Chip("h100-sxm", "h100_sxm", 132, HOPPER),
    Chip("h200", "h200_sxm", 132, HOPPER),
    Chip("b200", "b200_sxm", 148, "CUDA device query, as published"),
    Chip("b300", "b300_sxm", 148, "CUDA device query, as published"),
    Chip("gb200", "gb200", 152, "CUDA device query, as published"),
    Chip("l40s", "l40s", 142, "nvidia-ada-whitepaper"),
)
ENGINES = ("vllm", "sglang", "trtllm")
OPERATIONS = (
    "gemm/{engine}/*/gemm_perf.parquet",
    "attention/{engine}/*/generation_attention_perf.parquet",
    "attention/{engine}/*/context_attention_perf.parquet",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--infersim", type=Path)
    parser.add_argument("--silicon", type=Path)
    parser.add_argument("--only", default="", help="devices, separated by commas")
    asked = parser.parse_args()
    only = set(filter(None, asked.only.split(",")))
    for chip in MEASURED_BY_INFERSIM if asked.infersim else ():
        if not only or chip.name in only:
            write(chip, "deepgemm", "alibaba/InferSim f2293da", [asked.infersim], INFERSIM)
    for chip in MEASURED_BY_NVIDIA if asked.silicon else ():
        for engine in ENGINES if not only or chip.name in only else ():
            paths = newest(asked.silicon / chip.folder, engine)
            version = paths[0].parent.name if paths else ""
            source = SILICON.format(version=f"{engine} {version}")
            if paths:
                write(chip, engine, version, paths, source)


def newest(folder: Path, engine: str) -> list[Path]:
    """The file of the newest version of each operation."""
    paths = []
    for operation in OPERATIONS:
        found = sorted(folder.glob(operation.format(engine=engine)), key=_version)
        paths += found[-1:]
    return paths


def _version(path: Path) -> tuple[tuple[int, str], ...]:
    parts = path.parent.name.replace("rc", ".").replace("post", ".").split(".")
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in parts)


def write(chip: Chip, engine: str, version: str, paths: list[Path], source: str) -> None:
    """Fit, print the errors, and write the file, what it held of other families included."""
    name, device = f"{chip.name}-{engine}", load_device(chip.name)
    try:
        found = calibrate(
            paths,
            device,
            engine=engine,
            version=version,
            n_sms=chip.n_sms,
            source=source,
            read=lambda path: published(path, device, engine),
        )
    except RequestError as error:
        print(name, error)
        return
    path = FOLDER / f"{name}.toml"
    fitted = {family for family, _ in found.table.kernels}
    standing = load_kernels(name).kernels if path.exists() else {}
    others = {key: one for key, one in standing.items() if key[0] not in fitted}
    table = replace(found.table, kernels={**found.table.kernels, **others})
    text = kernel_file(table, name=name, n_sms_source=chip.source, comment=comment(chip, engine))
    path.write_text(text, encoding="utf-8")
    for one in found.fitted:
        errors = (one.inside.median, one.inside.p90, one.outside.median, one.outside.p90)
        shown = " ".join(f"{100 * error:5.1f}" for error in errors)
        print(f"{name:18} {one.table.family:22}{one.table.format:10}{one.table.n_rows:6} {shown}")
    for one in found.refused:
        if not one.line:
            print(f"{name:18} refused: {one.reason}")
    print(f"{name:18} rows refused: {sum(1 for one in found.refused if one.line)}", flush=True)


def comment(chip: Chip, engine: str) -> str:
    return (
        f"Kernels of {chip.name} under {engine}: constants of closed forms, in SI units.\n"
        "Fitted by `python -m research.kernel_tables`; docs/decisions/0010-kernels.md."
    )


if __name__ == "__main__":
    main()
