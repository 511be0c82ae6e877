"""Recipes of one phase: what people read of them, and what is read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.report.as_json import record_json
from planner.report.decoding import ANSWERS
from planner.results.placements import RunConfig
from planner.specs.records.roles import DECODE, PREFILL
from tests.placing.test_phase_configurations import _slices
from tests.report.placements import PLACEMENT
from tests.report.rendering import report_text


def _recipe(role: str) -> RunConfig:
    offered, _ = _slices(32, "int8")
    one = next(one for one in offered.configurations if one.role == role)
    return replace(PLACEMENT.recipes[0], deployment=one.deployment(), role=role)


@pytest.mark.parametrize("role", [PREFILL, DECODE])
def test_it_is_read_back_as_it_was(role):
    recipe = _recipe(role)
    assert ANSWERS.read(RunConfig, record_json(recipe), "answer.json") == (recipe, [])


@pytest.mark.parametrize(
    ("role", "has", "lacks"),
    [(PREFILL, " before the hand-over", "TPOT"), (DECODE, "TPOT", "TTFT")],
)
def test_its_phase_is_said_and_nothing_of_the_other(role, has, lacks):
    recipe = _recipe(role)
    placement = replace(PLACEMENT, recipes=(recipe, *PLACEMENT.recipes[1:]))
    text = report_text(placement, 100).partition("recipes")[2].partition("  1  ")[0]
    first = text.partition("within one")[0]
    assert f"{recipe.model} to {role} on" in first
    assert has in first
    assert lacks not in first
