"""The report of a plan under the reference model: what it says, and that it fits its width."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from planner.planning import plans as planning
from planner.specs.ask.targets import Speculation, Targets
from planner.specs.files.reading import load_cluster, load_model
from tests.report.rendering import report_line, report_text


@pytest.fixture(scope="module")
def plan():
    return planning.plan(
        load_model("deepseek-v3"),
        load_cluster("h100-nvl8-x4"),
        "erdil2025",
        targets=Targets(tpot_s=0.030),
        weights_formats=("fp8",),
        speculation=Speculation(draft=replace(load_model("llama-3-8b"), vocab_size=129_280)),
    )


def test_the_first_line_is_what_to_run_and_what_it_does(plan):
    best = plan.deployment
    line = report_line(plan)
    assert line.startswith(f"{best.n_devices} devices {best.layout.label}, fp8 weights")
    assert "tok/s per user" in line
    assert "/Mtoken" in line


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_line_is_wider_than_asked(plan, width: int):
    assert max(map(len, report_text(plan, width).splitlines())) <= width


def test_the_parts_of_a_pass_that_are_not_hidden_add_up_to_it(plan):
    """In per cent of the pass, three digits each."""
    text = report_text(plan, 100)
    section = text.partition("where the time goes")[2].partition("\n\n")[0]
    shares = [float(share) for share in re.findall(r"([\d.]+) %", section)]
    assert sum(shares) == pytest.approx(100.0, abs=0.3)
    assert section.count("hidden behind the other") == 1


def test_what_the_model_leaves_out_and_how_memory_counts_is_said(plan):
    text = report_text(plan, 100)
    assert "first layers without experts" in text
    assert "in-flight: weights and caches of all requests in flight" in text
    assert "optimal: no plan with the batches offered is better" in text
