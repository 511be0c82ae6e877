"""How much slower kernels are than assumed where nobody measured them, but runs are published.

    python -m research.sets.slowness --write    writes kernels/mi300x-sglang.toml, …

One number for AMD's CDNA 3, MI300X and MI325X, which `fitting` finds: launches and bytes of
`kernels/assumed.toml` take as many times as long. Runs of MI355X are on either side of what is
assumed, by versions of one year that differ by three times; it stays so.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import cache
from pathlib import Path

from planner.estimates.calibrated import slowed
from planner.estimates.kernel_files import ASSUMED, NEEDED, load_kernels
from planner.specs.records.kernels import Fit, KernelTable
from planner_workshop.calibration.calibrating import kernel_file

FOLDER = Path(__file__).parents[2] / "kernels"
DEVICES = ("mi300x", "mi325x")
ENGINE = "sglang"
SOURCE = (
    "fitted: InferenceX-app, all runs of DeepSeek-R1 in FP8 under SGLang on MI300X and MI325X; "
    "launches and bytes of assumed.toml take {factor:.2f} times as long"
)


@cache
def slowed_table(device: str, factor: float) -> KernelTable:
    """What is assumed of any device, as one device has it."""
    assumed = load_kernels(ASSUMED)
    source = SOURCE.format(factor=factor)
    kernels = {
        key: replace(
            one,
            constants=slowed(one.constants, factor),
            fit=Fit(source=source, n_rows=0, median_error=0.3, p90_error=0.6),
        )
        for key, one in assumed.kernels.items()
        if one.family in NEEDED
    }
    return replace(assumed, device=device, engine=ENGINE, version=ASSUMED, kernels=kernels)


def main() -> None:
    from research.sets.constants import SLOWNESS, constants  # which times devices by this

    parser = argparse.ArgumentParser(prog="python -m research.sets.slowness")
    parser.add_argument("--write", action="store_true")
    said, factor = parser.parse_args(), round(constants().values[SLOWNESS], 2)
    print(f"{factor:.2f} times as long")
    for device in DEVICES if said.write else ():
        name = f"{device}-{ENGINE}"
        comment = (
            f"Kernels of {device}: nobody measured them; runs of servers say how slow they are.\n"
            "Written by `python -m research.sets.slowness --write`; "
            "docs/decisions/0030-folds.md."
        )
        text = kernel_file(
            slowed_table(device, factor), name=name, n_sms_source="", comment=comment
        )
        (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
