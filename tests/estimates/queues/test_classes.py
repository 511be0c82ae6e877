"""A class among others is judged by its own requests, as the simulator judges it."""

from __future__ import annotations

import numpy as np
import pytest

from planner.estimates.queues.largest import GroupTarget, largest_rate, rate_bound
from planner.estimates.queues.times import percentiles
from planner.specs.traffic.percentiles import PercentileTarget
from tests.estimates.queues.classes_against_simulation import errors
from tests.estimates.queues.situations import mix


@pytest.mark.parametrize("seed", [30_001, 30_007])
def test_percentiles_of_a_class_are_those_of_the_simulator(seed: int) -> None:
    """Within 12 %, where those of all requests together are off by a quarter and more."""
    rows = errors(mix(seed), seed=seed, n=9000)
    own, whole = np.abs([pair for row in rows for pair in row.values()]).T
    assert len(own) > 10
    assert np.max(own) < 0.12
    assert np.max(whole) > 0.25


def test_classes_together_are_all_requests() -> None:
    one = mix(30_001)
    times = percentiles(one.situation.station, one.situation.load)
    everybody = times.of(slice(None))
    assert everybody.ttft_s(0.9) == times.ttft_s(0.9)
    assert everybody.request_s(0.5) == pytest.approx(times.request_s(0.5))
    means = [times.of(cells).ttft.mean for cells in one.classes]
    shares = [float(np.sum(one.situation.load.weight[cells])) for cells in one.classes]
    assert np.average(means, weights=shares) == pytest.approx(times.ttft.mean, rel=0.01)


@pytest.mark.parametrize("quantity", ["ttft", "tpot", "e2e"])
def test_rates_are_bound_by_the_class_whose_target_it_is(quantity: str) -> None:
    one = mix(30_007)
    station, load = one.situation.station, one.situation.load
    times = percentiles(station, load)
    law = {"ttft": "ttft_s", "tpot": "tpot_s", "e2e": "request_s"}[quantity]
    targets = [
        GroupTarget(
            target=PercentileTarget(
                quantity=quantity, share=0.9, at_most_s=getattr(times.of(cells), law)(0.9)
            ),
            cells=cells,
        )
        for cells in one.classes
    ]
    rates = [largest_rate(station, load, [target]) for target in targets]
    assert rates == pytest.approx([load.rate_per_s] * 3, rel=0.03)
    both = largest_rate(station, load, targets)
    assert both <= min(rates) * 1.02
    assert both <= rate_bound(station, load, targets)


def test_cells_are_given_as_a_slice_as_a_mask_or_by_number() -> None:
    one = mix(30_001)
    times = percentiles(one.situation.station, one.situation.load)
    cells = one.classes[1]
    numbers = np.arange(len(one.situation.load.weight))[cells]
    mask = np.isin(np.arange(len(one.situation.load.weight)), numbers)
    assert times.of(cells).ttft_s(0.9) == times.of(mask).ttft_s(0.9)
    assert times.of(cells).tpot_s(0.9) == times.of(numbers).tpot_s(0.9)
    with pytest.raises(ValueError, match="group of requests that has none"):
        times.of(slice(0, 0))
