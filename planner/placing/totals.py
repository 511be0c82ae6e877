"""Objectives of placements in SI units."""

from __future__ import annotations

UNITS = {
    "throughput": (-1e3, "token/s"),
    "share": (-1.0, "1"),
    "rent": (1.0, "USD/h"),
    "devices": (1.0, "1"),
    "latency": (1e-3, "s"),
    "cost": (1e-6, "USD/token"),
}
"""Factor from a program's unit to SI, and the dimension; what is most counts negative."""


def in_si(objective: str, value: float) -> float:
    """A program's objective in SI."""
    return value * UNITS[objective][0]
