"""Names and paths lead to files; the nearest folder wins; a near miss is answered with a name."""

import os

import pytest

from planner.estimates.kernel_files import load_kernels
from planner.specs.files import places
from planner.specs.files.engines import load_engine
from planner.specs.files.finding import find
from planner.specs.files.places import Kind, files
from planner.specs.files.pools import load_pool
from planner.specs.files.reading import load_cluster, load_device, load_model


def test_a_name_is_looked_up_in_the_working_folder_first(folder):
    found = find(Kind.MODEL, "tiny", asked_by="--model")
    assert found.shown == "models/tiny.toml"
    assert load_model("tiny").title == "Tiny"


def test_shipped_files_are_found_from_any_folder(folder):
    assert load_model("palm-8b").n_layers == 32
    assert load_cluster("dgx-a100-x2").n_devices == 16
    assert load_device("tpu-v4").name == "tpu-v4"


def test_a_file_of_the_working_folder_hides_a_shipped_one(folder):
    folder.write("models/palm-8b.toml", (folder.path / "models/tiny.toml").read_text())
    folder.spoil("models/palm-8b.toml", ('"tiny"', '"palm-8b"'))
    assert load_model("palm-8b").n_layers == 1
    assert [path.stem for path in files(Kind.MODEL)].count("palm-8b") == 1


def test_folders_of_planner_path_come_after_the_working_folder(folder, monkeypatch):
    for name, title in (("first", "First"), ("second", "Second")):
        folder.write(f"{name}/models/far.toml", (folder.path / "models/tiny.toml").read_text())
        folder.spoil(f"{name}/models/far.toml", ('"tiny"', '"far"'), ('"Tiny"', f'"{title}"'))
        folder.write(f"{name}/models/tiny.toml", "this would not load")
    monkeypatch.setenv("PLANNER_PATH", os.pathsep.join(["first", "", "missing", "second"]))
    assert load_model("far").title == "First"
    assert load_model("tiny").title == "Tiny"


def test_a_path_is_taken_as_it_is_and_may_have_any_name_inside(folder):
    folder.write("mine.toml", (folder.path / "models/tiny.toml").read_text())
    assert load_model("mine.toml").name == "tiny"
    assert load_model("./mine.toml").name == "tiny"
    assert load_model(str(folder.path / "mine.toml")).name == "tiny"


def test_an_unknown_name_is_answered_with_the_nearest_one(refused):
    error = refused(load_model, "palm540b")
    assert [(p.where, p.value, p.fact) for p in error.problems] == [
        ("--model", "palm540b", "no such model")
    ]
    assert error.hint == "did you mean `palm-540b`? `plan models` lists them all"


def test_a_name_like_no_other_is_answered_with_the_list(refused):
    assert refused(load_cluster, "qqq").hint == "`plan topologies` lists them all"
    assert refused(load_device, "qqq").hint == "`plan devices` lists them all"
    hint = refused(load_kernels, "qqq").hint  # which no command lists
    assert hint.startswith("there are `")
    assert hint.endswith(" others")
    assert hint.count("`") == 10


def test_a_name_like_another_is_answered_with_that_one(refused):
    assert refused(load_device, "h100sxm").hint.startswith("did you mean `h100-sxm`?")
    assert refused(load_engine, "vlm").hint == "did you mean `vllm`? `plan engines` lists them all"


def test_a_fabric_is_no_topology_for_a_plan(refused):
    error = refused(load_cluster, "h100-fat-tree-x64")
    assert [(p.value, p.fact) for p in error.problems] == [
        ("h100-fat-tree-x64", "is a fabric of leaves")
    ]
    assert "`plan place --topology h100-fat-tree-x64`" in error.problems[0].remedy
    assert "`h100-fat-tree-x64`" in refused(load_cluster, "h100-fat-tree-64").hint
    assert "fat-tree" not in refused(load_cluster, "h100").hint


def test_a_name_in_capitals_is_answered_in_small_letters(refused):
    assert "`tpu-v4-4x8x8`" in refused(load_cluster, "TPU-v4-4x8x8").hint


def test_a_value_that_its_pattern_does_not_allow_is_named_with_those_it_does(refused):
    error = refused(load_cluster, "tpu-v4-4x8x9")
    assert [(p.value, p.fact, p.remedy) for p in error.problems] == [
        (
            "tpu-v4-4x8x9",
            "`z` of `tpu-v4-{x}x{y}x{z}` cannot be 9",
            "it is 1, 2, 4, 8, 12 or 16",
        )
    ]
    assert error.hint == "did you mean `tpu-v4-4x8x8`?"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("h100", "h100-nvl8-x1"),
        ("2xH100", "h100-nvl8-x1"),
        ("16xh100", "h100-nvl8-x2"),
        ("v6e-8", "tpu-v6e-2x4"),
        ("tpu-v5e-16", "tpu-v5e-4x4"),
        ("gb200", "gb200-nvl72-x1"),
    ],
)
def test_devices_by_their_number_mean_the_smallest_pool_that_has_them(refused, name, meant):
    assert refused(load_cluster, name).hint.startswith(f"did you mean `{meant}`")


def test_fewer_devices_than_a_server_has_are_a_limit(refused):
    hint = refused(load_cluster, "2xh100").hint
    assert "`--max-devices 2` uses no more than 2 of its 8 devices. `plan topologies`" in hint
    for name in ("h100", "16xh100", "v6e-8", "h100-nvl9-x2"):
        assert "--max-devices" not in refused(load_cluster, name).hint


def test_a_name_with_a_dot_is_no_file_name(folder):
    assert load_model("llama-3.1-8b").title == "Llama 3.1 8B"


