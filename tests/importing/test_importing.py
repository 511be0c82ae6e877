"""Topologies of what clusters' own tools say: what is read, assumed, and refused."""

from __future__ import annotations

import json
import lzma
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from planner.commands.cli import main
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_cluster
from planner.specs.files.state import load_state
from planner.specs.options.table import option_of
from planner.specs.records.devices import NodesFabric, TorusFabric
from planner.topology.pools import pool_graph, with_state
from planner_workshop.importing import READERS
from planner_workshop.importing.lists import hosts
from planner_workshop.importing.records import names

DATA = Path(__file__).parents[1] / "data" / "import"
SAMPLES = {
    "nvswitch.txt": ("nvidia-smi", ""),
    "cube-mesh.txt": ("nvidia-smi", "v100-32gb"),
    "pcie.txt": ("nvidia-smi", "l40s"),
    "ibnetdiscover.out": ("ibnetdiscover", "h100-sxm"),
    "tree.conf": ("slurm", "h100-sxm"),
    "block.conf": ("slurm", "gb200"),
    "nvl72.yaml": ("topograph", "gb200"),
    "small-tree.yaml": ("topograph", "h100-sxm"),
    "netq.json": ("netq", "h100-sxm"),
    "nodes.json": ("nodes", ""),
    "tpu.json": ("nodes", ""),
    "mixed.json": ("nodes", ""),
    "resourceslices.json": ("resourceslices", ""),
}
"""Format of each sample, and the device that it does not name."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the samples."""
    for path in DATA.iterdir():
        if path.suffix == ".xz":
            (tmp_path / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
        else:
            shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def imports(folder, capsys):
    """What `plan topologies import` prints of a file; it writes `mine.toml`."""

    def run(name, *words, device=None, code=0):
        device = SAMPLES.get(name, ("", ""))[1] if device is None else device
        given = ["--device", device] if device else []
        assert main(["topologies", "import", name, *given, "--output=mine.toml", *words]) == code
        out, err = capsys.readouterr()
        return " ".join((err if code else out).split())

    return run


def nodes(name="mine.toml"):
    fabric = load_cluster(name).fabric
    assert isinstance(fabric, NodesFabric)
    return fabric


def sources(name="mine.toml"):
    return {one.key: one.source for one in load_cluster(name).provenance}


def groups():
    return [(it.fabric.n_nodes, it.n_nodes_per_leaf) for it in load_site("mine-fabric.toml").groups]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_known_by_what_it_looks_like_and_plans(name, imports, capsys):
    said = SAMPLES[name][0]
    assert f"{name}, {names()['formats'][said]['title']}: read " in imports(name)
    assert imports(name, f"--format={said}") == imports(name)
    command = ["plan", "place"] if name == "mixed.json" else ["plan", "predict"]
    words = ["--model=llama-3.1-8b", "--input=500", "--output=100", "--quiet"]
    words += [] if name == "mixed.json" else ["--batch=8"]
    words += ["--engine=roofline", "--time-limit=20s"] if name == "mixed.json" else []
    assert main([command[1], *words, "--topology=mine.toml"]) == 0
    out, err = capsys.readouterr()
    assert out
    assert err == ""  # nothing is said of values that nobody wrote


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "mixed.json"])
def test_what_was_read_and_what_was_assumed_is_counted(name, imports):
    """The first line counts what the files say: values with a line, and values assumed."""
    text = imports(name)
    read, by_option, assumed = re.search(
        r"read (\d+) facts?(?:, (1) by `--device`)?, assumed (\d+): ", text
    ).groups()
    entries = set()
    for path in (Path("mine.toml"), Path("mine-fabric.toml")):
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        entries |= {line for line in lines if 'source = "assumed"' in line}
    n_measured = len([one for one in entries if one.startswith("source")])
    assert int(assumed) == len(entries) + max(0, 4 - n_measured) * bool(n_measured)
    assert bool(by_option) == bool(SAMPLES[name][1])
    rows = text.partition(" read NV")[2] or text.partition(" read ")[2]
    assert len(set(re.findall(rf"{re.escape(name)}:\d+", rows))) <= int(read) + int(assumed)
    held = {*sources().values()} - {"assumed"}
    assert all(re.fullmatch(rf"{re.escape(name)}:\d+", source) for source in held - own_sources())


