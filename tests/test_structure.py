"""The measures of structure count what they say, and none of these gets worse."""

from __future__ import annotations

import ast

import pytest
from networkx import strongly_connected_components

from tests.structure import (
    ROOT,
    Module,
    branches,
    builds_certificate,
    files_of_options,
    imports,
    is_deletion_filter,
    lines_of_code,
    measures,
    mixed_tuples,
    plain_name,
    process_words,
    spellings,
    table,
)

CEILINGS = {
    "lines": 104_840,
    "… beside it": 14_025,
    "lines of code": 69_310,
    "… of code beside it": 9_680,
    "modules": 559,
    "… modules beside it": 68,
    "entries of the largest folder below": 25,
    "modules of more than 300 lines": 31,
    "files that options touch": 92,
    "… the widest of them": 24,
    "… on average, in tenths": 44,
    "files that limits touch": 96,
    "entries at the top": 19,
    "functions of more than 10 branches": 65,
    "builders of certificates": 3,
    "deletion filters": 1,
    "records of a conflict": 3,
    "mixed tuples as parameters": 29,
    "process words as variables": 22,
}
"""As many as there were; whoever has fewer lowers the number."""


@pytest.fixture(scope="module")
def measured():
    """Measures by name, without what stands in brackets behind some."""
    return {plain_name(name): value for name, value in measures(ROOT).items()}


@pytest.mark.parametrize(("name", "most"), CEILINGS.items())
def test_no_measure_gets_worse(measured, name, most):
    assert measured[name] <= most


@pytest.mark.parametrize(("name", "most"), CEILINGS.items())
def test_the_document_has_what_is_held(name, most):
    rows = (ROOT / "docs" / "structure.md").read_text(encoding="utf-8").splitlines()
    assert any(row.startswith(f"| {name} |") and row.endswith(f" {most:,} |") for row in rows)


def test_no_modules_import_each_other_not_even_for_types():
    graph = imports(ROOT)
    # the page answers by the command that opens it
    graph.remove_nodes_from([it for it in graph if it.startswith("planner_workshop.exploring")])
    assert [sorted(names) for names in strongly_connected_components(graph) if len(names) > 1] == []


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


def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings():
    one = '''"""Title.

Text.
"""

# a comment
a = """not a
docstring"""  # behind code
b = 1
"""Of b."""
'''
    assert lines_of_code(one, ast.parse(one)) == 3


def test_an_option_touches_the_files_that_declare_spell_or_read_it():
    texts = {
        "commands/options/a.py": "class A:\n    max_tp: Annotated[str, 1]\n    other: int",
        "commands/options/t.py": "Option('--pp N', words), Option('NAME', words)",
        "quantities/table.py": 'Quantity(option="--max-rent")',
        "specs/b.py": '"""--max-tp"""\na = "give `--max-tp 2`"\nb = "--max-tp-more"',
        "commands/c.py": "read(written.max_tp, said.pp, deployment.max_rent)",
    }
    modules = [
        Module(name=name, n_lines=1, n_code=1, tree=ast.parse(text)) for name, text in texts.items()
    ]
    assert files_of_options(modules) == {
        "--max-rent": {"quantities/table.py"},
        "--max-tp": {"commands/options/a.py", "specs/b.py", "commands/c.py"},
        "--pp": {"commands/options/t.py", "commands/c.py"},
    }


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


@pytest.mark.parametrize(
    ("text", "n_places"),
    [
        ("def f(one, *found, **asked): ...", 3),
        ("f(lambda one: one.x)", 1),
        ("class A:\n  found: int\n  def f(self):\n    self.found = 1", 2),
        ("found = 1\nfound, other = 2, found\nother.found = 3", 2),
        ("for one in xs:\n  f(\n   one)", 0),
        ("for one in xs:\n  f(one)\n\n  g(one)", 1),
        ("total = [\n  one\n  for one in xs\n]", 1),
        ("total = {one: found for one, found in xs if (asked := one)}", 1),
        ("with a() as found:\n  f(found)", 0),
        ("from a import one, b as found", 2),
    ],
)
def test_a_process_word_names_a_variable_where_it_is_bound(text, n_places):
    assert len(process_words(ast.parse(text))) == n_places


def test_revisions_stand_side_by_side():
    shown = table({"then": {"modules": 1200}, "now": {"modules": 900, "of (planner/x)": 1}})
    assert "| modules | 1,200 | 900 |" in shown
