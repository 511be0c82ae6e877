"""Each fault of one value is told once, by key, literal, fact and remedy."""
# ruff: noqa: E501  one case a row

import pytest

from planner.specs.files.reading import load_cluster, load_device, load_model

POSITIVE = "write a positive whole number"
NO_SOURCE = 'name where the value comes from, or write source = "assumed"'


@pytest.mark.parametrize(
    ("old", "new", "key", "value", "fact", "remedy"),
    [
        ("d_ff = 4", "d_ff = 0", "shape.d_ff", "0", "is zero", POSITIVE),
        ("d_ff = 4", "d_ff = -4", "shape.d_ff", "-4", "is negative", POSITIVE),
        ("d_ff = 4", "d_ff = 4.0", "shape.d_ff", "4.0", "is not a whole number", "write `4`"),
        ("d_ff = 4", "d_ff = nan", "shape.d_ff", "nan", "is not a whole number", ""),
        ("d_ff = 4", "d_ff = true", "shape.d_ff", "true", "is not a whole number", ""),
        ("d_ff = 4", 'd_ff = "4"', "shape.d_ff", "4", "is not a whole number", ""),
        ("d_ff = 4", "d_ff = 4_000_000_000", "shape.d_ff", "4000000000", "is above 1,000,000,000", POSITIVE),
        ("d_ff = 4", "", "shape.d_ff", "", "is missing", ""),
        ("d_ff = 4", "d_f = 4", "shape.d_f", "", "unknown key", "did you mean `d_ff`?"),
        ("d_ff = 4", "d_ff = 4\nxyz = 4", "shape.xyz", "", "unknown key", ""),
        ("d_ff = 4", "d_ff = { value = 4 }", "shape.d_ff", "", "has no source", NO_SOURCE),
        ("d_ff = 4", 'd_ff = { source = "a" }', "shape.d_ff", "", "has no value", ""),
        ("d_ff = 4", 'd_ff = { value = 4, source = "" }', "shape.d_ff.source", "", "is empty", ""),
        ("matrices = 2", "matrices = 4", "shape.n_ffn_matrices", "4", "is neither 2 nor 3", "write 3 for a gated FFN, 2 for a plain one"),
        ('"serial"', '"seriel"', "shape.block", "seriel", "unknown block", "did you mean `serial`?"),
        ("= true", '= "true"', "shape.tied_embeddings", "true", "is neither true nor false", ""),
        ('\nweights = ["bf16"]', '\nweights = ["bf16", "bf61"]', "formats.weights[1]", "bf61", "unknown number format", "did you mean `bf16`?"),
        ('\nweights = ["bf16"]', "\nweights = []", "formats.weights", "[]", "is empty", ""),
        ('\nweights = ["bf16"]', '\nweights = "bf16"', "formats.weights", "bf16", "is not a list", 'write ["bf16"]'),
        ('{ weights = ["bf16"]', "{ weights = []", "formats.published.weights", "[]", "is empty", ""),
        ('{ weights = ["bf16"]', '{ weights = ["fp8"]', "formats.weights", "[bf16]", "lacks one that is published, `fp8`", "list it too"),
        ('{ weights = ["bf16"]', '{ weights = ["bf16", "bf16"]', "formats.published.weights", "bf16", "is given twice", ""),
        ('kv = ["bf16"]', 'kv = ["fp8"]', "formats.kv", "[fp8]", "lacks one that is published, `bf16`", "list it too"),
        ('kv = "bf16"', "kv = true", "formats.published.kv", "true", "is not text", "write it in quotes"),
        ('title = "Tiny"', 'title = " "', "model.title", " ", "is empty", ""),
        ('title = "Tiny"', 'title = "a\\u001bb"', "model.title", r"a\x1bb", "is not one line of at most 300 characters", ""),
        ("value = 50", "value = nan", "check.n_params", "nan", "is not a number", ""),
        ("value = 50", "value = inf", "check.n_params", "inf", "is beyond anything real, 1e-12 to 1e18", "write `7e9`"),
        ("value = 50", "value = -50", "check.n_params", "-50", "is negative", "write `7e9`"),
        ("value = 50", 'value = "540B"', "check.n_params", "540B", "is a size (B), but a plain number is wanted", "write `7e9`"),
        ("[check]", "[check]\ntolerance = 2", "check.tolerance", "2", "is above 1", "write `0.8` or `80%`"),
    ],
)  # fmt: skip
def test_a_fault_of_a_model(folder, only_problem, old, new, key, value, fact, remedy):
    folder.spoil("models/tiny.toml", (old, new))
    problem = only_problem(load_model, "tiny")
    assert (problem.where, problem.key) == ("models/tiny.toml", key)
    assert (problem.value, problem.fact, problem.remedy) == (value, fact, remedy)