def own_sources():
    return {one.source for one in load_cluster("mine.toml").device.provenance}


def test_a_server_as_it_is_usual_is_the_usual_one(imports):
    """Eighteen NVLinks to each other device, a port each: nothing differs from what ships."""
    imports("nvswitch.txt")
    usual = load_cluster("h100-nvl8-x1")
    assert load_cluster("mine.toml").fabric == usual.fabric
    assert load_cluster("mine.toml").device == usual.device
    assert sources()["nodes.n_devices_per_node"] == "nvswitch.txt:10"
    assert sources()["nodes.scale_up.bandwidth"] == "assumed"


def test_links_of_a_cube_mesh_add_up_to_a_device_and_the_weakest_is_a_pair(imports):
    """Six links of 25 GB/s a device, one or two to another; four ports of 12.5 GB/s for eight."""
    text = imports("cube-mesh.txt")
    assert nodes().scale_up_bytes_per_s == pytest.approx(6 * 25e9)
    assert nodes().scale_up_pair_bytes_per_s == pytest.approx(25e9)
    assert nodes().scale_out_bytes_per_s == pytest.approx(4 * 12.5e9 / 8)
    assert "NVLinks of a pair 1 or 2 cube-mesh.txt:2" in text
    assert "12 pairs of devices joined by SYS, not NVLink" in text


def test_devices_on_pcie_alone_have_its_rate(imports):
    text = imports("pcie.txt")
    assert nodes().scale_up_bytes_per_s == pytest.approx(32e9)
    assert nodes().scale_up_pair_bytes_per_s is None
    assert nodes().scale_out_bytes_per_s == pytest.approx(2 * 25e9 / 8)
    assert "4 pairs of devices joined by PIX" in text


def matrix(*rows):
    head = "\t".join(["", *(f"GPU{i}" for i in range(len(rows))), "CPU Affinity"])
    lines = [f"GPU{i}\t" + "\t".join(row.split()) + "\t0-31" for i, row in enumerate(rows)]
    return "\n".join([head, *lines, ""])


@pytest.mark.parametrize(
    ("rows", "whole", "pair"),
    [
        (("X NV6 NV6 NV6", "NV6 X NV6 NV6", "NV6 NV6 X NV6", "NV6 NV6 NV6 X"), 450e9, 150e9),
        (("X NV18", "NV18 X"), 450e9, None),
        (("X NV12", "NV12 X"), 300e9, None),
        (("X",), 450e9, None),
    ],
)
def test_links_are_direct_where_a_device_has_no_more_and_through_switches_else(
    rows, whole, pair, folder, imports
):
    Path("topo.txt").write_text(matrix(*rows), encoding="utf-8")
    imports("topo.txt", device="h100-sxm")
    assert nodes().scale_up_bytes_per_s == pytest.approx(whole)
    assert nodes().scale_up_pair_bytes_per_s == (pair and pytest.approx(pair))
    measured = nodes().scale_up_measured
    is_usual = whole == 450e9 and pair is None and len(rows) > 1
    assert (measured is not None) == is_usual
    assert nodes().bulk_network == ("two-regime" if is_usual else "tree")
    if measured:  # groups that no node holds are left out
        assert measured.all_reduce.n_devices == (2,)


