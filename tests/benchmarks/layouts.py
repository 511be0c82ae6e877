"""Random requests of altered models: `plan` beside an enumeration of all layouts.

    python -m tests.benchmarks.layouts [HOW_MANY] [FIRST_SEED]

Prints each request where they differ, and how many agree.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from planner import NoPlanError, plan
from tests.planning.every_layout import NO_TARGETS, Asked, drawn

TOLERANCE = 1e-9


def planned(asked: Asked) -> float:
    """The objective of the plan as the enumeration states it, SI; infinite without a plan."""
    try:
        answer = plan(asked.model, asked.cluster, "roofline", **asked.as_arguments())
    except NoPlanError:
        return float("inf")
    objective = answer.certificate.objective
    return 1.0 / objective if asked.objective == "throughput" else objective


def agree(one: float, other: float) -> bool:
    """Whether two objectives are one, but for rounding."""
    return one == other or abs(one - other) <= TOLERANCE * one


def main(how_many: int, first: int) -> int:
    """How many of the requests differ, printed as they come."""
    n_different = n_served = n_limited = 0
    began_s = time.process_time()
    for seed in range(first, first + how_many):
        asked, pairs = drawn(seed)
        best, found = pairs.best(asked), planned(asked)
        n_served += best < float("inf")
        n_limited += best > pairs.best(replace(asked, targets=NO_TARGETS))
        if not agree(best, found):
            n_different += 1
            print(f"seed {seed}: all layouts {best:.9g}, plan {found:.9g}, {asked}")
    print(
        f"{how_many} requests, {n_served} have a plan, the target costs something in {n_limited}; "
        f"{how_many - n_different} agree, {n_different} differ; "
        f"{time.process_time() - began_s:.0f} s CPU"
    )
    return n_different


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:3]]
    sys.exit(main(*words, *(300, 0)[len(words) :]) > 0)
