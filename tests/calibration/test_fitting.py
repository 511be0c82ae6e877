"""Constants that made a table are found in it; rows that beat physics are not believed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.errors import RequestError
from planner.estimates.kernel_files import load_kernels
from planner.specs.files.reading import load_device
from planner_workshop.calibration import calibrating
from planner_workshop.calibration.calibrating import calibrate, kernel_file
from planner_workshop.calibration.fitting import admit, fit
from planner_workshop.calibration.plain import read_plain
from planner_workshop.calibration.tables import Reading
from tests.calibration.conftest import RATES, TRUE

PEAKS = {"fp8": RATES["peak_flop_per_s"]}


@pytest.fixture(name="device", scope="module")
def _device():
    return load_device("h20")


def test_the_constants_that_made_the_rows_are_found(plain):
    (table,) = read_plain(plain()).tables
    found = fit(table, RATES)
    assert found.form == "smooth"
    for name, value in TRUE.items():
        assert found.constants[name] == pytest.approx(value, rel=0.02), name
    assert found.inside.p90 < 0.002
    assert found.outside.p90 < 0.01
    assert found.left_out == "shapes"


def test_a_few_wild_rows_do_not_move_the_constants(plain):
    """Every tenth row took three times as long: the median error stays below three percent."""
    (table,) = read_plain(plain(scale=lambda place: 3.0 if place % 10 == 3 else 1.0)).tables
    found = fit(table, RATES)
    assert found.inside.median < 0.03
    assert np.abs(found.predicted_s / table.measured_s - 1).max() > 0.6


def test_the_same_rows_give_the_same_constants(plain):
    (table,) = read_plain(plain()).tables
    assert fit(table, RATES).constants == fit(table, RATES).constants


def test_errors_left_out_are_of_shapes_that_no_fit_saw(plain):
    """One shape took half as long again: the fit on the others cannot know."""
    (table,) = read_plain(plain(scale=lambda place: 1.5 if 6 <= place < 12 else 1.0)).tables
    found = fit(table, RATES)
    assert found.outside.p90 > 0.25


def test_a_planted_row_that_beats_physics_is_refused_by_file_and_line(plain):
    """The sixth row, 4096 × 4096 × 1024 FLOP, in a tenth of its time; the others stay."""
    path = plain(scale=lambda place: 0.1 if place == 5 else 1.0)
    found = admit(read_plain(path), PEAKS, RATES["hbm_bytes_per_s"])
    (refused,) = found.refused
    assert (refused.file, refused.line) == (str(path), 7)
    assert "datasheet allows" in refused.reason
    assert found.tables[0].n_rows == 29


def test_a_row_five_percent_too_fast_is_within_the_error_of_a_clock(plain):
    (table,) = read_plain(plain()).tables
    from planner.equations.kernels import FAMILIES

    ideal_s = FAMILIES["gemm"].roofline_s(table.columns, RATES)
    for share, n_left in ((1.04, 30), (1.06, 0)):
        sped = replace(table, measured_s=np.asarray(ideal_s) / share)
        found = admit(Reading(tables=(sped,)), PEAKS, RATES["hbm_bytes_per_s"])
        assert sum(one.n_rows for one in found.tables) == n_left


def test_a_table_timed_with_its_launches_is_refused_whole(plain):
    """Products of hardly any work that take 80 us wait for the host."""
    (table,) = read_plain(plain()).tables
    slow = replace(table, measured_s=table.measured_s + 80e-6)
    found = admit(Reading(tables=(slow,)), PEAKS, RATES["hbm_bytes_per_s"])
    assert found.tables == ()
    assert "launches by the host" in found.refused[0].reason


def test_a_table_whose_large_rows_beat_physics_is_refused_whole(plain):
    """Weights of 1 GB read in a tenth of the time that the memory takes."""
    (table,) = read_plain(plain()).tables
    columns = {**table.columns, "n": np.full(30, 2.0**15), "k": np.full(30, 2.0**15)}
    fast = replace(table, columns=columns, measured_s=np.full(30, 27e-6))
    found = admit(Reading(tables=(fast,)), PEAKS, RATES["hbm_bytes_per_s"])
    assert found.tables == ()
    assert "none is believed" in found.refused[0].reason


def test_a_format_that_the_device_has_no_peak_for_is_refused(plain):
    found = admit(read_plain(plain()), {"bf16": 1e15}, RATES["hbm_bytes_per_s"])
    assert "no peak for fp8" in found.refused[0].reason


def test_a_calibration_writes_a_file_that_reads_back(plain, device, tmp_path):
    found = calibrate([plain()], device, engine="own", version="1.0", n_sms=78, source="a bench")
    path = tmp_path / "h20-own.toml"
    path.write_text(kernel_file(found.table, name="h20-own", n_sms_source="counted"))
    table = load_kernels(str(path))
    kernel, written = table.kernels["gemm", "fp8"], found.table.kernels["gemm", "fp8"]
    assert kernel.constants == pytest.approx(dict(written.constants))
    assert kernel.fit.left_out_p90_error == pytest.approx(written.fit.left_out_p90_error, abs=1e-4)
    assert (table.n_sms, table.version, kernel.fit.source) == (78, "1.0", "a bench")


def test_too_few_rows_are_no_calibration(tmp_path, device):
    path = tmp_path / "few.csv"
    header = "family,format,m,n,k,weight_bytes,input_bytes,latency_us"
    path.write_text(f"{header}\ngemm,bf16,64,4096,4096,2,2,30\n")
    with pytest.raises(RequestError, match="1 rows are too few"):
        calibrate([path], device, engine="own")


@pytest.mark.parametrize(
    ("n_tables", "end"), [(1, "t0.csv"), (8, "t7.csv"), (10, "t7.csv and 2 others")]
)
def test_tables_are_named_and_only_those_beyond_eight_are_counted(n_tables, end):
    found = calibrating._names([Path(f"{n}/t{n}.csv") for n in range(n_tables)])
    assert found.startswith("t0.csv")
    assert found.endswith(end)