@pytest.mark.parametrize("rows", [
    ("X NV12 SYS SYS", "NV12 X SYS SYS", "SYS SYS X NV12", "SYS SYS NV12 X"),  # bridges
    ("X NV12 NV12 SYS SYS SYS", "NV12 X NV12 SYS SYS SYS", "NV12 NV12 X SYS SYS SYS",
     "SYS SYS SYS X NV12 NV12", "SYS SYS SYS NV12 X NV12", "SYS SYS SYS NV12 NV12 X"),  # switches
])  # fmt: skip
def test_groups_that_nvlinks_do_not_join_are_as_fast_as_pcie(rows, folder, imports):
    Path("topo.txt").write_text(matrix(*rows), encoding="utf-8")
    text = imports("topo.txt", device="a100-80gb")
    assert "NVLinks (topo.txt:2) join groups of devices, and PCIe these" in text
    pcie = load_cluster("l40s-x1").fabric
    assert nodes().scale_up_bytes_per_s == pcie.scale_up_bytes_per_s == pytest.approx(32e9)
    assert nodes().scale_up_fraction == pcie.scale_up_fraction
    assert nodes().scale_up_measured is None
    assert nodes().scale_up_pair_bytes_per_s is None
    assert nodes().n_devices_per_node == len(rows)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (("X NV18 SYS", "NV18 X SYS", "SYS SYS X"), "shows no NVLinks of a device"),
        (("X NV20", "NV20 X"), "shows 20 NVLinks of a device, and `h100-sxm` has 18"),
    ],
)
def test_links_that_the_device_does_not_have_are_refused(rows, told, folder, imports):
    Path("topo.txt").write_text(matrix(*rows), encoding="utf-8")
    assert told in imports("topo.txt", device="h100-sxm", code=2)


def test_ports_are_those_below_any_bridge_and_give_a_device_no_more_than_one(folder, imports):
    """Three below bridges, be they one or several, a fourth across the host: one each at most."""
    text = "\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tNIC3\tCPU Affinity\n"
    text += "GPU0\tX\tNV18\tPIX\tPXB\tSYS\tSYS\nGPU1\tNV18\tX\tPXB\tPXB\tPXB\tPHB\n"
    text += "".join(f"NIC{i}\t" + "SYS\t" * 6 + "\n" for i in range(4))
    text = text.replace("NIC0\tSYS\tSYS", "NIC0\tPIX\tPXB").replace("NIC1\tSYS", "NIC1\tPXB")
    text = text.replace("NIC2\tSYS\tSYS", "NIC2\tSYS\tPXB")
    Path("topo.txt").write_text(text, encoding="utf-8")
    said = imports("topo.txt", device="h100-sxm")
    assert "ports of a server 3 topo.txt:1" in said
    assert "1 adapter far from every device" in said
    assert nodes().scale_out_bytes_per_s == pytest.approx(50e9)


def test_infiniband_is_counted_link_by_link(folder, imports):
    """120 hosts below eight sets of four rails; links of leaves down and up, counted by text."""
    text = imports("ibnetdiscover.out")
    assert "74 adapters that name no host" in text
    assert nodes().n_nodes == 120
    assert nodes().scale_out_bytes_per_s == pytest.approx(4 * 50e9 / 8)
    assert groups() == [(36, 18), (17, 17), (16, 16), (30, 15), (11, 11), (10, 10)]
    down = up = 0
    for part in Path("ibnetdiscover.out").read_text().split("\n\n"):
        if "Switch" in part and "IBLEAF" in part.partition("[1]")[0]:
            ports = [line for line in part.splitlines() if line.startswith("[")]
            down += sum('"H-' in line and "Aggregation" not in line for line in ports)
            up += sum('"S-' in line for line in ports)
    site = load_site("mine-fabric.toml")
    assert {it.oversubscription for it in site.groups} == {round(down / up, 2)}
    assert {it.n_rails for it in site.groups} == {4}


def test_nodes_of_a_tree_are_below_their_leaves(imports):
    text = imports("tree.conf")
    assert (nodes().n_nodes, groups()) == (96, [(96, 8)])
    assert "2 tiers of switches above leaves" in text
    state = Path("mine-state.toml").read_text(encoding="utf-8")
    assert "# node0  srv1101\n" in state
    assert "# node95  srv6208\n" in state


