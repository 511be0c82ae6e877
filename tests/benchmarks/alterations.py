"""Every leaf and every list of every kind of answer altered once: does the verifier see it?

`python -m tests.benchmarks.alterations [SEED]` prints a row for each answer, and ends with 1 if an
alteration of a figure that follows from the request passed. Of what is chosen another choice
may be true as well; what is unverified passes, and what is proved without a new search.

`… [SEED] --prove` searches again: each field that only a search can say altered once wherever it
stands, and every forgery of `tests.verifier.forgeries`, which a recount believes. It ends with 1
if a forgery passed; of fields that are proved it lists those that did.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from random import Random

from planner.verifier.rules import ASKED, CHOSEN, COUNTED, PROVED, UNVERIFIED
from tests.verifier.alterations import Pointer, is_refused, leaves, rule_at, tried
from tests.verifier.answers import MAKERS, answer, envelope
from tests.verifier.forgeries import FORGERIES

RULES = (COUNTED, ASKED, CHOSEN, PROVED, UNVERIFIED)


def main(seed: int) -> int:
    """Print the table; 1 if anything was let through."""
    print(f"{'refused of altered':38}", *(f"{rule:>12}" for rule in RULES), f"{'s':>7}")
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
        print(f"{name:38}", *cells, f"{time.process_time() - began_s:7.1f}", flush=True)
    print(*passed, f"{len(passed)} let through", sep="\n")
    return 1 if passed else 0


def proved(seed: int) -> int:
    """The same of what only a search can say; 1 if a forgery was let through."""
    passed = []
    print(f"{'refused of altered':60} {PROVED:>12} {'s':>7}")
    for name in MAKERS:
        began_s, n, n_refused = time.process_time(), 0, 0
        draw, record = Random(f"{name} {seed}"), envelope(name)
        for path in _each_field(name):
            one = tried(record["kind"], answer(name), record, path, draw, prove=True)
            if one is not None:
                n, n_refused = n + 1, n_refused + one.is_refused
                passed += [] if one.is_refused else [f"{name}: {one.told}"]
        cells = f"{f'{n_refused}/{n}':>12} {time.process_time() - began_s:7.1f}"
        print(f"{name:60} {cells}", flush=True)
    print("proved fields that may be otherwise:", *passed, sep="\n")
    believed = [name for name, make in FORGERIES.items() if not is_refused(make(), prove=True)]
    print(f"{len(FORGERIES) - len(believed)} of {len(FORGERIES)} forgeries refused", *believed)
    return 1 if believed else 0


def _each_field(name: str) -> Iterator[Pointer]:
    """One place of each field that is proved, whichever entries it is below."""
    from planner.report.answer_kinds import kind_named

    record = envelope(name)
    kind = kind_named(record["kind"])
    assert kind is not None
    met = set()
    for path in leaves(record):
        field = tuple(part for part in path if not part.isdigit())
        if field not in met and rule_at(kind, answer(name), path) == PROVED:
            met.add(field)
            yield path


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:] if one.isdigit()]
    sys.exit((proved if "--prove" in sys.argv else main)(*(numbers or [0])))
