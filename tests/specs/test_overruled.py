"""What of a user's file has no effect is said, with what wins; of files that ship nothing is."""

import re
from pathlib import Path

import pytest

from planner.specs.files.ledger import ECONOMICS, ENGINES, LAYOUTS, recording, timed_by
from planner.specs.files.pools import load_pool
from planner.specs.files.reading import load_cluster, load_device, load_model

ROOT = Path(__file__).parents[2]
MINE = "# mine\n"
"""What a file of the user's begins with, so that it is no copy of one that ships."""


def said(load, name, timing=LAYOUTS):
    """File, keys and fact of every remark on loading where something times the answer."""
    with recording() as ledger:
        load(name)
        timed_by(timing)
    return [(one.where, one.key, one.fact) for one in ledger.remarks]


def keys(found):
    return {key for _, names, _ in found for key in names.split(", ")}


def put(folder, name, *changes):
    """A shipped topology as a file of the user's, with some text changed by expressions."""
    text = MINE + (ROOT / f"topologies/{name}.toml").read_text(encoding="utf-8")
    for old, new in changes:
        text, n = re.subn(old, new, text)
        assert n
    folder.write(f"topologies/{name}.toml", text)


@pytest.mark.parametrize("timing", [LAYOUTS, ENGINES, ECONOMICS])
def test_of_files_that_ship_nothing_is_said(folder, timing):
    for name in ("h100-nvl8-x2", "dgx-a100-x2", "tpu-v4-4x4x4", "gb200-nvl72-x1"):
        assert said(load_cluster, name, timing) == []
    assert said(load_model, "gpt-oss-120b", timing) == []


@pytest.mark.parametrize("timing", [LAYOUTS, ENGINES, ECONOMICS])
def test_of_copies_of_files_that_ship_nothing_is_said(folder, timing):
    """As in a clone of this project, with the planner installed elsewhere."""
    for name in ("h100-nvl8", "devices/h100-sxm", "fabrics/h100-fat-tree"):
        text = (ROOT / f"topologies/{name}.toml").read_text(encoding="utf-8")
        folder.write(f"topologies/{name}.toml", text)
    folder.write("models/palm-540b.toml", (ROOT / "models/palm-540b.toml").read_text())
    assert said(load_cluster, "h100-nvl8-x2", timing) == []
    assert said(load_pool, "h100-fat-tree-x4", timing) == []
    assert said(load_model, "palm-540b", timing) == []


def test_a_device_is_overruled_by_kernels_and_by_the_reference_model(folder):
    name = "chip"
    assert said(load_device, name, LAYOUTS) == []
    assert keys(said(load_device, name, ENGINES)) == {"attainable", "memory.reserve"}
    assert keys(said(load_device, name, ECONOMICS)) == {
        "attainable.layer_overhead",
        "attainable.roofline_exponent",
    }


def test_links_time_no_collectives_beside_those_measured(folder):
    put(folder, "h100-nvl8")
    for timing in (LAYOUTS, ENGINES):
        found = said(load_cluster, "h100-nvl8-x2", timing)
        (fact,) = [fact for _, key, fact in found if "scale_up.bandwidth" in key]
        assert fact.startswith("time no collectives: [nodes.scale_up.measured] wins")


def test_links_count_where_one_network_reads_them(folder):
    put(
        folder,
        "h100-nvl8",
        ('bulk_network = { value = "two-regime"', 'bulk_network = { value = "tree"'),
    )
    assert said(load_cluster, "h100-nvl8-x2", LAYOUTS) == []


def test_measured_collectives_that_no_network_reads_have_no_effect(folder):
    put(folder, "h100-nvl8", ('_network = { value = "two-regime"', '_network = { value = "tree"'))
    assert keys(said(load_cluster, "h100-nvl8-x2", LAYOUTS)) == {"nodes.scale_up.measured"}


def test_measured_groups_that_no_node_holds_have_no_effect(folder):
    put(
        folder,
        "h100-nvl8",
        ("n_devices_per_node = { value = 8", "n_devices_per_node = { value = 4"),
    )
    facts = {fact for _, _, fact in said(load_cluster, "h100-nvl8-x2")}
    assert "groups of 8 have no effect: a node has 4" in facts


def test_a_group_between_two_measured_ones_reads_both(folder):
    """Of groups of 2 and of 8 those of 4 are interpolated."""
    put(
        folder,
        "h100-nvl8",
        ("n_devices_per_node = { value = 8", "n_devices_per_node = { value = 4"),
        (r"n_devices = \[2, 4, 8\]", "n_devices = [2, 8]"),
        (r'((?:short|long)_\w+ = \[)("[^"]*"), "[^"]*", ("[^"]*")\]', r"\1\2, \3]"),
    )
    assert not any("groups of" in fact for _, _, fact in said(load_cluster, "h100-nvl8-x2"))


