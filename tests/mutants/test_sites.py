"""Faults are written where they should be, and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.mutants.sites import mutants

ROOT = Path(__file__).parents[2]


def written(tmp_path, text):
    path = tmp_path / "module.py"
    path.write_text(text, encoding="utf-8")
    return {mutant.applied(text) for mutant in mutants(tmp_path, path)}


def test_each_operator_is_replaced_by_itself(tmp_path):
    text = "a = b + c * (d - 1)\n"
    assert written(tmp_path, text) == {
        "a = b - c * (d - 1)\n",
        "a = b + c / (d - 1)\n",
        "a = b + c * (d + 1)\n",
        "a = b + c * (d - 2)\n",
    }


def test_comparisons_move_their_boundary_or_turn_round(tmp_path):
    assert written(tmp_path, "a = 0 <= b < 3\n") == {
        "a = 0 < b < 3\n",
        "a = 0 > b < 3\n",
        "a = 0 <= b <= 3\n",
        "a = 0 <= b >= 3\n",
        "a = 0 <= b < 4\n",
    }
    assert written(tmp_path, "a = b is not None\n") == {"a = b is None\n"}
    assert written(tmp_path, "a = b not in c\n") == {"a = b in c\n"}


def test_words_are_swapped_and_negations_dropped(tmp_path):
    assert written(tmp_path, "a = not b and c or d\n") == {
        "a = b and c or d\n",
        "a = not b or c or d\n",
        "a = not b and c and d\n",
    }
    assert written(tmp_path, "a = max(b, -c)\n") == {"a = min(b, -c)\n", "a = max(b, +c)\n"}


def test_letters_of_more_than_a_byte_shift_nothing(tmp_path):
    assert written(tmp_path, 'a = {"×": "–"}[b] + c\n') == {'a = {"×": "–"}[b] - c\n'}


def test_texts_annotations_and_what_is_raised_stay(tmp_path):
    text = '''
"""1 + 1"""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    x = 1 + 1
def f(a: "b < c", d: int | None = None) -> "e + f":
    """g and h"""
    assert a < d
    message = "i" + f"{a + d}"
    if "x":
        raise ValueError(a + d)
def __repr__(self):
    return self.a + self.b
'''
    assert written(tmp_path, text) == set()


def test_a_module_can_be_parsed_with_any_of_its_faults():
    path = ROOT / "planner" / "equations" / "collectives.py"
    source = path.read_text(encoding="utf-8")
    found = mutants(ROOT, path)
    assert len(found) >= 10
    for mutant in found:
        assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source)), mutant
