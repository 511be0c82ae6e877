"""Placements of experts: balance greedily, polish, prove by patterns, choose patterns.

`solve` in `planner.solvers.experts.solving` runs them in that order, as far as it must.
"""
