"""Fabric files: those that ship, and what is said of faulty ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.files.pools import load_pool, load_site, pool_of
from planner.specs.files.reading import load_cluster

FABRICS = Path(__file__).parents[2] / "topologies" / "fabrics"


@pytest.mark.parametrize(
    ("name", "n_devices", "n_leaves"),
    [
        ("h100-fat-tree-x64", 512, [2]),
        ("h100-fat-tree-x512", 4096, [16]),
        ("h100-a100-x64", 1024, [2, 4]),
    ],
)
def test_the_fabrics_that_ship_load(name: str, n_devices: int, n_leaves: list[int]) -> None:
    pool = load_pool(name)
    assert pool.n_devices == n_devices
    assert [group.n_leaves for group in pool.groups] == n_leaves
    assert all(value.source for value in pool.provenance)


def test_every_fabric_file_has_a_test() -> None:
    assert {path.stem for path in FABRICS.glob("*.toml")} == {"h100-fat-tree", "h100-a100"}


def test_a_topology_of_nodes_is_a_pool_of_one_leaf() -> None:
    pool = load_pool("h100-nvl8-x4")
    (group,) = pool.groups
    assert (pool.n_devices, group.n_leaves, group.oversubscription) == (32, 1, 1.0)
    with pytest.raises(SpecError, match="is not a fabric of nodes"):
        pool_of(load_cluster("tpu-v4-4x4x4"))


def test_a_name_that_no_file_has_is_told_so() -> None:
    with pytest.raises(SpecError, match="no such topology"):
        load_pool("h100-fatter-tree-x64")
    with pytest.raises(SpecError, match="cannot be 1025"):
        load_pool("h100-fat-tree-x1025")


FAULTY = """
[cluster]
name = "mine"
title = "mine"
[[group]]
name = "a"
topology = "h100-nvl8-x1"
n_nodes = 2
n_nodes_per_leaf = { value = 2, source = "our rack" }
n_rails = { value = 0, source = "our rack" }
oversubscription = { value = 0.5, source = "our rack" }
spine_latency = "1 us"
"""


def test_every_fault_of_a_fabric_file_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FAULTY)
    with pytest.raises(SpecError) as caught:
        load_pool(str(file))
    text = str(caught.value)
    assert "group[0].n_rails `0`  is zero" in text
    assert "group[0].oversubscription `0.5`  is below 1" in text
    assert "group[0].spine_latency  has no source" in text


TWICE = (
    FAULTY.replace("value = 0,", "value = 1,")
    .replace("0.5", "2")
    .replace('"1 us"', '{ value = "1 us", source = "assumed" }')
)


def test_groups_of_one_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    again = TWICE[TWICE.index("[[group]]") :]
    file.write_text(TWICE + again)
    with pytest.raises(SpecError, match="is the name of another group"):
        load_pool(str(file))
    file.write_text(TWICE)
    assert load_pool(str(file)).n_devices == 16


@pytest.mark.parametrize(
    ("topology", "fact", "hint"),
    [
        ("h100-nvl9-x1", "no such topology", "did you mean `h100-nvl8-x"),
        ("racks/mine.toml", "no such file", ""),
    ],
)
def test_a_topology_of_a_group_that_is_none_is_told_with_its_key(tmp_path, topology, fact, hint):
    file = tmp_path / "mine.toml"
    file.write_text(TWICE.replace("h100-nvl8-x1", topology))
    with pytest.raises(SpecError) as caught:
        load_pool(str(file))
    (problem,) = caught.value.problems
    assert "group[0].topology" in f"{problem.where} {problem.key}"
    assert (problem.value, problem.fact) == (topology, fact)
    assert caught.value.hint.startswith(hint)


POOL = """
[cluster]
name = "mine"
title = "Mine"
[[group]]
source = "assumed"
name = "g"
topology = "pair"
n_nodes = 3
n_nodes_per_leaf = 2
n_rails = 1
oversubscription = 2
spine_latency = "1 us"
"""


def test_a_fabric_beside_topologies_is_found_by_its_name(folder):
    folder.write("topologies/mine.toml", POOL)
    assert load_site("mine").n_devices == 12
    assert load_pool("topologies/mine.toml").n_devices == 12


def test_a_fabric_is_no_topology_and_it_is_said_where_it_is_one(folder, only_problem):
    folder.write("topologies/mine.toml", POOL)
    problem = only_problem(load_cluster, "mine")
    assert (problem.where, problem.key) == ("topologies/mine.toml", "group")
    assert problem.remedy == "`plan place --topology mine` places on it"