def test_a_block_is_one_nvlink_fabric_of_devices_that_have_such_and_else_a_leaf(imports):
    imports("block.conf")
    assert (nodes().n_nodes, nodes().n_devices_per_node) == (12, 8 * 4)
    imports("block.conf", device="h100-sxm")
    assert (nodes().n_nodes, nodes().n_devices_per_node, groups()) == (96, 8, [(96, 8)])


def test_models_of_topograph_have_blocks_below_switches(imports):
    imports("nvl72.yaml")
    assert (nodes().n_nodes, nodes().n_devices_per_node, groups()) == (4, 72, [(4, 1)])
    imports("small-tree.yaml")
    state = Path("mine-state.toml").read_text(encoding="utf-8")
    order = re.findall(r"# node\d+  (\w+)", state)
    assert (order, groups()) == (["I21", "I22", "I25", "I34", "I35", "I36"], [(6, 3)])


def test_a_graph_of_netq_has_hosts_below_the_leaf_of_most_of_their_ports(imports):
    imports("netq.json")
    assert (nodes().n_nodes, groups()) == (8, [(8, 4)])
    assert nodes().scale_out_bytes_per_s == pytest.approx(4 * 50e9 / 8)


def test_labels_of_nodes_say_devices_leaves_memory_and_state(imports):
    text = imports("nodes.json", "--prices=prices.csv")
    cluster = load_cluster("mine.toml")
    assert (cluster.device.name, cluster.n_devices) == ("h100-sxm", 64)
    assert cluster.usd_per_hour == pytest.approx(22.4 / 8)  # the least of those that are not spot
    assert nodes().host_bytes == pytest.approx(2113408244 * 1024, rel=1e-3)
    assert groups() == [(8, 4)]
    assert "1 node without accelerators" in text
    state = load_state("mine-state.toml")
    assert (state.failed, state.reserved) == (("node6",), ("node2",))
    graph = with_state(pool_graph(load_site("mine-fabric.toml")), state)
    states = Counter(graph.nodes[name].get("state") for name in graph if "gpu" in name)
    assert states == {None: 48, "failed": 8, "reserved": 8}


def test_a_price_has_a_unit_or_none_and_what_is_none_has_one_reason(folder, imports):
    for price in ("$5/h", "5", "$5", "5 USD/h", "500 ct/h", "-1", "0", "5 EUR/h"):
        Path("own.csv").write_text(f"device,price,count\nh100-sxm,{price},2\n", encoding="utf-8")
        is_price = "5" in price[:2] and "ct" not in price and "EUR" not in price
        text = imports("nvswitch.txt", "--prices=own.csv", code=0 if is_price else 2)
        if is_price:
            assert load_cluster("mine.toml").usd_per_hour == pytest.approx(2.5)
        else:
            assert f"`own.csv:2: {price} / 2` is no price of so many devices" in text
            assert "has no price of" not in text
    Path("own.csv").write_text("device,price,count\nh200,1,1\n", encoding="utf-8")
    text = imports("nvswitch.txt", "--prices=own.csv", code=2)
    assert "has no price of `h100-sxm`: it is H100-SXM or H100 or H100-MEGA there" in text


def test_trays_whose_fabric_nobody_names_are_joined_to_a_usual_node_which_is_assumed(imports):
    imports("resourceslices.json")
    assert (nodes().n_nodes, nodes().n_devices_per_node) == (1, 72)
    assert sources()["nodes.n_devices_per_node"] == "assumed"


