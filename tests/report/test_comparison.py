"""Plans side by side."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.report.rendering import report_line, report_text
from tests.report.surveys import COMPARISON

NONE = replace(COMPARISON, rows=COMPARISON.rows[2:], best=None)


def test_one_row_a_case_with_what_to_run_and_what_it_does():
    text = report_text(COMPARISON, 120)
    assert re.search(
        r"toy-4x4x4 +32 2×4×4 +int8 +WG XYZ × 1 +WS 2D × 64 +28 ms +200 ms +\$40/Mtoken +256 "
        r"+TPOT +best\n",
        text,
    )
    assert re.search(r"toy-8x8x8 +64 4×4×4 +.* nothing +5 %\n", text)
    assert re.search(r"toy-1x1x1 +no plan: HBM ≤ 32 GB is out of reach: 90 GB\n", text)


def test_the_best_comes_first_in_words():
    assert report_line(COMPARISON).startswith("toy-4x4x4: 32 devices")
    assert report_line(COMPARISON) in report_text(COMPARISON, 200).splitlines()


def test_a_narrow_terminal_gets_two_tables():
    text = report_text(COMPARISON, 80)
    what_to_run, what_it_does = text.partition("\nplans\n")[2].split("\n\n")[:2]
    assert what_to_run.split("\n")[0].split() == ["devices", "weights", "prefill", "decode"]
    assert what_it_does.split("\n")[0].split()[:2] == ["TPOT", "TTFT"]
    assert text.count("no plan:") == 1
    assert max(map(len, text.splitlines())) <= 80


def test_a_loss_beyond_the_best_itself_is_a_factor():
    rows = (COMPARISON.rows[0], replace(COMPARISON.rows[1], loss_fraction=21.99))
    assert re.search(r" 23 times\n", report_text(replace(COMPARISON, rows=rows), 120))


def test_without_any_plan_there_are_only_reasons():
    assert report_line(NONE) == "no plan"
    text = report_text(NONE, 100)
    assert "no plan: HBM" in text
    assert "certificates" not in text


def test_certificates_are_summed_up():
    words = (
        "2 of 2 optimal, largest gap 0 %, by HiGHS 1.13.1; 24,690 candidates, every plan verified"
    )
    assert words in report_text(COMPARISON, 120)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_line_ends_in_a_blank(width):
    lines = report_text(COMPARISON, width).splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
