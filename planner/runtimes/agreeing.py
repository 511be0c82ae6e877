"""Arrays that a search is made of have to agree with the account that writes its answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import SupportsFloat

from planner.errors import SolverError

TOLERANCE = 1e-9
"""Relative: another order of summation makes some 1e-13 of it."""


def agree(figures: Mapping[str, tuple[SupportsFloat, SupportsFloat]]) -> None:
    """Go on only if two sums are the same.

    Args:
        figures: of the arrays, and of the account, by name.

    Raises:
        SolverError: some differ; all of them are named.
    """
    wrong = [
        f"{name} {float(searched)!r} is {float(counted)!r}"
        for name, (searched, counted) in figures.items()
        if not math.isclose(searched, counted, rel_tol=TOLERANCE)
    ]
    if wrong:
        raise SolverError("the account disagrees with the search: " + "; ".join(wrong))
