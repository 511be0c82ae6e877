"""Values that are sound one by one, and wrong together."""

import pytest

from planner.specs.files.reading import load_cluster, load_device, load_model


def test_query_heads_divide_over_key_value_heads(folder, only_problem):
    """3 heads on 2; 1 × (16 + 2·2·2·5) + 10 = 66 parameters."""
    folder.spoil(
        "models/tiny.toml",
        ("n_heads = 2", "n_heads = 3"),
        ("n_kv_heads = 1", "n_kv_heads = 2"),
        ("value = 50", "value = 66"),
    )
    problem = only_problem(load_model, "tiny")
    assert (problem.key, problem.value) == ("shape.n_heads", "3")
    assert problem.fact == "is not a multiple of n_kv_heads, 2"


def test_heads_are_padded_and_never_dropped(folder, only_problem):
    folder.spoil("models/tiny.toml", ("n_heads = 2", "n_heads = 2\nn_heads_served = 1"))
    assert only_problem(load_model, "tiny").fact == "is fewer than n_heads, 2"


def test_a_mistyped_dimension_does_not_load(folder, only_problem):
    """d_ff of 40 for 4: 1 × (2·2·40 + 24) + 10 = 194 parameters, not 50."""
    folder.spoil("models/tiny.toml", ("d_ff = 4", "d_ff = 40"))
    problem = only_problem(load_model, "tiny")
    assert (problem.key, problem.value) == ("check.n_params", "50")
    assert problem.fact == "the shape has 194 parameters, 50 are published"
    assert problem.remedy == "mend the shape: they may differ by 2.0%"


def test_untied_embeddings_count_twice(folder, only_problem):
    folder.spoil("models/tiny.toml", ("= true", "= false"))
    assert only_problem(load_model, "tiny").fact == "the shape has 60 parameters, 50 are published"


@pytest.mark.parametrize(
    ("published", "loads"), [(51, True), (52, False), (49.1, True), (49, False)]
)
def test_the_count_may_differ_by_two_percent_of_the_published(folder, refused, published, loads):
    """50 counted: 51 is 1.96 % away, 49 is 2.04 %."""
    folder.spoil("models/tiny.toml", ("value = 50", f"value = {published}"))
    if loads:
        assert load_model("tiny").n_params_published == published
    else:
        assert refused(load_model, "tiny").problems[0].key == "check.n_params"


def test_a_file_may_state_another_tolerance(folder, refused):
    folder.spoil(
        "models/tiny.toml", ("value = 50", "value = 52"), ("[check]", "[check]\ntolerance = 0.05")
    )
    assert load_model("tiny").n_params == 50
    folder.spoil("models/tiny.toml", ("0.05", "0.03"))
    assert "3.0%" in refused(load_model, "tiny").problems[0].remedy


def test_a_format_is_listed_once(folder, only_problem):
    folder.spoil(
        "models/tiny.toml", ('\nweights = ["bf16"]', '\nweights = ["bf16", "int8", "bf16"]')
    )
    problem = only_problem(load_model, "tiny")
    assert (problem.key, problem.value, problem.fact) == (
        "formats.weights",
        "bf16",
        "is given twice",
    )


def test_a_reserve_leaves_some_memory(folder, only_problem):
    folder.spoil("topologies/devices/chip.toml", ('"1 GiB"', '"16 GiB"'))
    problem = only_problem(load_device, "chip")
    assert (problem.key, problem.fact) == ("memory.reserve", "leaves nothing of the HBM")


def test_a_pair_of_devices_has_no_more_than_a_device_sends(folder, only_problem):
    folder.spoil("topologies/pair.toml", ('"300 GB/s"', '"300 GB/s"\npair_bandwidth = "600 GB/s"'))
    problem = only_problem(load_cluster, "pair")
    assert (problem.key, problem.value) == ("nodes.scale_up.pair_bandwidth", "600 GB/s")
    assert problem.fact == "is more than the device sends to all others, 300 GB/s"


def test_slice_dimensions_ascend(folder, only_problem):
    folder.spoil("topologies/box.toml", ("slice_dims = [1, 2, 4]", "slice_dims = [4, 1, 2, 2]"))
    problem = only_problem(load_cluster, "box-2")
    assert (problem.value, problem.remedy) == ("[4, 1, 2, 2]", "write `[1, 2, 4]`")


