"""How far errors of times reach: a law whose tails are heavier than a normal one's."""

import math

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.specs.region import CONFIDENCE

WITHIN_ONE_SIGMA = 0.6826894921370859
"""Share of normal errors that are within one standard deviation."""

DECIDED = 2 / 3
"""Of all cases, in which the better of two predictions is the better one: else they are a tie."""


def sigmas(confidence: float) -> float:
    """Standard deviations at the upper end of the interval that holds a share of all cases.

    Errors of servers have heavier tails than a normal law: as Student's t of two degrees of
    freedom, scaled so that one deviation holds as many cases as a normal one, two of three.

    Source: [Student1908]; of two degrees its quantiles are elementary.

    >>> [round(sigmas(share), 2) for share in (0.6827, 0.9, 0.95)]
    [1.0, 2.21, 3.26]
    """
    return _quantile_of_t(confidence) / _quantile_of_t(WITHIN_ONE_SIGMA)


def planned_sigmas(confidence: float | None, outside: BoolArray | bool) -> FloatArray | float:
    """Standard deviations beyond what is predicted that hold in a share of cases, one-sided.

    Half of all cases are no longer than predicted. Without a share, what was measured is planned
    as predicted, and what is outside for `CONFIDENCE`.

    Source: `docs/decisions/0031-measured-region.md`.

    >>> planned_sigmas(0.0, True), round(float(planned_sigmas(0.9, False)), 2)
    (0.0, 1.43)
    """
    if confidence is None:
        return np.where(outside, planned_sigmas(CONFIDENCE, True), 0.0)
    return sigmas(max(0.0, 2.0 * confidence - 1.0))


def confidence_of(room: float, error: float) -> float:
    """Share of cases in which a time is within a limit, one-sided: what `planned_sigmas` inverts.

    Args:
        room: the limit over what is predicted, less one; below 0 where that is more.
        error: relative standard deviation of the time.

    Source: [Student1908]; its law of two degrees is elementary.

    >>> round(confidence_of(0.15 * float(planned_sigmas(0.9, False)), 0.15), 3)
    0.9
    """
    reach = room / error * _quantile_of_t(WITHIN_ONE_SIGMA)
    return 0.5 + 0.5 * reach / math.sqrt(1.0 + reach**2)


def undecided(error: float) -> float:
    """Below which relative difference two predictions are a tie.

    Args:
        error: relative standard deviation of the difference.

    Source: `docs/decisions/0031-measured-region.md`.

    >>> round(undecided(0.1), 3)
    0.038
    """
    return sigmas(2.0 * DECIDED - 1.0) * error


def _quantile_of_t(share: float) -> float:
    """Within which a share of cases is, of two degrees of freedom, up to a factor."""
    return share / math.sqrt(1.0 - share**2)
