"""Tables of experts, blocks and linear attention become rows whose routing and widths are known."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from planner.equations.kernels import FAMILIES
from planner.specs.files.reading import load_device
from planner_workshop.calibration.calibrating import calibrate
from planner_workshop.calibration.tables import slower_than_larger
from research.published.silicon import read_silicon
from research.published.silicon_blocks import SHORTEST_SPARSE
from research.published.silicon_experts import N_DRAWS, balanced, power_law, routed

PEAKS = {"bf16": 989e12, "fp8": 1979e12}


@pytest.fixture(name="write")
def _write(tmp_path):
    def write(operation, rows, *, folder="h100_sxm/moe/vllm/0.24.0"):
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        n_rows = max(len(column) for column in rows.values() if isinstance(column, list))
        columns = {k: v if isinstance(v, list) else [v] * n_rows for k, v in rows.items()}
        path = place / f"{operation}.parquet"
        parquet.write_table(pa.table(columns), path)
        return path

    return write


@pytest.mark.parametrize(
    ("tokens", "n_experts", "n_active"),
    [(1, 8, 2), (3, 16, 4), (7, 8, 2), (64, 60, 4), (1000, 256, 8), (40, 10, 7), (5, 512, 22)],
)
def test_balanced_routing_is_dealt_as_one_token_after_the_other(tokens, n_experts, n_active):
    """Token t goes to experts t, t + s, t + 2 s …, s = ⌈E / k⌉; few tokens stand evenly apart."""
    stride = -(-n_experts // n_active)
    counts = np.zeros(n_experts, dtype=int)
    for token in range(tokens):
        first = token if tokens >= stride else int(token * stride / tokens)
        for expert in {(first + one * stride) % n_experts for one in range(n_active)}:
            counts[expert] += 1
    assert balanced(tokens, n_experts, n_active).tolist() == counts.tolist()


@pytest.mark.parametrize("tokens", [1, 16, 4096])
def test_every_draw_of_a_power_law_deals_all_rows_and_is_the_same_again(tokens):
    counts = power_law(tokens, 64, 8, 1.2)
    assert counts.shape == (N_DRAWS, 64)
    assert (counts.sum(axis=1) == 8 * tokens).all()
    assert counts.min() >= 0
    assert counts.max() <= tokens
    power_law.cache_clear()
    assert np.array_equal(counts, power_law(tokens, 64, 8, 1.2))


def test_skewed_routing_leaves_more_rows_on_the_busiest_device_and_hits_fewer_experts():
    laws = np.array(["balanced", "power_law_1.01", "power_law_1.2"], object)
    same = {"tokens": 512, "n_experts": 64, "n_active": 8, "ways": 8}
    rows, hit = routed(law=laws, **{key: np.full(3, value) for key, value in same.items()})
    assert rows[0] == 512 * 8 / 8
    assert rows[0] < rows[1] < rows[2]
    assert hit[0] == 8
    assert (hit <= 8).all()


def test_rows_slower_than_larger_ones_are_those_that_every_pair_finds():
    random = np.random.default_rng(0)
    kind, size = random.integers(0, 5, 200), random.integers(0, 9, 200)
    seconds = random.uniform(1.0, 3.0, 200)
    expected = [
        any(
            seconds[i] > 1.5 * seconds[j]
            for j in range(200)
            if kind[j] == kind[i] and size[j] > size[i]
        )
        for i in range(200)
    ]
    found = slower_than_larger([kind], size, seconds)
    larger_found = found[[size[i] < 8 for i in range(200)]]
    larger_expected = np.array(expected)[[size[i] < 8 for i in range(200)]]
    assert (larger_found >= larger_expected).all()  # rows as large may tell, too
    assert not slower_than_larger([np.arange(200)], size, seconds).any()
    assert not slower_than_larger([kind], np.arange(200), np.full(200, 2.0)).any()


def test_experts_are_read_as_sharded_with_the_rows_that_stay(write):
    write(
        "moe_perf",
        {
            "kernel_source": ["triton"] * 4 + ["rare_min_latency"],
            "moe_dtype": ["fp8_block"] * 5,
            "num_tokens": [64, 128, 128, 64, 64],
            "hidden_size": [7168, 7168, 7168, 2688, 7168],
            "inter_size": [2048, 2048, 2048, 1856, 2048],  # the fourth has no gate
            "topk": 8,
            "num_experts": 256,
            "moe_tp_size": 2,
            "moe_ep_size": [4, 4, 3, 4, 4],  # 256 experts are not dealt to three
            "distribution": "balanced",
            "latency": [0.5, 0.9, 0.5, 0.5, 0.5],
        },
    )
    reading = read_silicon(write("x", {"y": [1]}).parents[1], "vllm", PEAKS)
    (table,) = reading.tables
    assert (table.family, table.format, table.peak_format) == ("experts", "fp8_block", "fp8")
    assert list(table.lines) == [1, 2]
    assert table.measured_s == pytest.approx([0.5e-3, 0.9e-3])
    assert list(table.columns["n_experts_local"]) == [64, 64]
    assert list(table.columns["d_expert"]) == [1024, 1024]
    assert list(table.columns["rows"]) == [64 * 8 / 4, 128 * 8 / 4]
    assert list(table.columns["n_hit"]) == [64, 64]
    assert set(table.columns) <= {*FAMILIES["experts"].dimensions, *FAMILIES["experts"].optional}
    assert any("2 rows of other kernels" in one.reason for one in reading.refused)


@pytest.mark.parametrize("operation", ["moe_perf", "gdn_perf", "dsa_context_module_perf"])
def test_a_file_that_is_called_so_and_is_not_says_what_it_lacks(write, operation):
    reading = read_silicon(write(operation, {"latency": [1.0]}), "vllm", PEAKS)
    assert reading.tables == ()
    assert "has no column" in reading.refused[0].reason


def test_of_several_kernels_those_that_are_named_are_read(write):
    path = write(
        "moe_perf",
        {
            "kernel_source": ["a"] * 8 + ["b"] * 4,
            "moe_dtype": "bfloat16",
            "num_tokens": [*range(1, 9), *range(1, 5)],
            "hidden_size": 4096,
            "inter_size": 1536,
            "topk": 8,
            "num_experts": 128,
            "moe_tp_size": 1,
            "moe_ep_size": 1,
            "distribution": "power_law_1.2",
            "latency": [0.5] * 12,
        },
    )
    rows = {
        names: read_silicon(path, "vllm", PEAKS, programs=frozenset(names)).tables[0].n_rows
        for names in ((), ("b",), ("a",), ("unknown",))
    }
    assert rows == {(): 12, ("b",): 4, ("a",): 8, ("unknown",): 12}
    told = read_silicon(path, "vllm", PEAKS, programs=frozenset({"unknown"})).refused
    assert told[0].reason.endswith("so all are read: a, b")


def test_a_block_has_the_widths_of_its_model_and_the_peaks_of_its_formats(write):
    path = write(
        "dsa_generation_module_perf",
        {
            "kernel_source": "x",
            "model": ["deepseek-ai/DeepSeek-V3.2", "zai-org/GLM-5", "somebody/else"],
            "kv_cache_dtype": "fp8",
            "gemm_type": "fp8_block",
            "num_heads": 16,
            "batch_size": 4,
            "isl": 1,
            "step": 1023,
            "latency": 0.2,
        },
    )
    (table,) = read_silicon(path, "vllm", PEAKS).tables
    assert (table.family, table.format) == ("sparse_block_decode", "fp8_block+fp8")
    assert table.n_rows == 2
    assert list(table.columns["d_model"]) == [7168, 6144]
    assert list(table.columns["n_selected"]) == [2048, 2048]
    assert set(table.columns["product_flop_per_s"]) == {PEAKS["fp8"]}
    assert set(table.columns["context"]) == {1024}
    family = FAMILIES["sparse_block_decode"]
    assert {*family.dimensions} <= set(table.columns) <= {*family.dimensions, *family.optional}


def test_prompts_that_are_attended_to_whole_are_no_sparse_ones(write):
    """Shorter ones than are picked from, and those whose kernel says so."""
    path = write(
        "dsa_context_module_perf",
        {
            "kernel_source": ["sparse", "sparse", "dense_mha", "x_dense_mha_y", "sparse"],
            "model": "deepseek-ai/DeepSeek-V3.2",
            "kv_cache_dtype": "fp8",
            "gemm_type": "fp8_block",
            "num_heads": 16,
            "batch_size": [1, 1, 2, 3, 4],
            "isl": [SHORTEST_SPARSE - 1, SHORTEST_SPARSE, 4096, 4096, 4096],
            "step": 0,
            "latency": [0.2, 0.3, 0.4, 0.5, 0.6],
        },
    )
    (table,) = read_silicon(path, "vllm", PEAKS).tables
    assert (table.family, list(table.lines)) == ("sparse_block_prefill", [2, 5])


def test_a_row_that_a_larger_one_contradicts_is_left_out_and_counted(write):
    path = write(
        "generation_mla_perf",
        {
            "kernel_source": "x",
            "kv_cache_dtype": "bfloat16",
            "num_heads": 16,
            "batch_size": 8,
            "isl": 1,
            "step": [1023, 2047, 4095],
            "latency": [0.09, 0.02, 0.03],
        },
    )
    reading = read_silicon(path, "vllm", PEAKS)
    (table,) = reading.tables
    assert list(table.columns["context"]) == [2048, 4096]
    assert "1 row took half as long again" in reading.refused[0].reason


def test_linear_attention_is_fitted_to_convolution_and_scan_together(write, tmp_path):
    """Constants are found again: 6 us, 0.8 of 3.35 TB/s, halved between the two kernels."""
    batches, family = [2**k for k in range(3, 10)], FAMILIES["recurrence_decode"]
    device = load_device("h100-sxm")
    true = {"floor_s": 6e-6, "memory_fraction": 0.8}
    rows = {"batch_size": [], "num_v_heads": [], "latency": [], "kernel_source": []}
    for heads in (8, 16, 32, 48):
        shape = {
            "n_heads": heads,
            "d_key": 128,
            "d_value": 128,
            "d_conv": 2 * 8 * 128 + heads * 128,
        }
        for batch in batches:
            time = family.seconds(
                {"batch": batch, **shape}, {"hbm_bytes_per_s": device.hbm_bytes_per_s}, true
            )
            for source in ("causal_conv1d_update", "fused_recurrent"):
                rows["batch_size"].append(batch)
                rows["num_v_heads"].append(heads)
                rows["latency"].append(float(time) / 2 * 1e3)
                rows["kernel_source"].append(source)
    write(
        "gdn_perf",
        {
            **rows,
            "phase": "generation",
            "seq_len": 1,
            "d_model": 4096,
            "num_k_heads": 8,
            "head_k_dim": 128,
            "head_v_dim": 128,
            "model_name": "m",
        },
        folder="h100_sxm/linear_attention/vllm/0.24.0",
    )
    (found,) = calibrate(
        [tmp_path], device, engine="vllm", read=partial(read_silicon, engine="vllm")
    ).fitted
    assert found.table.n_rows == 4 * len(batches)
    assert (found.table.family, found.table.format) == ("recurrence_decode", "delta")
    assert found.constants["floor_s"] == pytest.approx(true["floor_s"], rel=0.02)
    assert found.constants["memory_fraction"] == pytest.approx(0.8, rel=0.02)
    assert found.outside.median < 0.01
