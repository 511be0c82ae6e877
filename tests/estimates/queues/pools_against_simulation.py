"""How far what one replica of a pool sees is from the simulator, by router and replicas.

    python -m tests.estimates.queues.pools_against_simulation --stations 8

prints errors of percentiles of TTFT and TPOT for 2, 4 and 8 replicas behind each router, and, in
brackets, of a replica by itself that gets its part at random. With `--keep FILE` what was simulated
is kept, and not simulated again.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.estimates.queues.loads import Load
from planner.estimates.queues.pooling import replica_load
from planner.estimates.queues.times import percentiles
from planner.specs.routers import ROUTERS
from planner.specs.traffic.records import Arriving
from planner.verifier.simulation.fleets import simulate
from planner.verifier.simulation.loads import ClassLoad, Route
from planner.verifier.simulation.pools import Pool
from tests.estimates.queues.simulated import SHARES
from tests.estimates.queues.situations import Situation, situation

N_REPLICAS = (2, 4, 8)
SURE = 0.03


@dataclass(frozen=True, slots=True)
class Drawn:
    """Requests of a load, drawn with gamma times between arrivals."""

    load: Load

    def requests(self, seed: int) -> Iterator[Arriving]:
        draw, load, now = np.random.default_rng(seed), self.load, 0.0
        while True:
            cv2 = load.arrival_cv2
            gaps = draw.gamma(1.0 / cv2, cv2 / load.rate_per_s, 5000)
            cells = draw.choice(len(load.weight), size=5000, p=load.weight)
            for gap, cell in zip(gaps.tolist(), cells.tolist(), strict=True):
                now += gap
                read, written = int(load.n_input[cell]), int(load.n_output[cell])
                yield Arriving(at_s=now, n_input=read, n_output=written)


def busy(seed: int) -> Situation:
    """A station with as much to do as in a fleet: 60 to 95 % of what it keeps up with."""
    one = situation(seed)
    utilisation = float(np.random.default_rng(seed + 1).uniform(0.6, 0.95))
    load = one.load.at(one.load.rate_per_s / one.utilisation * utilisation)
    return Situation(station=one.station, load=load, utilisation=utilisation)


def pooled(one: Situation, n_replicas: int, router: str, n: int) -> dict[str, list[float]]:
    """Percentiles of requests of a pool, and half of their intervals as shares of them."""
    load = one.load.at(one.load.rate_per_s * n_replicas)
    found = simulate(
        [Pool(name="all", station=one.station, n_replicas=n_replicas, router=router)],
        [ClassLoad(name="one", source=Drawn(load), routes=(Route(pool="all"),))],
        n_requests=n,
        seed=n_replicas,
        shares=SHARES,
    ).of("one")
    seen = {}
    for name, law in (("ttft", found.ttft), ("tpot", found.tpot)):
        for share in SHARES:
            at = law.percentiles_s[share]
            seen[f"{name} p{share * 100:.0f}"] = [
                at.value,
                at.half_width / 2.0 / max(at.value, 1e-12),
            ]
    return seen


def predicted(one: Situation, n_replicas: int, router: str) -> dict[str, float]:
    whole = one.load.at(one.load.rate_per_s * n_replicas)
    times = percentiles(one.station, replica_load(whole, n_replicas, router))
    return {
        f"{name} p{share * 100:.0f}": getattr(times, f"{name}_s")(share)
        for name in ("ttft", "tpot")
        for share in SHARES
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--stations", type=int, default=8)
    asked.add_argument("--first", type=int, default=40_000, help="seed of the first of them")
    asked.add_argument("--requests", type=int, default=40_000)
    asked.add_argument("--keep", type=Path)
    asked.add_argument("--each", action="store_true")
    options = asked.parse_args()
    kept = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    rows: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for seed in range(options.first, options.first + options.stations):
        one = busy(seed)
        for router in ROUTERS:
            for n in N_REPLICAS:
                key = f"{seed} {router} {n}"
                if key not in kept:
                    kept[key] = pooled(one, n, router, options.requests)
                    if options.keep:
                        options.keep.write_text(json.dumps(kept))
                row = _errors(kept[key], predicted(one, n, router), predicted(one, 1, router))
                for name, off in row.items():
                    rows[router, name].append(off)
                if options.each:
                    told = {name: f"{a:+.0%} ({b:+.0%})" for name, (a, b) in row.items()}
                    print(seed, one.station.role, f"{one.utilisation:.2f}", router, n, told)
    _print(rows)


def _errors(
    seen: dict[str, list[float]], said: dict[str, float], alone: dict[str, float]
) -> dict[str, tuple[float, float]]:
    """Over what was seen, less one, where the simulation is sure of it."""
    return {
        name: (said[name] / value - 1.0, alone[name] / value - 1.0)
        for name, (value, error) in seen.items()
        if value > 0.0 and error <= SURE
    }


def _print(rows: dict[tuple[str, str], list[tuple[float, float]]]) -> None:
    print(f"{'router':13}{'percentile':12}{'judged':>7}{'median':>16}{'worst':>16}{'mean':>16}")
    for router in ROUTERS:
        for name in [f"{a} p{s * 100:.0f}" for a in ("ttft", "tpot") for s in SHARES]:
            off = np.array(rows[router, name]).reshape(-1, 2)
            if len(off):
                size = np.abs(off)
                shown = [np.median(size, axis=0), size.max(axis=0), off.mean(axis=0)]
                told = (f"{a:+9.1%} ({b:+5.0%})" for a, b in shown)
                print(f"{router:13}{name:12}{len(off):7}", *told)


if __name__ == "__main__":
    main()
