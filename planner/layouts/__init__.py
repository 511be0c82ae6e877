"""The ways to shard a model: work and messages, never seconds.

A family is one file with `NAMES` and `accepts`; it is registered by one line here, and the
layout conformance suite runs on it.
"""

from planner.layouts import weight_gathered, weight_stationary

FAMILIES = (weight_stationary, weight_gathered)