def test_an_engine_reads_no_conventions(folder):
    assert said(load_cluster, "pair", LAYOUTS) == []
    assert keys(said(load_cluster, "pair", ENGINES)) >= {
        "nodes.activation_network",
        "nodes.bulk_network",
    }
    assert keys(said(load_cluster, "box-2", ENGINES)) >= {"torus.wrap_multiple", "torus.slice_dims"}


def test_the_economics_cost_model_reads_bandwidths_alone(folder):
    found = keys(said(load_cluster, "pair", ECONOMICS))
    assert "nodes.scale_up.bandwidth" not in found
    assert found >= {"nodes.scale_up.latency", "nodes.scale_out.attainable_fraction"}


PROTOCOL = """
[[nodes.protocol]]
source = "assumed"
name = "simple"
algorithm = "ring"
scale_up_hop = "1 us"
scale_out_hop = "5 us"
base = "6 us"
bandwidth_fraction = 0.9
"""


def test_protocols_count_where_a_network_chooses_among_them_and_then_win(folder):
    text = (folder.path / "topologies/pair.toml").read_text()
    folder.write("topologies/pair.toml", text + PROTOCOL)
    assert keys(said(load_cluster, "pair")) == {"nodes.protocol"}
    folder.write("topologies/pair.toml", text.replace('"tree"', '"nccl"') + PROTOCOL)
    assert keys(said(load_cluster, "pair")) == {"nodes.scale_up.latency", "nodes.scale_out.latency"}


FABRIC = """
[cluster]
name = "mine"
title = "Mine"
"""
GROUP = """
[[group]]
source = "assumed"
name = "{name}"
topology = "pair"
n_nodes = {n_nodes}
n_nodes_per_leaf = 2
n_rails = 1
oversubscription = 2
spine_latency = "1 us"
"""


@pytest.mark.parametrize(
    ("sizes", "crosses"), [((1,), False), ((2,), False), ((3,), True), ((2, 2), True)]
)
def test_a_spine_counts_where_there_is_more_than_one_leaf(folder, sizes, crosses):
    """Leaves of two nodes: of one group, or one of each of two groups."""
    groups = [GROUP.format(name=f"g{i}", n_nodes=n) for i, n in enumerate(sizes)]
    folder.write("topologies/mine.toml", FABRIC + "".join(groups))
    keys_of_spine = {"group[0].oversubscription", "group[0].spine_latency"}
    assert (keys_of_spine & keys(said(load_pool, "mine")) == set()) is crosses


def test_a_price_of_the_cluster_wins_over_that_of_the_device(folder):
    text = (folder.path / "topologies/pair.toml").read_text()
    price = '[price]\non_demand = { value = "$9/h", date = "2026-05", source = "assumed" }\n'
    folder.write("topologies/pair.toml", text + price)
    fact = "has no effect: `topologies/pair.toml` has a price of its own"
    assert said(load_cluster, "pair") == [("topologies/devices/chip.toml", "price.on_demand", fact)]


def test_an_ffn_that_no_layer_has_has_no_effect(mixed):
    assert said(load_model, "mixed") == []  # its first layer has none but that
    text = MINE + (ROOT / "models/gpt-oss-120b.toml").read_text()
    mixed.write("models/gpt-oss-120b.toml", text)
    assert keys(said(load_model, "gpt-oss-120b")) == {"shape.d_ff"}


def test_an_engine_divides_heads_as_published(folder):
    folder.write("models/palm-540b.toml", MINE + (ROOT / "models/palm-540b.toml").read_text())
    assert "shape.n_heads_served" in keys(said(load_model, "palm-540b", ENGINES))


def test_a_pool_says_how_many_nodes_there_are(folder):
    fabric = (ROOT / "topologies/fabrics/h100-fat-tree.toml").read_text()
    folder.write("topologies/fabrics/h100-fat-tree.toml", fabric.replace("h100-nvl8-x1", "pair"))
    found = said(load_pool, "h100-fat-tree-x4")
    assert ("topologies/pair.toml", "nodes.n_nodes") in [(where, key) for where, key, _ in found]


def test_a_pool_of_one_leaf_has_no_spine(folder):
    fabric = (ROOT / "topologies/fabrics/h100-fat-tree.toml").read_text()
    folder.write("topologies/fabrics/h100-fat-tree.toml", MINE + fabric)
    spine = {"group[0].oversubscription", "group[0].spine_latency"}
    assert keys(said(load_pool, "h100-fat-tree-x4")) >= spine
    assert not keys(said(load_pool, "h100-fat-tree-x64")) & spine
