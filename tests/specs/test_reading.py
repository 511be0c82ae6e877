"""Files become records in SI units; every fault of every file concerned is told at once."""

import pytest

from planner.specs.files.ledger import recording
from planner.specs.files.reading import cluster_examples, load_cluster, load_device, load_model
from planner.specs.records.devices import Link, NodesFabric, Provenance, TorusFabric


def test_a_model_is_read_with_its_shape_and_counted(folder):
    """1 × (2·2·4 + 2·2·2·(2 + 1)) + 5·2 = 50 parameters."""
    model = load_model("tiny")
    assert (model.n_layers, model.d_model, model.d_ff, model.n_ffn_matrices) == (1, 2, 4, 2)
    assert (model.n_heads, model.n_kv_heads, model.d_head, model.vocab_size) == (2, 1, 2, 5)
    assert model.n_params == model.n_params_published == 50
    assert model.weights_formats == ("bf16",)


def test_heads_are_served_as_published_unless_the_file_pads_them(folder):
    assert load_model("tiny").n_heads_served == 2
    folder.spoil(
        "models/tiny.toml",
        ("n_heads = 2", 'n_heads = 2\nn_heads_served = { value = 4, source = "padded" }'),
    )
    model = load_model("tiny")
    assert (model.n_heads, model.n_heads_served) == (2, 4)
    assert Provenance(key="shape.n_heads_served", source="padded") in model.provenance


def test_a_device_is_read_in_si_units(folder):
    device = load_device("chip")
    assert device.peak_flop_per_s == {"bf16": 100e12}
    assert device.hbm_bytes == 16 * 2**30
    assert device.reserve_bytes == 2**30
    assert device.hbm_bytes_per_s == 800e9
    assert (device.usd_per_hour, device.price_date) == (2, "2026-05")
    assert (device.compute_fraction, device.hbm_fraction) == (0.5, 0.8)
    assert (device.layer_overhead_s, device.roofline_exponent) == (100e-6, 3)


def test_every_value_of_a_device_has_its_source_under_its_key(folder):
    assert {p.key: p.source for p in load_device("chip").provenance} == {
        "peak.bf16": "datasheet",
        "memory.hbm": "datasheet",
        "memory.hbm_bandwidth": "datasheet",
        "memory.reserve": "assumed",
        "price.on_demand": "assumed",
        "attainable.compute_fraction": "assumed",
        "attainable.hbm_fraction": "assumed",
        "attainable.layer_overhead": "assumed",
        "attainable.roofline_exponent": "assumed",
    }


def test_a_torus_is_read_from_the_numbers_in_its_name(folder):
    cluster = load_cluster("box-4")
    assert (cluster.name, cluster.title) == ("box-4", "Box 4 of 4")
    assert cluster.fabric == TorusFabric(
        shape=(1, 1, 4),
        link_bytes_per_s=10e9,
        hop_s=1e-6,
        wrap_multiple=4,
        slice_dims=(1, 2, 4),
        activation_network="ring",
        bulk_network="axis",
    )
    assert cluster.device == load_device("chip")
    assert cluster.usd_per_hour == 2


def test_axes_may_close_by_themselves(folder):
    assert not load_cluster("box-4").fabric.wraps_each_axis
    folder.spoil("topologies/box.toml", ("multiple = 4", "multiple = 4\nwraps_each_axis = true"))
    assert load_cluster("box-4").fabric.wraps_each_axis


def test_devices_without_a_switch_have_a_link_for_each_pair(folder):
    """100 GB/s a pair, 300 GB/s in all: 100, 200, 300 and again 300 GB/s in groups of 2 to 5."""
    assert load_cluster("pair").fabric.scale_up_pair_bytes_per_s is None
    assert load_cluster("pair").fabric.group_scale_up_bytes_per_s(2) == 300e9
    folder.spoil("topologies/pair.toml", ('"300 GB/s"', '"300 GB/s"\npair_bandwidth = "100 GB/s"'))
    fabric = load_cluster("pair").fabric
    assert fabric.scale_up_pair_bytes_per_s == 100e9
    rates = [fabric.group_scale_up_bytes_per_s(n) / 1e9 for n in (1, 2, 3, 4, 5)]
    assert rates == [100, 100, 200, 300, 300]


