"""How far percentiles of single classes are from the simulator, of classes that share a station.

    python -m tests.estimates.queues.classes_against_simulation --mixes 20

prints the errors of each percentile over all classes of all mixes, and of each class if asked. In
brackets is what all requests together have in place of the class: what one would err without.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

from planner.estimates.queues.times import percentiles
from tests.estimates.queues.simulated import SHARES, simulated_classes
from tests.estimates.queues.situations import Mix, mix

SURE = 0.03


def errors(one: Mix, *, seed: int, n: int) -> list[dict[str, tuple[float, float]]]:
    """Of each class: predicted over simulated less one, by its own law and by that of all."""
    whole = percentiles(one.situation.station, one.situation.load)
    found = []
    for cells, seen in zip(one.classes, simulated_classes(one, seed=seed, n=n), strict=True):
        own, row = whole.of(cells), {}
        for name in ("ttft", "tpot"):
            values, unsure = seen[name], seen[f"{name}_error"]
            for share, value, error in zip(SHARES, values, unsure, strict=True):
                if value > 0.0 and error <= SURE:
                    said = [getattr(times, f"{name}_s")(share) for times in (own, whole)]
                    row[f"{name} p{share * 100:.0f}"] = (said[0] / value - 1, said[1] / value - 1)
        found.append(row)
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--mixes", type=int, default=20)
    asked.add_argument("--first", type=int, default=30_000, help="seed of the first of them")
    asked.add_argument("--requests", type=int, default=60_000)
    asked.add_argument("--each", action="store_true")
    options = asked.parse_args()
    rows: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for seed in range(options.first, options.first + options.mixes):
        one = mix(seed)
        for number, row in enumerate(errors(one, seed=seed, n=options.requests)):
            for name, off in row.items():
                rows[name].append(off)
            if options.each:
                print(
                    seed,
                    number,
                    f"{one.situation.utilisation:.2f}",
                    {k: f"{a:+.0%} ({b:+.0%})" for k, (a, b) in row.items()},
                )
    print(f"{'percentile':12}{'judged':>8}{'median':>16}{'90th':>16}{'within 10 %':>18}")
    for name in sorted(rows, reverse=True):
        off = np.abs(np.array(rows[name]))
        shown = [np.median(off, axis=0), np.quantile(off, 0.9, axis=0), np.mean(off <= 0.1, axis=0)]
        print(f"{name:12}{len(off):8}", *(f"{a:8.1%} ({b:5.0%})" for a, b in shown))


if __name__ == "__main__":
    main()
