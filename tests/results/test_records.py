"""Every kind of answer has a line, a page in a notebook, a dictionary; of rows a frame."""

from __future__ import annotations

import html
import re
import sys
from dataclasses import replace

import pytest

from planner.report.answer_kinds import ANSWER_KINDS, document_of, kind_of, line_of
from planner.report.as_json import answer_json, rows_of
from planner.report.documents.as_html import page_of
from planner.results.listings import Devices, Failure, Verification
from planner.results.records import AnswerRecord
from planner.results.surveys import Curves
from planner.specs.files.reading import load_device
from tests.report.economics_examples import ECONOMICS_PLAN
from tests.report.engines import ENGINE_AUDIT, ENGINE_PLAN
from tests.report.examples import CONFLICT, PLAN
from tests.report.fleets import STAIRCASE
from tests.report.placements import PLACEMENT
from tests.report.predictions import PREDICTION
from tests.report.surveys import COMPARISON, CURVE
from tests.report.test_as_json import ANSWERS

RECORDS = [one for one in ANSWERS if not isinstance(one, Failure)]
ROWS = [one for one in RECORDS if kind_of(one).rows]
pandas = pytest.importorskip("pandas")


def named(answers):
    return pytest.mark.parametrize("answer", answers, ids=lambda one: type(one).__name__)


def test_every_kind_of_answer_is_one_of_these_records():
    others = [kind.name for kind in ANSWER_KINDS if not issubclass(kind.record, AnswerRecord)]
    assert others == ["error"]  # which the command line alone makes


@named([*RECORDS, CURVE, CURVE.frontier])
def test_a_record_is_told_in_one_short_line(answer):
    told = repr(answer)
    assert told.startswith(f"<{type(answer).__name__}: ")
    assert len(told) < 300
    assert "\n" not in told
    headline = " ".join(line_of(answer.whole()).split())
    assert headline[:200] in told


def test_a_line_that_is_too_long_is_cut():
    twice = Curves(curves=(CURVE,) * 9)
    assert len(repr(twice)) == 282
    assert repr(twice).endswith("…>")


@named([PLAN, ENGINE_PLAN, CONFLICT, PREDICTION, STAIRCASE, CURVE.frontier])
def test_a_notebook_shows_the_page_in_a_frame_of_its_own(answer):
    shown = answer._repr_html_()
    page = html.unescape(re.search(r'srcdoc="([^"]*)"></iframe>$', shown)[1])
    assert page == page_of(document_of(answer.whole()))
    assert shown.startswith("<p>")
    assert "<style>" not in shown.partition("srcdoc=")[0]


@named(RECORDS)
def test_its_dictionary_is_what_json_writes(answer):
    assert answer.to_dict() == answer_json(answer)


def test_a_frontier_alone_is_that_of_one_case():
    envelope = CURVE.frontier.to_dict()
    assert envelope["kind"] == "frontiers"
    (curve,) = envelope["answer"]["curves"]
    assert curve["case"]["model"] == CURVE.frontier.request.model.name


@named([*ROWS, CURVE.frontier])
def test_a_frame_has_a_line_for_each_row_and_plain_columns(answer):
    frame, rows = answer.to_frame(), rows_of(answer.whole())
    assert len(frame) == len(rows)
    assert set(frame.columns) == {key for row in rows for key in row}
    assert not any(isinstance(value, dict | list) for row in rows for value in row.values())


def test_rows_are_the_figures_of_the_records():
    frame = PLAN.to_frame()
    assert list(frame["tpot_s"]) == [
        PLAN.deployment.tpot_s,
        *(one.deployment.tpot_s for one in PLAN.alternatives),
    ]
    assert list(frame["loss_fraction"][1:]) == [one.loss_fraction for one in PLAN.alternatives]
    points = CURVE.frontier.points
    frame = CURVE.to_frame()
    assert list(frame["x"]) == [point.x for point in points]
    assert list(frame["usd_per_hour"]) == [point.deployment.usd_per_hour for point in points]
    assert set(frame["case.model"]) == {CURVE.case.model}
    frame = PREDICTION.to_frame()
    expected = [(one.name, it.name) for one in PREDICTION.passes for it in one.operations]
    assert list(zip(frame["name"], frame["operations.name"], strict=True)) == expected
    assert list(PLACEMENT.to_frame()["name"]) == [one.name for one in PLACEMENT.replicas]
    assert list(COMPARISON.to_frame()["case.model"]) == [row.case.model for row in COMPARISON.rows]
    assert list(STAIRCASE.to_frame().columns)


def test_a_row_without_a_plan_has_its_reason():
    without = replace(COMPARISON.rows[0], plan=None, reason="nothing fits")
    (row,) = rows_of(replace(COMPARISON, rows=(without,), best=None))
    assert row["reason"] == "nothing fits"
    assert "tpot_s" not in row


def test_an_answer_without_rows_says_so():
    with pytest.raises(TypeError, match="a conflict has no rows"):
        CONFLICT.to_frame()


def test_a_frame_is_of_polars_where_there_is_no_pandas(monkeypatch):
    class Polars:
        DataFrame = staticmethod(lambda rows: ("polars", rows))

    monkeypatch.setitem(sys.modules, "polars", Polars)
    _hide(monkeypatch, "pandas")
    assert PLAN.to_frame() == ("polars", rows_of(PLAN))


def test_without_either_it_says_what_to_install(monkeypatch):
    _hide(monkeypatch, "pandas", "polars")
    with pytest.raises(ImportError, match="pip install pandas"):
        PLAN.to_frame()


def _hide(monkeypatch, *names):
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    before = sys.meta_path

    class Hidden:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name in names:
                raise ModuleNotFoundError(f"no {name}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Hidden, *before])


def test_listings_and_verifications_are_records_too():
    devices = Devices(devices=(load_device("h100-sxm"),))
    assert repr(devices) == "<Devices: 1 device>"
    verdict = Verification(
        kind="plan",
        summary="one",
        falsehoods=(),
        n_counted=3,
        n_taken=0,
        n_unverified=1,
        taken=(),
        unverified=(),
        is_as_written=True,
        proofs=(),
        notes=(),
    )
    assert repr(verdict).startswith("<Verification: ")
    assert str(ENGINE_AUDIT)
    assert str(ECONOMICS_PLAN)
