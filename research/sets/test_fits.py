"""How constants are fitted to what servers did from end to end, and that files hold them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from planner.estimates.kernel_files import load_kernels
from research.sets import fitting
from research.sets.constants import SLOWNESS, Constants
from research.sets.folds import fitted_rows, rows
from research.sets.predicted import compared
from research.sets.rooflines import steps
from research.sets.slowness import DEVICES, ENGINE, slowed, slowed_table

TRUE = {
    "layer_gap": 4e-6,
    "decode_sequence": 14e-6,
    "inner_norms": 35e-6,
    "prefill_host": 1.3e-3,
    "prefill_experts": 0.8e-3,
    "prefill_scans": 2.5e-3,
    "request": 30e-3,
    "request_token": 5e-6,
    SLOWNESS: 1.7,
}
"""None of which a fit begins with, but of the host, which none finds."""


def served_by(chosen, truth):
    """Rows that took as long as is predicted with other constants."""
    found = compared(chosen, clocks=truth.clock, sending=truth.traffic)
    return [replace(one.row, ttft_ms=one.ttft_ms, tpot_ms=one.tpot_ms) for one in found]


@pytest.mark.research
def test_constants_are_found_again_in_times_that_are_made_of_them(monkeypatch):
    known = [row for row in fitted_rows() if row.series.harness]
    devices = {*fitting.FITTED_ON, *DEVICES}
    some = [row for row in known if row.series.gpu in devices][::12]
    some += [row for row in known if row.series.model == "GLM-5"][:6]
    made = served_by(some, Constants(values=TRUE))
    monkeypatch.setattr(fitting, "fitted_rows", lambda _: made)
    monkeypatch.setattr(fitting, "N_STEPS", 5)
    found = fitting.fitted()
    for name, value in TRUE.items():
        assert found.values[name] == pytest.approx(value, rel=0.02), name


def test_a_linear_program_finds_the_least_sum_of_errors():
    """Of one constant that is the median of what rows want, and never below zero."""
    for wanted, best in (((1e-6, 2e-6, 9e-6), 2e-6), ((-9e-6, -2e-6, 1e-6), 0.0)):
        slopes = np.full((3, 1), 1e5)
        found = fitting._next(
            Constants(values={"layer_gap": 3e-6}),
            slopes[:, 0] * (3e-6 - np.array(wanted)),
            slopes,
            ["layer_gap"],
        )
        assert found["layer_gap"] == pytest.approx(best, abs=1e-9)


def test_what_is_slow_is_launches_and_bytes():
    constants = {"floor_s": 1e-5, "memory_fraction": 0.8, "compute_fraction": 0.5, "exponent": 3.0}
    assert slowed(constants, 2.0) == {**constants, "floor_s": 2e-5, "memory_fraction": 0.4}


@pytest.mark.parametrize("device", DEVICES)
def test_files_of_devices_that_nobody_measured_are_what_is_assumed_and_slower(device):
    table = load_kernels(f"{device}-{ENGINE}")
    source = next(iter(table.kernels.values())).fit.source
    factor = float(re.findall(r"take ([\d.]+) times", source)[0])
    made = slowed_table(device, factor)
    assert made.kernels.keys() == table.kernels.keys()
    for key, one in made.kernels.items():
        assert table.kernels[key].constants == pytest.approx(one.constants, rel=1e-5)


def test_a_roofline_knows_no_prompts_beside_decodes():
    """It is the faster of all the more, the longer prompts are beside answers."""
    dense = [row for row in rows() if row.series.model == "Llama-3.1-70B"]
    errors = {key: [] for key in ((1024, 8192), (8192, 1024))}
    for one in steps(dense):
        if (one.row.n_input, one.row.n_output) in errors:
            errors[one.row.n_input, one.row.n_output].append(one.error)
    few, many = (float(np.mean(each)) for each in errors.values())
    assert many < few - 0.15
    assert abs(few) < 0.15
