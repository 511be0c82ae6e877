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
from planner.estimates.kernel_files import kernel_table
from planner.specs.files.reading import load_device

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


Ratio = tuple[str, dict[str, float], float]


def _ratios() -> Iterator[Ratio]:
    """Family, dimensions, and predicted time over measured time of each row."""
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
            yield row["family"], columns, float(seconds) / float(row["measured_s"])


@pytest.fixture(scope="module")
def rows() -> list[Ratio]:
    return list(_ratios())


@pytest.fixture(scope="module")
def ratios(rows: list[Ratio]) -> dict[str, np.ndarray]:
    found: dict[str, list[float]] = {}
    for family, _, ratio in rows:
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


def test_few_tokens_pay_for_the_experts_that_they_do_not_hit(rows: list[Ratio]) -> None:
    """TensorRT-LLM's fp8 by blocks on Hopper: half of its time at one token."""
    few = [
        (columns["n_experts_local"] - columns["n_hit"], ratio)
        for family, columns, ratio in rows
        if family == "experts" and columns["tokens"] <= 4 and columns["weight_bytes"] == 1.0
    ]
    idle, ratio = np.array(few).T
    assert len(few) >= 16
    assert np.abs(ratio - 1.0).mean() < 0.1
    assert abs(np.mean(ratio[idle > 96] - 1.0)) < 0.08
