"""What solvers of placements answer."""

from __future__ import annotations

from dataclasses import dataclass

from planner.programs.experts import Placement
from planner.solvers.proving import Proved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """A placement and what is known of it.

    Args:
        placement: the best that was found.
        proved: its objective, in units of load, and what provers say of it.
        proof: what gave the bound: mean, copies, patterns, pairs, groups or search.
        is_cut_short: whether the time limit ended the search.
    """

    placement: Placement
    proved: Proved[Placement]
    proof: str
    is_cut_short: bool = False
