"""How popular experts are where nobody measured it: a power law, in several orders.

The k-th most popular of E experts is visited in proportion to k^-s. Engines hold neighbours on a
device, and which experts are neighbours of popular ones is not known: the orders are drawn, the
same ones each time.

Source: `docs/decisions/0025-steps.md`; s makes as many experts be hit as the power laws of
[AIConfigurator2026] do, under which its tables of experts were measured.
"""

from __future__ import annotations

import random
from functools import cache

EXPONENT = 0.8
"""s [1]."""

N_ORDERS = 16
"""Orders whose mean is taken: it is then known to 2 % of the rows of the fullest device."""


@cache
def usual_loads(n_experts: int) -> tuple[tuple[float, ...], ...]:
    """Loads of the experts of a layer in each of the orders."""
    loads = [rank**-EXPONENT for rank in range(1, n_experts + 1)]
    orders = []
    for seed in range(N_ORDERS):
        random.Random(seed).shuffle(drawn := list(loads))
        orders.append(tuple(drawn))
    return tuple(orders)