@pytest.mark.parametrize(
    ("old", "new", "key", "value", "fact", "remedy"),
    [
        ('"16 GiB"', "16", "memory.hbm", "16", "no unit", "write `16GB` or `16GiB`"),
        ('"16 GiB"', '"16 Gigs"', "memory.hbm", "16 Gigs", "unknown unit `Gigs`", "did you mean `16 GB`?"),
        ('"16 GiB"', '"0 B"', "memory.hbm", "0 B", "is zero", "write `80 GiB` or `80 GB`"),
        ('"16 GiB"', "nan", "memory.hbm", "nan", "is not a number", ""),
        ('"16 GiB"', "true", "memory.hbm", "true", "is not a quantity", "write it like `1 B`"),
        ('"16 GiB"', "[16]", "memory.hbm", "[16]", "is not a quantity", "write it like `1 B`"),
        ('"800 GB/s"', '"800 GB"', "memory.hbm_bandwidth", "800 GB", "is a size (B), but a bandwidth (B/s) is wanted", "write `450 GB/s` or `400 Gb/s`"),
        ("hbm_bandwidth", "hbm_bandwith", "memory.hbm_bandwith", "", "unknown key", "did you mean `hbm_bandwidth`?"),
        ("bf16 =", "bf17 =", "peak.bf17", "bf17", "unknown number format", "did you mean `bf16`?"),
        ('bf16 = { value = "100 TFLOP/s", source = "datasheet" }', "", "peak", "", "is empty", ""),
        ('"100 TFLOP/s"', '"1e99 FLOP/s"', "peak.bf16", "1e99 FLOP/s", "is beyond anything real, 1 kFLOP/s to 1e24 FLOP/s", "write `312 TFLOP/s`"),
        ("on_demand = {", "on_demand = 2 #", "price.on_demand", "", "has no source", NO_SOURCE),
        ('"$2/h"', "2", "price.on_demand", "2", "no unit", "write `2USD/h`"),
        ('"2026-05"', '"May"', "price.on_demand.date", "May", "is not a date", 'write it like "2026-05" or "undated"'),
        ('"2026-05"', '"2026-5"', "price.on_demand.date", "2026-5", "is not a date", 'write it like "2026-05" or "undated"'),
        ('"2026-05"', '"2026-ab"', "price.on_demand.date", "2026-ab", "is not a date", 'write it like "2026-05" or "undated"'),
        ('"2026-05"', '"26-05"', "price.on_demand.date", "26-05", "is not a date", 'write it like "2026-05" or "undated"'),
        ('"2026-05"', '"202a-05"', "price.on_demand.date", "202a-05", "is not a date", 'write it like "2026-05" or "undated"'),
        ('"2026-05"', '"2026-05-01-02"', "price.on_demand.date", "2026-05-01-02", "is not a date", 'write it like "2026-05" or "undated"'),
        ("= 0.5", "= 1.5", "attainable.compute_fraction", "1.5", "is above 1", "write `0.8` or `80%`"),
        ("= 0.5", "= 0", "attainable.compute_fraction", "0", "is zero", "write `0.8` or `80%`"),
        ("= 0.5", "= -0.5", "attainable.compute_fraction", "-0.5", "is negative", "write `0.8` or `80%`"),
        ("exponent = 3", "exponent = 0.5", "attainable.roofline_exponent", "0.5", "is below 1", "write a number from 1 to 100"),
        ("exponent = 3", "exponent = inf", "attainable.roofline_exponent", "inf", "is beyond anything real, 1e-12 to 1e18", "write `1.5`"),
        ('"100 us"', '"-1 us"', "attainable.layer_overhead", "-1 us", "is negative", "write `30ms` or `0.03s`"),
        ("[memory]", "[memory.x]\ny = 1\n[memory]", "memory.x", "", "unknown key", ""),
        ("[device]", "[devise]\n[device]", "devise", "", "unknown key", "did you mean `device`?"),
    ],
)  # fmt: skip
def test_a_fault_of_a_device(folder, refused, old, new, key, value, fact, remedy):
    folder.spoil("topologies/devices/chip.toml", (old, new))
    problems = [p for p in refused(load_device, "chip").problems if p.fact != "is missing"]
    told = {(p.key, p.value, p.fact, p.remedy) for p in problems}
    assert (key, value, fact, remedy) in told
    assert {p.where for p in problems} == {"topologies/devices/chip.toml"}


