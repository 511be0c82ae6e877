"""Three formats of tables become the same columns; what is wrong with a row is told."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from planner.equations.kernels import FAMILIES
from planner.errors import SpecError
from planner.tools.calibration.infersim import is_infersim, read_infersim
from planner.tools.calibration.plain import read_plain
from planner.tools.calibration.silicon import read_silicon

PEAKS = {"bf16": 148e12, "fp8": 296e12}


def reasons(reading):
    return {(refused.file.rpartition("bench_data/")[2], refused.line): refused.reason
            for refused in reading.refused}  # fmt: skip


def test_a_folder_of_infersim_is_told_by_its_families(bench, plain):
    assert is_infersim(bench)
    assert is_infersim(bench / "gemm/h800/data.csv")
    assert not is_infersim(plain())


def test_rows_of_infersim_that_cannot_be_are_refused_each_with_its_reason(bench):
    found = reasons(read_infersim(bench, "h20", PEAKS))
    told = {place: reason.partition(" ")[2][:30] for place, reason in found.items()}
    assert set(told) == {
        ("mha/decode/h20/32-4-128.csv", 9),  # the time of 64 × 4096 is twice what its MFU says
        ("mha/decode/h20/64-2-128.csv", 0),
        ("gdn/decode/h20/4-16-128-32-128.csv", 0),
        ("gdn/decode/h20/4-16-128-64-128.csv", 0),
        ("grouped_gemm/decode/h20/data.csv", 2),
        ("grouped_gemm/decode/h20/data.csv", 3),
    }
    assert "MFU" in found["mha/decode/h20/32-4-128.csv", 9]
    assert "has no header" in found["mha/decode/h20/64-2-128.csv", 0]
    assert "byte for byte" in found["gdn/decode/h20/4-16-128-64-128.csv", 0]
    assert "one token an expert" in found["grouped_gemm/decode/h20/data.csv", 2]
    assert "are not all experts" in found["grouped_gemm/decode/h20/data.csv", 3]


def test_the_tokens_that_ran_and_the_padded_size_come_from_the_share_of_the_peak(bench):
    """Named are 4 × 64 tokens and 1560 columns; run were 192 tokens and 1664 columns."""
    tables = read_infersim(bench, "h20", PEAKS).tables
    up, down = (one for one in tables if one.family == "grouped_gemm_decode")
    assert up.columns["tokens"] == pytest.approx([192, 384, 768, 1536], rel=1e-3)
    assert set(up.columns["n"]) == {2 * 1664}
    assert set(down.columns["k"]) == {1664}
    assert set(up.columns["n_groups_hit"]) == {4}


def test_only_the_device_asked_for_is_read(bench):
    files = {table.file for table in read_infersim(bench, "h800", PEAKS).tables}
    assert files == {str(bench / "gemm/h800/data.csv")}


def test_parquet_of_the_package_is_read_in_its_units(tmp_path):
    """Latency in ms; the context of decode is the prompt and the step. Windows are left out, and
    heads that share no keys, or share them among more than sixteen."""
    folder = tmp_path / "h100_sxm/attention/vllm/0.24.0"
    folder.mkdir(parents=True)
    rows = {
        "batch_size": [8] * 6,
        "isl": [1] * 6,
        "step": [1023, 2047, 1023, 1023, 1023, 1023],
        "num_heads": [32] * 6,
        "num_key_value_heads": [8, 4, 8, 8, 0, 1],  # none: as many as there are query heads
        "head_dim": [128, 128, 64, 128, 128, 128],
        "window_size": [0, 0, 0, 1024, 0, 0],
        "kv_cache_dtype": ["bfloat16"] * 6,
        "latency": [0.02, 0.04, 0.01, 0.01, 0.01, 0.01],
    }
    parquet.write_table(pa.table(rows), folder / "generation_attention_perf.parquet")
    parquet.write_table(pa.table({"x": [1]}), folder / "mlp_perf.parquet")
    reading = read_silicon(tmp_path, "vllm")
    (table,) = reading.tables
    assert (table.family, table.format, table.peak_format) == ("decode_attention", "bf16", "bf16")
    assert table.measured_s == pytest.approx([20e-6, 40e-6])
    assert list(table.columns["context"]) == [1024, 2048]
    assert list(table.columns["n_kv_heads"]) == [8, 4]
    assert list(table.lines) == [1, 2]
    assert "mlp_perf" in reading.refused[0].reason
    assert read_silicon(tmp_path, "sglang").tables == ()


def test_a_prompt_of_one_token_is_no_prefill(tmp_path):
    folder = tmp_path / "h100_sxm/attention/vllm/0.24.0"
    folder.mkdir(parents=True)
    rows = {
        "batch_size": [1, 2, 3],
        "isl": [1, 2, 512],
        "step": [0] * 3,
        "num_heads": [32] * 3,
        "num_key_value_heads": [8] * 3,
        "head_dim": [128] * 3,
        "window_size": [0] * 3,
        "attn_dtype": ["bfloat16"] * 3,
        "kv_cache_dtype": ["bfloat16"] * 3,
        "latency": [0.02, 0.02, 0.04],
    }
    parquet.write_table(pa.table(rows), folder / "context_attention_perf.parquet")
    (table,) = read_silicon(tmp_path, "vllm").tables
    assert (table.family, list(table.columns["tokens"])) == ("prefill_attention", [2, 512])


def test_prompts_are_held_against_the_peak_of_the_arithmetic_that_reads_them(tmp_path):
    """A cache of 8 bits is read by arithmetic of 16, unless the queries have 8 bits too."""
    folder = tmp_path / "h100_sxm/attention/vllm/0.24.0"
    folder.mkdir(parents=True)
    rows = {
        "batch_size": [1] * 3,
        "isl": [512] * 3,
        "step": [0] * 3,
        "num_heads": [32] * 3,
        "num_key_value_heads": [8] * 3,
        "head_dim": [128] * 3,
        "attn_dtype": ["bfloat16", "bfloat16", "fp8"],
        "kv_cache_dtype": ["bfloat16", "fp8", "fp8"],
        "latency": [0.04, 0.04, 0.02],
    }
    parquet.write_table(pa.table(rows), folder / "context_attention_perf.parquet")
    read = read_silicon(tmp_path, "vllm").tables
    assert [(one.format, one.peak_format, *one.lines) for one in read] == [
        ("bf16", "bf16", 1),
        ("fp8", "bf16", 2),
        ("fp8_fp8", "fp8", 3),
    ]
    assert [one.columns["cache_bytes"].item() for one in read] == [2.0, 1.0, 1.0]


def test_products_of_256_and_more_are_read_of_the_package_and_smaller_ones_left_out(tmp_path):
    folder = tmp_path / "h100_sxm/gemm/vllm/0.24.0"
    folder.mkdir(parents=True)
    sides = {"n": [256, 255, 256, 4096], "k": [256, 4096, 255, 256]}
    rows = {"gemm_dtype": ["bfloat16"] * 4, "m": [1] * 4, **sides, "latency": [0.01] * 4}
    parquet.write_table(pa.table(rows), folder / "gemm_perf.parquet")
    (table,) = read_silicon(tmp_path, "vllm").tables
    assert list(table.lines) == [1, 4]


def test_a_users_own_table_names_family_format_and_dimensions(plain):
    (table,) = read_plain(plain()).tables
    assert (table.family, table.format, table.peak_format) == ("gemm", "fp8", "fp8")
    assert table.n_rows == 30
    assert np.all(table.lines == np.arange(2, 32))
    assert set(table.columns) == {"m", "n", "k", "weight_bytes", "input_bytes"}


def test_every_fault_of_a_users_table_is_told_at_once(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(
        "family,format,m,n,k,weight_bytes,input_bytes,latency_us\n"
        "gem,bf16,1,1,1,2,2,10\n"
        "gemm,bf16,many,1,1,2,2,10\n"
        "gemm,bf16,1,1,1,2,2,\n"
    )
    with pytest.raises(SpecError) as caught:
        read_plain(path)
    told = [(p.where.rpartition(":")[2], p.key, p.value) for p in caught.value.problems]
    assert told == [("2", "", "gem"), ("3", "m", "many"), ("4", "latency_us", "")]


@pytest.mark.parametrize(
    ("name", "text"),
    [("own.json", "family,format\n"), ("own.csv", '{"m": 1}\n'), ("own.csv", '\n  [{"m": 1}]\n')],
)
def test_json_is_known_by_its_name_or_by_how_it_begins(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_plain(path)
    assert [problem.fact for problem in caught.value.problems] == ["is JSON, which is not read"]


def test_a_table_without_the_columns_says_which(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("m,n,k\n1,2,3\n")
    with pytest.raises(SpecError) as caught:
        read_plain(path)
    assert [p.value for p in caught.value.problems] == ["family", "format", "latency_us"]


def test_the_guide_lists_the_dimensions_of_every_family():
    guide = (Path(__file__).parents[2] / "docs/calibration.md").read_text(encoding="utf-8")
    for one in FAMILIES.values():
        row = f"| `{one.name}` | {', '.join(one.dimensions)} | {', '.join(one.optional)} |"
        assert row in guide


HEAD = "family,format,m,n,k,weight_bytes,input_bytes,latency_us"
ROW = "gemm,fp8,64,4096,4096,1,1,20"


def problems_of(folder, text):
    path = folder / "own.csv"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_plain(path)
    return [
        (one.where.removeprefix(str(path)), one.key, one.value, one.fact)
        for one in caught.value.problems
    ]


@pytest.mark.parametrize(
    ("head", "row", "problem"),
    [
        (f"{HEAD},m", f"{ROW},64", (":1", "", "m", "is a column twice")),
        (f"{HEAD},latency", f"{ROW},20", (":1", "", "latency", "is a column of no family")),
        (f"{HEAD},", f"{ROW},1", (":1", "", "an empty name", "is a column of no family")),
        (HEAD, f"{ROW},7", (":2", "", "", "has 9 cells, and there are 8 columns")),
        (HEAD, ROW.replace("fp8", "fp9"), (":2", "format", "fp9", "is no number format of `gemm`")),
        (HEAD, ROW.replace("64", "0"), (":2", "m", "0", "is no positive number")),
        (HEAD, ROW.replace("64", "-1"), (":2", "m", "-1", "is no positive number")),
        (HEAD, ROW.replace("64", "nan"), (":2", "m", "nan", "is no positive number")),
        (HEAD, ROW.replace("64", "1e19"), (":2", "m", "1e19", "is above 1e+18")),
        (HEAD, ROW.replace("64", "many"), (":2", "m", "many", "is no positive number")),
        (f"{HEAD},vocab", f"{ROW},9", (":2", "vocab", "9", "is no dimension of `gemm`")),
    ],
)
def test_what_a_row_or_a_header_may_not_say_is_refused_by_its_place(tmp_path, head, row, problem):
    assert problems_of(tmp_path, f"{head}\n{row}\n") == [problem]


def test_a_dimension_that_some_rows_have_is_missing_in_the_others(tmp_path):
    """It had been left out of all of them without a word."""
    text = f"{HEAD},output_bytes\n{ROW},2\n{ROW},\n"
    assert problems_of(tmp_path, text) == [(":3", "output_bytes", "", "is missing")]


def test_a_row_without_a_time_is_left_to_the_gate(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(f"{HEAD}\n{ROW.replace(',20', ',0')}\n")
    assert read_plain(path).tables[0].measured_s.tolist() == [0.0]


def test_a_misspelt_column_is_answered_with_the_one_that_is_missing(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(f"{HEAD.replace('latency_us', 'latncy_us')}\n{ROW}\n")
    with pytest.raises(SpecError) as caught:
        read_plain(path)
    assert [one.value for one in caught.value.problems] == ["latency_us", "latncy_us"]
    assert caught.value.problems[1].remedy == "did you mean `latency_us`?"
