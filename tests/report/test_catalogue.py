"""Models and topologies, listed and described."""

from __future__ import annotations

import re
from dataclasses import replace

from planner.report.catalogue import listing_text, model_text
from planner.report.pools import cluster_text
from planner.specs.listing import Listing
from planner.specs.records import Link, LinkedFabric, NodesFabric, Provenance
from tests.report.examples import CLUSTER, MODEL

ONE = Listing(name="one", title="One", description="the first", examples=(), file="one.toml")
MANY = Listing(
    name="many-{n}", title="", description="any", examples=("many-1", "many-2"), file="many.toml"
)


def test_a_list_names_what_to_write_and_examples_of_patterns():
    assert listing_text("models", [ONE, MANY], hint="see", width=80) == (
        "models\n  one       One: the first\n  many-{n}  any (like many-1, many-2)\n\nsee"
    )


def test_an_empty_list_says_so():
    assert "none found" in listing_text("models", [], hint="see", width=80)


def test_a_model_shows_numbers_with_sources_and_padding():
    text = model_text(MODEL)
    assert text.startswith("tiny-7b: Tiny 7B\n")
    assert re.search(r"layers +32 +\[Chowdhery2022\] Table 1", text)
    assert "30, 32 as served" in text
    assert "published    7 billion parameters" in text
    assert "7.61 billion parameters" in text  # 32 (3·4096·16384 + 2·4096·31·128) + 32000·4096
    assert "KV cache     16.4 kB a token, bf16" in text  # 32 · 2 · 128 · 2 B
    assert "1 value, none assumed" in text


def test_a_torus_shows_its_slices_and_their_places():
    """A 4×4×4 pool of slices 1, 2, 4: ten shapes, one of them closed, in one place."""
    text = cluster_text(CLUSTER, 100)
    assert "10 shapes, 1 closed into rings" in text
    assert "4×4×4 (1)" in text
    assert re.search(r"hop +1 us +assumed", text)
    assert re.search(r"reserve +1 GB +assumed", text)
    assert "64 × Toy chip" in text
    assert "$192/h, $3/h a device, price 2026-05" in text
    assert "3 values, 2 assumed" in text


def test_nodes_show_their_domains_and_both_bandwidths():
    fabric = NodesFabric(
        n_nodes=2,
        n_devices_per_node=8,
        scale_up_bytes_per_s=300e9,
        scale_up_latency_s=2e-6,
        scale_up_fraction=0.5,
        scale_out_bytes_per_s=25e9,
        scale_out_latency_s=5e-6,
        scale_out_fraction=0.4,
        activation_network="tree",
        bulk_network="tree",
    )
    provenance = (Provenance(key="nodes.scale_out.bandwidth", source="a datasheet"),)
    text = cluster_text(replace(CLUSTER, fabric=fabric, provenance=provenance), 100)
    assert "2 nodes of 8 devices" in text
    assert re.search(r"in a node +300 GB/s", text)
    assert re.search(r"between nodes +25 GB/s +a datasheet", text)
    assert re.search(r"attained +40 %", text)


def test_listed_links_show_the_widest_groups():
    """a–b at 2 GB/s, b–c at 1 GB/s: two devices share 2 GB/s."""
    fabric = LinkedFabric(
        devices=("a", "b", "c"),
        links=(
            Link(a="a", b="b", bytes_per_s=2e9, latency_s=1e-6),
            Link(a="b", b="c", bytes_per_s=1e9, latency_s=1e-6),
        ),
        activation_network="tree",
        bulk_network="tree",
    )
    text = cluster_text(replace(CLUSTER, fabric=fabric), 100)
    assert "2, 1 GB/s to 2 GB/s" in text
    assert re.search(r"groups +2 at 2 GB/s", text)


def test_a_device_without_links_is_described_too():
    fabric = LinkedFabric(devices=("a",), links=(), activation_network="ring", bulk_network="ring")
    text = cluster_text(replace(CLUSTER, fabric=fabric), 100)
    assert re.search(r"links +none\n", text)
    assert "no two devices are linked" in text
