"""A user's own table becomes columns; what is wrong with a row is told."""

from pathlib import Path

import numpy as np
import pytest

from planner.equations.kernels import FAMILIES
from planner.errors import SpecError
from planner_workshop.calibration.plain import read_plain

PEAKS = {"bf16": 148e12, "fp8": 296e12}


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
