"""Files of machines: what they say, and every fault of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.files.layer_files import load_layers

SHIPPED = sorted((Path(__file__).parents[2] / "examples" / "machines").glob("*.toml"))

GOOD = """
[layers]
name = "two"
n_layers = 4
source = "a test"

[[machine]]
type = "fast"
count = 2
region = "here"
rates = [10, 5.5]
source = "a test"

[[machine]]
type = "slow"
count = 1
region = "there"
rates = [3]
source = "assumed"

[links]
source = "a test"
between = "100 token/s"
across = "7 token/s"
"""


def written(tmp_path, text):
    path = tmp_path / "machines.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_layers_machines_and_links(tmp_path):
    found = load_layers(written(tmp_path, GOOD))
    assert (found.name, found.n_layers, found.n_machines) == ("two", 4, 3)
    assert found.machines[0].rates_tokens_per_s == (10.0, 5.5)
    assert (found.between_tokens_per_s, found.across_tokens_per_s) == (100.0, 7.0)
    assert [one.key for one in found.provenance if one.is_assumed] == ["machine[1].rates"]


def test_every_fault_is_named_at_once(tmp_path):
    """No count, a misspelt key, a rate that is none, a link without a unit."""
    text = (
        GOOD.replace("count = 1\n", "")
        .replace("n_layers = 4", "n_layer = 4")
        .replace("rates = [3]", "rates = [-3]")
        .replace('"100 token/s"', '"100 GB/s"')
    )
    with pytest.raises(SpecError) as caught:
        load_layers(written(tmp_path, text))
    keys = {problem.key for problem in caught.value.problems}
    assert {"machine[1].count", "machine[1].rates[0]", "links.between"} <= keys
    assert any("n_layer" in key for key in keys)


@pytest.mark.parametrize(
    ("change", "key", "fact"),
    [
        (('across = "7 token/s"\n', ""), "links.across", "is missing"),
        (("rates = [3]", "rates = [0, 0]"), "machine[1].rates", "are all zero"),
        (('"7 token/s"', '"7 token/s"\nmatrix = [[1]]'), "links.matrix", "says what `between`"),
        (("count = 2", "count = 20000"), "machine", "more than 2000"),
        (("rates = [3]", "rates = []"), "machine[1].rates", "is empty"),
        (("[3]", f"[{10**400}]"), "machine[1].rates[0]", "is above 1e+12"),
        (("[3]", "[nan]"), "machine[1].rates[0]", "is not a number"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, change, key, fact):
    with pytest.raises(SpecError) as caught:
        load_layers(written(tmp_path, GOOD.replace(*change)))
    assert any(p.key == key and fact in p.fact for p in caught.value.problems)


def test_a_matrix_has_a_row_and_a_column_for_each_machine(tmp_path):
    links = "matrix = [[0, 1, 2], [1, 0], [2, 1, 0]]"
    head, _, _ = GOOD.partition('source = "a test"\nbetween')
    with pytest.raises(SpecError) as caught:
        load_layers(written(tmp_path, head + links))
    (problem,) = caught.value.problems
    assert (problem.key, problem.fact) == (
        "links.matrix[1]", "has 2 entries, but there are 3 machines",
    )  # fmt: skip


def test_no_such_file_is_no_traceback():
    with pytest.raises(SpecError, match="no such file"):
        load_layers("nowhere.toml")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_files_that_ship_name_a_source_for_everything(path):
    found = load_layers(path)
    assert found.name == path.stem
    assert found.published_tokens_per_s > 0
    assert not any(one.is_assumed for one in found.provenance)
    assert all("Helix" in one.source for one in found.provenance)
