"""Wishes of placements that yield: by as little as no choice of copies does with less."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import numpy as np
import pytest

from planner.placing.yielding import RESOLUTION, yielding
from planner.programs.placement import (
    UNLIMITED,
    PlacementLimit,
    PlacementProgram,
    Uses,
    violations,
)
from planner.solvers.placement import solve_placement

MODELS, MOST = ("a", "b"), 3


def _program(random: Random) -> PlacementProgram:
    """Four ways to run a replica of one of two models in one room, and more asked than fits."""
    n_columns = 4
    takes = np.array([random.randint(1, 4) for _ in range(n_columns)])
    rent = takes * np.array([random.uniform(0.5, 2.0) for _ in range(n_columns)])
    power = takes * np.array([random.uniform(0.3, 1.0) for _ in range(n_columns)])
    counts = [random.choice([0, 0, random.randint(1, MOST)]) for _ in MODELS]
    return PlacementProgram(
        resources=("room",),
        free=np.array([random.randint(4, 9)]),
        uses=Uses(resource=np.zeros(n_columns, np.int64), column=np.arange(4), amount=takes),
        models=MODELS,
        column_model=np.array([0, 0, 1, 1]),
        objective=rent,
        rate=takes * np.array([random.uniform(0.2, 1.5) for _ in range(n_columns)]),
        demand=np.array([random.choice([0.0, random.uniform(1.0, 12.0)]) for _ in MODELS]),
        least=np.array(counts),
        most=np.array([n or UNLIMITED for n in counts]),
        limits=(
            PlacementLimit(name="rent", column=rent, at_most=random.uniform(1.0, 6.0)),
            PlacementLimit(name="power", column=power, at_most=random.uniform(0.5, 4.0)),
        ),
    )


def _asks(program: PlacementProgram) -> bool:
    return bool(program.demand.any() or program.least.any())


def _price(program: PlacementProgram, copies: tuple[int, ...], kept: set[str]) -> float:
    """By how much wishes would have to yield for a choice; inf where it breaks what does not."""
    each, model = np.array(copies, dtype=float), program.column_model
    n_replicas, served = np.bincount(model, each), np.bincount(model, program.rate * each)
    if program.uses.amount @ each > program.free[0] or (n_replicas > program.most).any():
        return math.inf
    if not (_asks(program) or each.any()):
        return math.inf
    ratios = {it.name: it.column @ each / it.at_most for it in program.limits}
    for m, name in enumerate(MODELS):
        for what, asked, has in (
            ("demand", program.demand[m], served[m]),
            ("replicas", program.least[m], n_replicas[m]),
        ):
            ratios[f"{what} {name}"] = 1.0 if asked == 0 else asked / has if has else math.inf
    shares = {name: max(0.0, ratio - 1.0) for name, ratio in ratios.items()}
    if any(shares[name] > 1e-9 for name in kept):
        return math.inf
    return sum(shares.values())


@pytest.mark.parametrize("seed", range(40))
def test_the_least_that_yields_is_that_of_all_choices(seed):
    random = Random(f"yielding {seed}")
    program = _program(random)
    wishes = ["rent", "power", *(f"{what} {m}" for what in ("demand", "replicas") for m in MODELS)]
    kept = {name for name in wishes if random.random() < 0.3}
    room = [range(int(program.free[0] // takes) + 1) for takes in program.uses.amount]
    least = min(_price(program, copies, kept) for copies in product(*room))
    changed, _ = yielding(
        program, None, [name for name in wishes if name not in kept], is_any=not _asks(program)
    )
    found = solve_placement(changed, proof="two")
    assert (found.answer is None) == math.isinf(least)
    if found.answer is None:
        return
    copies = found.answer.copies[: program.n_columns]
    assert found.objective == pytest.approx(least, rel=RESOLUTION, abs=RESOLUTION)
    assert not violations(changed, found.answer)
    assert _price(program, copies, kept) == pytest.approx(least, rel=RESOLUTION, abs=RESOLUTION)
