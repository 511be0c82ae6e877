"""The files that come with the planner: each loads, counts right, and names its sources."""

from pathlib import Path

import pytest

from planner.specs.files.listing import variants_of
from planner.specs.files.patterns import name_of, patterns
from planner.specs.files.places import Kind, files
from planner.specs.files.reading import load_architecture, load_cluster, load_device, load_model
from planner.specs.files.tables import read_table
from planner.specs.records.devices import FORMAT_BYTES

ROOT = Path(__file__).parents[2]
MODELS = sorted(path.stem for path in (ROOT / "models").glob("*.toml"))
DEVICES = sorted(path.stem for path in (ROOT / "topologies/devices").glob("*.toml"))
CLUSTERS = sorted(path.stem for path in (ROOT / "topologies").glob("*.toml"))

ROUNDED = {"kimi-k2"}
"""Models whose published count is of fewer digits than the tolerance of half a percent."""


def some_instances():
    """Of each shipped cluster file the first name that it stands for, the middle and the last."""
    described = dict(patterns(Kind.CLUSTER))
    for path in files(Kind.CLUSTER):
        if path in described:
            names = described[path].some_names(10_000)
            yield from dict.fromkeys((names[0], names[len(names) // 2], names[-1]))
        else:
            yield name_of(read_table(path, path.name)[0])


def test_there_is_something_to_test():
    assert {"palm-540b", "llama-3.1-70b", "deepseek-v3", "gpt-oss-120b"} <= set(MODELS)
    assert {"tpu-v4", "a100-80gb", "h100-sxm", "mi300x", "trainium2"} <= set(DEVICES)
    assert {"tpu-v4", "dgx-a100", "h100-nvl8", "gb200-nvl72", "tpu-v5e"} <= set(CLUSTERS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_loads_and_its_parameters_are_those_published(name):
    model = load_model(name)
    assert model.name == name
    close = 0.02 if name in ROUNDED else 0.005
    assert model.n_params == pytest.approx(model.n_params_published, rel=close)
    assert model.n_params_served >= model.n_params
    formats = {*model.kv_formats, model.activation_format, *model.weights_formats}
    assert formats <= FORMAT_BYTES.keys()
    assert (model.n_active_params_published is None) == (model.moe is None)


@pytest.mark.parametrize(
    ("name", "loss"),
    [("llama-3.1-minitron-4b-width", 1 - 60.5 / 65.3), ("llama-3.1-minitron-4b-depth", 0.1011)],
)
def test_a_variant_names_its_model_and_what_it_loses(name, loss):
    """MMLU of 60.5 and of 58.7, where Llama 3.1 8B is taken to have 65.3."""
    variant = load_model(name).variant
    assert variant is not None
    assert variant.of in MODELS
    assert variant.quality_loss_fraction == pytest.approx(loss, abs=1e-3)
    assert name in variants_of(variant.of)
    assert load_architecture(name).variant == variant


@pytest.mark.parametrize(
    ("name", "n_params"),
    [
        ("palm-540b", 540.35e9),
        ("palm-62b", 62.50e9),
        ("palm-8b", 8.63e9),
        ("mt-nlg-530b", 529.5e9),
        ("llama-3-8b", 8.030e9),
        ("llama-3-70b", 70.55e9),
        ("llama-3.1-405b", 405.85e9),
        ("mistral-large-2", 122.61e9),
        ("mixtral-8x7b", 46.70e9),
        ("mixtral-8x22b", 140.62e9),
        ("deepseek-v3", 671.03e9),
        ("deepseek-r1", 671.03e9),
        ("qwen3-8b", 8.19e9),
        ("qwen3-32b", 32.76e9),
        ("qwen3-30b-a3b", 30.53e9),
        ("qwen3-235b-a22b", 235.09e9),
        ("gpt-oss-120b", 116.83e9),
        ("gpt-3", 174.6e9),
        ("gpt-j-6b", 6.053e9),
    ],
)
def test_parameters_counted_agree_to_the_last_digit_printed(name, n_params):
    assert load_model(name).n_params == pytest.approx(n_params, rel=5e-4)


@pytest.mark.parametrize(
    ("name", "n_active", "printed"),
    [
        ("mixtral-8x7b", 12.9e9, 0.05e9),
        ("mixtral-8x22b", 39.15e9, 0.05e9),
        ("qwen3-30b-a3b", 3.35e9, 0.05e9),
        ("qwen3-235b-a22b", 22.19e9, 0.05e9),
        ("deepseek-v3", 37.55e9, 0.05e9),
        ("kimi-k2", 32.86e9, 0.05e9),
        ("gpt-oss-120b", 5.13e9 + 201_088 * 2_880, 0.005e9),
    ],
)
def test_active_parameters_count_both_embeddings(name, n_active, printed):
    """OpenAI leaves the input embedding out; DeepSeek and Moonshot round down."""
    assert load_model(name).n_params_active == pytest.approx(n_active, abs=printed)


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("llama-3.1-70b", 80 * 2 * 8 * 128 * 2),
        ("deepseek-v3", 61 * 576 * 2),  # 70,272 B, where 128 heads would leave 60 times as much
        ("kimi-k2", 61 * 576 * 2),
        ("qwen3-30b-a3b", 48 * 2 * 4 * 128 * 2),
        ("gpt-3", 96 * 2 * 96 * 128 * 2),
        ("gpt-4-speculated", 120 * 2 * 192 * 2),
    ],
)
def test_a_token_leaves_so_much_in_the_cache(name, kv_bytes):
    assert load_model(name).kv_bytes_per_token == kv_bytes


def test_half_of_the_layers_of_gpt_oss_forget_all_but_128_tokens():
    """18 layers of 8192 tokens and 18 of 128, 2 · 8 · 64 numbers of two bytes each."""
    model = load_model("gpt-oss-120b")
    assert model.kv_bytes(8192) == 18 * (8192 + 128) * 2 * 8 * 64 * 2


def test_what_is_speculation_says_so():
    model = load_model("gpt-4-speculated")
    assert "speculated" in model.title
    assert all("rumoured" in p.source for p in model.provenance if p.key.startswith("shape"))


def test_padding_the_heads_of_palm_540b_adds_18_billion_parameters():
    """118 layers × 2 · 18432 · 256 · (64 - 48) = 17.8e9; [Pope2022] §4 says 18B."""
    model = load_model("palm-540b")
    assert model.n_params_served - model.n_params == 118 * 2 * 18_432 * 256 * 16


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_loads(name):
    device = load_device(name)
    assert device.name == name
    assert device.reserve_bytes < device.hbm_bytes


def test_the_smallest_and_the_largest_instance_of_every_cluster_file_loads():
    names = list(some_instances())
    assert len(names) == 3 * (len(CLUSTERS) - 2) + 2  # two instances of Trainium2 are no patterns
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


@pytest.mark.parametrize("name", DEVICES)
def test_every_value_of_a_device_has_a_source_or_says_assumed(name):
    """Eight values, its peaks; its power, and its link to the host, where somebody says them."""
    device = load_device(name)
    n_said = sum(value is not None for value in (device.tdp_w, device.host_bytes_per_s))
    assert len(device.provenance) == 8 + n_said + len(device.peak_flop_per_s)


@pytest.mark.parametrize("name", MODELS)
def test_every_value_of_a_model_has_a_source_or_says_assumed(name):
    """The shape, three formats, the count; and whatever else the file has a section for."""
    model = load_model(name)
    sections = [key.split(".")[0] for key in (p.key for p in model.provenance)]
    n_padded = model.n_heads_served > model.n_heads
    n_limits = model.n_context_tokens is not None
    assert sections.count("shape") == 10 + n_padded + n_limits + model.norms_heads
    assert sections.count("formats") == 5
    assert sections.count("check") == 1 + (model.moe is not None)
    assert bool(sections.count("moe")) == (model.moe is not None)
    assert sections.count("mla") == (5 if model.mla else 0)
    assert sections.count("window") == (2 if model.window else 0)


def test_every_value_of_a_cluster_has_a_source_or_says_assumed():
    """A torus has six, one more if its axes close by themselves; nodes nine, one for pairs or host.

    Each of four measured collectives has five columns, each protocol five values.
    """
    for name in some_instances():
        cluster = load_cluster(name)
        fabric = cluster.fabric
        n_values = (
            9
            + (fabric.scale_up_pair_bytes_per_s is not None)
            + (fabric.host_bytes is not None)
            + 4 * 5 * (fabric.scale_up_measured is not None)
            + 5 * len(fabric.protocols)
            if hasattr(fabric, "n_nodes")
            else 6 + fabric.wraps_each_axis
        )
        assert len(cluster.provenance) == n_values


def test_a_file_is_named_like_what_is_in_it():
    for path in (ROOT / "models").glob("*.toml"):
        assert name_of(read_table(path, path.name)[0], "model") == path.stem
    for path in (ROOT / "topologies/devices").glob("*.toml"):
        assert name_of(read_table(path, path.name)[0], "device") == path.stem
    for path in (ROOT / "topologies").glob("*.toml"):
        assert name_of(read_table(path, path.name)[0]).startswith(path.stem)