def test_a_device_multiplies_the_formats_that_it_has_a_peak_of(folder):
    folder.spoil(
        "topologies/devices/chip.toml",
        ("[peak]", '[peak]\nfp8 = { value = "2 TFLOP/s", source = "x" }'),
    )
    assert load_device("chip").formats == ("fp8", "bf16")


def test_nodes_are_read_with_bits_as_bits(folder):
    cluster = load_cluster("pair")
    assert cluster.n_devices == 8
    assert isinstance(cluster.fabric, NodesFabric)
    assert cluster.fabric.scale_up_bytes_per_s == 300e9
    assert cluster.fabric.scale_out_bytes_per_s == 25e9
    assert cluster.fabric.scale_out_latency_s == 5e-6


def test_links_are_read_as_listed_and_may_pass_through_switches(folder):
    fabric = load_cluster("odd").fabric
    assert fabric.devices == ("a0", "a1", "b0")
    assert fabric.links == (
        Link(a="a0", b="a1", bytes_per_s=100e9, latency_s=1e-6),
        Link(a="a1", b="s", bytes_per_s=25e9, latency_s=5e-6),
        Link(a="s", b="b0", bytes_per_s=25e9, latency_s=5e-6),
    )


def test_values_of_links_have_sources_too(folder):
    keys = {p.key for p in load_cluster("odd").provenance}
    assert {"linked.bulk_network", "link[0].bandwidth", "link[2].latency"} <= keys


PRICED = (
    "[nodes]",
    '[price]\non_demand = { value = "$1/h", date = "undated", source = "mine" }\n[nodes]',
)


def test_a_cluster_may_have_a_price_of_its_own(folder):
    folder.spoil("topologies/pair.toml", PRICED)
    cluster = load_cluster("pair")
    assert (cluster.usd_per_hour, cluster.device.usd_per_hour) == (1, 2)


def test_a_device_is_looked_for_beside_its_cluster_first(folder):
    folder.write("far/pair.toml", (folder.path / "topologies/pair.toml").read_text())
    assert load_cluster("far/pair.toml").device.title == "Chip"
    folder.write(
        "far/devices/chip.toml", (folder.path / "topologies/devices/chip.toml").read_text()
    )
    folder.spoil("far/devices/chip.toml", ('"Chip"', '"Far chip"'))
    assert load_cluster("far/pair.toml").device.title == "Far chip"


def test_a_cluster_may_name_its_device_by_a_path_from_itself(folder):
    folder.spoil("topologies/pair.toml", ('device = "chip"', 'device = "../mine.toml"'))
    folder.write("mine.toml", (folder.path / "topologies/devices/chip.toml").read_text())
    assert load_cluster("pair").device.name == "chip"


def test_a_path_of_a_device_that_leads_nowhere_is_told_with_the_key_that_names_it(folder, refused):
    folder.spoil("topologies/pair.toml", ('device = "chip"', 'device = "../mine.toml"'), PRICED)
    with recording() as ledger:
        (problem,) = refused(load_cluster, "pair").problems
    said = (problem.where, problem.key, problem.value, problem.fact)
    assert said == ("topologies/pair.toml", "cluster.device", "../mine.toml", "no such file")
    assert ledger.remarks == ()  # nothing of a device that is not there


def test_an_unknown_device_is_told_with_the_faults_of_the_cluster(folder, refused):
    folder.spoil("topologies/pair.toml", ('device = "chip"', 'device = "chop"'), ('"2 us"', '"2"'))
    error = refused(load_cluster, "pair")
    assert {(p.where, p.key, p.value, p.fact) for p in error.problems} == {
        ("topologies/pair.toml", "nodes.scale_up.latency", "2", "no unit"),
        ("topologies/pair.toml", "cluster.device", "chop", "no such device"),
    }
    assert error.hint.startswith("did you mean `chip`?")


