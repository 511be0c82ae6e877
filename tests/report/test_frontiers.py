"""The report of frontiers as text, and as CSV."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from planner.report.answers.frontiers import preferred_line, shown_points
from planner.report.documents import blocks
from planner.results.surveys import Curve
from tests.report.rendering import report_csv, report_text
from tests.report.surveys import CASE, CURVE, MANY, MISSING, PROOF, THREE

LONG = Curve(case=CASE, frontier=MANY, reason="")


def test_a_short_frontier_is_shown_whole_with_its_marks():
    text = report_text([CURVE], 100, is_whole=False)
    assert text.startswith("tiny-7b on toy-4x4x4: cost per token against speed per user")
    assert re.search(r"\n +100 ms +10 token/s +200 ms +\$20/Mtoken", text)
    assert re.search(r"\n +\*o +25 ms +40 token/s +200 ms +\$40/Mtoken", text)
    assert re.search(r"\n +10 ms +100 token/s", text)
    assert re.search(r"points +3\n", text)
    assert re.search(r"o +the cheapest within TPOT ≤ 30 ms and cost ≤ \$50/Mtoken: TPOT 25", text)


def test_the_prefill_policy_and_the_proof_are_said():
    text = " ".join(report_text([CURVE], 100, is_whole=False).split())
    assert "prefill latency: each request alone" in text
    assert "optimal: no point is missing" in text
    assert "proved by HiGHS 1.13.1, enumeration of 45" in text
    assert "45 candidates left by the screens of 12,345 in 27 ways" in text
    assert "every point: every constraint holds; seconds and bytes recounted" in text


def test_a_long_frontier_is_thinned_and_says_so():
    text = report_text([LONG], 100, is_whole=False)
    assert re.search(r"points +200\n", text)
    assert re.search(r"\n +and 1\d\d more: `--all` shows every one\n", text)
    assert len(re.findall(r"× 1 +WS 2D × \d+", text)) <= 20
    everything = report_text([LONG], 100, is_whole=True)
    assert len(re.findall(r"× 1 +WS 2D × \d+", everything)) == 200
    assert "--all" not in everything


@pytest.mark.parametrize("most", [6, 20, 60])
def test_both_ends_and_the_marked_points_are_always_shown(most):
    shown = shown_points(MANY, most)
    assert {0, 199, MANY.preferred} <= set(shown)
    assert shown == sorted(set(shown))
    assert len(shown) <= most


def test_out_of_time_is_said_with_what_is_left():
    late = replace(
        THREE,
        proof=replace(PROOF, status="feasible"),
        points=tuple(replace(point, gap=0.05) for point in THREE.points),
    )
    text = report_text([replace(CURVE, frontier=late)], 100, is_whole=False)
    assert "time ended before the proof, a point may be 5 % off" in text


@pytest.mark.parametrize("width", [72, 80, 100, 120])
def test_no_line_is_wider_than_asked(width):
    lines = report_text([LONG, MISSING], width, is_whole=False).splitlines()
    assert max(map(len, lines)) <= width
    assert [line for line in lines if line != line.rstrip()] == []


def test_several_are_labelled_and_one_without_a_plan_says_why():
    text = report_text([CURVE, MISSING], 100, is_whole=False)
    assert "\ntiny-7b\n" in text
    assert "big & <bold>\n  no plan: HBM ≤ 32 GB is out of reach: 90 GB" in text
    assert "request" in text


def test_without_any_frontier_there_are_only_reasons():
    text = report_text([MISSING], 100, is_whole=False)
    assert text.startswith("no frontier")
    assert "90 GB" in text


def test_the_preferred_plan_fits_one_line():
    assert preferred_line(CURVE, [CURVE]).startswith("32 devices 2×4×4, int8 weights")
    assert preferred_line(CURVE, [CURVE, MISSING]).startswith("tiny-7b: 32 devices")
    assert "no plan" in preferred_line(MISSING, [CURVE, MISSING])


@pytest.mark.parametrize(("y_name", "head"), [("rent", "rent"), ("throughput", "tokens/s")])
def test_the_other_axis_has_its_column(y_name, head):
    other = replace(THREE, y_name=y_name, y_dimension="1")
    text = report_text([replace(CURVE, frontier=other)], 120, is_whole=False)
    assert re.search(rf"TPOT .*{head} ", text)


def test_csv_has_every_point_in_si_units():
    rows = list(csv.DictReader(io.StringIO(report_csv([CURVE, LONG, MISSING]))))
    assert len(rows) == 203
    assert float(rows[1]["tpot_s"]) == 0.025
    assert float(rows[1]["user_tokens_per_s"]) == 40.0
    assert float(rows[1]["usd_per_token"]) == 40e-6
    assert [row["preferred"] for row in rows[:3]] == ["0", "1", "0"]
    assert [row["meets_targets"] for row in rows[:3]] == ["0", "1", "0"]
    assert {row["status"] for row in rows} == {"optimal"}
    assert rows[0]["decode_batch"] == "256"
    assert rows[0]["weights"] == "bf16,int8"


def test_formats_of_the_cache_are_said_where_there_is_a_choice():
    """In the request, and in a column of what each point takes."""
    wide = replace(THREE.request, kv_formats=("bf16", "int8"))
    chosen = Curve(case=CASE, frontier=replace(THREE, request=wide), reason="")
    text = report_text([chosen], 110, is_whole=False)
    assert re.search(r"KV cache +bf16 or int8\n", text)
    assert re.search(r"weights +KV +prefill", text)
    plain = report_text([CURVE], 110, is_whole=False)
    assert not re.search(r"KV cache  |weights +KV", plain)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_a_name_that_begins_like_a_formula_is_a_text_in_csv(sign):
    """A table would run it; numbers stay numbers."""
    name = f'{sign}cmd|"/c calc"!A1'
    case = replace(CURVE.case, model=name)
    (row, *_) = csv.DictReader(io.StringIO(report_csv([replace(CURVE, case=case)])))
    assert row["model"] == f"'{name}"
    assert row["topology"] == CURVE.case.topology
    assert float(row["tpot_s"]) > 0


def test_numbers_of_csv_are_never_quoted():
    assert blocks._cell(-1.5) == -1.5
    assert blocks._cell("-1.5") == "'-1.5"
    assert blocks._cell("1.5") == "1.5"
