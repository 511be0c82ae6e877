"""Values against type hints, and numbers against their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from planner.specs.validation.calls import Calls
from planner.specs.validation.hints import hints_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    n_devices: int = 1
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    part: Part = Part()
    parts: tuple[Part, ...] = ()
    hbm_bytes: float = 1.0
    loss: float | None = None


CALLS = Calls(fields={"Part.n_devices": "--devices"}, makers={"Whole": "load_whole"})


def conform(value: object, hint: Any, name: str = "value") -> tuple[Any, list[str]]:
    found = CALLS.conform({name: value}, {name: hint}, {})
    return found.arguments[name], [str(one) for one in (*found.misfits, *found.faults)]


@pytest.mark.parametrize(
    ("value", "hint", "result"),
    [
        (3, int, 3),
        (np.int64(3), int, 3),
        (np.array(3), int, 3),
        (3, float, 3.0),
        (Fraction(1, 2), float, 0.5),
        (np.float32(0.5), float, 0.5),
        (None, int | None, None),
        ("cost", Literal["cost", "rent"], "cost"),
        ([1, np.int64(2)], Sequence[int], (1, 2)),
        (range(1, 3), Sequence[int], range(1, 3)),
        (np.array([1, 2]), Sequence[int], (1, 2)),
        ({"a": np.float64(1)}, Mapping[str, float], {"a": 1.0}),
        ((1, "a"), tuple[int, str], (1, "a")),
        (print, Callable[[int], None], print),
        (print, Callable[[int], None] | None, print),
        (Whole(), Whole, Whole()),
        ([Part()], Part | Sequence[Part], [Part()]),
        (object, Any, object),
    ],
)
def test_what_conforms_is_handed_on_in_plain_numbers(value, hint, result):
    found, wrong = conform(value, hint)
    assert wrong == []
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("value", "hint", "said"),
    [
        (True, int, "value `True`  is no whole number"),
        (2.0, int, "value `2.0`  is no whole number"),
        (None, int, "value `None`  is no whole number"),
        ("3", float, "value `'3'`  is no number"),
        (1j, float | None, "value `1j`  is no number"),
        (1, bool, "value `1`  is no yes or no, True or False"),
        (b"x", str, "value `b'x'`  is no word"),
        ("bf16", Sequence[str], "value `'bf16'`  is no list of words: write `value=[\"bf16\"]`"),
        (iter([1]), Sequence[int], "is no list of whole numbers"),
        ([1, None], Sequence[int], "value: [1] `None`  is no whole number"),
        ((1,), tuple[int, int], "value: [1] `(1,)`  is missing"),
        (range(10**12), Sequence[int], "has more than 2,000,000 entries"),
        ([], Mapping[str, float], "value `[]`  is no mapping"),
        ({"a": "b"}, Mapping[str, float], "value: a `'b'`  is no number"),
        ({1: 1.0}, Mapping[str, float], "value `1`  is no word"),
        (3, Callable[[], None], "value `3`  is no function"),
        ("w", Whole, "is no Whole: `load_whole` makes one of a name"),
        (3, Part, "is no Part: write `Part(...)`"),
        (3, Part | Whole, "is no Part or Whole: `load_whole` makes one"),
        (Whole(part=3), Whole, "value: part `3`  is no Part"),
        (Whole(parts=(Part(names=(3,)),)), Whole, "value: parts[0].names[0] `3`  is no word"),
        (Whole(part=Part(n_devices="2")), Whole, "--devices `'2'`  is no whole number"),
        (np.array(["a"]), NDArray[np.float64] | Sequence[float], "value: [0] `'a'`  is no number"),
    ],
)
def test_what_has_another_type_is_named_with_the_way_to_it(value, hint, said):
    _, wrong = conform(value, hint)
    assert len(wrong) == 1
    assert said in wrong[0]


@pytest.mark.parametrize(
    ("name", "value", "fact"),
    [
        ("n_devices", 0, "is zero"),
        ("n_devices", -1, "is negative"),
        ("n_devices", 10**10, "is above 1,000,000,000"),
        ("seed", 0, ""),
        ("seed", 2**31, "is above 2,147,483,647"),
        ("hbm_bytes", 0.0, "is zero"),
        ("reserve_bytes", 0.0, ""),
        ("hbm_bytes", 1e-20, "is beyond anything real, 1 B to 1 EB"),
        ("link_bytes_per_s", 1e30, "is beyond anything real, 1 B/s to 1 EB/s"),
        ("hop_s", 0.0, ""),
        ("tpot_s", 0.0, "is zero"),
        ("usd_per_hour", math.nan, "is not a finite number"),
        ("usd_per_hour", math.inf, "is not a finite number"),
        ("loss", 1.0, "is not below 1"),
        ("gap", 0.0, ""),
        ("compute_fraction", 1.5, "is above 1"),
        ("compute_fraction", 0.0, "is zero"),
        ("hit_fraction", 0.0, ""),
        ("alpha", -0.5, "is negative"),
    ],
)
def test_a_number_is_judged_by_what_its_name_says(name, value, fact):
    _, wrong = conform(value, type(value), name)
    assert wrong == ([f"{name} `{value}`  {fact}"] if fact else [])


def test_a_whole_number_of_hundreds_of_digits_is_no_float():
    """Nothing can be computed with it, so it is told before anything is tried."""
    for hint in (float, int):
        found = CALLS.conform({"tpot_s": 10**400}, {"tpot_s": hint}, {})
        assert [one.fact for one in found.misfits] == [
            "has hundreds of digits, too many to compute with"
        ]


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Whole, part=inner, loss=inner)
    ),
    max_leaves=8,
)
HINTS = (int, float, str, bool, int | None, Sequence[int], Mapping[str, float], Whole, Part | Whole)


@settings(max_examples=400)
@given(
    value=ANYTHING, hint=st.sampled_from(HINTS), name=st.sampled_from(["x", "n_x", "x_s", "gap"])
)
def test_anything_conforms_or_is_told_and_nothing_is_raised(value, hint, name):
    found, wrong = conform(value, hint, name)
    again, twice = conform(found, hint, name)
    assert twice == wrong or not wrong
    if not wrong:
        assert again is found  # nothing is left to mend


def test_hints_that_are_there_for_types_only_may_be_anything():
    def asked(graph: nx.Graph[Any], n: int, other: somewhere.Else) -> None:  # type: ignore[name-defined]  # noqa: F821
        """With names that are not there at run time."""

    hints = hints_of(asked)
    assert hints["n"] is int
    assert conform(object(), hints["graph"])[1] == []
    assert conform(object(), hints["other"])[1] == []
