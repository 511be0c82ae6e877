"""How simple a way to cut a replica is: one number, the same whoever counts it.

Fewest devices, then fewest of what they are cut into, one degree after the other. It is the number
of devices, and of one number of devices a fraction: the place of the cut among all that there are.
So the candidates of several runtimes are compared, and what solvers see is of one size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from planner.equations.arrays import FloatArray, IntArray, divisors

SIMPLICITY = "simplicity"

Cut = tuple[int, ...]


def simplicity(n_devices: IntArray, *degrees: IntArray) -> FloatArray:
    """A number for each replica, the least of the simplest (K,).

    Args:
        n_devices: of each replica, (K,).
        degrees: what they are cut into, the one that complicates most first; their product
            divides the devices, (K,) each.
    """
    cuts = np.stack([n_devices, *degrees], axis=1)
    listed, which = np.unique(cuts, axis=0, return_inverse=True)
    numbers = [n + _places(n, len(cut))[tuple(cut)] for n, *cut in listed.tolist()]
    return np.array(numbers, dtype=float)[which.ravel()]


@cache
def _places(n: int, n_degrees: int) -> Mapping[Cut, float]:
    """The place of each cut of n devices, from 0 to below 1."""
    cuts = list(_cuts(n, n_degrees))
    return {cut: place / len(cuts) for place, cut in enumerate(cuts)}


def _cuts(n: int, n_degrees: int) -> Iterator[Cut]:
    """Degrees whose product divides n, in ascending order."""
    if n_degrees == 0:
        yield ()
        return
    for first in divisors(n):
        for others in _cuts(n // first, n_degrees - 1):
            yield (first, *others)
