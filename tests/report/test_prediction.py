"""What the lines of a pass leave out where there is nothing of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.predictions import PREDICTION
from tests.report.rendering import report_text


def with_pass(**changes):
    first, *others = PREDICTION.passes
    return report_text(replace(PREDICTION, passes=(replace(first, **changes), *others)), 100)


@pytest.mark.parametrize(("hidden_s", "shown"), [(0.0, ""), (2e-3, "−2 ms"), (3.0, "−3 s")])
def test_time_that_hides_behind_another_is_a_line_of_its_own(hidden_s, shown):
    text = with_pass(hidden_s=hidden_s)
    lines = [line for line in text.splitlines() if "hidden by overlap" in line]
    assert len(lines) == bool(shown)
    assert all(shown in line for line in lines)


def test_a_host_that_takes_no_time_has_no_line():
    hosts = with_pass(host_s=1e-3).count("  host ")
    assert with_pass(host_s=0.0).count("  host ") == hosts - 1
