"""Placements of experts that tests of reports share."""

from __future__ import annotations

import numpy as np

from planner.specs.ask.stages import ExpertWeights
from planner_workshop.experts.placing import place_experts

LOADS = (50.0, 12.0, 11.0, 10.0, 9.0, 8.0)

EXPERT_PLAN = place_experts(LOADS, n_ranks=4, n_slots=2)
"""Nothing but loads."""

MOVED_PLAN = place_experts(
    LOADS,
    n_ranks=4,
    n_slots=2,
    n_nodes=2,
    present=[[0, 1], [0, 2], [3, 4], [5]],
    move_price=0.01,
    coactivation=np.ones((6, 6)),
    weights=ExpertWeights(model="mini", n_bytes=44e6, source="loads.csv"),
)
"""Everything that a plan can tell."""
