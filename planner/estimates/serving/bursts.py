"""In how many rounds the prompts of one wave come, where requests begin together.

Requests that begin together end together but for what their lengths vary by. The k-th wave after
the first begins when k lengths have been written, one after the other, so that its prompts come
with a standard deviation of

    σ² = k (v Z)² + s² / 12      v: of a length, over its mean; Z rounds of a request

rounds; s are those over which the first wave began, where prompts are read beside decodes. As many
prompts as evenly come in 2 √π σ rounds (of a normal law: the inverse of ∫ f²) meet each other as
often, until waves run into each other and what comes is even: in Z rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray

LENGTHS_VARY = 0.2 / math.sqrt(12.0) / 0.9
"""Standard deviation of a length over its mean, drawn evenly between 0.8 and 1 of what is named.

Source: SemiAnalysisAI/InferenceX, `--random-range-ratio 0.8`.
"""

WIDTH = 2.0 * math.sqrt(math.pi)
"""Of even arrivals that meet each other as often as normal ones, over their deviation."""

WAVES_APART = math.floor((WIDTH * LENGTHS_VARY) ** -2)
"""Waves after the first that have not run into each other yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """Rounds in which the prompts of each wave after the first come, each (N,).

    Args:
        rounds: of waves that are still apart, in order; of the others last.
        shares: of all waves after the first; their sum is 1.
    """

    rounds: tuple[FloatArray, ...]
    shares: tuple[float, ...]

    def mean(self, of_a_wave: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Of what a request of one wave has, over all of them (N,)."""
        parts = [
            share * of_a_wave(rounds)
            for rounds, share in zip(self.rounds, self.shares, strict=True)
        ]
        return np.asarray(sum(parts))


def bursts(n_waves: int, *, n_rounds: FloatArray | float, begun_rounds: FloatArray) -> Bursts:
    """How prompts come after the first wave; evenly where there are no waves, or one.

    Args:
        n_rounds: of a request, Z.
        begun_rounds: over which the first wave began to decode, s.
    """
    even = np.broadcast_to(np.asarray(n_rounds, dtype=float), np.shape(begun_rounds))
    n_later = n_waves - 1
    if n_later < 1:
        return Bursts(rounds=(even,), shares=(1.0,))
    n_apart = min(n_later, WAVES_APART)
    apart = [
        np.minimum(even, WIDTH * np.sqrt(k * (LENGTHS_VARY * even) ** 2 + begun_rounds**2 / 12.0))
        for k in range(1, n_apart + 1)
    ]
    shares = [1.0 / n_later] * n_apart
    return Bursts(rounds=(*apart, even), shares=(*shares, 1.0 - n_apart / n_later))
