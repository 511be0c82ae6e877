"""What a deployment does at the rate that arrives: in flight by Little's law, and what one waits.

A request has its place from its prompt to its last token. At b in flight on a rank it has it for

    W(b) = TTFT(b) + (OSL - 1) TPOT(b)

and b / W(b) end each second. At the mean of a rate λ as many end as come: λ = b / W(b). That is the
mean load, and TPOT is of it. Requests arrive at random times, and so wait for two things more than
in a closed loop of b: for prompts that came before, as one server reads them, and for one of the c
places of a rank where more than c are there at a time, which each has for as long as a request
stays. Both are waits of equal times of service, M/D/1 and M/D/c: `equations.queueing`. Source:
[Little1961], [Allen1990].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.equations.queueing import median_s, one_server, several_servers
from planner.estimates.serving.arrivals import service_s, vacation_s
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.times import ServingTimes, place_s
from planner.estimates.serving.traffic import Drafts, Traffic
from planner.results.arrivals import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mean:
    """One rank at its mean load.

    Args:
        n_in_flight: of it.
        tpot_s: with so many.
        found_s: TTFT without waits for prompts and places.
        read_s: that each prompt keeps others waiting.
    """

    n_in_flight: float
    tpot_s: float
    found_s: float
    read_s: float


def load_of(
    serving: Serving,
    table: DeploymentTable,
    traffic: Traffic,
    *,
    n_running: int,
    drafts: Drafts | None,
    requests_per_s: float,
) -> Load:
    """What one deployment does where so many requests arrive at all of its ranks together.

    Between two numbers in flight, rates and times are on the line between theirs.

    Args:
        table: of that one deployment.
        n_running: sequences that decode on a rank where it is full.
    """
    n_ranks = float(table.n_data[0])
    sizes: FloatArray = np.arange(1.0, n_running + 1.0)
    alike = replace(table.take(np.zeros(n_running, dtype=np.int64)), batch=sizes)
    times = serving_times(serving, alike, traffic, drafts=drafts)
    there_s = place_s(traffic, ttft_s=times.ttft_s, tpot_s=times.tpot_s, prompt_s=times.prompt_s)
    ended = sizes / there_s
    load = Load(
        requests_per_s=requests_per_s,
        most_requests_per_s=float(ended[-1]) * n_ranks,
        n_in_flight=None,
        tpot_s=None,
        ttft_s=None,
    )
    rate = requests_per_s / n_ranks
    if rate >= ended[-1]:
        return load
    mean = _mean(times, ended, rate)
    try:
        reads = one_server(rate, mean.read_s)
        places = several_servers(n_running, rate, mean.n_in_flight / rate)
    except ValueError:  # what random times need beyond a closed loop is not there
        return load
    return replace(
        load,
        n_in_flight=mean.n_in_flight,
        tpot_s=mean.tpot_s,
        ttft_s=mean.found_s + reads.mean_s + places.mean_s,
        ttft_median_s=mean.found_s + median_s((reads, places)),
        prompts_wait_s=reads.mean_s,
        place_wait_s=places.mean_s,
    )


def _mean(times: ServingTimes, ended: FloatArray, rate: float) -> _Mean:
    """Where as many requests of a rank end as come."""
    k = int(np.argmax(ended >= rate))
    before = float(ended[k - 1]) if k else 0.0
    beyond = (rate - before) / (float(ended[k]) - before)
    found, read = times.ttft_s, np.zeros(len(ended))
    if times.loop is not None:
        parts = times.ttft_parts
        found = found - parts["step"] - parts["others"] + vacation_s(times.loop)
        read = service_s(times.loop)

    def between(values: FloatArray) -> float:
        low, high = float(values[max(k - 1, 0)]), float(values[k])
        return low + beyond * (high - low)

    return _Mean(
        n_in_flight=k + beyond,
        tpot_s=between(times.tpot_s),
        found_s=between(found),
        read_s=between(read),
    )
