"""Thousands of random chains on equal groups: cuts by HiGHS beside dynamic programming.

`python -m tests.benchmarks.cuts 3000` draws as many for each objective and prints what disagrees.
It is no test of pytest's: that draws a few hundred (`tests/solvers/test_stages.py`).
"""

from __future__ import annotations

import sys
import time

from tests.programs.chains import by_dynamic_programming
from tests.solvers.test_stages import OBJECTIVES, agrees, homogeneous


def main(n_chains: int) -> int:
    """Compare; the number of chains that disagree."""
    n_wrong = 0
    for objective in OBJECTIVES:
        began_s = time.process_time()
        for seed in range(10_000, 10_000 + n_chains):
            program = homogeneous(seed)
            if not agrees(program, objective, "highs", by_dynamic_programming(program, objective)):
                n_wrong += 1
                print(f"{objective}: seed {seed} disagrees")
        spent_s = time.process_time() - began_s
        print(f"{objective}: {n_chains} chains, {n_wrong} disagree, {spent_s:.0f} s of CPU")
    return n_wrong


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]))))
