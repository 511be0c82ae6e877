"""Constants that are fitted to the calibrating half: how, and that files hold them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from planner.estimates.calibration.kernel_files import load_kernels
from planner.specs.engines.files import load_engine
from tests.papers.sets.halves import calibration_rows
from tests.papers.sets.overheads import fitted, fitted_rows, layers_of, left_out
from tests.papers.sets.predicted import compared
from tests.papers.sets.rooflines import steps
from tests.papers.sets.slowness import DEVICES, ENGINE, slowed, slowed_table


@pytest.fixture(scope="module")
def found():
    return compared(fitted_rows()[::20])


def measured_as_predicted(one, *, gap_s, norms_s):
    """A row that took as long as is predicted, with other constants than its engine has."""
    engine = load_engine(one.row.series.engine)
    n_layers, n_normed = layers_of(one.row)
    more_s = n_layers * (gap_s - engine.layer_gap_s)
    more_s += n_normed * (norms_s - engine.inner_norms_s)
    return replace(one, row=replace(one.row, tpot_ms=one.tpot_ms + 1e3 * more_s))


def test_gaps_are_found_again_in_times_that_are_made_of_them(found):
    made = [measured_as_predicted(one, gap_s=5e-6, norms_s=2e-5) for one in found]
    assert fitted(made) == pytest.approx([5e-6, 2e-5], rel=1e-6)
    assert np.abs(left_out(made, lambda one: one.row.series.gpu)).max() < 1e-6


def test_engines_have_one_gap_and_those_that_fuse_norms_no_time_of_them():
    engines = {name: load_engine(name) for name in ("vllm", "sglang", "trtllm")}
    assert len({one.layer_gap_s for one in engines.values()}) == 1
    assert engines["vllm"].inner_norms_s == engines["sglang"].inner_norms_s > 0
    assert engines["trtllm"].inner_norms_s == 0
    assert {one.decode_host_s for one in engines.values()} == {0.0}


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
    dense = [row for row in calibration_rows() if row.series.model == "Llama-3.1-70B"]
    errors = {key: [] for key in ((1024, 8192), (8192, 1024))}
    for one in steps(dense):
        if (one.row.n_input, one.row.n_output) in errors:
            errors[one.row.n_input, one.row.n_output].append(one.error)
    few, many = (float(np.mean(each)) for each in errors.values())
    assert many < few - 0.15
    assert abs(few) < 0.15
