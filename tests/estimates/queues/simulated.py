"""What a station of the field serves, as the verifier's simulator finds it."""

from __future__ import annotations

import math

import numpy as np

from planner.verifier.simulation.log import Gaps
from planner.verifier.simulation.rank import Log, Rank
from tests.estimates.queues.situations import Situation


def served_rate(one: Situation, n: int) -> float:
    """Requests a second while there are always some that wait."""
    draw = np.random.default_rng(1)
    cell = draw.choice(len(one.load.weight), size=n, p=one.load.weight)
    log = Log(
        n_input=one.load.n_input[cell].astype(int).tolist(),
        n_output=one.load.n_output[cell].astype(int).tolist(),
        ready_s=[0.0] * n,
        first_s=[math.nan] * n,
        last_s=[math.nan] * n,
        gaps=Gaps(),
    )
    rank = Rank(one.station, log)
    for number in range(n):
        rank.arrive(number)
    rank.advance(math.inf)
    ends = np.sort(log.last_s)
    first, last = n // 5, 3 * n // 5
    return float((last - first) / (ends[last] - ends[first]))
