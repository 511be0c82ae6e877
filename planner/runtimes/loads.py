"""What a deployment does at the rate that arrives: requests in flight by Little's law.

A request has its place from its prompt to its last token. At b in flight on a rank it has it for

    W(b) = TTFT(b) + (OSL - 1) TPOT(b)

and b / W(b) end each second. At the mean of a rate λ as many end as come: λ = b / W(b). That is the
mean load; no queue and no burst is counted. Source: [Little1961].
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.times import place_s
from planner.estimates.serving.traffic import Drafts, Traffic
from planner.results.predictions import Load


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
    ended = sizes / there_s * n_ranks
    most = float(ended[-1])
    load = Load(
        requests_per_s=requests_per_s,
        most_requests_per_s=most,
        n_in_flight=None,
        tpot_s=None,
        ttft_s=None,
    )
    if requests_per_s > most:
        return load
    k = int(np.argmax(ended >= requests_per_s))
    before = float(ended[k - 1]) if k else 0.0
    beyond = (requests_per_s - before) / (float(ended[k]) - before)
    both = [max(k - 1, 0), k]
    tpot, ttft = times.tpot_s[both], times.ttft_s[both]
    return replace(
        load,
        n_in_flight=k + beyond,
        tpot_s=float(tpot[0] + beyond * (tpot[1] - tpot[0])),
        ttft_s=float(ttft[0] + beyond * (ttft[1] - ttft[0])),
    )
