"""Which replica of a pool gets a request."""

from __future__ import annotations

LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM = "least", "round-robin", "random"
ROUTERS = (LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM)
"""The replica with the fewest requests, of those with as few the one that waited longest for one;
each in turn; any."""
