"""Kernel files: read, checked with all faults at once, completed by what is assumed."""

from pathlib import Path

import pytest

from planner.equations.kernels import FAMILIES
from planner.errors import SpecError
from planner.estimates.kernel_files import (
    NEEDED,
    kernel_table,
    load_kernels,
)
from planner.specs.files.ledger import recording
from planner.specs.files.reading import load_device

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


def test_a_backend_is_of_experts_alone_and_the_first_of_several_is_the_engines_own(folder):
    shipped = load_kernels("b200-trtllm-blocks").kernels["experts", "nvfp4"]
    first = kernel_table("b200", "trtllm", "TRTLLM").kernels["experts", "nvfp4"]
    assert shipped == first != kernel_table("b200", "trtllm", "CUTLASS").kernels["experts", "nvfp4"]
    (folder / "mine.toml").write_text(SOUND.replace("family =", 'backend = "CUTLASS"\nfamily ='))
    with pytest.raises(SpecError) as caught:
        load_kernels("mine")
    assert [problem.key for problem in caught.value.problems] == ["kernel[0].backend"]


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
        is_unmeasured = kernel.fit.source.startswith(("assumed", "fitted: InferenceX-app"))
        assert is_unmeasured == (kernel.fit.n_rows == 0)
        assert 0 < kernel.fit.median_error <= kernel.fit.p90_error
        if "prologue_k" in kernel.constants:
            assert kernel.constants["n_sms"] == table.n_sms


def test_there_are_shipped_files():
    devices = {load_kernels(name).device for name in FILES}
    assert {"any", "h20", "h800", "h100-sxm", "h200", "b200", "a100-80gb"} <= devices


def faults_of(folder, text):
    """Key, value and fact of each problem of a file."""
    (folder / "mine.toml").write_text(text)
    with pytest.raises(SpecError) as caught:
        load_kernels("mine")
    assert {problem.where for problem in caught.value.problems} == {"kernels/mine.toml"}
    return [(problem.key, problem.value, problem.fact) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("old", "new", "key", "fact"),
    [
        ("compute_fraction = 0.8", "compute_fraction = 0", "compute_fraction", "is below 0.001"),
        ("compute_fraction = 0.8", "compute_fraction = 1000", "compute_fraction", "is above 2"),
        ("memory_fraction = 0.7", "memory_fraction = 1.01", "memory_fraction", "is above 1"),
        ("exponent = 3", "exponent = 0.5", "exponent", "is below 1"),
        ("floor_s = 4e-6", "floor_s = 4", "floor_s", "is above 0.01"),
        ("floor_s = 4e-6, ", "", "floor_s", "is missing"),
        ("floor_s", "floor", "floor", "unknown constant"),
        ("exponent = 3", "exponent = 3, n_sms = 77", "n_sms", "is not what the table says, 78"),
        ("exponent = 3", "exponent = 3, n_sms = 78.5", "n_sms", "is not a whole number"),
        ("exponent = 3", "exponent = nan", "exponent", "is not a number"),
        ("exponent = 3", f"exponent = {'9' * 400}", "exponent", "is above 1e+300"),
    ],
)
def test_a_constant_that_no_kernel_has_is_refused(folder, old, new, key, fact):
    faults = faults_of(folder, SOUND.replace(old, new))
    assert f"kernel[0].constants.{key}" in [name for name, _, _ in faults]
    assert fact in [said for _, _, said in faults]


def test_a_slip_of_a_name_is_told_once_with_what_was_meant(folder):
    (folder / "mine.toml").write_text(SOUND.replace("memory_fraction", "memory_fractoin"))
    with pytest.raises(SpecError) as caught:
        load_kernels("mine")
    (problem,) = caught.value.problems
    assert (problem.key, problem.value) == ("kernel[0].constants.memory_fractoin", "0.7")
    assert problem.remedy == "did you mean `memory_fraction`?"


def test_tiles_of_no_multiprocessors_are_refused(folder):
    text = SOUND.replace("exponent = 3", "exponent = 3, prologue_k = 80")
    (folder / "mine.toml").write_text(text)
    load_kernels("mine")  # the table says how many there are
    text = text.replace('n_sms = { value = 78, source = "counted" }\n', "")
    assert faults_of(folder, text) == [
        ("kernel[0].constants.prologue_k", "80", "counts tiles of no multiprocessors")
    ]


def test_a_family_and_a_format_that_are_none_are_refused(folder):
    text = SOUND.replace('"gemm"', '"gem"').replace('"bf16"', '"bf61"')
    assert faults_of(folder, text) == [("kernel[0].family", "gem", "unknown family")]
    assert faults_of(folder, SOUND.replace('"bf16"', '"bf61"')) == [
        ("kernel[0].format", "bf61", "unknown number format")
    ]


def test_formats_are_those_of_the_family(folder):
    """A product has a number format, a recurrence what it keeps, a block two formats."""
    for family, form in (("recurrence_decode", "bf16"), ("gemm", "delta"), ("gemm", "fp8+fp8")):
        text = SOUND.replace('"gemm"', f'"{family}"').replace('"bf16"', f'"{form}"')
        assert ("kernel[0].format", form, "unknown number format") in faults_of(folder, text)


