"""Placements of experts: balance greedily, polish, prove by patterns, choose patterns.

`solve` in `planner.tools.experts.solvers.solving` runs them in that order, as far as it must.
"""
