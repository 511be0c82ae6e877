"""A verification for people: every figure that is not so, and what was not judged."""

from __future__ import annotations

from dataclasses import replace

from planner.report.answers.verification import MOST_LISTED
from planner.results.listings import Falsehood, Verification
from tests.report.rendering import report_line, report_text

TRUE = Verification(
    kind="plan",
    summary="8 devices",
    falsehoods=(),
    n_counted=40,
    n_taken=3,
    n_unverified=2,
    taken=("bound",),
    unverified=("wall_s",),
    is_as_written=True,
    proofs=(),
    notes=(),
)
RENT = Falsehood(pointer="/answer/rent", says="2.0", found="1.0", fact="")
DEVICE = Falsehood(pointer="/answer/device", says="`a`", found="", fact="is not free")


def test_a_true_answer_says_what_was_judged_and_what_was_not():
    text = report_text(TRUE, 100)
    assert text.startswith("verified: 8 devices\n")
    assert "plan, as it was written" in text
    assert "that nothing is better or left out, and 3 figures until `--prove`: bound" in text
    assert "2 figures: wall_s" in text


def test_another_answer_is_called_another_and_true_only_if_it_is():
    other = replace(TRUE, is_as_written=False)
    assert "another than the one that was written, and a true one" in report_text(other, 100)
    false = replace(other, falsehoods=(RENT,))
    assert "a true one" not in report_text(false, 100)


def test_each_figure_that_is_not_so_is_told_with_what_it_is():
    false = replace(TRUE, falsehoods=(RENT, DEVICE))
    lines = report_text(false, 100).splitlines()
    assert lines[0] == "refuted: 2 figures are not so: 8 devices"
    assert "  /answer/rent  says 2.0, and is 1.0" in lines
    assert "  /answer/device  `a` is not free" in lines
    assert report_line(replace(false, falsehoods=(RENT,))).startswith("refuted: 1 figure is")


def test_what_is_not_listed_is_counted():
    false = replace(TRUE, falsehoods=(RENT,) * (MOST_LISTED + 2))
    assert "  and 2 more: `--json` lists them all" in report_text(false, 100).splitlines()


def test_a_searched_proof_leaves_nothing_taken():
    proved = replace(TRUE, n_taken=0, taken=(), proofs=("searched again: optimal",))
    text = report_text(proved, 100)
    assert "until" not in text
    assert "proved        searched again: optimal" in text