def test_a_cluster_has_one_network(folder, only_problem, refused):
    folder.write("topologies/none.toml", '[cluster]\nname = "none"\ntitle = "x"\ndevice = "chip"\n')
    assert only_problem(load_cluster, "none").fact == "has no network"
    text = (folder.path / "topologies/pair.toml").read_text()
    linked = '[linked]\nsource = "assumed"\ndevices = ["a"]\nactivation_network = "tree"\n'
    folder.write("topologies/pair.toml", text + linked + 'bulk_network = "tree"\n')
    problem = only_problem(load_cluster, "pair")
    assert (problem.fact, problem.value) == ("has two networks", "nodes, linked")


def test_links_need_devices(folder, only_problem):
    text = (folder.path / "topologies/pair.toml").read_text()
    link = 'a = "x"\nb = "y"\nsource = "assumed"\nbandwidth = "1 GB/s"\nlatency = "1 us"\n'
    folder.write("topologies/pair.toml", f"{text}[[link]]\n{link}")
    assert only_problem(load_cluster, "pair").fact == "joins no devices"


def test_a_pool_beyond_a_million_devices_is_refused(folder, only_problem):
    folder.spoil("topologies/pair.toml", ("n_nodes = 2", "n_nodes = 250_001"))
    problem = only_problem(load_cluster, "pair")
    assert (problem.key, problem.fact) == ("nodes.n_nodes", "is a pool of 1,000,004 devices")


def test_an_unknown_end_of_a_link_is_told_with_the_nearest_name(folder, refused):
    folder.spoil("topologies/odd.toml", ('b = "b0"', 'b = "b00"'))
    problem = refused(load_cluster, "odd").problems[0]
    assert (problem.key, problem.value) == ("link[2].b", "b00")
    assert (problem.fact, problem.remedy) == (
        "is neither a device nor a switch",
        "did you mean `b0`?",
    )


def test_a_link_joins_two_devices(folder, refused):
    folder.spoil("topologies/odd.toml", ('a = "a0"', 'a = "a1"'))
    told = [(p.key, p.fact) for p in refused(load_cluster, "odd").problems]
    assert ("link[0]", "joins a device to itself") in told


def test_two_devices_are_joined_by_one_link_whichever_way_it_is_written(folder, only_problem):
    text = (folder.path / "topologies/odd.toml").read_text()
    link = 'a = "s"\nb = "a1"\nsource = "assumed"\nbandwidth = "1 GB/s"\nlatency = "1 us"\n'
    folder.write("topologies/odd.toml", f"{text}[[link]]\n{link}")
    problem = only_problem(load_cluster, "odd")
    assert (problem.key, problem.value) == ("link[3]", "s, a1")
    assert problem.fact == "joins the same two as link[1]"


def test_a_device_and_a_switch_have_different_names(folder, refused):
    folder.spoil("topologies/odd.toml", ('"a1", "b0"]', '"a1", "b0", "a1", "s"]'))
    told = [(p.value, p.fact) for p in refused(load_cluster, "odd").problems]
    assert told == [("a1", "is given twice"), ("s", "is given twice")]


def test_a_network_in_two_pieces_is_told_by_two_devices_without_a_path(folder, only_problem):
    folder.spoil(
        "topologies/odd.toml", ('switches = ["s"]', 'switches = ["s", "t"]'), ('a = "s"', 'a = "t"')
    )
    problem = only_problem(load_cluster, "odd")
    assert (problem.key, problem.fact) == ("link", "no path joins `a0` and `b0`")


def test_devices_without_any_link_have_no_path(folder, only_problem):
    text = (folder.path / "topologies/odd.toml").read_text()
    folder.write("topologies/odd.toml", text[: text.index("[[link]]")])
    assert only_problem(load_cluster, "odd").fact == "no path joins `a0` and `a1`"


def test_a_single_device_needs_no_link(folder):
    text = (folder.path / "topologies/odd.toml").read_text()
    alone = text[: text.index("[[link]]")].replace('["a0", "a1", "b0"]', '["a0"]')
    folder.write("topologies/odd.toml", alone)
    assert load_cluster("odd").n_devices == 1


def test_flat_bandwidth_is_refused_off_a_torus(folder, refused):
    folder.spoil(
        "topologies/pair.toml",
        ('activation_network = "tree"', 'activation_network = "flat"'),
        ('bulk_network = "tree"', 'bulk_network = "flat"'),
    )
    problems = refused(load_cluster, "pair").problems
    assert [problem.key for problem in problems] == [
        "nodes.activation_network",
        "nodes.bulk_network",
    ]
    assert {problem.remedy for problem in problems} == {"write `tree`"}