@pytest.mark.parametrize(
    ("name", "old", "new", "key", "fact"),
    [
        ("box-2", '"ring"', '"rings"', "torus.activation_network", "unknown network convention"),
        ("box-2", '[1, 1, "{n}"]', '[1, "{n}"]', "torus.shape[2]", "is missing"),
        ("box-2", '[1, 1, "{n}"]', '[0, 1, "{n}"]', "torus.shape[0]", "is zero"),
        ("box-2", "[1, 1,", '["{m}", 1,', "torus.shape[0]", "is not a whole number"),
        ("box-2", "multiple = 4", "multiple = 0", "torus.wrap_multiple", "is zero"),
        ("box-2", "dims = [1, 2, 4]", "dims = []", "torus.slice_dims", "is empty"),
        ("box-2", 'hop = "1 us"', 'hop = "1 B"', "torus.hop", "is a size (B), but a time (s) is wanted"),
        ("pair", "n_nodes = 2", "n_nodes = 2.5", "nodes.n_nodes", "is not a whole number"),
        ("pair", "node = 4", "node = -4", "nodes.n_devices_per_node", "is negative"),
        ("pair", '"200 Gb/s"', '"200 gb/s"', "nodes.scale_out.bandwidth", "unknown unit `gb/s`"),
        ("pair", '"300 GB/s"', "inf", "nodes.scale_up.bandwidth", "no unit"),
        ("pair", "[nodes.scale_out]", "[nodes.scaleout]", "nodes.scaleout", "unknown key"),
        ("pair", 'device = "chip"', "device = 3", "cluster.device", "is not text"),
        ("odd", '"100 GB/s"', '"-100 GB/s"', "link[0].bandwidth", "is negative"),
        ("odd", 'b = "b0"', "b = 0", "link[2].b", "is not text"),
        ("odd", '["a0", "a1", "b0"]', "[]", "linked.devices", "is empty"),
    ],
)  # fmt: skip
def test_a_fault_of_a_cluster(folder, refused, name, old, new, key, fact):
    file = f"topologies/{name.split('-')[0]}.toml"
    folder.spoil(file, (old, new))
    told = {(p.where, p.key, p.fact) for p in refused(load_cluster, name).problems}
    assert (file, key, fact) in told


def test_a_value_without_any_source_is_told_for_each_value(folder, refused):
    folder.spoil("models/tiny.toml", ('[formats]\nsource = "assumed"', "[formats]"))
    assert [(p.key, p.fact) for p in refused(load_model, "tiny").problems] == [
        ("formats.weights", "has no source"),
        ("formats.kv", "has no source"),
        ("formats.activation", "has no source"),
    ]


def test_zero_is_a_sound_latency_overhead_and_reserve(folder):
    folder.spoil("topologies/devices/chip.toml", ('"100 us"', '"0 us"'), ('"1 GiB"', '"0 B"'))
    folder.spoil("topologies/pair.toml", ('"2 us"', '"0 s"'))
    cluster = load_cluster("pair")
    assert (cluster.device.layer_overhead_s, cluster.device.reserve_bytes) == (0, 0)
    assert cluster.fabric.scale_up_latency_s == 0
