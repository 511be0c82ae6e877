"""The traps of datasheets: one way or both, GB or GiB, dense or sparse, with or without a ring."""

import pytest

from planner.specs.files.reading import load_cluster, load_device

GB = 1e9

ONE_WAY = [
    ("dgx-a100-x1", 300, 25),
    ("a100-nvl8-x1", 300, 25),
    ("a100-40-nvl8-x1", 300, 25),
    ("v100-nvl8-x1", 150, 12.5),
    ("h100-nvl8-x1", 450, 50),
    ("h200-nvl8-x1", 450, 50),
    ("h800-nvl8-x1", 200, 50),
    ("h20-nvl8-x1", 450, 50),
    ("h100-pcie-x1", 64, 50),
    ("l40s-x1", 32, 25),
    ("l4-x1", 32, 3.125),
    ("b200-nvl8-x1", 900, 50),
    ("b300-nvl8-x1", 900, 100),
    ("gb200-nvl72-x1", 900, 50),
    ("mi300x-x1", 448, 50),
    ("mi325x-x1", 448, 50),
    ("mi355x-x1", 537.6, 50),
    ("gaudi3-x1", 525, 75),
    ("groq-x1", 105, 60),
]
"""Of one device, one way: inside its node and out of it [GB/s]. Datasheets print both ways."""


@pytest.mark.parametrize(("name", "inside", "outside"), ONE_WAY)
def test_bandwidth_is_of_one_device_one_way(name, inside, outside):
    fabric = load_cluster(name).fabric
    assert fabric.scale_up_bytes_per_s == pytest.approx(inside * GB)
    assert fabric.scale_out_bytes_per_s == pytest.approx(outside * GB)
    assert fabric.n_devices_per_node == (72 if "nvl72" in name else 8)


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("tpu-v4-4x4x4", 45),
        ("tpu-v5e-16x16", 45),
        ("tpu-v5p-4x4x4", 90),
        ("tpu-v6e-16x16", 90),
        ("tpu7x-4x4x4", 90),
        ("trn2-16", 128),
        ("trn2-64", 64),
    ],
)
def test_a_link_of_a_torus_is_one_way_as_attained(name, link):
    assert load_cluster(name).fabric.link_bytes_per_s == link * GB


@pytest.mark.parametrize(
    ("name", "pair"),
    [("mi300x", 64), ("mi325x", 64), ("mi355x", 76.8), ("gaudi3", 75), ("groq", 15)],
)
def test_a_mesh_of_pairs_is_fast_only_all_together(name, pair):
    """Seven links of one device; two devices share a single one."""
    fabric = load_cluster(f"{name}-x1").fabric
    assert fabric.group_scale_up_bytes_per_s(2) == pytest.approx(pair * GB)
    assert fabric.group_scale_up_bytes_per_s(8) == pytest.approx(7 * pair * GB)
    assert fabric.scale_up_bytes_per_s == pytest.approx(7 * pair * GB)


def test_nvswitch_gives_two_gpus_all_that_eight_have():
    fabric = load_cluster("h100-nvl8-x1").fabric
    assert fabric.group_scale_up_bytes_per_s(2) == fabric.group_scale_up_bytes_per_s(8) == 450 * GB


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("a100-80gb", 79.2),
        ("h100-sxm", 79.18),
        ("h200", 139.8),
        ("tpu-v5e", 15.75),
        ("l40s", 44.99),
    ],
)
def test_memory_is_what_can_be_used_not_what_is_sold(name, gib):
    assert load_device(name).hbm_bytes == gib * 2**30


@pytest.mark.parametrize(
    ("name", "peaks"),
    [
        ("h100-sxm", {"bf16": 989.4, "fp8": 1979, "int8": 1979}),
        ("h100-pcie", {"bf16": 756.5, "fp8": 1513}),
        ("h20", {"bf16": 148, "fp8": 296}),
        ("l40s", {"bf16": 362, "fp8": 733}),
        ("b200", {"bf16": 2250, "fp8": 4500, "fp4": 9000}),
        ("b300", {"fp8": 4500, "int8": 153.5, "fp4": 13500}),
        ("mi300x", {"bf16": 1307.4, "fp8": 2614.9}),
        ("trainium2", {"bf16": 667, "fp8": 1299}),
        ("tpu7x", {"bf16": 2307, "fp8": 4614}),
        ("gaudi3", {"bf16": 1835, "fp8": 1835}),
    ],
)
def test_peaks_are_of_dense_matrices(name, peaks):
    found = load_device(name).peak_flop_per_s
    assert {key: found[key] / 1e12 for key in peaks} == pytest.approx(peaks)


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("v100-32gb", {"bf16", "fp8", "int8", "fp4"}),
        ("groq-lpu", {"bf16", "fp8", "fp4"}),
        ("a100-80gb", {"fp8", "fp4"}),
        ("h100-sxm", {"fp4", "mxfp4"}),
        ("mi300x", {"fp4", "mxfp4"}),
        ("tpu-v4", {"fp8", "fp4"}),
        ("tpu7x", {"int8", "fp4"}),
    ],
)
def test_a_device_lacks_formats(name, lacks):
    assert not lacks & set(load_device(name).formats)


def test_small_slices_of_tpus_are_open():
    """Cubes of 4×4×4 close a v5p; of a v5e only an axis of all sixteen chips closes."""
    cubes, plane = load_cluster("tpu-v5p-4x4x4").fabric, load_cluster("tpu-v5e-16x16").fabric
    assert (cubes.wrap_multiple, cubes.wraps_each_axis) == (4, False)
    assert (plane.wrap_multiple, plane.wraps_each_axis) == (16, True)


@pytest.mark.parametrize(
    "device",
    [
        load_device(name)
        for name in ("h100-sxm", "h200", "b200", "b300", "gb200", "l40s", "a100-40gb")
    ],
    ids=lambda device: device.name,
)
def test_what_was_measured_of_matrix_products_is_no_assumption(device):
    sources = {p.key: p.source for p in device.provenance}
    for key in ("compute_fraction", "hbm_fraction", "roofline_exponent"):
        assert sources[f"attainable.{key}"].startswith("kernel_fits: aiconfigurator-core 0.12.0")
