"""Kernel files: read, checked with all faults at once, completed by what is assumed."""

from pathlib import Path

import pytest

from planner.calibration.kernel_files import NEEDED, kernel_table, list_kernels, load_kernels
from planner.equations.kernels import FAMILIES
from planner.errors import SpecError
from planner.specs.reading import load_device

ROOT = Path(__file__).parents[2]
FILES = sorted(path.stem for path in (ROOT / "kernels").glob("*.toml"))

SOUND = """\
[table]
name = "mine"
device = "h20"
engine = "own"
version = "1"
n_sms = { value = 78, source = "counted" }

[[kernel]]
family = "gemm"
format = "bf16"
constants = { floor_s = 4e-6, compute_fraction = 0.8, memory_fraction = 0.7, exponent = 3 }
fit = { source = "measured", n_rows = 20, median_error = 0.05, p90_error = 0.1 }
"""


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").mkdir()
    return tmp_path / "kernels"


def test_a_file_reads_as_it_says(folder):
    (folder / "mine.toml").write_text(SOUND)
    table = load_kernels("mine")
    assert (table.device, table.engine, table.version, table.n_sms) == ("h20", "own", "1", 78)
    kernel = table.kernels["gemm", "bf16"]
    assert kernel.constants["floor_s"] == 4e-6
    assert (kernel.fit.n_rows, kernel.fit.relative_error) == (20, 0.05)


def test_every_fault_is_told_at_once(folder):
    text = SOUND.replace("4e-6", '"4 us"').replace("n_rows = 20, ", "").replace("0.8", "-1")
    (folder / "mine.toml").write_text(text.replace('name = "mine"', 'name = "yours"'))
    with pytest.raises(SpecError) as caught:
        load_kernels("mine")
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {
        "table.name",
        "kernel[0].constants.floor_s",
        "kernel[0].constants.compute_fraction",
        "kernel[0].fit.n_rows",
    }


def test_a_format_given_twice_is_refused(folder):
    kernel = SOUND[SOUND.index("[[kernel]]") :]
    (folder / "mine.toml").write_text(SOUND + "\n" + kernel)
    with pytest.raises(SpecError, match="has this format already"):
        load_kernels("mine")


def test_an_unknown_name_suggests_the_nearest(folder):
    (folder / "mine.toml").write_text(SOUND)
    with pytest.raises(SpecError) as caught:
        load_kernels("mime")
    assert "`mine`" in caught.value.hint


def test_a_device_that_no_one_measured_has_assumed_kernels_with_wide_errors():
    table = kernel_table("tpu-v4", "vllm")
    assert {family for family, _ in table.kernels} >= set(NEEDED)
    assert table.version == "assumed"
    for family in set(NEEDED):
        fit = table.kernel(family, "bf16").fit
        assert (fit.source, fit.n_rows) == ("assumed", 0)
        assert fit.relative_error >= 0.3


def test_an_engine_takes_what_it_lacks_from_the_devices_other_tables(folder):
    """The file of this folder has products in bf16 only: fp8_block is that of DeepGEMM."""
    (folder / "mine.toml").write_text(SOUND)
    table = kernel_table("h20", "own")
    assert table.kernel("gemm", "bf16").fit.source == "measured"
    assert "InferSim" in table.kernel("gemm", "fp8_block").fit.source
    assert "InferSim" in table.kernel("decode_attention", "bf16").fit.source
    assert table.kernel("sampling", "bf16").fit.source == "assumed"


def test_a_format_falls_back_on_its_stem_then_on_any():
    table = kernel_table("tpu-v4", "vllm")
    assert table.kernel("gemm", "fp8_block") == table.kernels["gemm", "fp8"]
    assert table.kernel("gemm", "bf16") == table.kernels["gemm", "any"]
    with pytest.raises(KeyError, match="no kernel `prayer`"):
        table.kernel("prayer", "bf16")


@pytest.mark.parametrize("name", FILES)
def test_a_shipped_file_names_a_device_its_rows_and_its_errors(name):
    table = load_kernels(name)
    if name != "assumed":
        assert name.startswith(f"{table.device}-{table.engine}")
        load_device(table.device)
    for (family, _), kernel in table.kernels.items():
        assert family in FAMILIES
        assert (kernel.fit.source == "assumed") == (kernel.fit.n_rows == 0)
        assert 0 < kernel.fit.median_error <= kernel.fit.p90_error
        if "prologue_k" in kernel.constants:
            assert kernel.constants["n_sms"] == table.n_sms


def test_there_are_shipped_files():
    devices = {table.device for table in list_kernels()}
    assert {"any", "h20", "h800", "h100-sxm", "h200", "b200", "a100-80gb"} <= devices
