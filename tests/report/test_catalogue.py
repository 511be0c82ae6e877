"""Models and topologies, listed and described."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from planner.report.catalogue import document, models, topologies
from planner.report.catalogue.figures import cluster_facts, model_facts
from planner.report.documents.as_text import text_of
from planner.results.listings import Catalogue, CatalogueEntry, CatalogueList
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.devices import Link, LinkedFabric, NcclProtocol, NodesFabric, Provenance
from tests.report.examples import CLUSTER, MODEL


def cluster_text(cluster, width):
    return text_of(topologies.cluster_document(cluster), width)


def model_text(model):
    return text_of(models.document(model), 100)


def listing_text(title, listings, hint, facts):
    entries = tuple(replace(one, facts=facts.get(one.name, "")) for one in listings)
    part = CatalogueList(title=title, hint=hint, entries=entries)
    return text_of(document(Catalogue(title=title, lists=(part,))), 80)


ONE = CatalogueEntry(name="one", title="One", description="the first", examples=(), file="one.toml")
MANY = CatalogueEntry(
    name="many-{n}", title="", description="any", examples=("many-1", "many-2"), file="many.toml"
)


def test_a_list_names_what_to_write_and_examples_of_patterns():
    assert listing_text("models", [ONE, MANY], "see", {}) == (
        "models\n  one       One: the first\n  many-{n}  any (like many-1, many-2)\n\nsee"
    )


def test_what_is_known_of_a_name_stands_below_it():
    assert listing_text("models", [ONE, MANY], "see", {"one": "7 billion"}) == (
        "models\n  one       One: the first\n            7 billion\n"
        "  many-{n}  any (like many-1, many-2)\n\nsee"
    )


def test_a_line_says_size_experts_attention_formats_and_what_is_assumed():
    facts = model_facts(load_model("deepseek-v3"))
    assert facts == (
        "671 billion (37 billion active), 8 + 1 of 256 experts, latent attention, MTP; "
        "fp8 bf16 fp4 int4, KV bf16 fp8; 3 of 40 values assumed"
    )
    assert "a window of 128 tokens in 18 layers" in model_facts(load_model("gpt-oss-120b"))
    assert "multi-query attention" in model_facts(MODEL)
    assert "multi-head attention" in model_facts(load_model("gpt-3"))


def test_a_line_says_memory_links_convention_price_and_date():
    facts = cluster_facts(load_cluster("mi300x-x4"))
    assert "8 a node at 448 GB/s (64 GB/s a pair), 50 GB/s between nodes" in facts
    assert re.search(r"\$1.3/h a device, 2026-08; \d+ of 23 values assumed", facts)
    assert "a pair" not in cluster_facts(load_cluster("h100-nvl8-x4"))
    assert cluster_facts(CLUSTER) == (
        "32 GB each, links of 45 GB/s, ring collectives; $3/h a device, 2026-05; "
        "2 of 3 values assumed"
    )


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("deepseek-v3", ["experts", "latent attention", "8 of 256 for a token, and 1 shared"]),
        ("gpt-oss-120b", ["experts", "window", "18 of 36", "5.71 billion parameters for a token"]),
        ("mixtral-8x7b", ["experts", "2 of 8 for a token", "32 of 32"]),
    ],
)
def test_experts_latents_and_windows_have_sections_of_their_own(name, lines):
    text = model_text(load_model(name))
    assert all(line in text for line in lines)
    assert not any(title in model_text(MODEL) for title in ("experts", "latent", "window"))


def test_a_link_for_each_pair_is_said_with_its_source():
    text = cluster_text(load_cluster("mi300x-x4"), 100)
    assert re.search(r"to one other +64 GB/s +amd-mi300x-datasheet", text)
    assert "a link of 64 GB/s for each pair inside" in text


def test_an_empty_list_says_so():
    assert "none found" in listing_text("models", [], "see", {})


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


def test_nodes_show_what_was_measured_in_them_and_by_whom():
    """H100: an all-reduce of eight, 4.8 µs at 42.8 GB/s or 9.86 µs at 212.1 GB/s, by vLLM."""
    text = cluster_text(load_cluster("h100-nvl8-x1"), 200)
    assert re.search(r"activations +two-regime +kernel_fits", text)
    assert re.search(r"all-reduce of 8 +4.8 us at 42.8 GB/s or 9.86 us at 212 GB/s +.*vLLM", text)
    assert re.search(r"all-to-all of 8 +7.57 us at 3.5 GB/s or 12.2 us at 315 GB/s +.*NCCL", text)


def test_nodes_show_the_protocols_that_they_choose_from():
    fabric = load_cluster("h100-nvl8-x1").fabric
    protocol = NcclProtocol(
        name="LL",
        algorithm="tree",
        scale_up_hop_s=0.6e-6,
        scale_out_hop_s=5e-6,
        base_s=6.8e-6,
        bandwidth_fraction=0.5,
    )
    provenance = (Provenance(key="nodes.protocol[0].base", source="tuning.cc"),)
    assert isinstance(fabric, NodesFabric)
    pool = replace(CLUSTER, fabric=replace(fabric, protocols=(protocol,)), provenance=provenance)
    text = cluster_text(pool, 200)
    assert re.search(r"LL, tree +600 ns \+ 5 us a hop, base 6.8 us, 50 % +tuning.cc", text)


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