@pytest.mark.parametrize(
    ("old", "new", "key", "fact"),
    [
        ("p90_error = 0.1", "p90_error = 0.01", "p90_error", "is below the median, 0.05"),
        ("median_error = 0.05", "median_error = 50", "median_error", "is above 10"),
        ("p90_error", "left_out_p90_error = 1, p90_error", "left_out_median_error", "is missing"),
        ("p90_error", 'left_out = "rows", p90_error', "left_out", "says what no error is of"),
        ('"measured"', '"assumed"', "n_rows", "are rows of what was not measured"),
        ("n_rows = 20", "n_rows = -1", "n_rows", "is negative"),
        ("n_rows = 20", "n_rows = 2.5", "n_rows", "is not a whole number"),
    ],
)
def test_a_fit_that_contradicts_itself_is_refused(folder, old, new, key, fact):
    faults = faults_of(folder, SOUND.replace(old, new))
    assert (f"kernel[0].fit.{key}", fact) in [(name, said) for name, _, said in faults]


def test_faults_of_all_kernels_are_told_together(folder):
    second = SOUND[SOUND.index("[[kernel]]") :].replace('"gemm"', '"decode_attention"')
    text = SOUND.replace("0.8", "0") + second.replace("exponent = 3", 'exponent = "3"')
    keys = [key for key, _, _ in faults_of(folder, text)]
    assert sorted(keys) == ["kernel[0].constants.compute_fraction", "kernel[1].constants.exponent"]


def remarks(device, engine):
    with recording() as ledger:
        kernel_table(device, engine)
    return [(one.where, one.key, one.value, one.fact) for one in ledger.remarks]


def test_a_table_of_a_device_that_is_none_is_said_to_be_left_out(folder):
    (folder / "mine.toml").write_text(SOUND.replace('"h20"', '"h2O"'))
    assert remarks("h20", "vllm") == [
        ("kernels/mine.toml", "table.device", "h2O", "is left out: no device has this name")
    ]


def test_a_table_of_an_engine_that_is_none_is_said_to_be_of_no_use_where_nothing_is_taken(folder):
    """On H100 vLLM has a matrix product of its own; on H20 it takes the one of `vlm`."""
    (folder / "mine.toml").write_text(
        SOUND.replace('"own"', '"vlm"').replace('"h20"', '"h100-sxm"')
    )
    fact = "is no engine that a file describes, and kernels of vllm win over all of its"
    assert remarks("h100-sxm", "vllm") == [("kernels/mine.toml", "table.engine", "vlm", fact)]
    (folder / "mine.toml").write_text(SOUND.replace('"own"', '"vlm"'))
    assert remarks("h20", "vllm") == []
    assert kernel_table("h20", "vllm").kernel("gemm", "bf16").fit.source == "measured"


def test_a_file_that_cannot_be_read_is_said_to_be_left_out_or_refused(folder):
    (folder / "mine.toml").write_text("[[")
    (where, _, _, fact), *_ = remarks("h20", "vllm")
    assert where == "kernels/mine.toml"
    assert fact.startswith("is left out: it is not TOML")
    (folder / "mine.toml").rename(folder / "h20-mine.toml")
    with pytest.raises(SpecError, match="h20-mine"):
        kernel_table("h20", "vllm")
    assert remarks("h100-sxm", "vllm")  # of another device it is left out


def test_the_second_of_two_kernels_of_the_user_is_said_to_have_no_effect(folder):
    (folder / "first.toml").write_text(SOUND.replace('"mine"', '"first"'))
    (folder / "later.toml").write_text(
        SOUND.replace('"mine"', '"later"').replace('"measured"', '"again"')
    )
    assert kernel_table("h20", "own").kernel("gemm", "bf16").fit.source == "measured"
    fact = "has no effect beside that of `kernels/first.toml`"
    assert remarks("h20", "own") == [("kernels/later.toml", "kernel", "gemm bf16", fact)]


def test_a_table_of_the_user_is_before_those_that_ship_of_the_same_engine(folder):
    (folder / "zz.toml").write_text(
        SOUND.replace('"mine"', '"zz"').replace('"own"', '"vllm"').replace('"h20"', '"h100-sxm"')
    )
    assert kernel_table("h100-sxm", "vllm").kernel("gemm", "bf16").fit.source == "measured"


def test_a_block_is_said_to_have_no_effect(folder):
    shipped = (ROOT / "kernels/h100-sxm-vllm-blocks.toml").read_text()
    (folder / "h100-sxm-vllm-blocks.toml").write_text(f"# our own\n{shipped}")
    said = remarks("h100-sxm", "vllm")
    assert {value for _, _, value, _ in said} <= {name for name in FAMILIES if name not in NEEDED}
    assert said


def test_an_assumed_table_that_lacks_a_family_is_refused_with_each_that_it_lacks(folder):
    text = SOUND.replace('"mine"', '"assumed"').replace('"bf16"', '"any"')
    (folder / "assumed.toml").write_text(text)
    with pytest.raises(SpecError) as caught:
        kernel_table("tpu-v4", "vllm")
    assert [one.value for one in caught.value.problems] == [n for n in NEEDED if n != "gemm"]