def test_every_value_that_is_not_allowed_is_told(refused):
    error = refused(load_cluster, "tpu-v4-3x8x9")
    assert [problem.fact[:3] for problem in error.problems] == ["`x`", "`z`"]


def test_a_range_is_told_by_its_ends(refused):
    error = refused(load_cluster, "dgx-a100-x1025")
    assert error.problems[0].remedy == "it is 1 to 1024"
    assert error.hint == "did you mean `dgx-a100-x1024`?"


def test_the_file_of_a_pattern_is_not_one_cluster(only_problem):
    problem = only_problem(load_cluster, "tpu-v4")
    assert problem.fact == "describes many clusters"
    assert problem.remedy.startswith("name one of them, like `tpu-v4-")


def test_a_machine_named_without_a_number_is_one_of_it():
    rack = load_cluster("gb200-nvl72")
    assert (rack.name, rack.n_devices) == ("gb200-nvl72-x1", 72)


def test_a_path_to_nothing_is_answered_with_the_nearest_file(folder, refused):
    error = refused(load_model, "models/tinny.toml")
    assert [(p.where, p.fact) for p in error.problems] == [("models/tinny.toml", "no such file")]
    assert error.hint == "did you mean `models/tiny.toml`?"


def test_a_name_written_as_a_file_is_answered_with_the_name(folder, refused):
    assert refused(load_model, "palm-62b.toml").hint == "did you mean `palm-62b`?"


def test_names_that_cannot_be_files_are_refused_calmly(folder, refused):
    assert refused(load_model, "").problems[0].fact == "is empty"
    for name in (" ", "a\0b", "x" * 5_000, "*", "{n}", "tpu-v4-{x}x{y}x{z}", "..", "\udcff"):
        assert refused(load_model, name).problems
        assert refused(load_cluster, name).problems
    for name in ("./", "/", "a\0/b.toml", "x" * 5_000 + ".toml", "models"):
        assert refused(load_model, name).problems


def test_a_spoilt_pattern_is_passed_over_when_others_are_looked_up(folder, refused):
    folder.spoil("topologies/box.toml", ("n = [1, 2, 4]", "n = []"))
    assert load_cluster("tpu-v4-1x1x1").n_devices == 1
    assert refused(load_cluster, "box").problems[0].key == "pattern.n"


def test_shipped_files_lie_inside_an_installed_package(folder, monkeypatch):
    """A wheel has `planner/_data/models`; there is no `models` beside the package."""
    monkeypatch.setattr(places, "__file__", str(folder.path / "planner/specs/files/places.py"))
    folder.write("planner/_data/models/packed.toml", "")
    assert "packed" in [path.stem for path in files(Kind.MODEL)]


def test_a_device_is_shared_by_clusters_of_other_folders(folder, monkeypatch):
    folder.write("far/topologies/lab.toml", (folder.path / "topologies/pair.toml").read_text())
    folder.spoil("far/topologies/lab.toml", ('"pair"', '"lab"'), ('"chip"', '"tpu-v4"'))
    monkeypatch.setenv("PLANNER_PATH", "far")
    assert load_cluster("lab").device.title == "TPU v4"


def test_a_device_of_the_user_is_that_of_shipped_clusters_too(folder):
    folder.write(
        "topologies/devices/a100-80gb.toml",
        (folder.path / "topologies/devices/chip.toml").read_text(),
    )
    folder.spoil("topologies/devices/a100-80gb.toml", ('"chip"', '"a100-80gb"'))
    assert load_cluster("dgx-a100-x2").device.title == "Chip"
    assert load_pool("h100-a100").groups[-1].cluster.device.title == "Chip"


def test_a_device_beside_a_cluster_of_the_user_is_its_own(folder):
    """That of the cluster's folder comes before that of the working folder: both are the user's."""
    folder.write("far/topologies/pair.toml", (folder.path / "topologies/pair.toml").read_text())
    chip = (folder.path / "topologies/devices/chip.toml").read_text()
    folder.write("far/topologies/devices/chip.toml", chip.replace('"Chip"', '"Far chip"'))
    assert load_cluster("far/topologies/pair.toml").device.title == "Far chip"


def test_a_pattern_of_the_user_is_before_a_name_that_ships(folder):
    """`gb200-nvl72` is a file that ships, and here one of the user's sizes of that rack."""
    folder.write("topologies/rack.toml", (folder.path / "topologies/box.toml").read_text())
    folder.spoil(
        "topologies/rack.toml", ('"box-{n}"', '"gb200-nvl{n}"'), ("\nn = [1, 2, 4]", "\nn = [72]")
    )
    assert load_cluster("gb200-nvl72").title == "Box 72 of 72"


def test_a_name_of_a_spoilt_pattern_is_answered_with_its_faults(folder, refused):
    """It had been `no such topology`, and a name near to it."""
    folder.spoil("topologies/box.toml", ("n = [1, 2, 4]", "n = []"))
    error = refused(load_cluster, "box-2")
    assert [(p.where, p.key) for p in error.problems] == [("topologies/box.toml", "pattern.n")]


def test_a_name_of_a_file_that_is_no_toml_is_answered_with_its_fault(folder, refused):
    folder.write("topologies/h100-nvl8.toml", "[cluster\n")
    (problem,) = refused(load_cluster, "h100-nvl8-x4").problems
    assert problem.where.startswith("topologies/h100-nvl8.toml:1:")


def test_an_unknown_name_is_told_beside_the_users_files_that_have_none(folder, refused):
    folder.write("models/other.toml", "[[")
    facts = [(p.where, p.fact[:13]) for p in refused(load_model, "palm540b").problems]
    assert facts[0] == ("--model", "no such model")
    assert facts[1][0].startswith("models/other.toml")
