"""CPU time on machines on which others work: what is compared takes turns, and the least counts.

A neighbour can only add to what something takes. So the least of some rounds is nearest to what it
takes by itself, and a round that a neighbour spoilt is made good by a quieter one.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable


def least_s(
    *works: Callable[[], object], until: Callable[..., bool], n_rounds: int = 8
) -> list[float]:
    """The least CPU time of each of some works, which take turns [s].

    Args:
        until: told the least of each; once it says so there are no more rounds.
    """
    least = [math.inf] * len(works)
    for _ in range(n_rounds):
        for i, work in enumerate(works):
            began_s = time.process_time()
            work()
            least[i] = min(least[i], time.process_time() - began_s)
        if until(*least):
            break
    return least


def spent_s() -> float:
    """CPU time of this process and of those that it has started and that have ended [s]."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)
