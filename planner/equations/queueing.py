"""Waits for one server and for several, where requests arrive at random times, one by one.

Arrivals are Poisson, as of many users who know nothing of each other. Times of service are equal:
prompts of one length take as long as each other, and so do answers. Source: [Allen1990].

Work that arrivals interrupt, and how much more numbers vary of those that come in groups:
[Takacs1967], [Tanner1961], [Shanbhag1966].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray


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


def group_of_dispersion(dispersion: FloatArray | float) -> FloatArray:
    """Mean of geometric groups that have E[X²] / E[X] = v (N,) [1]: (v + 1) / 2, at least 1.

    Renewals with squared coefficient of variation c² have, over times that are long beside one of
    them, as variable counts as Poisson groups with v = c².

    >>> float(group_of_dispersion(3.0))
    2.0
    """
    return np.maximum(1.0, (np.asarray(dispersion, dtype=float) + 1.0) / 2.0)


def family_dispersion(busy: FloatArray, offspring_cv2: float) -> FloatArray:
    """E[X²] / E[X] of the arrivals of a delay, its descendants included (N,) [1].

    Each arrival is served for a time in which others come: a share ρ of one on average, with
    variance ρ + ρ² c² where the times of service have c². The progeny of one has mean 1 / (1 − ρ)
    and variance (ρ + ρ² c²) / (1 − ρ)³.

    Args:
        busy: ρ < 1 (N,).
        offspring_cv2: c² of times of service.

    Source: [Tanner1961].

    >>> float(family_dispersion(np.array(0.5), 0.0))
    4.0
    """
    idle = 1.0 - busy
    return np.asarray((busy + busy**2 * offspring_cv2) / idle**2 + 1.0 / idle)


N_INTERRUPTIONS, N_SUMS = 25, 5
"""Points of the number of interruptions, and of the sum of so many."""

_NORMAL = np.array([-1.645, -0.674, 0.0, 0.674, 1.645])
_NORMAL_WEIGHTS = np.array([0.15, 0.225, 0.25, 0.225, 0.15])


def interrupted(
    work_s: FloatArray, rate_per_s: float, mean_s: FloatArray, cv2: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """How long work takes that arrivals interrupt, each with all that come in its own time.

    By the ballot theorem, of the J interruptions and their sum S:

        P(J = j, S ∈ ds) = u / (u + s) · e^{−λ(u + s)} (λ(u + s))^j / j! · P(S_j ∈ ds)

    for work u. Of S_j, j interruptions, five points are taken by the cube root of a gamma that has
    its mean and its variance; of j, at most 25.

    Args:
        work_s: u (…) [s].
        rate_per_s: λ.
        mean_s: of an interruption (…) [s].
        cv2: squared coefficient of variation of an interruption (…).

    Returns:
        Times and their probabilities, (…, 25, 5) each.

    Source: [Takacs1967] §2, [Tanner1961]; cube root of a gamma: [Wilson1931].
    """
    work_s = np.maximum(work_s, 1e-12)
    idle = 1.0 - np.minimum(rate_per_s * mean_s, 0.95)
    usual = rate_per_s * work_s / idle
    spread = np.sqrt((1.0 + cv2) * usual) / idle
    first = np.maximum(0.0, usual - 4.0 * spread - 2.0)
    last = usual + 5.0 * spread + 6.0
    inside = np.linspace(0.0, 1.0, N_INTERRUPTIONS)
    dense = np.where((first > 0.0)[..., None], inside, inside**1.7)  # near none, if that may be
    n = np.round(first[..., None] + (last - first)[..., None] * dense)
    between = (n[..., 1:] + n[..., :-1]) / 2.0
    ends = (n[..., :1] - 0.5, between, n[..., -1:] + 0.5)
    stands_for = np.diff(np.concatenate(ends, axis=-1), axis=-1)
    each_cv2 = np.broadcast_to(cv2, work_s.shape)[..., None, None]
    varies = each_cv2 / (9.0 * np.maximum(n, 1.0))[..., None]
    root = 1.0 - varies + _NORMAL * np.sqrt(varies)
    added = (mean_s[..., None] * n)[..., None] * np.maximum(0.0, root) ** 3
    took = work_s[..., None, None] + added
    comes = np.maximum(rate_per_s * took, 1e-300)
    counts = n[..., None]
    log = counts * np.log(comes) - comes - _log_factorial(counts)
    likely = work_s[..., None, None] / took * np.exp(log) * stands_for[..., None] * _NORMAL_WEIGHTS
    return took, likely / np.sum(likely, axis=(-1, -2), keepdims=True)


def _log_factorial(n: FloatArray) -> FloatArray:
    """By Stirling's series, within 3e-3 at 1 and closer above; exact at 0."""
    safe = np.maximum(n, 1.0)
    found = safe * np.log(safe) - safe + 0.5 * np.log(2.0 * np.pi * safe) + 1.0 / (12.0 * safe)
    return np.where(n < 0.5, 0.0, found)
