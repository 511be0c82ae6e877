"""Targets of a request as named limits of its program: one table for all posers.

Units are those in which solvers' tolerances are harmless: milliseconds and US dollars per million
output tokens; targets are in seconds and dollars.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from planner.programs.layout import Limit
from planner.programs.quantities import Coefficients
from planner.specs.request import Targets

MS = 1e3
USD_PER_MTOKEN = 1e6
SIGNED = ("batch", "demand")
"""Limits to which columns add less than nothing: more sequences, more replicas."""


def target_limits(
    targets: Targets,
    quantities: Mapping[str, Coefficients],
    without: Collection[str],
    *,
    of_batch: str,
) -> tuple[Limit, ...]:
    """A limit for each target that is asked for and can be counted.

    Args:
        quantities: coefficients of contexts and columns by name. A program without one of them
            cannot be held to its target: requests that ask for it are refused before.
        without: names of limits to leave out.
        of_batch: what a batch is counted in, for people.
    """
    demand = None if targets.demand_tokens_per_s is None else 1.0
    rows = (
        ("tpot", "latency", targets.tpot_s, MS, "ms"),
        ("ttft", "ttft", targets.ttft_s, MS, "ms"),
        ("cost", "cost", targets.usd_per_token, USD_PER_MTOKEN, "USD/Mtoken"),
        ("devices", "devices", targets.n_devices, 1.0, "devices"),
        ("batch", "batch", targets.min_batch, -1.0, of_batch),
        ("demand", "demand", demand, 1.0, "replicas"),
    )
    return tuple(
        Limit(
            name=name,
            context=quantities[quantity][0],
            column=quantities[quantity][1],
            at_most=value * scale,
            unit=unit,
            is_signed=name in SIGNED,
        )
        for name, quantity, value, scale, unit in rows
        if value is not None and name not in without and quantity in quantities
    )
