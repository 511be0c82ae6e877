"""Requests drawn by seed, with and without a plan, over runtimes, models, pools and limits."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest import mock

import pytest

from planner import NoPlanError, Targets, load_architecture, load_cluster, load_model, plan
from planner.quantities.table import QUANTITIES
from planner.results.conflicts import Conflict
from planner.results.plans import AnyPlan, Plan
from planner.specs.ask.defaults import DEFAULT_WORKLOAD

RUNTIMES: tuple[Any, ...] = ("roofline", "vllm", "sglang", ("vllm", "trtllm"), "erdil2025")
MODELS = ("llama-3.1-8b", "qwen3-32b", "llama-3.1-70b")
POOLS = ("h100-nvl8-x1", "h100-nvl8-x2", "a100-nvl8-x1")
BATCHES = ((8, 32), (1, 16, 64), (4, 8, 128))
BESIDE = ("tpot", "ttft", "cost", "devices", "batch", "rent", "demand")
"""Limits that are drawn; erdil2025 has no time to first token."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A request, and its best with some limits on it."""

    runtime: Any
    model: str
    pool: str
    batches: tuple[int, ...]
    objective: str

    def solved(
        self, limits: dict[str, float], objective: str = "", prefill: str | None = None
    ) -> AnyPlan:
        load = load_model if self.runtime in ("roofline", "erdil2025") else load_architecture
        return plan(
            load(self.model),
            load_cluster(self.pool),
            self.runtime,
            targets=Targets().with_limits(limits),
            batches=self.batches,
            objective=objective or self.objective,
            workload=DEFAULT_WORKLOAD,
            prefill=prefill,
        )

    def has_plan(self, limits: dict[str, float], prefill: str | None = None) -> bool:
        """Whether there is one: that takes no explanation, no simulation and no mix."""
        with ExitStack() as stack:
            for name in SPARED:
                stack.enter_context(mock.patch(f"planner.{name}", side_effect=_first))
            try:
                self.solved(limits, prefill=prefill)
            except NoPlanError:
                return False
        return True

    def conflict(self, limits: dict[str, float]) -> Conflict:
        with pytest.raises(NoPlanError) as caught:
            self.solved(limits)
        assert isinstance(caught.value.conflict, Conflict)
        return caught.value.conflict


SPARED = ("planning.plans.explain", "runtimes.loads.load_of_plan", "planning.mixing.with_mix")


def _first(first: Any, *_: Any) -> Any:
    return first if isinstance(first, Plan) else None


def drawn(random: Random) -> Drawn:
    runtime = random.choice(RUNTIMES)
    return Drawn(
        runtime=runtime,
        model=random.choice(MODELS),
        pool=random.choice(POOLS if runtime != ("vllm", "trtllm") else POOLS[:2]),
        batches=random.choice(BATCHES),
        objective=random.choice(("cost", "latency")),
    )


def limits_near(one: Drawn, random: Random, *, spread: tuple[float, float]) -> dict[str, float]:
    """Two to four limits at so many times the best or what the best needs of them."""
    names = [name for name in BESIDE if name != "ttft" or one.runtime != "erdil2025"]
    names = random.sample(names, random.choice((2, 2, 3, 4)))
    if "demand" in names:
        one = Drawn(**{**one.__dict__, "objective": "cost"})
    best = one.solved({}).deployment
    if random.random() < 0.5:
        best = one.solved({}, "latency").deployment
    limits = {}
    for name in names:
        quantity = QUANTITIES[name]
        value = quantity.told(best) * random.uniform(*spread) ** (-1.0 if quantity.is_least else 1)
        limits[name] = max(1.0, round(value)) if quantity.is_count else value
    return limits


def infeasible(seed: int) -> tuple[Drawn, dict[str, float]]:
    """The first request of a seed that has no plan within its limits and one without them."""
    random = Random(seed)
    while True:
        one = drawn(random)
        if not one.has_plan({}):
            continue
        limits = limits_near(one, random, spread=(0.4, 1.05))
        if "demand" in limits and one.objective == "latency":
            one = Drawn(**{**one.__dict__, "objective": "cost"})
        if not one.has_plan(limits):
            return one, limits


def feasible(seed: int) -> tuple[Drawn, dict[str, float]]:
    """The first request of a seed that has a plan within limits near what it needs."""
    random = Random(seed)
    while True:
        one = drawn(random)
        if not one.has_plan({}):
            continue
        limits = limits_near(one, random, spread=(1.0, 1.6))
        limits.pop("demand", None)
        if limits and one.has_plan(limits):
            return one, limits


def words_of(command: str) -> tuple[str, ...]:
    return tuple(shlex.split(command)[1:])
