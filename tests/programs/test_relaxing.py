"""The least changes of limits are those that all assignments of a program have, one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from planner import Targets, load_architecture, load_cluster, load_model
from planner.programs.blocks import Objective
from planner.programs.relaxing import Change, least_changes
from planner.runtimes.registry import candidates_of
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.targets import Degrees

TARGETS = {
    "times and money": Targets(tpot_s=0.004, ttft_s=0.05, usd_per_token=3e-7),
    "a demand": Targets(tpot_s=0.01, usd_per_token=2e-6, demand_tokens_per_s=4000.0),
    "counts": Targets(tpot_s=0.004, n_devices=1, min_batch=16, further={"rent": 2.0}),
    "replicas": Targets(tpot_s=0.004, n_replicas=3, n_devices=2),
}
FEW = {"batches": (1, 8, 32), "prefill_batches": (1, 4)}


def candidates(runtime: str, targets: Targets):
    load = load_model if runtime == "roofline" else load_architecture
    few = FEW if runtime == "roofline" else {"batches": FEW["batches"]}
    choices = PlanOptions(targets=targets, **few)
    return candidates_of(
        load("llama-3.1-8b"), load_cluster("h100-nvl8-x1"), runtime, choices
    ).explained()


def shares_of(amount, n_replicas: int, targets: Targets) -> dict[str, float]:
    """By how much one assignment breaks each limit, from what one replica of it comes to.

    Args:
        amount: of a quantity of the program, as of one replica.
    """
    demand = targets.demand_tokens_per_s
    served = n_replicas / (amount("throughput") / 1e3)
    of_demand = min(served, demand) if demand else served
    cost = amount("rent") / 3600 / of_demand if demand else amount("cost") / 1e6
    values = {
        "tpot": amount("latency") / 1e3,
        "ttft": amount("ttft") / 1e3,
        "cost": cost,
        "devices": amount("devices"),
        "batch": -amount("batch"),
        "rent": amount("rent"),
        "demand": of_demand,
        "replicas": n_replicas,
    }
    shares = {}
    for name, limit in targets.limits().items():
        is_least = name in ("batch", "demand", "replicas")
        off = limit / values[name] if is_least else values[name] / limit
        if off - 1 > 1e-9:
            shares[name] = off - 1
    return shares


def all_changes(among, targets: Targets) -> dict[frozenset[str], float]:
    """Of each set of limits that an assignment breaks the least sum, by looking at each of them."""
    without = tuple(name for name in targets.limits() if name != "demand")
    best: dict[frozenset[str], float] = {}
    for posed in among.source(Objective(objective="cost", without=without)).blocks():
        program = posed.program
        rows = [(program.context_bytes, program.column_bytes, program.capacity_bytes)]
        rows += [
            (it.context, it.column, np.full(program.n_contexts, it.at_most))
            for it in program.limits
            if it.name != "demand"
        ]
        for k in range(program.n_contexts):
            here = np.flatnonzero(program.column_context == k)
            slots = [here[program.column_slot[here] == s] for s in range(program.n_slots)]
            for chosen in product(*slots):
                columns = list(chosen)
                if any(
                    of_context[k] + of_column[columns].sum() > most[k] * (1 + 1e-9)
                    for of_context, of_column, most in rows
                ):
                    continue
                n_replicas = int(posed.batch[columns[-1]]) if "replicas" in program.slots else 1
                if targets.n_replicas and n_replicas > targets.n_replicas:
                    continue

                def amount(name, posed=posed, k=k, columns=columns):
                    of_context, of_column = posed.quantities[name]
                    return of_context[k] + of_column[columns].sum()

                shares = shares_of(amount, n_replicas, targets)
                names = frozenset(shares)
                best[names] = min(best.get(names, np.inf), sum(shares.values()))
    return best


def price_of(prices: dict[frozenset[str], float], names: frozenset[str]) -> float:
    return min((price for less, price in prices.items() if less <= names), default=np.inf)


@pytest.mark.parametrize("runtime", ["roofline", "vllm"])
@pytest.mark.parametrize("name", TARGETS)
def test_they_are_the_least_of_all_assignments(runtime, name):
    targets = TARGETS[name]
    among = candidates(runtime, targets)
    naive = all_changes(among, targets)
    assert len(naive) > 1
    changes = least_changes(among.source, targets)
    prices = {names: change.price for names, change in changes.items()}
    for names in {*naive, *prices}:
        assert price_of(prices, names) == pytest.approx(price_of(naive, names), rel=1e-9)


def test_limits_are_rounded_to_the_side_that_has_the_plan():
    """Less that is served at the same rent costs more."""
    needed = {"tpot": 0.0123456, "cost": 1.234e-6, "demand": 1239.0}
    limits = Change(price=1.0, needed=needed).rounded()
    assert limits["tpot"] == pytest.approx(0.0124)
    assert limits["demand"] == pytest.approx(1230)
    assert limits["cost"] == pytest.approx(1.25e-6)
    assert limits["cost"] * 1230 >= 1.234e-6 * 1239


def test_layouts_are_evaluated_once_for_all_limits():
    (part,) = candidates("roofline", TARGETS["counts"]).parts
    assert part.with_targets(TARGETS["a demand"]).table is part.table
    assert part.with_targets(Targets(degrees=Degrees(tensor=2))).table is not part.table