def test_links_listed_one_by_one_have_no_flat_bandwidth_either(folder, only_problem):
    folder.spoil(
        "topologies/odd.toml", ('activation_network = "tree"', 'activation_network = "flat"')
    )
    assert only_problem(load_cluster, "odd").key == "linked.activation_network"


@pytest.mark.parametrize("name", ["two-regime", "nccl"])
@pytest.mark.parametrize(
    ("file", "old", "remedy"),
    [("box", "ring", "write `ring` or `axis`"), ("odd", "tree", "write `tree`")],
)
def test_what_is_measured_in_nodes_is_of_nodes(folder, only_problem, name, file, old, remedy):
    folder.spoil(
        f"topologies/{file}.toml",
        (f'activation_network = "{old}"', f'activation_network = "{name}"'),
    )
    problem = only_problem(load_cluster, "box-2" if file == "box" else file)
    assert (problem.value, problem.remedy) == (name, remedy)


@pytest.mark.parametrize(
    ("name", "fact"),
    [("two-regime", "needs what was measured"), ("nccl", "needs protocols to choose from")],
)
def test_a_convention_needs_its_numbers(folder, only_problem, name, fact):
    folder.spoil("topologies/pair.toml", ('bulk_network = "tree"', f'bulk_network = "{name}"'))
    problem = only_problem(load_cluster, "pair")
    assert (problem.key, problem.fact) == ("nodes.bulk_network", fact)
    assert problem.remedy.endswith("or write `tree`")


MEASURED = """
[nodes.scale_up.measured.{operation}]
source = "bench"
n_devices = [2, 4]
short_latency = ["4 us", "5 us"]
short_bandwidth = ["100 GB/s", "50 GB/s"]
long_latency = ["9 us", "10 us"]
long_bandwidth = ["300 GB/s", "200 GB/s"]
"""
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def measured(folder, *changes):
    """The pair with measurements, in which every change is made once."""
    text = (folder.path / "topologies/pair.toml").read_text()
    text += "".join(MEASURED.format(operation=operation) for operation in OPERATIONS)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    folder.write("topologies/pair.toml", text)


def test_measurements_are_read_in_seconds_and_bytes(folder):
    measured(folder, ('activation_network = "tree"', 'activation_network = "two-regime"'))
    fabric = load_cluster("pair").fabric
    fits = fabric.scale_up_measured.all_reduce
    assert fits.n_devices == (2, 4)
    assert fits.short_latency_s == pytest.approx((4e-6, 5e-6))
    assert fits.long_bytes_per_s == (300e9, 200e9)


def test_columns_of_measurements_belong_together_and_all_faults_are_told(folder, refused):
    measured(
        folder,
        ("n_devices = [2, 4]", "n_devices = [4, 2]"),
        ('short_latency = ["4 us", "5 us"]', 'short_latency = ["4 us"]'),
        ('long_bandwidth = ["300 GB/s", "200 GB/s"]', "long_bandwidth = []"),
    )
    told = [(problem.key, problem.fact) for problem in refused(load_cluster, "pair").problems]
    where = "nodes.scale_up.measured.all_reduce"
    assert told == [
        (f"{where}.n_devices", "are not groups of two or more in ascending order"),
        (f"{where}.short_latency", "has 1 of 2 values"),
        (f"{where}.long_bandwidth", "has 0 of 2 values"),
    ]


PROTOCOL = """
[[nodes.protocol]]
name = "LL"
source = "tuning.cc"
algorithm = "tree"
scale_up_hop = "0.6 us"
scale_out_hop = "5 us"
base = "6.8 us"
bandwidth_fraction = 0.5
"""


def test_protocols_are_read_and_their_algorithms_known(folder, only_problem):
    folder.spoil("topologies/pair.toml", ('bulk_network = "tree"', 'bulk_network = "nccl"'))
    text = (folder.path / "topologies/pair.toml").read_text()
    folder.write("topologies/pair.toml", text + PROTOCOL)
    cluster = load_cluster("pair")
    assert cluster.fabric.protocols[0].base_s == pytest.approx(6.8e-6)
    assert ("nodes.protocol[0].base", "tuning.cc") in [
        (one.key, one.source) for one in cluster.provenance
    ]
    folder.write("topologies/pair.toml", text + PROTOCOL.replace('"tree"', '"bush"'))
    assert only_problem(load_cluster, "pair").fact == "unknown algorithm"
