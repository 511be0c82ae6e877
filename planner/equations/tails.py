"""How far errors of times reach: a law whose tails are heavier than a normal one's."""

from __future__ import annotations

import math

WITHIN_ONE_SIGMA = 0.6826894921370859
"""Share of normal errors that are within one standard deviation."""


def sigmas(confidence: float) -> float:
    """Standard deviations at the upper end of the interval that holds a share of all cases.

    Errors of servers have heavier tails than a normal law: as Student's t of two degrees of
    freedom, scaled so that one deviation holds as many cases as a normal one, two of three.

    Source: [Student1908]; of two degrees its quantiles are elementary.

    >>> [round(sigmas(share), 2) for share in (0.6827, 0.9, 0.95)]
    [1.0, 2.21, 3.26]
    """
    return _quantile_of_t(confidence) / _quantile_of_t(WITHIN_ONE_SIGMA)


def _quantile_of_t(share: float) -> float:
    """Within which a share of cases is, of two degrees of freedom, up to a factor."""
    return share / math.sqrt(1.0 - share**2)
