"""The files that come with the planner: each loads, counts right, and names its sources."""

from pathlib import Path

import pytest

from planner.specs.finding import Kind, files, patterns
from planner.specs.patterns import name_of
from planner.specs.reading import load_cluster, load_device, load_model
from planner.specs.records import FORMAT_BYTES
from planner.specs.tables import read_table

ROOT = Path(__file__).parents[2]
MODELS = sorted(path.stem for path in (ROOT / "models").glob("*.toml"))
DEVICES = sorted(path.stem for path in (ROOT / "topologies/devices").glob("*.toml"))
CLUSTERS = sorted(path.stem for path in (ROOT / "topologies").glob("*.toml"))


def instances():
    """Every name that some shipped cluster file stands for."""
    described = dict(patterns(Kind.CLUSTER))
    for path in files(Kind.CLUSTER):
        if path in described:
            yield from described[path].some_names(10_000)
        else:
            yield name_of(read_table(path, path.name)[0])


def test_there_is_something_to_test():
    assert {"palm-540b", "palm-62b", "palm-8b", "mt-nlg-530b"} <= set(MODELS)
    assert {"tpu-v4", "a100-80gb"} <= set(DEVICES)
    assert {"tpu-v4", "dgx-a100"} <= set(CLUSTERS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_loads_and_its_parameters_are_those_published(name):
    model = load_model(name)
    assert model.name == name
    assert model.n_params == pytest.approx(model.n_params_published, rel=0.005)
    assert model.n_params_served >= model.n_params
    assert {model.kv_format, model.activation_format, *model.weights_formats} <= FORMAT_BYTES.keys()


@pytest.mark.parametrize(
    ("name", "n_params"),
    [("palm-540b", 540.35e9), ("palm-62b", 62.50e9), ("palm-8b", 8.63e9), ("mt-nlg-530b", 529.5e9)],
)
def test_parameters_counted_agree_to_the_last_digit_printed(name, n_params):
    assert load_model(name).n_params == pytest.approx(n_params, rel=5e-4)


def test_padding_the_heads_of_palm_540b_adds_18_billion_parameters():
    """118 layers × 2 · 18432 · 256 · (64 - 48) = 17.8e9; [Pope2022] §4 says 18B."""
    model = load_model("palm-540b")
    assert model.n_params_served - model.n_params == 118 * 2 * 18_432 * 256 * 16


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_loads_and_attains_no_more_than_its_datasheet(name):
    device = load_device(name)
    assert device.name == name
    assert device.reserve_bytes < device.hbm_bytes
    assert "bf16" in device.peak_flop_per_s


def test_every_instance_of_every_cluster_file_loads():
    names = list(instances())
    assert len(names) == 6**3 + 16
    for name in names:
        cluster = load_cluster(name)
        assert cluster.name == name
        assert f"{cluster.n_devices} " in cluster.title
        assert "{" not in cluster.title


def test_the_default_pool_is_a_torus_of_256_chips():
    cluster = load_cluster("tpu-v4-4x8x8")
    assert cluster.title == "TPU v4 torus 4×8×8 (256 chips)"
    assert cluster.n_devices == 256
    assert cluster.fabric.link_bytes_per_s == 45e9
    assert cluster.device.hbm_bytes == 32 * 2**30


def test_a_gpu_has_a_share_of_the_infiniband_ports_of_its_server():
    """Eight ports of 200 Gb/s over eight GPUs: 25 GB/s each, one way."""
    fabric = load_cluster("dgx-a100-x3").fabric
    assert (fabric.n_nodes, fabric.n_devices_per_node) == (3, 8)
    assert (fabric.scale_up_bytes_per_s, fabric.scale_out_bytes_per_s) == (300e9, 25e9)


def test_every_value_has_a_source_or_says_assumed():
    """A device: eight values and its peaks. A model: the shape, three formats, the count."""
    for device in map(load_device, DEVICES):
        assert len(device.provenance) == 8 + len(device.peak_flop_per_s)
    for model in map(load_model, MODELS):
        n_padded = model.n_heads_served > model.n_heads
        assert len(model.provenance) == 10 + n_padded + 3 + 1
    assert len(load_cluster("tpu-v4-4x4x4").provenance) == 6
    assert len(load_cluster("dgx-a100-x1").provenance) == 9


def test_a_file_is_named_like_what_is_in_it():
    for path in (ROOT / "models").glob("*.toml"):
        assert name_of(read_table(path, path.name)[0], "model") == path.stem
    for path in (ROOT / "topologies/devices").glob("*.toml"):
        assert name_of(read_table(path, path.name)[0], "device") == path.stem