def test_trays_are_joined_by_the_clique_that_they_name_and_fail_by_themselves(folder, imports):
    value = json.loads(Path("nodes.json").read_text(encoding="utf-8"))
    for i, node in enumerate(value["items"][1:]):
        labels = node["metadata"]["labels"]
        labels |= {"nvidia.com/gpu.product": "NVIDIA-GB200", "nvidia.com/gpu.count": "4"}
        labels |= {"nvidia.com/gpu.clique": f"c{i // 4}", "nvidia.com/gpu.memory": "189471"}
    Path("gb.json").write_text(json.dumps(value, indent=1), encoding="utf-8")
    imports("gb.json")
    assert (nodes().n_nodes, nodes().n_devices_per_node) == (2, 16)
    assert sources()["nodes.n_devices_per_node"].startswith("gb.json:")
    state = load_state("mine-state.toml")
    assert (state.failed, state.reserved) == (("node1/gpu{8..11}",), ("node0/gpu{8..11}",))


def test_a_slice_of_tpus_is_a_torus(imports):
    imports("tpu.json")
    fabric = load_cluster("mine.toml").fabric
    assert isinstance(fabric, TorusFabric)
    assert fabric == load_cluster("tpu-v5e-4x4").fabric
    assert not Path("mine-state.toml").exists()


def test_kinds_of_nodes_and_slices_are_parts_side_by_side(imports, tmp_path, monkeypatch):
    imports("mixed.json")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # files are named from where the file is
    site = load_site("../mine.toml")
    assert [it.name for it in site.tori] == ["slice-a", "slice-b"]
    assert [it.n_devices for it in site.tori] == [16, 8]
    assert [it.cluster.device.name for it in site.servers.groups] == ["h100-sxm", "l4"]
    names_of = re.findall(r"# (\S+)  ", (tmp_path / "mine-state.toml").read_text())
    graph = pool_graph(site)
    assert {f"{name}/gpu0" for name in names_of} <= set(graph)


def test_a_device_of_ones_own_is_known_by_its_product(folder, imports):
    """It is found by the name of its file, and needs a topology that says how it is linked."""
    root = Path(__file__).parents[2] / "topologies"
    (folder / "topologies/devices").mkdir(parents=True)
    device = (root / "devices/h100-sxm.toml").read_text(encoding="utf-8")
    device = device.replace('"h100-sxm"', '"nvidia-h100-nvl"').replace("79.18 GiB", "94 GB")
    (folder / "topologies/devices/nvidia-h100-nvl.toml").write_text(device, encoding="utf-8")
    text = Path("nvswitch.txt").read_text(encoding="utf-8").replace("H100 80GB HBM3", "H100 NVL")
    Path("own.txt").write_text(text, encoding="utf-8")
    assert "`own.txt:10: nvidia-h100-nvl` is in no topology" in imports("own.txt", code=2)
    servers = (root / "h100-nvl8.toml").read_text(encoding="utf-8")
    servers = servers.replace('"h100-sxm"', '"nvidia-h100-nvl"').replace("h100-nvl8-x", "nvl-x")
    (folder / "topologies/nvl.toml").write_text(servers, encoding="utf-8")
    imports("own.txt")
    assert load_cluster("mine.toml").device.hbm_bytes == 94e9


def broken(name, *changes):
    text = Path(name).read_text(encoding="utf-8")
    for old, new in changes:
        text, n = re.subn(old, new, text, flags=re.M)
        assert n
    path = Path(f"bad-{name}")
    path.write_text(text, encoding="utf-8")
    return path.name


