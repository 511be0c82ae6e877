"""Errors are those of the committed rows, and everything left out is said."""

from __future__ import annotations

import numpy as np
import pytest

from planner.specs.files.engines import load_engine
from planner.specs.records.served_formats import as_run
from research.sets import report
from research.sets.constants import out_of_fold
from research.sets.folds import exclusion, rows
from research.sets.peer import peer_times
from research.sets.predicted import architecture, formats, refused
from research.sets.rows import saturated, served
from research.sets.saturating import throughputs


@pytest.fixture(scope="module")
def found():
    return out_of_fold()


def test_nearly_every_row_that_ran_is_said_to_run(found):
    known = rows()
    left = refused(known, found)
    assert len(found) + len(left) == len(known)
    assert len(left) < len(known) / 100


def test_errors_are_relative_to_what_was_measured(found):
    one = found[0]
    assert one.tpot_ms == pytest.approx((1 + one.tpot_error) * one.row.tpot_ms)
    assert one.ttft_ms == pytest.approx((1 + one.ttft_error) * one.row.ttft_ms)
    text = report.table("TPOT", found, "tpot")
    dense = [o for o in found if o.row.series.is_dense]
    errors = np.array([o.tpot_error for o in dense])
    line = next(line for line in text.splitlines() if line.startswith("S dense"))
    cells = line.split()
    assert cells[2:4] == [str(len(dense)), f"{100 * np.abs(errors).mean():.1f}"]
    assert cells[5] == f"{100 * errors.mean():+.1f}"
    times = peer_times()
    theirs = [times[o.row.name][1] / o.row.tpot_ms - 1 for o in dense if o.row.name in times]
    assert cells[6:8] == [str(len(theirs)), f"{100 * np.abs(theirs).mean():.1f}"]


def test_each_row_is_in_one_group_of_its_set(found):
    named = dict(report.groups(found))
    whole = ("S dense", "S mixtures", "X NVIDIA", "X AMD")
    assert sum(len(named[name]) for name in whole) == len(found)


def test_formats_are_words_that_need_nothing_known_of_scales():
    """TensorRT-LLM runs them with scales of inputs all the same."""
    known = rows()
    assert not any(formats(row).weights.endswith("_static") for row in known)
    run = {
        (
            series.engine,
            as_run(architecture(series.model), formats(row), load_engine(series.engine)),
        )
        for row in known
        if (series := row.series).model == "Llama-3.1-70B" and series.weights == "fp8"
    }
    assert {(engine, one.weights) for engine, one in run} == {
        ("trtllm", "fp8_static"),
        ("vllm", "fp8"),
    }


def test_throughput_of_all_requests_at_once_is_near_the_pages():
    some = throughputs(saturated())
    assert len(some) == len(saturated())
    dense = [abs(one.error) for one in some if one.row.series.is_dense]
    assert np.mean(dense) < 0.12
    for one in some:
        assert 1 <= one.n_running <= one.row.n_requests


def test_the_peer_answers_rows_that_are_compared():
    names = {row.name for row in served() if not exclusion(row)}
    assert set(peer_times()) <= names
    n_judged = sum(row.name in peer_times() for row in rows())
    assert n_judged > 1300


def test_what_is_left_out_is_said(found, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["sets", "folds"])
    report.main()
    said = capsys.readouterr().out
    reasons = {exclusion(row) for row in served()} - {""}
    assert all(reason in said for reason in reasons)
