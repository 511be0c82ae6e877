"""Queues that requests stand in where they arrive at random times and are served equally long."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, fsum, lgamma, log

N_HALVINGS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A share of requests stands in it, for a time that is forgotten as it passes."""

    share: float
    mean_s: float

    @classmethod
    def of_one(cls, rate: float, each_s: float) -> Queue | None:
        """Before one that serves; None where it grows without end.

        Who comes finds it at work with probability ρ, half of one done, and before that a queue as
        long as its own wait: W = ρ T / 2 + ρ W.
        """
        work = rate * each_s
        return None if work >= 1 else cls(share=work, mean_s=work * each_s / 2 / (1 - work))

    @classmethod
    def of(cls, n: int, rate: float, in_flight: float) -> Queue | None:
        """Before n that serve at once, of which `in_flight` are busy; by Erlang's sums."""
        if in_flight >= n:
            return None
        logs = [k * log(in_flight) - lgamma(k + 1) for k in range(n + 1)]
        most = max(logs)
        full = exp(logs[n] - most) * n / (n - in_flight)
        share = full / (fsum(exp(one - most) for one in logs[:n]) + full)
        return cls(share=share, mean_s=share * in_flight / rate / (n - in_flight) / 2)


def middle_s(one: Queue, other: Queue) -> float:
    """That half of all stand in both together no longer than; none where half stand in neither."""
    shares = [(one.share, one.mean_s / one.share if one.share else 0.0)]
    shares.append((other.share, other.mean_s / other.share if other.share else 0.0))
    (p, a), (q, b) = shares
    if (1 - p) * (1 - q) >= 0.5:
        return 0.0

    def within(t: float) -> float:
        short, long = (1 - exp(-t / m) if m else 1.0 for m in (a, b))
        if a and b and abs(a - b) > 1e-6 * max(a, b):
            both = 1 - (a * exp(-t / a) - b * exp(-t / b)) / (a - b)
        elif a and b:
            both = 1 - (1 + t / a) * exp(-t / a)
        else:
            both = short * long
        return (1 - p) * (1 - q) + p * (1 - q) * short + (1 - p) * q * long + p * q * both

    least, most = 0.0, 1.0
    while within(most) < 0.5:
        most *= 2
    for _ in range(N_HALVINGS):
        middle = (least + most) / 2
        least, most = (least, middle) if within(middle) >= 0.5 else (middle, most)
    return most
