"""Two formats that others publish become the columns of the closed forms, and a user's table."""

from functools import partial

import pyarrow as pa
import pytest
from pyarrow import parquet

from planner.specs.files.reading import load_device
from planner_workshop.calibration.calibrating import calibrate
from planner_workshop.calibration.plain import read_plain
from research.published.infersim import is_infersim, read_infersim
from research.published.reading import published, write_plain
from research.published.silicon import read_silicon

PEAKS = {"bf16": 148e12, "fp8": 296e12}


@pytest.fixture(name="bench")
def _bench(tmp_path):
    """A folder as InferSim's, of one device, with every quirk that its own has."""

    def write(place, text):
        path = tmp_path / "bench_data" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    peak = 148e12
    lines = ["dtype,kv_dtype,batch_size,kv_len,latency_us,mfu"]
    for batch in (16, 32, 64, 128):
        for context in (1024, 4096, 16384):
            seconds = 20e-6 + batch * context * 2 * 4 * 128 * 2 / 3e12
            mfu = 4 * batch * context * 32 * 128 / peak / seconds
            written_us = seconds * 1e6 * (2 if (batch, context) == (64, 4096) else 1)
            lines.append(f"bf16,bf16,{batch},{context},{written_us:.4f},{mfu:.4f}")
    write("mha/decode/h20/32-4-128.csv", "\n".join(lines) + "\n")
    write("mha/decode/h20/64-2-128.csv", "bf16,bf16,1,1024,25.5,0.009\n")
    write("gdn/decode/h20/4-16-128-32-128.csv", "batchsize,conv\n1,8\n")
    write("gdn/decode/h20/4-16-128-64-128.csv", "batchsize,conv\n1,8\n")
    write("gemm/h800/data.csv", "m,k,n,latency_us,mfu\n16,2048,6144,10.6,0.1\n")
    write("grouped_gemm/decode/h20/data.csv", grouped_text())
    return tmp_path / "bench_data"


def grouped_text():
    """One row with one token an expert, one whose experts do not add up, and four sound ones.

    The sound ones ran three quarters of the tokens that they name, which only their shares of
    the peak tell; the intermediate size of 1560 ran as 1664.
    """
    names = "num_experts,num_gpus,num_local_experts,topk,hidden_size,intermediate_size"
    lines = [
        f"{names},batch_size_per_gpu,tokens_per_expert,up_proj_us,up_mfu,down_proj_us,down_mfu"
    ]
    lines += ["96,1,96,8,2048,1560,16,1,166.63,0.011,98.1,0.010"]
    lines += ["96,2,96,8,2048,1560,168,5,345.2,0.07,172.1,0.07"]
    for each in (64, 128, 256, 512):
        run = 0.75 * each * 4
        up_s, down_s = (2 * run * 2048 * 1664 * sides / (0.6 * 296e12) + 1e-5 for sides in (2, 1))
        up, down = (
            2 * run * 2048 * 1664 * sides / 296e12 / time
            for sides, time in ((2, up_s), (1, down_s))
        )
        times = f"{up_s * 1e6:.4f},{up:.6f},{down_s * 1e6:.4f},{down:.6f}"
        lines.append(f"96,24,4,8,2048,1560,{each // 2},{each},{times}")
    return "\n".join(lines) + "\n"


def reasons(reading):
    return {(refused.file.rpartition("bench_data/")[2], refused.line): refused.reason
            for refused in reading.refused}  # fmt: skip


def test_a_folder_of_infersim_is_told_by_its_families(bench, tmp_path):
    assert is_infersim(bench)
    assert is_infersim(bench / "gemm/h800/data.csv")
    assert not is_infersim(tmp_path)


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


def test_infersims_folder_is_fitted_with_its_known_constants(bench):
    """Attention was made of a floor of 20 us and three of the four TB/s."""
    device = load_device("h20")
    read = partial(published, device=device, engine="deepgemm")
    found = calibrate([bench], device, engine="deepgemm", read=read)
    kernel = found.table.kernels["decode_attention", "bf16"]
    assert kernel.constants["floor_s"] == pytest.approx(20e-6, rel=0.05)
    assert kernel.constants["memory_fraction"] == pytest.approx(0.75, rel=0.02)
    assert len(found.refused) == 6


def test_a_table_written_for_users_says_the_same_rows(bench, tmp_path):
    path, read = tmp_path / "own.csv", published(bench, load_device("h20"), "deepgemm")
    assert len(read.tables) == 3
    for ours in read.tables:
        with path.open("w") as stream:
            write_plain([ours], stream)
        (again,) = read_plain(path, "h20").tables
        kind = (ours.family, ours.format, ours.peak_format)
        assert (again.family, again.format, again.peak_format) == kind
        assert again.measured_s == pytest.approx(ours.measured_s, rel=1e-11)
        assert {*again.columns} == {*ours.columns}
        for name, column in ours.columns.items():
            assert again.columns[name] == pytest.approx(column, rel=1e-11)
