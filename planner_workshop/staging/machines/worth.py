"""What machines bring at the best, together: a bound by prices of layers, and the sweep's program.

At a rate F every layer is passed by F. With a price π of each layer, the prices adding up to 1, a
machine that holds layers s to e − 1 at a rate T brings at most min(T, F) Σ π of its layers to the
F that all layers together are worth. So at the best rate

    F ≤ g(F) = Σ_m max over spans of min(T, F) Σ_{s ≤ l < e} π_l,

and since g rises with F, from any bound U follows the bound g(U), again and again.

In a sweep over the layers machines are taken as what they bring at the best, max_k k min(T(k), F),
the *worth* of a machine: what any placement of a rate F wastes, and how little it may. All machines
together are worth more than the layers need, L F, by the *allowance*; a placement wastes it all: a
machine that holds fewer or more layers than is best, machines that together hold a layer faster
than F, machines that hold nothing. From the first layer on, what was wasted by machines that have
begun is known, wherever the others come to be, and it only grows.

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
from planner_workshop.staging.machines.patterns import crossing_flow
from planner_workshop.staging.machines.program import Classes
from planner_workshop.staging.machines.spans import Spans

ROUNDS, WORK = 300, 20_000_000
"""In which prices are moved, fewer of them where there are many spans."""

OUTWARD = 1e-12
"""Share by which a bound is raised: far more than the rounding of its sums."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PricedBound:
    """No placement serves more than `bound` [tokens/s], as the prices of layers (L,) prove."""

    bound: float
    prices: FloatArray

    @property
    def is_even(self) -> bool:
        """Whether all layers have one price."""
        return bool(np.ptp(self.prices) == 0.0)


def priced_bound(some: Spans, at_most: float) -> PricedBound:
    """The least bound by prices that begin equal and move to the layers that few can serve.

    Args:
        at_most: a bound that is known [tokens/s].
    """
    kinds = _kinds(some)
    prices = np.full(some.pool.n_layers, 1.0 / some.pool.n_layers)
    best = PricedBound(bound=_settled(kinds, prices, at_most), prices=prices)
    n_spans = sum(len(kind[1]) for kind in kinds)
    for step in range(min(ROUNDS, WORK // max(1, n_spans))):
        _, brought = _worth(kinds, prices, best.bound)
        most = float(brought.max())
        if most <= 0.0 or np.ptp(brought) <= 1e-9 * most:
            break
        prices = prices * np.exp(-brought / most / np.sqrt(step + 1.0))
        prices /= prices.sum()
        if _worth(kinds, prices, best.bound)[0] < best.bound * (1.0 - 1e-9):
            best = PricedBound(bound=_settled(kinds, prices, best.bound), prices=prices)
    return best


_Kind = tuple[int, IntArray, IntArray, FloatArray]


def _kinds(some: Spans) -> list[_Kind]:
    """Machines with the same spans and rates: how many, and these without the idle one."""
    kinds: dict[bytes, _Kind] = {}
    for first, end, rate in zip(some.first, some.end, some.rate, strict=True):
        key = first.tobytes() + end.tobytes() + rate.tobytes()
        count = kinds[key][0] if key in kinds else 0
        kinds[key] = (count + 1, first[1:], end[1:], rate[1:])
    return [kind for kind in kinds.values() if len(kind[1])]


def _worth(kinds: list[_Kind], prices: FloatArray, rate: float) -> tuple[float, FloatArray]:
    """What all machines bring at most, and to which layers they then bring it (L,)."""
    upto = np.concatenate([[0.0], np.cumsum(prices)])
    total, brought = 0.0, np.zeros(len(prices))
    for count, first, end, served in kinds:
        through = np.minimum(served, rate)
        value = (upto[end] - upto[first]) * through
        best = int(value.argmax())
        total += count * float(value[best])
        brought[first[best] : end[best]] += count * through[best]
    return total, brought


def _settled(kinds: list[_Kind], prices: FloatArray, at_most: float) -> float:
    """g again and again, rounded outward."""
    scale = (1.0 + OUTWARD) / float(prices.sum())  # prices that add up to a little less prove less
    bound = at_most
    for _ in range(10_000):
        least = _worth(kinds, prices, bound)[0] * scale
        if not least < bound * (1.0 - OUTWARD):
            break
        bound = least
    return bound


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
        return self._carried(begun, self.alike.entry)

    def leaves(self, ended: Sequence[int]) -> bool:
        """Whether its links carry the rate from those that end."""
        return self._carried(ended, self.alike.leaving)

    def _carried(self, which: Sequence[int], links: FloatArray) -> bool:
        served, region = self._side(which)
        return float(np.minimum(served, links[region]).sum()) >= self.need

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
