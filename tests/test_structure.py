"""The measures of structure count what they say, and none of these gets worse."""

from __future__ import annotations

import ast

import pytest

from tests.structure import (
    ROOT,
    branches,
    builds_certificate,
    is_deletion_filter,
    measures,
    mixed_tuples,
    spellings,
    table,
)

CEILINGS = {
    "entries at the top": 20,
    "functions of more than 10 branches": 142,
    "builders of certificates": 3,
    "deletion filters": 2,
    "records of a conflict": 3,
    "mixed tuples as parameters": 41,
}
"""As many as there were; whoever has fewer lowers the number."""


@pytest.fixture(scope="module")
def measured():
    return measures(ROOT)


@pytest.mark.parametrize(("name", "most"), CEILINGS.items())
def test_no_measure_gets_worse(measured, name, most):
    assert measured[name] <= most


def function(text):
    return next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))


def test_branches_are_those_of_a_function_alone():
    one = """
def f(xs):
    if xs and xs[0] or not xs:
        return [x for x in xs if x] if xs else []
    def inner():
        return 1 if xs else 2
    for x in xs:
        pass
"""
    # if, and, or, for and if of the comprehension, conditional expression, for
    assert branches(function(one)) == 7


def test_a_limit_is_spelt_by_name_option_and_field_of_targets():
    one = '''
"""tpot in a docstring, --latency-target too."""
a = "tpot"
b = "give `--latency-target 30ms`"
c = "--latency-targets"
d = request.targets.tpot_s
e = deployment.tpot_s
f = Targets(tpot_s=1.0, ttft_s=2.0)
g = written.latency_target
'''
    found = spellings(ast.parse(one))
    assert (found["tpot"], found["ttft"], found["cost"]) == (5, 1, 0)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("rest = [o for o in kept if o != name]\n  if not holds(rest):\n   kept = rest", True),
        ("if fails(name):\n   kept.remove(name)", True),
        ("rest = [o for o in kept if o != name]\n  said.append(rest)", False),
        ("if fails(name):\n   kept.append(name)", False),
    ],
)
def test_a_deletion_filter_is_known_by_what_it_does(body, expected):
    assert (
        is_deletion_filter(function(f"def f(kept):\n for name in list(kept):\n  {body}"))
        is expected
    )


def test_a_builder_returns_a_certificate():
    assert builds_certificate(function("def f() -> Certificate: ..."))
    assert not builds_certificate(function("def f() -> list[Certificate]: ..."))


def test_a_mixed_tuple_has_several_types_and_a_length():
    one = "def f(a: tuple[int, str], b: tuple[int, ...], *, c: dict[str, tuple[A, B]]): ..."
    assert mixed_tuples(function(one)) == ["a", "c"]


def test_revisions_stand_side_by_side():
    shown = table({"then": {"modules": 1200}, "now": {"modules": 900, "of (planner/x)": 1}})
    assert "| modules | 1,200 | 900 |" in shown
