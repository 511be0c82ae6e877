"""Prompts of classes between two lengths: how many of them come."""

from __future__ import annotations

import math

from planner.results.fleets import FleetPlan, FleetPool
from planner.specs.traffic.records import TrafficClass


def requests_per_s(plan: FleetPlan, pool: FleetPool) -> float:
    """Requests that a pool, and those beside it for the same, are for: those that are served."""
    served = {one.name: one.rate_per_s * one.served_fraction for one in plan.classes}
    return math.fsum(
        served[one.name] * _share_between(one, pool.above_tokens, pool.upto_tokens)
        for one in plan.request.classes
        if one.name in pool.classes
    )


def _share_between(one: TrafficClass, above: float, upto: float) -> float:
    """Share of a class's requests whose prompts are above one length, up to another."""
    longest = one.lengths.most_input_tokens
    cells = one.lengths.cells(cuts=[cut for cut in (above, upto) if 0.0 < cut < longest])
    both = zip(cells.weight, cells.n_input, strict=True)
    return math.fsum(weight for weight, n_input in both if above < n_input <= upto)
