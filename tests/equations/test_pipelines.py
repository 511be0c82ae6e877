"""Formulas of pipelines, against schedules that are played beat by beat."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from planner.equations import roofline

counts = st.integers(1, 12)


def beats_of_a_flushed_pass(n_stages: int, n_microbatches: int) -> int:
    """Each stage takes one beat a micro-batch, in order, after the stage before it."""
    free, ready = [0] * n_stages, [0] * n_microbatches
    for stage in range(n_stages):
        for part in range(n_microbatches):
            ready[part] = free[stage] = max(free[stage], ready[part]) + 1
    return max(ready)


@given(s=counts, m=counts)
def test_a_flushed_pipeline_takes_as_many_beats_as_its_schedule(s, m):
    time = roofline.flushed_pipeline_s(2.0, n_stages=s, n_microbatches=m)
    assert time == 2.0 * beats_of_a_flushed_pass(s, m)


def test_one_stage_without_parts_takes_its_own_time():
    assert roofline.flushed_pipeline_s(0.25, n_stages=1, n_microbatches=1) == 0.25


def test_stages_parts_and_times_broadcast():
    """Stages of 1 and 2 s; 1, 2 and 3 stages; two parts: 2, 3 and 4 beats."""
    stage_s, n_stages = np.array([[1.0], [2.0]]), np.array([1, 2, 3])
    time = roofline.flushed_pipeline_s(stage_s, n_stages=n_stages, n_microbatches=2)
    np.testing.assert_array_equal(time, [[2, 3, 4], [4, 6, 8]])
