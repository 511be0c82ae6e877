"""A sweep over the layers: what any placement of a rate F wastes, and how little it may.

Machines are taken as what they bring at the best, max_k k min(T(k), F), the *worth* of a machine.
All machines together are worth more than the layers need, L F, by the *allowance*; a placement
wastes it all: a machine that holds fewer or more layers than is best, machines that together hold
a layer faster than F, machines that hold nothing. From the first layer on, what was wasted by
machines that have begun is known, wherever the others come to be, and it only grows.

At each boundary the tokens, F of them, pass inside machines that go on, or from those that end to
those that begin, over the best links that there are between two machines of their regions. So a
sweep over boundaries that keeps every *front* (the machines that hold the layer, and how many more
each holds) within the allowance either comes to the last layer, or proves that no placement has
the rate F. It looks at one boundary at a time: what comes to the last layer may be no placement.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.tools.staging.machines.patterns import crossing_flow
from planner.tools.staging.machines.program import Classes

ROUNDING = 1e-9
"""Share of the rate, and of the allowance, that no sum is wrong by; in favour of the placement."""

_MOST_BITS = 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepProgram:
    """What may begin at a boundary: a machine of a class with a number of layers, a *beginning*.

    Args:
        rate: F [tokens/s].
        alike: classes of machines, their crossings the greatest link that there is.
        kind, held: class and number of layers of each beginning (B,).
        served: tokens/s, at most F (B,).
        wasted: of the worth of its machine (B,).
        allowance: that all placements waste [tokens/s × layers].
        unit: one machine of each class, as a number; sums of them count machines (C,).
        most, carry: added to a count, `most` sets a bit of `carry` if a class has not so many.
    """

    rate: float
    alike: Classes
    kind: IntArray
    held: IntArray
    served: FloatArray
    wasted: FloatArray
    allowance: float
    unit: IntArray
    most: int
    carry: int

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def need(self) -> float:
        """The rate, less what rounding may take."""
        return self.rate * (1.0 - ROUNDING)

    @property
    def room(self) -> float:
        """The allowance, and what rounding may add."""
        return self.allowance + ROUNDING * self.rate * self.alike.n_layers

    def enters(self, begun: Sequence[int]) -> bool:
        """Whether the coordinator's best links carry the rate to those that begin."""
        region = self.alike.region[self.kind[list(begun)]]
        return bool(self._least(begun, self.alike.entry[region]) >= self.need)

    def leaves(self, ended: Sequence[int]) -> bool:
        """Whether its links carry the rate from those that end."""
        region = self.alike.region[self.kind[list(ended)]]
        return bool(self._least(ended, self.alike.leaving[region]) >= self.need)

    def _least(self, which: Sequence[int], links: FloatArray) -> float:
        return float(np.minimum(self.served[list(which)], links).sum())

    def passed(self, ended: Sequence[int], begun: Sequence[int]) -> float:
        """Tokens/s from machines that end to those that begin, over the best links."""
        return crossing_flow(self._side(ended), self._side(begun), self.alike.crossing)

    def _side(self, which: Sequence[int]) -> tuple[FloatArray, IntArray]:
        """Rates and regions of what begins or ends at a boundary."""
        return self.served[list(which)], self.alike.region[self.kind[list(which)]]


def sweep_program(alike: Classes, rates: FloatArray, rate: float) -> SweepProgram | None:
    """The sweep at a rate; None if there are more machines than a number can count.

    Args:
        alike: with hopes, see `machines.classes`.
        rates: tokens/s of a machine of each class by layers held, at best (C, K).
    """
    counts = alike.n_machines
    bits = [int(n).bit_length() + 1 for n in counts]
    if sum(bits) > _MOST_BITS:
        return None
    shift = np.concatenate([[0], np.cumsum(bits)[:-1]]).tolist()
    served = np.minimum(rates, rate)
    layers = np.arange(1, rates.shape[1] + 1)
    worth = (served * layers).max(axis=1)
    allowance = float(counts @ worth) - alike.n_layers * rate
    kind, index = np.nonzero(served > 0)
    wasted = worth[kind] - layers[index] * served[kind, index]
    kept = (wasted <= allowance + ROUNDING * rate * alike.n_layers) & (index < alike.n_layers)
    kind, index = kind[kept], index[kept]
    return SweepProgram(
        rate=rate,
        alike=alike,
        kind=kind,
        held=layers[index],
        served=served[kind, index],
        wasted=wasted[kept],
        allowance=allowance,
        unit=np.array([1 << s for s in shift], dtype=np.int64),
        most=sum(
            ((1 << (b - 1)) - 1 - int(n)) << s for b, n, s in zip(bits, counts, shift, strict=True)
        ),
        carry=sum(1 << (s + b - 1) for b, s in zip(bits, shift, strict=True)),
    )
