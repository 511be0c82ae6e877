"""A program on which CP-SAT 9.15 with presolve misses the optimum, and proves the wrong one."""

from __future__ import annotations

import pytest

from planner.solvers import SOLVERS, solve
from tests.programs.instances import INFINITE, program

MIXED_SIGNS = program(
    [(0.41, 0, INFINITE)],
    [
        (0, 1, 0.26, 0),
        (0, 1, 0.89, 0),
        (0, 1, 0.55, 0),
        (0, 0, -0.98, 0),
        (0, 0, 0.54, 0),
        (0, 0, -0.46, 0),
        (0, 2, -0.47, 0),
    ],
    slots=("prefill", "decode", "draft"),
    limits=[("cost", [0], [0.12, -0.94, -0.57, 0.46, -0.086, 0.24, -0.95], -0.79)],
)


@pytest.mark.parametrize("name", SOLVERS)
def test_coefficients_of_both_signs_do_not_mislead(name):
    """0.41 + 0.55 − 0.98 − 0.47 = −0.49: the row is −0.57 + 0.46 − 0.95 ≤ −0.79."""
    solution = solve(MIXED_SIGNS, solver=name)
    assert solution.objective == pytest.approx(-0.49)
    assert solution.bound == pytest.approx(-0.49)
