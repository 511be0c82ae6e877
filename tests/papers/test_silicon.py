"""End-to-end serving measurements that no constant is fitted to."""

from __future__ import annotations

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


def test_dense_models_decode_as_measured():
    errors = _errors(judged(SELECTION), is_dense=True)
    assert len(errors) >= 25
    assert errors.mean() < 0.14
    assert np.median(errors) < 0.10


def test_mixtures_decode_as_measured():
    errors = _errors(judged(SELECTION), is_dense=False)
    assert len(errors) >= 25
    assert errors.mean() < 0.25


@pytest.mark.skipif(WHOLE is None, reason="aiconfigurator-core is not installed")
@pytest.mark.timeout(300)
def test_the_whole_file_agrees():
    found = judged(WHOLE)
    dense, mixtures = (_errors(found, is_dense=kind) for kind in (True, False))
    assert len(dense) > 900
    assert len(mixtures) > 1500
    assert dense.mean() < 0.14
    assert np.median(dense) < 0.10
    assert mixtures.mean() < 0.25
    first = [abs(one.ttft_error) for one in found if silicon.is_unqueued(one) and one.row.is_dense]
    assert len(first) > 70
    assert np.median(first) < 0.20
