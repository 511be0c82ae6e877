"""What solvers of placements answer."""

from __future__ import annotations

from dataclasses import dataclass

from planner.programs.experts import Placement


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """A placement and what is known of it.

    Args:
        placement: the best that was found.
        objective: of it, in units of load.
        bound: no placement has a lower objective.
        proof: what gave the bound: mean, copies, patterns, pairs, groups or search.
        is_cut_short: whether the time limit ended the search.
    """

    placement: Placement
    objective: float
    bound: float
    proof: str
    is_cut_short: bool = False

    @property
    def gap(self) -> float:
        """Distance to the bound, as a share of it."""
        return max(0.0, self.objective / self.bound - 1.0) if self.bound > 0.0 else 0.0
