"""Fifty load vectors: our fullest rank against the greedy balancer's, the bound, the time.

    PYTHONPATH=. python -m tests.benchmarks.expert_placement          all fifty
    PYTHONPATH=. python -m tests.benchmarks.expert_placement 10       every tenth

Loads are drawn: Zipf's law with exponents from 0.4 to 1.2, and measured-like ones, which are
counts of 200,000 tokens that each visit 8 experts by a router whose logits are normal (their
deviation from 0.3 to 1.0, as spread as loads that are published). Shapes are those in use:
64 to 384 experts on 8 to 144 ranks with 2 to 11 slots.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray
from planner_workshop.experts.loads import zipf_loads
from planner_workshop.experts.placing import place_experts

TIME_LIMIT_S = 60.0
SHAPES = (
    (64, 8, 9),
    (64, 16, 5),
    (128, 16, 9),
    (128, 32, 5),
    (128, 72, 2),
    (160, 80, 3),
    (256, 32, 9),
    (256, 64, 5),
    (256, 144, 2),
    (384, 144, 3),
)
"""Experts, ranks, slots of a rank."""
ZIPF = (0.4, 0.8, 1.2)
SPREADS = (0.3, 1.0)


@dataclass(frozen=True)
class Case:
    """A load vector and where it goes."""

    name: str
    loads: FloatArray
    n_ranks: int
    n_slots: int


def cases() -> Iterator[Case]:
    """Fifty of them: each shape with three laws and two routers."""
    for i, (n_experts, n_ranks, n_slots) in enumerate(SHAPES):
        shape = f"{n_experts:3} on {n_ranks:3} × {n_slots}"
        for exponent in ZIPF:
            loads = zipf_loads(n_experts, exponent, seed=i)
            yield Case(f"{shape}, Zipf {exponent}", loads, n_ranks, n_slots)
        for spread in SPREADS:
            loads = routed_loads(n_experts, spread, seed=i)
            yield Case(f"{shape}, routed {spread}", loads, n_ranks, n_slots)


def routed_loads(n_experts: int, spread: float, *, seed: int) -> FloatArray:
    """Tokens of each expert: normal logits, eight draws a token [E]."""
    rng = np.random.default_rng(1000 + seed)
    logits = rng.normal(0.0, spread, n_experts)
    odds = np.exp(logits) / np.exp(logits).sum()
    return rng.multinomial(8 * 200_000, odds).astype(float)


def main(step: int) -> None:
    gains, times, gaps = [], [], []
    print(f"{'experts on ranks × slots':34}{'greedy':>9}{'ours':>9}{'bound':>9}{'gap':>9}{'s':>7}")
    for case in list(cases())[::step]:
        began_s = time.perf_counter()
        plan = place_experts(
            case.loads, n_ranks=case.n_ranks, n_slots=case.n_slots, time_limit_s=TIME_LIMIT_S
        )
        took_s = time.perf_counter() - began_s
        assert plan.max_load <= plan.greedy.max_load
        mean = plan.mean_load
        values = (plan.greedy.max_load / mean, plan.max_load / mean, plan.certificate.bound / mean)
        figures = "".join(f"{value:9.4f}" for value in values)
        mark = "" if plan.is_proven else f"  {plan.proof}"
        print(f"{case.name:34}{figures}{plan.certificate.gap:9.2%}{took_s:7.1f}{mark}", flush=True)
        gains.append(1.0 - plan.max_load / plan.greedy.max_load)
        times.append(took_s)
        gaps.append(plan.certificate.gap)
    n, proven = len(gains), sum(gap <= 1e-3 for gap in gaps)
    excess = [gain for gain in gains if gain > 0.0]
    print(
        f"{n} vectors: never above the greedy balancer, below it in {len(excess)}; the fullest "
        f"rank has {np.mean(gains):.2%} less on average, {max(gains):.2%} at most; "
        f"{proven} within 0.1 % of the bound, all within {max(gaps):.2%}; "
        f"{np.median(times):.1f} s in the middle, {max(times):.1f} s at most"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
