"""aiconfigurator's files are read as the replicas that its answers are made of.

Its rows are in tests/placing/aiconfigurator.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.files.deployment_tables import load_table
from planner.specs.files.ledger import recording
from planner.specs.files.texts import csv_of

DATA = Path(__file__).parents[1] / "placing" / "aiconfigurator"


def _load(name):
    return load_table(f"table:{DATA / name}")


def test_pairs_are_split_into_their_workers_each_once():
    table = _load("qwen3-32b-h200-pairs.csv")
    assert table.made_by == "aiconfigurator"
    workers = [(row.role, row.name, row.batch) for row in table.rows]
    assert len(workers) == len(set(workers))
    (reads,) = (row for row in table.rows if (row.role, row.n_devices) == ("prefill", 1))
    assert reads.requests_per_s == pytest.approx(2.403 * 0.9)
    assert reads.ttft_s == pytest.approx(0.749122)  # its pairs have the factor of 1.8 in it
    assert reads.tpot_s == 0.0


def test_a_worker_by_itself_is_what_it_is_in_a_pair():
    """The factors are counted once, whichever of its files a worker is from."""
    pairs = _load("qwen3-32b-h200-pairs.csv").rows
    for role in ("prefill", "decode"):
        alone = {(row.name, row.batch): row for row in _load(f"qwen3-32b-h200-{role}.csv").rows}
        mine = [row for row in pairs if row.role == role]
        assert mine
        for row in mine:
            one = alone[row.name, row.batch]
            assert one.requests_per_s == pytest.approx(row.requests_per_s)
            assert (one.ttft_s, one.tpot_s) == pytest.approx((row.ttft_s, row.tpot_s), abs=1e-6)
            assert (one.n_devices, one.memory_bytes) == (row.n_devices, row.memory_bytes)


def test_its_pairs_come_to_what_it_says_of_them():
    """Workers of a line, as they are read, serve what the line says they do."""
    path = DATA / "qwen3-32b-h200-pairs.csv"
    lines = [one for one in csv_of(path.read_text(encoding="utf-8")) if not one[0].startswith("#")]
    rows = {(row.role, row.name, row.batch): row for row in _load(path.name).rows}
    assert len(lines) > 2
    for cells in lines[1:]:
        said = dict(zip(lines[0], cells, strict=True))
        reads = rows["prefill", said["(p)parallel"], int(said["(p)global_bs"])]
        writes = rows["decode", said["(d)parallel"], int(said["(d)global_bs"])]
        n_reads, n_writes = int(said["(p)workers"]), int(said["(d)workers"])
        rate = min(n_reads * reads.requests_per_s, n_writes * writes.requests_per_s)
        assert rate == pytest.approx(float(said["seq/s"]), rel=2e-3)  # it rounds to 1e-3
        n_devices = n_reads * reads.n_devices + n_writes * writes.n_devices
        assert n_devices == int(said["num_total_gpus"])


def test_aggregated_rows_have_no_factor():
    row = next(row for row in _load("qwen3-32b-h200-agg.csv").rows if row.line == 4)
    assert (row.role, row.engine, row.kind) == ("together", "trtllm", "h200")
    text = (DATA / "qwen3-32b-h200-agg.csv").read_text(encoding="utf-8")
    names, cells = csv_of(text)[2:4]
    said = dict(zip(names, cells, strict=True))
    assert row.requests_per_s == float(said["seq/s"])
    assert row.ttft_s == float(said["ttft"]) / 1e3
    assert row.memory_bytes == float(said["memory"]) * 2**30


def test_the_factors_are_said_once():
    with recording() as ledger:
        _load("qwen3-32b-h200-decode.csv")
    (remark,) = ledger.remarks
    assert remark.where == "aiconfigurator"
    assert all(factor in remark.fact for factor in (" 0.9,", " 0.92,", " 1.8 times"))


def test_a_spoilt_line_is_told_by_its_number(tmp_path):
    lines = (DATA / "qwen3-32b-h200-prefill.csv").read_text(encoding="utf-8").splitlines()
    spoilt = tmp_path / "prefill.csv"
    spoilt.write_text("\n".join([*lines[:3], lines[3].replace("trtllm", ""), "x,y"]) + "\n")
    with pytest.raises(SpecError) as caught:
        load_table(f"table:{spoilt}")
    assert [(one.key, one.fact) for one in caught.value.problems] == [
        ("line 4", "of `backend` is empty"),
        ("line 5", "has 2 cells, and the header 38"),
    ]


def test_rows_of_cached_prefixes_are_other_requests(tmp_path):
    lines = (DATA / "qwen3-32b-h200-prefill.csv").read_text(encoding="utf-8").splitlines()
    other = tmp_path / "prefill.csv"
    other.write_text("\n".join([*lines, lines[3].replace(",1000,0,", ",1000,512,")]) + "\n")
    with recording() as ledger:
        rows = load_table(f"table:{other}").rows
    assert len(rows) == len(lines) - 3
    assert any(one.fact.startswith("1 rows with cached prefixes") for one in ledger.remarks)
