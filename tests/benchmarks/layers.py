"""Layers on random pools of 3 to 7 machines, beside every placement and beside a plain program.

    python -m tests.benchmarks.layers                 # 300 pools, then the published situations
    python -m tests.benchmarks.layers --pools 30 --first 1000 --seconds 12

Links are wide, narrow, missing, by region, or of all kinds; so are those of the coordinator; half
of the pools may be entered within their layers. It fails if an answer is not the best of all
placements (5 machines or fewer), is below what HiGHS or SCIP finds in the program of `plain_flow`
in as many seconds as it took here and no fewer than `--seconds`; if what is called optimal is not;
if a bound is below a placement that exists; or if a published situation comes out worse than here.
It is no test of pytest's: that draws a few of the same pools (`tests/solvers/test_machines.py`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from planner.solvers.mixed import solver_of
from planner.solvers.solution import Effort, Status
from planner.specs.files.layer_files import load_layers
from planner_workshop.staging.machines import place
from planner_workshop.staging.machines.incumbents import Incumbent, Tries, replayed_rate
from planner_workshop.staging.machines.program import MachineSpan, Pool, violations
from planner_workshop.staging.placing import pool_of
from tests.benchmarks.plain_flow import placement_of, plain_flow

LINKS = ("wide", "narrow", "missing", "regional", "mixed")
MOST_ENUMERATED = 5
"""Machines of a pool every placement of which is tried."""

MOST_HELD = 6
"""Layers that a machine of a larger pool holds at most."""

GAP = 1e-4
SAME = 1.0 - GAP - 1e-6
"""Share of the best that counts as the best: the gap at which a search may stop."""

AT_ONCE = 200_000
"""Placements that are looked at together."""

MACHINES = Path(__file__).parents[2] / "examples" / "machines"
PUBLISHED = {
    "single-cluster-24": (2045.6410, 2045.6411),
    "quality-10": (286.5874, 286.62),
    "mixed-42": (5905.7871, 6052.2),
    "distributed-24": (1754.3819, 1901.0),
    "distributed-pruned-24": (1754.3819, 1901.0),
}
"""Rate and bound of each published situation, which are to be no worse [token/s]."""


def drawn(seed: int) -> tuple[Pool, str]:
    """A pool of 3 to 7 machines, and its kind of links."""
    rng = np.random.default_rng(seed)
    n, kind = int(rng.integers(3, 8)), LINKS[seed % len(LINKS)]
    n_layers = int(rng.integers(3, {3: 9, 4: 7, 5: 6}.get(n, 11)))
    n_types = int(rng.integers(1, 4))
    rates = []
    for _ in range(n_types):
        most = min(MOST_HELD if n > MOST_ENUMERATED else 4, n_layers)
        held = np.arange(1, int(rng.integers(1, most + 1)) + 1)
        rates.append((rng.uniform(40, 300) / held ** rng.uniform(0.6, 1.3)).round(2))
    type_of = rng.integers(0, n_types, n)
    while sum(len(rates[t]) for t in type_of) < n_layers:  # else there is nothing to place
        rates[int(rng.integers(0, n_types))] = np.linspace(200, 40, min(4, n_layers)).round(2)
    links = _links(rng, n, kind)
    ends = [np.full(n, 1e6), np.full(n, 1e6)]
    if rng.random() < 0.5:
        ends = [rng.choice([1e6, 150.0, 60.0, 20.0, 0.0], n, p=[0.4, 0.2, 0.2, 0.1, 0.1])
                for _ in range(2)]  # fmt: skip
    return Pool(
        n_layers=n_layers,
        types=tuple(f"t{i}" for i in range(n_types)),
        rates=tuple(rates),
        names=tuple(f"m{i}" for i in range(n)),
        type_of=type_of,
        links=links,
        from_coordinator=ends[0],
        to_coordinator=ends[1],
        enters_within=bool(rng.random() < 0.5),
    ), kind


def _links(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    wide, narrow = np.full((n, n), 1e6), rng.uniform(5, 150, (n, n)).round(1)
    there = rng.random((n, n)) < 0.6
    home = rng.integers(0, 2 + n // 6, n)
    apart = home[:, None] != home[None, :]
    across = np.full((n, n), rng.uniform(5, 120)) if rng.random() < 0.5 else narrow
    links = {
        "wide": wide,
        "narrow": narrow,
        "missing": np.where(there, wide, 0.0),
        "regional": np.where(apart, across, wide),
        "mixed": np.where(apart & ~there, 0.0, np.where(apart | there, narrow, wide)),
    }[kind].copy()
    np.fill_diagonal(links, 0.0)
    return links


def best_of_all(pool: Pool) -> float:
    """The rate of the best placement by trying every one.

    Of each what passes each boundary is counted first: through machines, and over links.
    """
    spans = [
        [(-1, -1, 0.0), *((s, s + k, pool.rate(m, k))
          for k in range(1, len(pool.rates[int(pool.type_of[m])]) + 1)
          for s in range(pool.n_layers - k + 1))]
        for m in range(len(pool.names))
    ]  # fmt: skip
    best = 0.0
    for chosen in _chunks([len(one) for one in spans]):
        first, end, rate = (
            np.stack(
                [
                    np.array([s[i] for s in one])[at]
                    for one, at in zip(spans, chosen.T, strict=True)
                ],
                axis=1,
            )
            for i in range(3)
        )
        most = _most(pool, first, end, rate)
        for at in np.argsort(-most, kind="stable").tolist():
            if most[at] <= best * (1.0 + 1e-9):
                break
            placement = [
                MachineSpan(machine=m, first=int(s), n_layers=int(e - s))
                for m, (s, e) in enumerate(zip(first[at], end[at], strict=True))
                if e > s
            ]
            best = max(best, replayed_rate(pool, placement))
    return best


def _chunks(sizes: list[int]) -> Iterator[np.ndarray]:
    total = int(np.prod(sizes))
    for start in range(0, total, AT_ONCE):
        at = np.arange(start, min(total, start + AT_ONCE))
        yield np.stack(np.unravel_index(at, sizes), axis=1)


def _most(pool: Pool, first: np.ndarray, end: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """What passes each boundary at most: the least of them (N,)."""
    least = np.minimum(rate, pool.from_coordinator) * (first == 0)
    least = least.sum(axis=1)
    leaves = (np.minimum(rate, pool.to_coordinator) * (end == pool.n_layers)).sum(axis=1)
    least = np.minimum(least, leaves)
    between = np.minimum(pool.links, np.minimum(rate[:, :, None], rate[:, None, :]))
    for b in range(1, pool.n_layers):
        inside = (rate * ((first < b) & (b < end))).sum(axis=1)
        takes = (first <= b) & (b < end) if pool.enters_within else first == b
        handed = (between * ((end == b)[:, :, None] & takes[:, None, :])).sum(axis=(1, 2))
        least = np.minimum(least, inside + handed)
    return least


@dataclass
class Found:
    """What is known of one pool."""

    pool: Pool
    solution: Incumbent
    wall_s: float
    cpu_s: float
    best: float | None
    bar: dict[str, float] = field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        one, known = self.solution, [r for r in (self.best, *self.bar.values()) if r is not None]
        known = max([*known, one.rate], default=0.0)
        said = []
        if one.placement is not None and (
            violations(self.pool, one.placement)
            or replayed_rate(self.pool, one.placement) != one.rate
        ):
            said.append("its rate does not replay")
        if (bound := -one.proved.bound) < known * (1.0 - 1e-7) - 1e-6:
            said.append(f"bound {bound:.6g} below {known:.6g}, which exists")
        if one.proved.status is Status.OPTIMAL and one.rate < known * SAME:
            said.append("called optimal, and is not")
        if self.best is not None and one.rate < self.best * SAME:
            said.append(f"{one.rate:.6g} below the best of all, {self.best:.6g}")
        said += [
            f"{one.rate:.6g} below {rate:.6g} by {solver}"
            for solver, rate in self.bar.items()
            if one.rate < rate * SAME
        ]
        return said


def compared(seed: int, *, least_s: float, solvers: tuple[str, ...] = ("highs", "scip")) -> Found:
    """One pool placed here, by every placement if it is small, and by the plain program."""
    pool, _ = drawn(seed)
    began_s, cpu_s = time.perf_counter(), time.process_time()
    solution = place(pool, Tries(gap=GAP))
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    is_small = len(pool.names) <= MOST_ENUMERATED
    found = Found(pool, solution, wall_s, cpu_s, best_of_all(pool) if is_small else None)
    program, held = plain_flow(pool)
    for solver in solvers:
        word = solver_of(solver)(program, Effort(time_limit_s=max(least_s, wall_s), gap=0.0))
        placed = None if word.answer is None else placement_of(word.answer, held)
        is_one = placed is not None and not violations(pool, placed)
        found.bar[solver] = replayed_rate(pool, placed) if is_one else 0.0
    return found


def table(rows: dict[tuple[int, str], list[Found]]) -> list[str]:
    """Pools by machines and links."""
    lines = [
        "machines  links     pools  best of all  above HiGHS  above SCIP  optimal"
        "  greatest gap  median s  most s"
    ]
    for (n, kind), all_of in sorted(rows.items()):
        tried = [f for f in all_of if f.best is not None]
        best = sum(f.solution.rate >= f.best * SAME for f in tried)
        above = [sum(f.solution.rate > f.bar[s] / SAME for f in all_of) for s in ("highs", "scip")]
        optimal = [f.solution.proved.status in (Status.OPTIMAL, Status.INFEASIBLE) for f in all_of]
        gap = max(
            (f.solution.proved.gap for f in all_of if f.solution.placement is not None), default=0.0
        )
        seconds = [f.wall_s for f in all_of]
        lines.append(
            f"{n:>8}  {kind:<8}  {len(all_of):>5}  {f'{best} of {len(tried)}' if tried else '':>11}"
            f"  {above[0]:>11}  {above[1]:>10}  {sum(optimal):>7}  {gap:>12.2%}"
            f"  {np.median(seconds):>8.2f}  {max(seconds):>6.2f}"
        )
    return lines


def published() -> list[str]:
    """The published situations, and what of them is worse than it was."""
    faults = []
    for name, (least, most) in PUBLISHED.items():
        layers = load_layers(MACHINES / f"{name}.toml")
        began_s, cpu_s = time.perf_counter(), time.process_time()
        found = place(pool_of(layers), Tries(gap=GAP))
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
        print(
            f"{name:<24}{layers.published_tokens_per_s:>10.2f} published {found.rate:>10.2f} here"
            f" {-found.proved.bound:>10.2f} bound {wall_s:>6.1f} s wall {cpu_s:>5.1f} s CPU",
            flush=True,
        )
        if found.rate < least * (1.0 - 1e-6) or not found.rate <= -found.proved.bound <= most:
            faults.append(
                f"{name}: {found.rate} within {-found.proved.bound}, not {least} within {most}"
            )
    return faults


def main() -> int:
    """Compare; 1 if anything is not as it has to be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pools", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--skip-published", action="store_true")
    asked = parser.parse_args()
    rows: dict[tuple[int, str], list[Found]] = defaultdict(list)
    faults = []
    for n, seed in enumerate(range(asked.first, asked.first + asked.pools)):
        if n and not n % 25:
            print(f"{n} pools, {len(faults)} faults", flush=True)
        found = compared(seed, least_s=asked.seconds)
        rows[len(found.pool.names), drawn(seed)[1]].append(found)
        for fault in found.faults:
            faults.append(f"pool {seed}: {fault}")
            print(faults[-1], flush=True)
    print("\n".join(table(rows)))
    if not asked.skip_published:
        faults += published()
    n_bad = len({fault.split(":")[0] for fault in faults})
    print(f"{asked.pools} pools; {n_bad} with faults", *faults, sep="\n  ")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
