"""`--layout`: which layout each phase must have, by the names that reports print."""

from __future__ import annotations

import pytest

from planner.quantities.units import UnitError
from planner.specs.ask.targets import Layouts, PhaseLayout, layouts_of


@pytest.mark.parametrize(
    ("text", "prefill", "decode"),
    [
        ("decode=WS2D", (None, None), ("WS2D", None)),
        ("prefill=WG XYZ, decode=WS 1D/heads", ("WG XYZ", None), ("WS 1D", "heads")),
        ("decode=batch", (None, None), (None, "batch")),
        ("decode=DP 2 × TP 4, EP 8,prefill=TP 8, EP 8", ("TP 8, EP 8", None),
         ("DP 2 × TP 4, EP 8", None)),
        ("prefill=WS1D/heads/4,decode=8", ("WS1D", "heads", 4), (None, None, 8)),
    ],
)  # fmt: skip
def test_each_phase_has_a_layout_and_what_attention_is_cut_over(text, prefill, decode):
    parts = ("name", "attention", "n_microbatches")
    both = (PhaseLayout(**dict(zip(parts, one, strict=False))) for one in (prefill, decode))
    assert layouts_of(text) == Layouts(**dict(zip(("prefill", "decode"), both, strict=True)))
    assert layouts_of(layouts_of(text).text).text == layouts_of(text).text


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("WS2D", "does not say of which phase"),
        ("decoding=WS2D", "`decoding` is no phase"),
        ("decode=WS2D,decode=WS1D", "says twice what decode is"),
        ("decode=", "is no layout"),
        ("decode=WS2D/", "is no layout"),
        ("decode=WS2D/WS1D", "is no layout"),
        ("decode=heads/batch", "is no layout"),
        ("decode=WS1D/2/4", "is no layout"),
        ("decode=WS1D/0", "is zero"),
    ],
)
def test_what_is_written_otherwise_is_refused(text, fact):
    with pytest.raises(UnitError) as caught:
        layouts_of(text)
    assert fact in caught.value.fact
    assert caught.value.remedy


def test_neither_capitals_nor_marks_count_in_a_name():
    asked = PhaseLayout(name="dp2xtp4-ep 8", attention="batch")
    assert asked.is_met("DP 2 × TP 4, EP 8", "batch")
    assert not asked.is_met("DP 2 × TP 4, EP 8", "heads")
    assert not asked.is_met("DP 2 × TP 4, EP 16", "batch")
    assert PhaseLayout().is_met("WS 2D", "heads")


def test_parts_of_a_pipelines_pass_count_where_both_name_them():
    asked = PhaseLayout(name="WS1D", n_microbatches=4)
    assert asked.is_met("WS 1D", "heads", 4)
    assert not asked.is_met("WS 1D", "heads", 8)
    assert asked.is_met("WS 1D", "heads")
    assert PhaseLayout(name="WS1D").is_met("WS 1D", "heads", 8)
