"""State files: what they say, what their names stand for, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.files.naming import resolve_state
from planner.specs.files.state import State, load_state

DEVICES = [f"node{n}/gpu{i}" for n in range(12) for i in range(2)]

WHOLE = """
busy = ["node0", "node{10..11}/gpu0"]
failed = ["node2/gpu1"]
reserved = ["leaf1"]
[owners]
"node0" = "training"
[[slow]]
devices = ["node3/*"]
speed = "80%"
[[link]]
nic = ["node2/gpu0"]
down = true
[[link]]
uplink = ["leaf0"]
bandwidth = "50%"
"""


def _read(tmp_path: Path, text: str) -> State:
    file = tmp_path / "state.toml"
    file.write_text(text)
    return load_state(str(file))


def test_names_stand_for_devices_nodes_runs_and_groups(tmp_path: Path) -> None:
    state = _read(tmp_path, WHOLE)
    leaves = {"leaf1": ["node4/gpu0", "node4/gpu1"]}
    found = resolve_state(state, DEVICES, ["leaf0", "leaf1"], groups=leaves)
    assert found.taken == {
        "node0/gpu0": "busy",
        "node0/gpu1": "busy",
        "node10/gpu0": "busy",
        "node11/gpu0": "busy",
        "node2/gpu1": "failed",
        "node4/gpu0": "reserved",
        "node4/gpu1": "reserved",
    }
    assert found.owner == {"node0/gpu0": "training", "node0/gpu1": "training"}
    assert found.speed_fraction == {"node3/gpu0": 0.8, "node3/gpu1": 0.8}
    assert (found.nic_fraction, found.uplink_fraction) == ({"node2/gpu0": 0.0}, {"leaf0": 0.5})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("h100/leaf0", ["h100/leaf0"]),
        ("h100", ["h100/leaf0", "h100/leaf1"]),  # all that are below it
        ("*/leaf1", ["h100/leaf1", "a100/leaf1"]),
        ("h100/leaf[0-1]", ["h100/leaf0", "h100/leaf1"]),
    ],
)
def test_names_of_switches_stand_for_one_for_those_below_or_for_all_that_match(
    tmp_path, name, meant
):
    state = _read(tmp_path, f'[[link]]\nuplink = ["{name}"]\ndown = true\n')
    switches = ["h100/leaf0", "h100/leaf1", "a100/leaf0", "a100/leaf1"]
    assert resolve_state(state, DEVICES, switches).uplink_fraction == dict.fromkeys(meant, 0.0)


def test_a_link_between_two_names_keeps_both(tmp_path: Path) -> None:
    state = _read(tmp_path, '[[link]]\nbetween = ["node0/gpu0", "node1/gpu1"]\ndown = true\n')
    assert resolve_state(state, DEVICES).between == (("node0/gpu0", "node1/gpu1", 0.0),)


def test_contradictions_and_unknown_names_are_told_together(tmp_path: Path) -> None:
    text = """
busy = ["node0", "nod1"]
failed = ["node0/gpu1", "node5"]
[owners]
"node7" = "nobody"
[[slow]]
devices = ["node5"]
speed = 0.5
"""
    with pytest.raises(SpecError) as caught:
        resolve_state(_read(tmp_path, text), DEVICES)
    text = str(caught.value)
    for words in (
        "busy `nod1`  no such device",
        "failed `node0/gpu1`  is busy too",
        "slow `node5/gpu0`  is failed, not slow",
        "owners `node7`  owns what is not busy",
    ):
        assert words in text


def test_faults_of_links_are_told_together(tmp_path: Path) -> None:
    text = """
[[link]]
down = true
[[link]]
nic = ["node0"]
[[link]]
between = ["node0/gpu0"]
bandwidth = 0.5
down = true
"""
    with pytest.raises(SpecError) as caught:
        _read(tmp_path, text)
    text = str(caught.value)
    assert "link[0]  names no link" in text
    assert "link[1]  says nothing of the link" in text
    assert "link[2]  is down and has a bandwidth" in text
    assert "names 1 ends of a link" in text


def test_a_file_that_is_not_there_or_has_unknown_keys_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file"):
        load_state(str(tmp_path / "none.toml"))
    with pytest.raises(SpecError, match="did you mean `failed`"):
        _read(tmp_path, 'failled = ["node0"]\n')


def _faults(state: State) -> list[str]:
    with pytest.raises(SpecError) as caught:
        resolve_state(state, DEVICES)
    return [problem.fact for problem in caught.value.problems]


@pytest.mark.parametrize(
    "names",
    [
        ("node{0..99999}{0..99999}", "node{0..9}"),
        ("node{0..999999999}", "nowhere{0..99999}{0..9}"),
        ("{0..600000}", "{1..600000}"),
    ],
)
def test_names_of_millions_of_devices_are_refused_once_and_at_once(names):
    assert [fact for fact in _faults(State(failed=names)) if "none of the cluster" not in fact] == [
        "makes more than 1,000,000 names"
    ]


def test_a_thousand_names_with_wildcards_are_looked_up_and_no_more():
    facts = _faults(State(busy=tuple(f"*{i}*" for i in range(50_000))))
    assert facts.count("makes more than 1,000 names with `*`, `?` or `[`") == 1
    assert len(facts) < 1_001


def test_of_many_unknown_names_the_first_are_told_what_was_meant():
    with pytest.raises(SpecError) as caught:
        resolve_state(State(busy=tuple(f"nodx{i}" for i in range(50))), DEVICES)
    meant = [bool(problem.remedy) for problem in caught.value.problems]
    assert meant == [True] * 20 + [False] * 30
