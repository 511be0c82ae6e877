"""Notes and warnings beside an answer: what replaces what, what has no effect, and why."""

from planner.errors import Problem
from planner.report.messages import remarks_text
from planner.specs.files.ledger import ENGINES, DataFile, Ledger


def used(name, replaces=""):
    return DataFile(
        kind="device",
        name=name,
        path=f"topologies/devices/{name}.toml",
        sha256="0" * 64,
        is_shipped=False,
        replaces=replaces,
    )


def test_nothing_is_said_of_files_that_replace_none():
    ledger = Ledger()
    ledger.enter(used("mine"))
    assert remarks_text(ledger, 100) == ""


def test_a_file_that_replaces_one_is_a_note_and_a_remark_a_warning():
    ledger = Ledger()
    ledger.enter(used("h20", "topologies/devices/h20.toml"))
    fact, remedy = "has no effect", "leave it out"
    ledger.remark(
        Problem(where="mine.toml", key="a.b", value="3", fact=fact, remedy=remedy), "", ""
    )
    assert remarks_text(ledger, 100).splitlines() == [
        "note: `topologies/devices/h20.toml` replaces the device `h20` that ships",
        "warning: `mine.toml: a.b = 3` has no effect: leave it out",
    ]


def test_several_keys_are_told_in_full():
    keys = ", ".join(f"nodes.scale_up.key{i}" for i in range(6))
    ledger = Ledger()
    ledger.remark(Problem(where="mine.toml", key=keys, fact="have no effect"), "", "")
    assert keys in " ".join(remarks_text(ledger, 80).split())
    assert max(map(len, remarks_text(ledger, 80).splitlines())) <= 80


def test_a_remark_of_another_timing_is_not_told():
    ledger = Ledger()
    ledger.remark(Problem(where="mine.toml", key="a", fact="has no effect"), ENGINES, "")
    assert remarks_text(ledger, 80) == ""
    ledger.is_timed_by(ENGINES)
    assert remarks_text(ledger, 80) == "warning: `mine.toml: a` has no effect"


def test_a_name_is_escaped():
    ledger = Ledger()
    ledger.remark(Problem(where="a\x1b[31m\u202e", fact="is odd"), "", "")
    assert remarks_text(ledger, 80) == r"warning: `a\x1b[31m\u202e` is odd"
