"""One file describes many clusters; a name picks one, or is told what it may be."""

import pytest

from planner.specs.files.patterns import Pattern, read_pattern, substitute

BOX = Pattern(name="box-{x}x{y}", allowed={"x": (1, 2), "y": (4, 8)})


def test_a_name_that_fits_yields_its_numbers_allowed_or_not():
    assert BOX.match("box-2x8") == {"x": 2, "y": 8}
    assert BOX.match("box-3x9") == {"x": 3, "y": 9}


@pytest.mark.parametrize(
    "name", ["box-2", "box-2x", "box-2x8x", "box-02x8", "box--2x8", "xbox-2x8", "box-2x8\n", ""]
)
def test_a_name_that_does_not_fit_yields_nothing(name):
    assert BOX.match(name) is None


def test_dots_of_a_name_are_dots():
    pattern = Pattern(name="v1.5-{n}", allowed={"n": (1,)})
    assert pattern.match("v1.5-1") == {"n": 1}
    assert pattern.match("v1x5-1") is None


def test_the_nearest_name_takes_the_nearest_value_and_the_lower_of_two():
    assert BOX.disallowed({"x": 2, "y": 6}) == ["y"]
    assert BOX.nearest({"x": 2, "y": 6}) == "box-2x4"
    assert BOX.nearest({"x": 9, "y": 7}) == "box-2x8"


def test_instances_are_every_combination():
    assert BOX.some_names(100) == ["box-1x4", "box-1x8", "box-2x4", "box-2x8"]


def test_a_text_that_is_one_placeholder_becomes_a_number():
    table = {"pattern": {"n": [3]}, "a": {"n": "{n}", "t": "{n} of {other}", "l": ["{n}", 7]}}
    assert substitute(table, {"n": 3}) == {"a": {"n": 3, "t": "3 of {other}", "l": [3, 7]}}


def test_a_range_and_a_list_say_what_is_allowed():
    table = {
        "cluster": {"name": "a-{n}-{m}"},
        "pattern": {"n": {"from": 2, "to": 4}, "m": [8, 1, 8]},
    }
    pattern, problems = read_pattern(table, "x.toml")
    assert not problems
    assert pattern.allowed == {"n": (2, 3, 4), "m": (1, 8)}


@pytest.mark.parametrize(
    ("name", "listed", "key"),
    [
        ("a-{n}", {}, "pattern.n"),
        ("a-{n}", {"n": []}, "pattern.n"),
        ("a-{n}", {"n": [0]}, "pattern.n"),
        ("a-{n}", {"n": [True]}, "pattern.n"),
        ("a-{n}", {"n": "many"}, "pattern.n"),
        ("a-{n}", {"n": {"from": 4, "to": 1}}, "pattern.n"),
        ("a-{n}", {"n": {"from": 1, "to": 10**8}}, "pattern.n"),
        ("a-{n}", {"n": [1], "m": [1]}, "pattern.m"),
        ("a", {"m": [1]}, "pattern.m"),
        ("a-{n}-{n}", {"n": [1]}, "cluster.name"),
        ("a-{n}", 3, "pattern"),
        ("a", {}, "pattern"),
    ],
)
def test_a_pattern_with_a_fault_names_the_key(name, listed, key):
    pattern, problems = read_pattern({"cluster": {"name": name}, "pattern": listed}, "x.toml")
    assert pattern is None
    assert [problem.key for problem in problems] == [key]
