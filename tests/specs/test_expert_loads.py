"""Files of loads, co-activations and placements: every form, every fault."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import RequestError
from planner_workshop.experts.loads import (
    load_coactivation,
    load_loads,
    load_placement,
    zipf_loads,
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("row.csv", "1,2.5,3\n"),
        ("row.txt", "1;2.5;3;\n"),
        ("column.csv", "load\n1\n2.5\n3\n"),
        ("head.csv", "a,b,c\n1,2.5,3\n"),
        ("list.json", "[1, 2.5, 3]"),
        ("rows.json", "[[1, 2.5, 3]]"),
        ("table.json", '{"loads": [1, 2.5, 3]}'),
        ("table.toml", "loads = [1, 2.5, 3]"),
    ],
)
def test_loads_are_read_in_every_form(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text)
    assert load_loads(str(file)).tolist() == [1.0, 2.5, 3.0]


def test_a_layer_is_a_row(tmp_path):
    file = tmp_path / "layers.csv"
    file.write_text("1,2\n3,4\n")
    assert load_loads(str(file), layer=1).tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("name", "text", "fact"),
    [
        ("a.csv", "1,,3\n", "is no number"),
        ("a.csv", "1,x,inf\n", "is no number"),
        ("a.csv", "1,2\n3\n", "different lengths"),
        ("a.csv", "1,2\n3,4\n", "several layers"),
        ("a.csv", "1,-2\n", "negative"),
        ("a.csv", "0,0\n", "no load"),
        ("a.csv", "\n", "is empty"),
        ("a.json", "{", "is not JSON: expecting property name"),
        ("a.json", '{"x": 1}', "has no `loads`"),
        ("a.json", "[true, 2]", "is no number"),
        ("a.json", "[[]]", "no numbers"),
        ("a.json", "[1, 1e30]", "expert 1 has a load above 1e+18"),
        ("a.toml", "loads = ", "is not TOML: "),
        ("a.xls", "1", "no CSV, JSON or TOML"),
    ],
)
def test_faults_of_loads(tmp_path, name, text, fact):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(RequestError) as caught:
        load_loads(str(file))
    assert fact in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path):
    for path, fact in ((tmp_path / "no.csv", "no such file"), (tmp_path, "is a folder")):
        with pytest.raises(RequestError, match=fact):
            load_loads(str(path))
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"\xff\xfe1")
    with pytest.raises(RequestError, match="UTF-8"):
        load_loads(str(bad))
    good = tmp_path / "good.csv"
    good.write_text("1,2")
    with pytest.raises(RequestError, match="counted from 0"):
        load_loads(str(good), layer=3)


def test_half_a_table_of_pairs_is_completed(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("7,2\n0,1\n")
    assert load_coactivation(str(file)).tolist() == [[7.0, 2.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "fact"),
    [("1,2\n", "no square"), ("0,1\n2,0\n", "symmetric"), ("0,-1\n-1,0\n", "negative")],
)
def test_faults_of_pairs(tmp_path, text, fact):
    file = tmp_path / "pairs.csv"
    file.write_text(text)
    with pytest.raises(RequestError, match=fact):
        load_coactivation(str(file))


def test_placements_are_read_in_every_form(tmp_path):
    for name, text in (
        ("p.csv", "0,1,1\n2\n"),
        ("p.json", "[[0, 1, 1], [2]]"),
        ("q.json", '{"ranks": [{"experts": [0, 1, 1]}, {"experts": [2]}]}'),
    ):
        file = tmp_path / name
        file.write_text(text)
        assert load_placement(str(file)) == ((0, 1, 1), (2,))


@pytest.mark.parametrize("text", ["[]", "3", '{"ranks": 3}', "[[0.5]]", "[[-1]]", '[["a"]]'])
def test_faults_of_placements(tmp_path, text):
    file = tmp_path / "p.json"
    file.write_text(text)
    with pytest.raises(RequestError):
        load_placement(str(file))


def test_drawn_loads_follow_zipf():
    """Sorted, the k-th is 1/k of the first; the sum is 1; the seed decides the order."""
    loads = zipf_loads(8, 1.0, seed=1)
    ranked = np.sort(loads)[::-1]
    assert loads.sum() == pytest.approx(1.0)
    assert ranked[0] / ranked == pytest.approx(np.arange(1, 9))
    assert not np.array_equal(loads, zipf_loads(8, 1.0, seed=2))
