"""A trace that is replayed comes as it came, at any rate, over and over."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from planner.specs.traffic.arrivals import replaying
from planner.specs.traffic.trace_files import load_trace

DATA = Path(__file__).parents[2] / "data" / "fleet"


@pytest.mark.parametrize("times", [1.0, 3.0])
def test_a_replay_is_the_trace_at_another_rate(times: float) -> None:
    trace = load_trace(DATA / "azure2023_code.csv.gz")
    arrivals, n = replaying(trace), len(trace)
    found = list(islice(arrivals.times_s(times * trace.rate_per_s, random.Random(1)), n + 2))
    assert found[:n] == pytest.approx([at / times for at in trace.arrival_s])
    gap = trace.duration_s / n / times
    assert found[n] == pytest.approx(found[n - 1] + gap)
    assert found[n + 1] - found[n] == pytest.approx(found[1] - found[0])
    assert arrivals.cv2 == trace.interarrival_cv2
