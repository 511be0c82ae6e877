"""The judge of what replicas come to: it lets nothing pass that was not asked, or is not so."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from planner.errors import SolverError
from planner.placement_results import Served
from planner.placing.totals import check_totals

SERVED = Served(
    model="m",
    demand_tokens_per_s=100.0,
    output_tokens_per_s=120.0,
    n_replicas=2,
    n_devices=16,
    usd_per_hour=32.0,
)


def asked(objective="rent", *, replicas=None, **limits):
    wish = SimpleNamespace(replicas=replicas)
    return SimpleNamespace(objective=objective, wanted=(wish,), limits=limits)


@pytest.mark.parametrize(
    ("objective", "value"),
    [("rent", 32.0), ("devices", 16.0), ("throughput", 120.0), ("share", 1.2), ("latency", 0.05)],
)
def test_replicas_come_to_the_objective_or_are_refused(objective, value):
    check_totals(asked(objective), [SERVED], [0.02, 0.03], objective=value)
    with pytest.raises(SolverError, match=objective):
        check_totals(asked(objective), [SERVED], [0.02, 0.03], objective=1.001 * value)


@pytest.mark.parametrize(
    ("wishes", "word"),
    [
        (asked(rent=31.0), "rent"),
        (asked(devices=15.0), "devices"),
        (asked(replicas=3), "has 2 replicas"),
    ],
)
def test_a_wish_that_is_not_kept_is_named(wishes, word):
    with pytest.raises(SolverError, match=word):
        check_totals(wishes, [SERVED], [], objective=32.0)


def test_a_demand_that_is_not_served_is_named():
    short = replace(SERVED, output_tokens_per_s=99.0)
    with pytest.raises(SolverError, match="of its demand"):
        check_totals(asked(), [short], [], objective=32.0)
    check_totals(asked("share"), [short], [], objective=0.99)