FAULTS = [
    ("nvswitch.txt", [("^GPU3.*$", "GPU3\tNV18"), ("^(GPU1\tNV18\t X \t)NV18", r"\1NV")],
     ["14` has 1 of 18 cells in row `GPU3`", "12: NV` joins no two devices"]),
    ("nvswitch.txt", [("NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL")],
     ["is no device that is known here", "`topologies/devices/nvidia-h100-nvl.toml`"]),
    ("tree.conf", [(r"1101-1108\]", "1101-"), ("srv.1201", "srv[1301"), (r"1\.\[3-4", "1.[3-3"),
                   ("^SwitchName=switch.3.1", "Switch=switch.3.1"),
                   ("Nodes=srv.2201-2208.", "Nodes=srv2101")],
     ["16: srv[1101-` is no list of hosts", "is no line of topology.conf", "named in line 20 too"]),
    ("small-tree.yaml", [("switch: S2", "switch: S9"), (r'\["I\[34-36\]"\]', '["I[36-34]"]')],
     ["22: S9` is below a switch that `switches` lacks", "26: I[36-34]` is no list of hosts"]),
    ("nvl72.yaml", [("    switches:$", "    switches: &all")], ["is more of YAML"]),
    ("ibnetdiscover.out", [("4xNDR$", "4xABC"), ("^Ca\t1 .H-e09d7303007a5a68", "Ca 1 \"H-0")],
     ["11: ABC` is no known rate", "27: H-e09d7303007a5a68` is listed nowhere"]),
    ("nodes.json", [('"8"', '"eight"'), ("81559", "80GB"), ("HBM3", "HBM3-MIG-1g.10gb")],
     ["is no count of devices", "is no memory of a device", "is a part of a device"]),
    ("nodes.json", [("81559", "97871")], ["has 1.03e+11 B of memory, and `h100-sxm` 8.5e+10 B"]),
    ("tpu.json", [("4x4", "4x8")], ["slice-a` has nodes of 16 chips, which is not 4x8"]),
    ("netq.json", [('"target": "node12"', '"target": "node99"')], ["node99` is the end of a link"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "told"), FAULTS)
def test_all_that_is_wrong_is_told_at_once_with_its_line(name, changes, told, folder, imports):
    device = SAMPLES[name][1]
    text = imports(broken(name, *changes), device=device, code=2)
    for part in told:
        assert part in text
    assert not Path("mine.toml").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pcie.txt"], "does not say of which device it is: write `--device h100-sxm`"),
        (["pcie.txt", "--device=h100-sxm"], "pcie.txt:2` shows no NVLinks of a device"),
        (["nvswitch.txt", "--device=a100-80gb"], "`--device` has no effect"),
        (["pcie.txt", "--device=h1000"], "no such device"),
        (["prices.csv"], "has no format that is known"),
        (["nodes.json", "--format=slurm"], "is not Slurm's topology.conf: write `--format nodes`"),
        (["nodes.json", "--prices=tree.conf"], "has no price of `h100-sxm`"),
        (["nowhere.txt"], "no such file"),
        (["nodes.json", "--output=mine"], "write `--output mine.toml`"),
        ([], "names no file"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_to_write(words, told, folder, capsys):
    assert main(["topologies", "import", *words]) == 2
    out, err = capsys.readouterr()
    assert told in " ".join(err.split())
    assert out == ""


@pytest.mark.parametrize("text", ['[]', '{"items": 3}', '[{"links": 1, "nodes": 2}]', "[[1]]", "{}",
                                  '{"items": [{"kind": "Node", "metadata": 5}, 7]}'])  # fmt: skip
def test_json_of_other_shapes_is_refused(text, folder, imports):
    Path("f.json").write_text(text, encoding="utf-8")
    assert "`f.json`" in imports("f.json", device="h100-sxm", code=2)


@pytest.mark.parametrize("text", ["n[1-", "n]1[", "n[2-1]", "n[a-b]", "n[1-9999999]", "n[]"])
def test_lists_of_hosts_that_lead_nowhere_are_none(text):
    with pytest.raises(ValueError, match=r".*"):
        hosts(text)


def test_formats_are_those_of_the_option():
    reads = option_of("topologies-import", "--format").reads
    assert [reads(name) for name in names()["formats"]] == list(names()["formats"])
    assert names()["formats"].keys() == READERS.keys()


def test_without_a_file_to_write_nothing_is_written_and_how_is_said(folder, capsys):
    before = sorted(folder.iterdir())
    assert main(["topologies", "import", "nodes.json"]) == 0
    assert "hint: `--output mine.toml` writes it as a topology" in capsys.readouterr().out
    assert sorted(folder.iterdir()) == before
