"""What comes to a deployment: at a rate, or in waves of a closed loop; and its first tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """First tokens of a closed loop that begins with all of its requests at once.

    Args:
        n_waves: requests that each place serves.
        first_s: mean TTFT of those that begin together.
        later_s: of all that come as others end.
        median_s: of all.
    """

    n_waves: int
    first_s: float
    later_s: float
    median_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What arrives at a deployment at random times, and what it does there.

    Args:
        requests_per_s: that arrive at all ranks together.
        most_requests_per_s: that it serves with every place taken.
        n_in_flight: of each attention rank, on average; None where more arrive than it serves.
        tpot_s: with so many in flight; None there too, as are all of the following.
        ttft_s, ttft_median_s: with both waits; of all requests, and of one in the middle.
        prompts_wait_s: of it, for prompts that came before, on average.
        place_wait_s: of it, for a place, where all are taken.
    """

    requests_per_s: float
    most_requests_per_s: float
    n_in_flight: float | None
    tpot_s: float | None
    ttft_s: float | None
    ttft_median_s: float | None = None
    prompts_wait_s: float | None = None
    place_wait_s: float | None = None

    @property
    def is_carried(self) -> bool:
        return self.n_in_flight is not None

    @property
    def utilization_fraction(self) -> float:
        """Of what it serves with every place taken."""
        return self.requests_per_s / self.most_requests_per_s

    @property
    def n_needed(self) -> int:
        """Deployments like it that carry as much."""
        return math.ceil(self.utilization_fraction)
