"""What one replica sees of the requests that come to a pool of replicas that are alike.

*At random*, each request goes to any: of times between arrivals with c², those of a replica have
c²/n + 1 − 1/n, which is exact where times are independent [Whitt1983].

*In turn*, every n-th request: c²/n. Streams with c² < 1 are taken as such: fewer come together.

*To the replica with the fewest requests*: all have nearly as many, so that a replica's number is an
n-th of what the pool has as one station with n times the places [Foschini1978], and varies as
little; who waits for a place waits until any of them has one. A replica gets a request where one of
its own ended, and ends of many answers are as random as Poisson arrivals: over times as short as a
pass arrivals are no steadier than at random, which is what prompts wait for. Where prompts are
read alone and first it may even be worse, as a replica that reads ends nothing and one that does
not gets all: measured by `tests/estimates/queues/pools_against_simulation.py`.
"""

from __future__ import annotations

from dataclasses import replace

from planner.estimates.queues.loads import Load
from planner.specs.routers import LEAST_PRESENT, ROUND_ROBIN


def replica_load(load: Load, n_replicas: int, router: str) -> Load:
    """The part of a pool's requests that one of its replicas gets.

    Args:
        load: of the pool, with its whole rate.
        n_replicas: at least one.
        router: of `planner.specs.routers`.

    Raises:
        ValueError: no replicas.
    """
    if n_replicas < 1:
        raise ValueError("a pool of no replicas")
    thinned = load.arrival_cv2 / n_replicas
    if router != ROUND_ROBIN:
        thinned += 1.0 - 1.0 / n_replicas
    return replace(
        load,
        rate_per_s=load.rate_per_s / n_replicas,
        arrival_cv2=thinned,
        n_alike=n_replicas if router == LEAST_PRESENT else 1,
    )
