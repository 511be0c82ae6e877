"""What machines can bring together, by prices of layers: a bound that any prices prove.

At a rate F every layer is passed by F. With a price π of each layer, the prices adding up to 1, a
machine that holds layers s to e − 1 at a rate T brings at most min(T, F) Σ π of its layers to the
F that all layers together are worth. So at the best rate

    F ≤ g(F) = Σ_m max over spans of min(T, F) Σ_{s ≤ l < e} π_l,

and since g rises with F, from any bound U follows the bound g(U), again and again.
"""

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.tools.staging.machines.spans import Spans

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
