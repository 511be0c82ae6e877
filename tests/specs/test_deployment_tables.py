"""Tables of deployments are read whole or refused whole, every fault by its line."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.specs.files.deployment_tables import COLUMNS, MOST_TOLD, load_table
from planner.specs.files.ledger import recording

HEADER = (
    "name,model,kind,devices,role,engine,rate_req_s,ttft_ms,tpot_ms,batch,weights,kv,"
    "memory_bytes,usd_per_hour,input,output"
)
ROW = "tp2,llama-3.1-70b,h100-sxm,2,together,vllm,0.9,420,21,16,fp8,bf16,7e10,12.5,1500,300"


@pytest.fixture
def read(tmp_path):
    def of(*lines, header=HEADER):
        path = tmp_path / "rows.csv"
        path.write_text("\n".join((header, *lines)) + "\n", encoding="utf-8")
        return load_table(f"table:{path}")

    return of


@pytest.mark.parametrize(
    "written", ["meta-llama/Llama-3.1-70B", "nvidia/Llama-3.1-70B-Instruct-FP8"]
)
def test_a_checkpoint_of_a_model_is_that_model(read, written):
    (row,) = read(ROW.replace("llama-3.1-70b", written)).rows
    assert row.model == "llama-3.1-70b"


def _faults(read, *lines, **more):
    with pytest.raises(SpecError) as caught:
        read(*lines, **more)
    return caught.value.problems


def _said(*, column, cell):
    """The row with another cell."""
    cells = ROW.split(",")
    cells[HEADER.split(",").index(column)] = cell
    return ",".join(cells)


def test_a_row_is_what_its_cells_say_in_si_units(read):
    (row,) = read(ROW).rows
    assert (row.line, row.name, row.model, row.kind, row.n_devices) == (
        2,
        "tp2",
        "llama-3.1-70b",
        "h100-sxm",
        2,
    )
    assert (row.role, row.engine, row.batch) == ("together", "vllm", 16)
    assert (row.requests_per_s, row.ttft_s, row.tpot_s) == (0.9, 0.42, 0.021)
    assert (row.weights_format, row.kv_format) == ("fp8", "bf16")
    assert (row.memory_bytes, row.usd_per_hour) == (7e10, 12.5)
    assert row.output_tokens_per_s == pytest.approx(270.0)


def test_columns_stand_in_any_order_and_comments_are_none(read):
    names, cells = HEADER.split(","), ROW.split(",")
    lines = "", "# a remark", ",".join(reversed(cells))
    (row,) = read(*lines, header=",".join(reversed(names))).rows
    assert (row.name, row.n_output_tokens, row.line) == ("tp2", 300, 4)


def test_what_may_be_left_out_is_none(read):
    header = HEADER.replace(",memory_bytes,usd_per_hour", "")
    (without,) = read(ROW.replace(",7e10,12.5", ""), header=header).rows
    (empty,) = read(ROW.replace(",7e10,12.5", ",,")).rows
    assert without == empty
    assert (without.memory_bytes, without.usd_per_hour) == (None, None)


@pytest.mark.parametrize("column", [name for name, one in COLUMNS.items() if one.is_needed])
def test_every_needed_column_is_missed_by_its_name(read, column):
    header = HEADER.replace(column, "memory_gib", 1)
    problems = _faults(read, header=header)
    assert [(one.key, one.value, one.fact) for one in problems if one.fact == "is missing"] == [
        ("header", column, "is missing")
    ]


def test_an_unknown_column_is_told_with_the_nearest_one(read):
    (problem,) = (
        one for one in _faults(read, header=HEADER.replace("kind", "kinds")) if one.value == "kinds"
    )
    assert problem.value == "kinds"
    assert problem.remedy == "did you mean `kind`?"


def test_a_column_that_stands_twice_is_refused(read):
    (problem,) = _faults(read, header=f"{HEADER},kv")
    assert (problem.value, problem.fact) == ("kv", "names two columns")


@pytest.mark.parametrize(
    ("column", "cell", "fact"),
    [
        ("devices", "two", "no number"),
        ("devices", "2.5", "no whole number"),
        ("devices", "0", "is zero"),
        ("role", "both", "unknown role of a replica"),
        ("engine", "roofline", "no engine"),
        ("rate_req_s", "nan", "not a finite number"),
        ("rate_req_s", "inf", "not a finite number"),
        ("rate_req_s", "-1", "is negative"),
        ("rate_req_s", "", "empty"),
        ("rate_req_s", "1e300", "beyond anything real"),
        ("devices", "1e10", "is above 1,000,000,000"),
        ("tpot_ms", "1e13", "beyond anything real"),
        ("memory_bytes", "1e19", "beyond anything real"),
        ("usd_per_hour", "1e7", "beyond anything real"),
        ("tpot_ms", "20ms", "no number"),
        ("tpot_ms", "", "is not said"),
        ("ttft_ms", "0", "is not said"),
        ("memory_bytes", "many", "no number"),
        ("usd_per_hour", "0", "is zero"),
        ("model", "", "empty"),
    ],
)
def test_a_cell_that_cannot_be_is_told_by_its_line(read, column, cell, fact):
    (problem,) = _faults(read, ROW, _said(column=column, cell=cell))
    assert problem.key == "line 3"
    assert fact in problem.fact
    assert column in f"{problem.fact} {problem.value}"


def test_all_faults_are_told_at_once_and_not_without_end(read):
    problems = _faults(read, *["a,b"] * (MOST_TOLD + 30))
    assert len(problems) == MOST_TOLD + 1
    assert problems[0].key == "line 2"
    assert problems[-1].fact == "has 30 more faults"


def test_a_file_without_rows_and_one_that_is_not_there_are_refused(read):
    assert [one.fact for one in _faults(read)] == ["has no row"]
    with pytest.raises(SpecError, match="no such file"):
        load_table("table:/nowhere/rows.csv")


def test_a_table_without_a_name_is_no_folder():
    with pytest.raises(SpecError, match="names no file"):
        load_table("table:")


@pytest.mark.parametrize(
    ("role", "column", "field"), [("decode", "ttft_ms", "ttft_s"), ("prefill", "tpot_ms", "tpot_s")]
)
def test_a_time_that_is_none_of_a_role_is_said_and_not_kept(read, role, column, field):
    with recording() as ledger:
        (row,) = read(ROW.replace("together", role)).rows
    assert getattr(row, field) == 0.0
    (remark,) = ledger.remarks
    assert remark.where == column
    assert remark.fact == f"has no effect in 1 rows of {role}, the first in line 2"