def test_faults_of_the_device_are_told_with_those_of_the_cluster(folder, refused):
    folder.spoil("topologies/pair.toml", ('"300 GB/s"', '"300 GB"'), ("n_nodes = 2", "n_nodes = 0"))
    folder.spoil("topologies/devices/chip.toml", ('"16 GiB"', "16"), ('"80%"', "8"))
    assert {(p.where, p.key, p.value) for p in refused(load_cluster, "pair").problems} == {
        ("topologies/pair.toml", "nodes.scale_up.bandwidth", "300 GB"),
        ("topologies/pair.toml", "nodes.n_nodes", "0"),
        ("topologies/devices/chip.toml", "memory.hbm", "16"),
        ("topologies/devices/chip.toml", "attainable.hbm_fraction", "8"),
    }


def test_a_device_file_that_is_no_toml_is_told_with_the_faults_of_the_cluster(folder, refused):
    folder.spoil("topologies/pair.toml", ("n_nodes = 2", "n_nodes = -2"))
    folder.write("topologies/devices/chip.toml", "[device\n")
    problems = refused(load_cluster, "pair").problems
    assert [p.where for p in problems] == [
        "topologies/pair.toml",
        "topologies/devices/chip.toml:1:8",
    ]


def test_faults_of_one_value_and_of_two_together_are_told_at_once(folder, refused):
    """Three query heads on two key-value heads; a width of zero; a key misspelt."""
    folder.spoil(
        "models/tiny.toml",
        ("n_heads = 2", "n_heads = 3"),
        ("n_kv_heads = 1", "n_kv_heads = 2"),
        ("d_ff = 4", "d_ff = 0"),
        ("description", "desription"),
    )
    assert {(p.key, p.fact) for p in refused(load_model, "tiny").problems} == {
        ("shape.n_heads", "is not a multiple of n_kv_heads, 2"),
        ("shape.d_ff", "is zero"),
        ("model.desription", "unknown key"),
    }


def test_a_name_that_differs_from_that_of_its_file_is_a_fault_among_others(folder, refused):
    folder.spoil("models/tiny.toml", ('name = "tiny"', 'name = "teeny"'), ("d_ff = 4", "d_ff = 0"))
    problems = refused(load_model, "tiny").problems
    assert [(p.key, p.remedy) for p in problems] == [
        ("model.name", "write `tiny`, or rename the file"),
        ("shape.d_ff", "write a positive whole number"),
    ]


@pytest.mark.parametrize("load", [load_model, load_device, load_cluster])
@pytest.mark.parametrize(
    "text",
    ["", "= 3", "a = 1", "[model]", "model = 1\ncluster = 1\ndevice = 1", "[[cluster]]\nname = 1"],
)
def test_a_file_of_something_else_is_refused_without_a_traceback(folder, refused, load, text):
    folder.write("other.toml", text)
    assert all(p.where.startswith("other.toml") for p in refused(load, "other.toml").problems)


def test_a_model_file_is_no_cluster(folder, refused):
    facts = {p.key: p.fact for p in refused(load_cluster, "models/tiny.toml").problems}
    assert facts["cluster"] == "is missing"
    assert facts["model"] == "unknown key"


@pytest.mark.parametrize("text", ["pattern = {}", "[pattern]\nn = [1]", "[cluster]\n[pattern]"])
def test_a_pattern_without_a_name_is_refused_without_a_traceback(folder, refused, text):
    folder.write("other.toml", text)
    assert refused(load_cluster, "other.toml").problems[0].key.startswith("pattern")


@pytest.mark.parametrize("date", ["2026", "2026-05", "2026-05-17", "undated"])
def test_a_price_is_of_a_year_a_month_or_a_day(folder, date):
    folder.spoil("topologies/devices/chip.toml", ('"2026-05"', f'"{date}"'))
    assert load_device("chip").price_date == date


def test_examples_of_pools_are_sound_and_those_with_faults_are_left_out(folder):
    sound = {cluster.name for cluster in cluster_examples()}
    assert {"box-2", "tpu-v4-4x4x4", "dgx-a100-x4"} <= sound
    folder.spoil("topologies/box.toml", ('"ring"', '"rings"'))
    assert {cluster.name for cluster in cluster_examples()} == sound - {"box-2"}
