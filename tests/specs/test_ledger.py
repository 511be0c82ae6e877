"""What a request reads is entered with its digest, by request and thread; nothing piles up."""

from hashlib import sha256
from threading import Barrier, Thread

import pytest

from planner.errors import Problem
from planner.specs.files.ledger import files_used, recording, remark, used_if_read
from planner.specs.files.places import shipped_file
from planner.specs.files.reading import load_cluster, load_device, load_model
from planner.specs.files.state import load_state


def test_files_are_entered_as_they_are_read_with_the_digest_of_their_bytes(folder):
    content = (folder.path / "models/tiny.toml").read_bytes()
    with recording():
        load_model("tiny")
        (one,) = files_used()
    assert (one.kind, one.name, one.path) == ("model", "tiny", "models/tiny.toml")
    assert one.sha256 == sha256(content).hexdigest()
    assert not one.is_shipped
    assert one.replaces == ""


def test_a_byte_order_mark_is_part_of_the_digest(folder):
    content = b"\xef\xbb\xbf" + (folder.path / "models/tiny.toml").read_bytes()
    (folder.path / "models/tiny.toml").write_bytes(content)
    with recording() as ledger:
        load_model("tiny")
    assert ledger.files[0].sha256 == sha256(content).hexdigest()


def test_a_cluster_enters_its_device_too_and_a_file_that_ships_has_a_path_of_its_own(folder):
    with recording() as ledger:
        load_cluster("dgx-a100-x2")
    assert [(one.kind, one.name, one.path, one.is_shipped) for one in ledger.files] == [
        ("topology", "dgx-a100-x2", "topologies/dgx-a100.toml", True),
        ("device", "a100-80gb", "topologies/devices/a100-80gb.toml", True),
    ]


def test_files_that_are_only_looked_through_are_not_entered(folder):
    with recording() as ledger:
        load_cluster("box-2")  # the pattern is found by reading every file
    assert [one.path for one in ledger.files] == [
        "topologies/box.toml",
        "topologies/devices/chip.toml",
    ]


def test_what_a_file_of_the_user_hides_is_named(folder):
    folder.write(
        "topologies/devices/a100-80gb.toml",
        (folder.path / "topologies/devices/chip.toml").read_text(),
    )
    folder.spoil("topologies/devices/a100-80gb.toml", ('"chip"', '"a100-80gb"'))
    with recording() as ledger:
        load_device("a100-80gb")
    assert ledger.files[0].replaces == "topologies/devices/a100-80gb.toml"


def test_a_copy_of_a_file_that_ships_replaces_nothing(folder):
    shipped = shipped_file("topologies/devices/a100-80gb.toml")
    folder.write("topologies/devices/a100-80gb.toml", shipped.read_text(encoding="utf-8"))
    with recording() as ledger:
        load_device("a100-80gb")
    (file,) = ledger.files
    assert not file.is_shipped
    assert file.replaces == ""


def test_a_file_asked_for_by_its_path_hides_none(folder):
    folder.write("models/palm-8b.toml", (folder.path / "models/tiny.toml").read_text())
    with recording() as ledger:
        load_model("models/palm-8b.toml")
    assert [one.replaces for one in ledger.files] == [""]


def test_a_file_by_its_path_has_that_for_a_name(folder):
    folder.write("state.toml", 'busy = ["node0"]')
    with recording() as ledger:
        load_state("state.toml")
    assert [(one.kind, one.name) for one in ledger.files] == [("state", "state.toml")]


def test_a_file_with_faults_was_read_too(folder, refused):
    folder.spoil("models/tiny.toml", ("n_layers = 1", "n_layers = 0"))
    with recording() as ledger:
        refused(load_model, "tiny")
        refused(load_model, "missing")
    assert [one.name for one in ledger.files] == ["tiny"]


def test_of_a_file_that_is_left_out_nothing_is_kept(folder, refused):
    """Of the two only one has faults; what the other's has to say stays said."""
    folder.spoil("models/tiny.toml", ("n_layers = 1", "n_layers = 0"))

    def model(name):
        with used_if_read():
            remark(Problem(where=name, fact="was looked at"))
            return load_model(name)

    with recording() as ledger:
        refused(model, "tiny")
        with used_if_read():
            remark(Problem(where="chip", fact="was looked at"))
            load_device("chip")
    assert [one.name for one in ledger.files] == ["chip"]
    assert [one.where for one in ledger.remarks] == ["chip"]


def test_each_thread_has_a_ledger_of_its_own(folder):
    """Both read at once, many times; each has its own file, once."""
    together, found = Barrier(2), {}

    def read(load, name):
        with recording() as ledger:
            together.wait(10)
            for _ in range(20):
                load(name)
        found[name] = [one.name for one in ledger.files]

    threads = [
        Thread(target=read, args=(load, name))
        for load, name in ((load_model, "tiny"), (load_device, "chip"))
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert found == {"tiny": ["tiny"], "chip": ["chip"]}


def test_an_inner_ledger_keeps_its_files_from_the_outer_one(folder):
    with recording() as outer:
        load_model("tiny")
        with recording() as inner:
            load_device("chip")
        assert [one.kind for one in files_used()] == ["model"]
    assert [one.kind for one in inner.files] == ["device"]
    assert [one.kind for one in outer.files] == ["model"]


def test_nothing_is_kept_where_no_ledger_is_open(folder):
    load_model("tiny")
    remark(Problem(where="here", fact="is said to nobody"))
    assert files_used() == ()


def test_a_remark_is_kept_once():
    said = Problem(where="here", fact="has no effect")
    with recording() as ledger:
        remark(said)
        remark(said)
    assert ledger.remarks == (said,)


@pytest.mark.parametrize("fails", [True, False])
def test_a_ledger_closes_whatever_happens(fails):
    with pytest.raises(ZeroDivisionError) if fails else recording(), recording():
        _ = 1 / (0 if fails else 1)
    assert files_used() == ()
