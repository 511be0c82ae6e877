"""Every leaf and every list of every kind of answer altered once: does the verifier see it?

`python -m tests.benchmarks.alterations [SEED]` prints a row for each answer, and ends with 1 if an
alteration of a figure that follows from the request passed. Of what is chosen another choice
may be true as well; what is proved or unverified passes without a new search.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from random import Random

from planner.verifier.rules import ASKED, CHOSEN, COUNTED, PROVED, UNVERIFIED
from tests.verifier.alterations import leaves, tried
from tests.verifier.answers import MAKERS, answer, envelope

RULES = (COUNTED, ASKED, CHOSEN, PROVED, UNVERIFIED)


def main(seed: int) -> int:
    """Print the table; 1 if anything was let through."""
    print(f"{'refused of altered':30}", *(f"{rule:>12}" for rule in RULES), f"{'s':>7}")
    passed = []
    for name in MAKERS:
        began_s = time.process_time()
        draw, record = Random(f"{name} {seed}"), envelope(name)
        n, refused = Counter[str](), Counter[str]()
        for path in leaves(record):
            one = tried(record["kind"], answer(name), record, path, draw)
            if one is not None:
                n[one.rule] += 1
                refused[one.rule] += one.is_refused
                passed += [f"{name}: {one.told}"] if one.is_let_through else []
        cells = (f"{f'{refused[rule]}/{n[rule]}':>12}" for rule in RULES)
        print(f"{name:30}", *cells, f"{time.process_time() - began_s:7.1f}", flush=True)
    print(*passed, f"{len(passed)} let through", sep="\n")
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
