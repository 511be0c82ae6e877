"""How far formulas are from the simulator, on random stations.

    python -m tests.estimates.queues.against_simulation --stations 200

prints the errors of each percentile; `--each` every station that is off by more than 10 %. With
`--keep FILE` what was simulated is kept, and not simulated again.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np

from planner.estimates.queues.times import QueueTimes, percentiles
from tests.estimates.queues.simulated import SHARES, Simulated, simulated
from tests.estimates.queues.situations import Situation, situation

WITHIN = 0.1
SURE = 0.03
"""Standard error of the simulation above which a percentile is not judged."""

MEASURES = ("ttft", "tpot", "itl")


def errors(one: Situation, seen: Simulated, times: QueueTimes) -> dict[str, float]:
    """Predicted over simulated less one, of each percentile that the simulation is sure of."""
    found = {}
    for measure in MEASURES:
        values = getattr(seen, f"{measure}_s")
        unsure = getattr(seen, f"{measure}_error", (0.0,) * len(SHARES))
        for share, value, error in zip(SHARES, values, unsure, strict=True):
            if value > 0.0 and not math.isnan(value):
                predicted = getattr(times, f"{measure}_s")(share)
                off = predicted / value - 1.0
                found[f"{measure} p{share * 100:.0f}"] = off if error <= SURE else math.nan
    return found


def simulate(seed: int, most: int) -> dict[str, object]:
    return asdict(simulated(situation(seed), seed=seed, n=20_000, most=most))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--stations", type=int, default=200)
    asked.add_argument("--first", type=int, default=0, help="seed of the first of them")
    asked.add_argument("--most", type=int, default=250_000, help="requests of a simulation")
    asked.add_argument("--workers", type=int, default=1)
    asked.add_argument("--keep", type=Path)
    asked.add_argument("--each", action="store_true")
    options = asked.parse_args()
    kept = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    seeds = range(options.first, options.first + options.stations)
    missing = [seed for seed in seeds if str(seed) not in kept]
    with ProcessPoolExecutor(options.workers) as pool:
        for seed, seen in zip(
            missing, pool.map(simulate, missing, [options.most] * len(missing)), strict=True
        ):
            kept[str(seed)] = seen
            if options.keep:
                options.keep.write_text(json.dumps(kept))
    _report({seed: Simulated(**kept[str(seed)]) for seed in seeds}, options.each)


def _report(seen: dict[int, Simulated], each: bool) -> None:
    rows: list[dict[str, float]] = []
    spent: list[float] = []
    for seed, one in seen.items():
        asked = situation(seed)
        began = time.process_time()
        times = percentiles(asked.station, asked.load.at(one.rate_per_s))
        rows.append(errors(asked, one, times))
        spent.append(time.process_time() - began)
        worst = max((abs(x) for x in rows[-1].values() if not math.isnan(x)), default=0.0)
        if each and worst > WITHIN:
            _show(seed, asked, one, rows[-1])
    _print_errors(rows)
    again = [seed for seed, one in seen.items() if one.begun_again > 0.01]
    print(f"stations where more than 1 % of the requests lose their places: {again}")
    print(
        f"one station: median {np.median(spent) * 1e3:.0f} ms of CPU, worst {max(spent) * 1e3:.0f}"
    )


def _print_errors(rows: list[dict[str, float]]) -> None:
    print(f"{'percentile':12}{'judged':>8}{'median':>8}{'90th':>8}{'worst':>8}{'within 10 %':>13}")
    for name in [f"{measure} p{share * 100:.0f}" for measure in MEASURES for share in SHARES]:
        off = np.abs([row[name] for row in rows if name in row and not math.isnan(row[name])])
        shown = (np.median(off), np.quantile(off, 0.9), off.max())
        print(
            f"{name:12}{len(off):8}",
            *(f"{x:7.1%}" for x in shown),
            f"{np.mean(off <= WITHIN):12.1%}",
        )
    unsure = sum(math.isnan(x) for row in rows for x in row.values())
    print(f"not judged, for the simulation's own standard error is above {SURE:.0%}: {unsure}")


def _show(seed: int, asked: Situation, one: Simulated, row: dict[str, float]) -> None:
    station = asked.station
    kind = "mixed" if station.mixes_prefill else f"alone/{station.n_polled_rounds}"
    print(
        f"{seed:4} {station.role:8} {kind:8} ρ {asked.utilisation:.2f}"
        f" places {station.most_running} chunk {station.chunk_tokens}"
        f" reserved {station.reserved_fraction}"
        f" room {'∞' if math.isinf(station.room_bytes) else 'tight'} again {one.begun_again:.2f} |",
        ", ".join(f"{name} {off:+.0%}" for name, off in row.items() if abs(off) > WITHIN),
    )


if __name__ == "__main__":
    main()
