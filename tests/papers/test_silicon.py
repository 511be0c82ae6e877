"""End-to-end serving measurements that no constant is fitted to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.papers import silicon
from tests.papers.silicon import SELECTION, exclusion, is_calibration, judged, read_rows

WHOLE = silicon.whole_file()


def _errors(found, *, is_dense):
    return np.abs([one.tpot_error for one in found if one.row.is_dense is is_dense])


def test_the_selection_is_of_rows_that_count():
    rows = read_rows(SELECTION)
    assert len(rows) == 60
    assert not [row for row in rows if exclusion(row) or is_calibration(row)]
    assert all(row.source for row in rows)


def test_a_measurement_counts_once_whatever_it_is_called():
    found = judged(SELECTION)
    twice = [replace(one, row=replace(one.row, model="deepseek-ai/DeepSeek-V3")) for one in found]
    assert silicon.without_repeats([*found, *twice]) == silicon.without_repeats(found)
    slower = [replace(one, row=replace(one.row, ttft_ms=2 * one.row.ttft_ms)) for one in found]
    n_once = len(silicon.without_repeats(found))
    assert len(silicon.without_repeats([*found, *slower])) == 2 * n_once


def test_dense_models_decode_as_measured():
    errors = _errors(judged(SELECTION), is_dense=True)
    assert len(errors) >= 25
    assert errors.mean() < 0.14
    assert np.median(errors) < 0.10


def test_mixtures_decode_as_measured():
    errors = _errors(judged(SELECTION), is_dense=False)
    assert len(errors) >= 25
    assert errors.mean() < 0.20


@pytest.mark.skipif(WHOLE is None, reason="aiconfigurator-core is not installed")
@pytest.mark.timeout(300)
def test_the_whole_file_agrees():
    found = judged(WHOLE)
    dense, mixtures = (_errors(found, is_dense=kind) for kind in (True, False))
    assert len(dense) > 900
    assert len(mixtures) > 1500
    assert dense.mean() < 0.14
    assert np.median(dense) < 0.10
    assert mixtures.mean() < 0.18
    alone = silicon.without_repeats([one for one in found if silicon.is_unqueued(one)])
    for kind, least, limit in ((True, 70, 0.17), (False, 180, 0.27)):
        first = [abs(one.ttft_error) for one in alone if one.row.is_dense is kind]
        assert len(first) > least
        assert np.median(first) < limit
    assert np.median([abs(one.ttft_error) for one in alone]) < 0.25
