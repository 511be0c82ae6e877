"""Waits for one server and for several, where requests arrive at random times, one by one.

Arrivals are Poisson, as of many users who know nothing of each other. Times of service are equal:
prompts of one length take as long as each other, and so do answers. Source: [Allen1990].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A time that a share of all requests wait, and the others not.

    Args:
        probability: that one waits at all [1].
        mean_s: of all requests [s].
    """

    probability: float
    mean_s: float

    @property
    def of_waiting_s(self) -> float:
        """Mean of those that wait [s]."""
        return self.mean_s / self.probability if self.probability > 0.0 else 0.0


def one_server(rate_per_s: float, service_s: float) -> Wait:
    """M/D/1: ρ T / (2 (1 − ρ)), ρ = λ T; one waits where the server is at work.

    Raises:
        ValueError: more arrives than is served.

    Source: [Allen1990] §5.3, by Pollaczek and Khinchine.

    >>> one_server(0.5, 1.0)
    Wait(probability=0.5, mean_s=0.5)
    """
    busy = rate_per_s * service_s
    if busy >= 1.0:
        raise ValueError("more arrives than is served")
    return Wait(probability=busy, mean_s=busy * service_s / (2.0 * (1.0 - busy)))


def several_servers(n_servers: int, rate_per_s: float, service_s: float) -> Wait:
    """M/D/c: half of the wait C T / (c − a) of random times, a = λ T, C by Erlang.

    Erlang's B is found by its recursion over servers, B_k = a B / (k + a B), and
    C = B / (1 − (a / c) (1 − B)).

    Raises:
        ValueError: more arrives than is served.

    Source: [Allen1990] §5.4, with the correction of Allen and Cunneen for equal times.

    >>> several_servers(1, 0.5, 1.0)
    Wait(probability=0.5, mean_s=0.5)
    """
    offered = rate_per_s * service_s
    if offered >= n_servers:
        raise ValueError("more arrives than is served")
    blocked = 1.0
    for k in range(1, n_servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    waits = blocked / (1.0 - offered / n_servers * (1.0 - blocked))
    return Wait(probability=waits, mean_s=waits * service_s / (n_servers - offered) / 2.0)


def median_s(waits: Sequence[Wait]) -> float:
    """The median of the sum of two waits, each nothing or exponential, independent [s].

    Found by bisection of P(sum > t) = 1/2; 0 where half of all wait for neither.
    """
    one, other = waits

    def longer(t: float) -> float:
        """Probability that the sum is longer."""
        first, second = one.of_waiting_s, other.of_waiting_s
        p, q = one.probability, other.probability
        found = p * (1.0 - q) * _tail(t, first) + (1.0 - p) * q * _tail(t, second)
        if math.isclose(first, second, rel_tol=1e-6):
            both = (1.0 + t / first) * _tail(t, first) if first else 0.0
        else:
            both = (first * _tail(t, first) - second * _tail(t, second)) / (first - second)
        return found + p * q * both

    low, high = 0.0, 4.0 * (one.of_waiting_s + other.of_waiting_s)
    if longer(low) <= 0.5:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if longer(middle) > 0.5 else (low, middle)
    return high


def _tail(t: float, mean: float) -> float:
    return math.exp(-t / mean) if mean > 0.0 else 0.0
