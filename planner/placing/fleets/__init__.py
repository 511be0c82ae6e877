"""Fleets: from traffic and percentiles to pools of replicas, with a bound on both sides."""
