"""300 random clusters: HiGHS, CP-SAT and an enumeration of devices, one joint objective.

    python -m tests.benchmarks.placement_exact [FIRST LAST]

Up to 12 devices of one kind or two, holed, slow, oversubscribed, with adapters and links down;
each once with as many replicas as fit, and once with exactly two.
"""

from __future__ import annotations

import sys

from tests.placing.test_placing import compare


def main(first: int, last: int) -> int:
    """How many of the clusters differ, printed as they come."""
    n_different = n_served = 0
    for seed in range(first, last):
        for replicas in (None, 2):
            found = compare(seed, replicas)
            spread = max(found) - min(found)
            n_served += max(found) > 0
            if spread > 1e-8 * max(found) + 1e-6:
                n_different += 1
                print(f"cluster {seed}, replicas {replicas}: {found}")
    n = 2 * (last - first)
    print(
        f"{n} programs of {last - first} clusters, {n_served} can be served, {n_different} differ"
    )
    return n_different


if __name__ == "__main__":
    bounds = [int(word) for word in sys.argv[1:3]] or [0, 300]
    sys.exit(main(*bounds) > 0)
