"""Shipped constants under shipped forms, against a selection of measured rows.

Rows: `tests/data/blocks.csv`, drawn at random from tables of the package aiconfigurator-core 0.12.0
(NVIDIA, Apache-2.0); balanced routing, whose rows and hits follow from the tables' own rule.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from planner.equations.kernels import FAMILIES
from planner.estimates.calibration.kernel_files import kernel_table
from planner.specs.reading import load_device

ROWS = Path(__file__).parents[1] / "data" / "blocks.csv"
FAMILIES_HERE = (
    "experts",
    "latent_block_decode",
    "latent_block_prefill",
    "sparse_block_decode",
    "recurrence_decode",
    "recurrence_prefill",
)


_device = cache(load_device)
_table = cache(kernel_table)


def _ratios() -> Iterator[tuple[str, float]]:
    """Family, and predicted time over measured time, of each row."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            device = _device(row["device"])
            rates = {
                "peak_flop_per_s": device.peak_flop_per_s[row["peak"]],
                "hbm_bytes_per_s": device.hbm_bytes_per_s,
            }
            pairs = (one.split("=") for one in row["dimensions"].split())
            columns = {name: float(value) for name, value in pairs}
            kernel = _table(row["device"], row["engine"]).kernel(row["family"], row["format"])
            seconds = FAMILIES[row["family"]].seconds(columns, rates, kernel.constants)
            yield row["family"], float(seconds) / float(row["measured_s"])


@pytest.fixture(scope="module")
def ratios() -> dict[str, np.ndarray]:
    found: dict[str, list[float]] = {}
    for family, ratio in _ratios():
        found.setdefault(family, []).append(ratio)
    return {family: np.array(values) for family, values in found.items()}


@pytest.mark.parametrize("family", FAMILIES_HERE)
def test_measured_rows_are_described(family: str, ratios: dict[str, np.ndarray]) -> None:
    """As well as the files say of all rows: a tenth in the median, a tail of a third."""
    errors = np.abs(ratios[family] - 1)
    assert np.median(errors) < 0.12
    assert np.quantile(errors, 0.9) < 0.35


def test_forms_lean_to_neither_side(ratios: dict[str, np.ndarray]) -> None:
    logs = np.log(np.concatenate(list(ratios.values())))
    assert abs(np.median(logs)) < 0.05
