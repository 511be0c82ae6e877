"""What comes to a deployment: at a rate, or in waves of a closed loop; and its first tokens."""

import math
from dataclasses import dataclass

from planner.specs.records.roles import Station
from planner.specs.validation.hints import computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """Hits that requests fetch of the memory of the host.

    Args:
        fetched_bytes: by each device, for one request.
        fetch_s: of these by themselves.
        again_s: what reading those tokens again would take longer.
        n_kept: requests at their longest whose caches the host of these devices has room for; None
            where nobody says how much memory it has.
    """

    fetched_bytes: float
    fetch_s: float
    again_s: float
    n_kept: int | None


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
class Percentile:
    """One percentile of a class, or of all requests, wherever they are served.

    Args:
        quantity: of `planner.specs.traffic.records.DEFINITIONS`.
        share: inside (0, 1).
        at_most_s: the target; None where nothing is asked.
        simulated_s: what the simulation had.
        half_width_s: half of the interval that holds it with 95 %; NaN where nobody knows.
    """

    quantity: str
    share: float
    at_most_s: float | None
    simulated_s: float
    half_width_s: float

    @computed
    def is_met(self) -> bool | None:
        """Whether the simulation keeps the target, if there is one; None where it saw none."""
        if self.at_most_s is None or math.isfinite(self.simulated_s):
            return self.at_most_s is None or self.simulated_s <= self.at_most_s
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """How a fleet or a deployment was simulated.

    Args:
        n_requests: in all.
        n_warm_up, n_wind_down: of these, the first and the last, which are not counted.
        n_batches: of the others, for intervals.
        seed: of everything drawn.
        duration_s: that the requests came in, and were served.
        n_begun_again: how often a request lost its place for want of room.
    """

    n_requests: int
    n_warm_up: int
    n_wind_down: int
    n_batches: int
    seed: int
    duration_s: float
    n_begun_again: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What arrives at replicas at random times, and what it does there, as simulated.

    Args:
        requests_per_s: that arrive at all of them together.
        most_requests_per_s: that they end while others always wait.
        station: one of their attention ranks, as the simulation sees it.
        n_in_flight: of each rank, on average, by Little's law; None where more arrive than end,
            as are all of the following.
        ttft_s, tpot_s: of all requests, on average; TPOT is 0 where no answers are written.
        percentiles: of both.
        simulated: how.
    """

    requests_per_s: float
    most_requests_per_s: float
    station: Station
    n_in_flight: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    percentiles: tuple[Percentile, ...] = ()
    simulated: Simulated | None = None

    @property
    def is_carried(self) -> bool:
        return self.n_in_flight is not None

    @property
    def utilization_fraction(self) -> float:
        """Of what they end while others always wait."""
        return self.requests_per_s / self.most_requests_per_s

    def n_needed(self, n_replicas: int) -> int:
        """Replicas that carry as much, which is less than they end while others always wait.

        Args:
            n_replicas: of which the load is.
        """
        return math.floor(n_replicas * self.utilization_fraction) + 1
