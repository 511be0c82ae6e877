"""Slices packed into small tori with holes: every backend against all sets of slices.

The enumeration knows nothing of openings, rows or solvers: it walks the cells, and leaves each
empty or starts a slice there that holds only free cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from planner.programs.cells import cell_rows
from planner.programs.placement import (
    UNLIMITED,
    PlacementProgram,
    placement_objective,
    violations,
)
from planner.solvers.placement import PLACEMENT_SOLVERS, narrowing, solve_placement
from planner.solvers.placement.starting import greedy
from planner.solvers.solution import Effort, Status
from planner.specs.records.devices import TorusFabric
from planner.topology.openings import Openings, TorusState, all_free, opening_meshes, openings

POOLS = ((2, 2, 3), (1, 3, 4), (1, 1, 12), (1, 2, 6), (2, 2, 2), (1, 3, 3), (3, 2, 2), (1, 4, 3))
N_RANDOM = 36
BACKENDS = tuple(PLACEMENT_SOLVERS)

Cells = frozenset[tuple[int, int, int]]
Sort = tuple[tuple[int, int, int], bool]
"""Dimensions in ascending order, and whether any axis is a ring."""


def _pool(seed: int) -> tuple[TorusFabric, TorusState]:
    rng = np.random.default_rng(seed)
    shape = POOLS[seed % len(POOLS)]
    fabric = TorusFabric(
        shape=shape,
        link_bytes_per_s=45e9,
        hop_s=1e-6,
        wrap_multiple=3,
        wraps_each_axis=True,
        slice_dims=(1, 2, 3, 6),
        activation_network="ring",
        bulk_network="ring",
    )
    whole = all_free(fabric)
    is_free = rng.random(shape) > rng.choice([0.1, 0.3])
    return fabric, TorusState(
        is_free=is_free, link_fraction=whole.link_fraction, speed_fraction=whole.speed_fraction
    )


def _slices(fabric: TorusFabric, free: Cells) -> Iterator[tuple[Sort, Cells]]:
    """Every slice among free cells, once for each way to describe its cells."""
    pool = fabric.shape
    closed = [p % 3 == 0 for p in pool]
    for shape in {s for d in product(fabric.slice_dims, repeat=3) for s in permutations(d)}:
        if any(s > p for s, p in zip(shape, pool, strict=True)):
            continue
        for at in product(*map(range, pool)):
            axes = list(zip(at, shape, pool, closed, strict=True))
            if any((o + s > p and not c) or (s == p and o) for o, s, p, c in axes):
                continue
            cells = frozenset(
                product(*([(o + i) % p for i in range(s)] for o, s, p, _ in axes))  # type: ignore[arg-type]
            )
            if cells <= free:
                ring = any(s >= 3 and s % 3 == 0 and o % 3 == 0 for o, s, _, _ in axes)
                a, b, c = sorted(shape)
                yield ((a, b, c), ring), cells


def _best(
    slices: list[tuple[float, float, Cells]], free: Cells, asked: float
) -> tuple[float, float]:
    """The most that disjoint slices serve, and the least devices that serve what is asked."""
    order = sorted(free)
    most, fewest = 0.0, np.inf

    def walk(k: int, taken: Cells, rate: float) -> None:
        nonlocal most, fewest
        most = max(most, rate)
        if rate >= asked - 1e-9:
            fewest = min(fewest, len(taken))
        for i in range(k, len(order)):
            if order[i] in taken:
                continue
            for gain, _, cells in starting[order[i]]:
                if not cells & taken:
                    walk(i + 1, taken | cells, rate + gain)

    starting = {cell: [one for one in slices if min(one[2]) == cell] for cell in order}
    walk(0, frozenset(), 0.0)
    return most, fewest


def _program(
    table: Openings, rate: np.ndarray, objective: np.ndarray, asked: float
) -> PlacementProgram:
    rows = cell_rows(table, np.arange(len(table)))
    return PlacementProgram(
        resources=tuple(map(str, rows.cell.tolist())),
        free=np.ones(len(rows.cell), np.int64),
        uses=rows.uses,
        models=("a",),
        column_model=np.zeros(len(table), np.int64),
        objective=objective,
        rate=rate,
        demand=np.array([asked]),
        least=np.array([0]),
        most=np.array([UNLIMITED]),
    )


@pytest.mark.parametrize("seed", range(N_RANDOM))
def test_all_backends_pack_as_well_as_all_sets_of_slices(seed: int) -> None:
    fabric, state = _pool(seed)
    free: Cells = frozenset(
        (int(x), int(y), int(z)) for x, y, z in np.argwhere(state.is_free).tolist()
    )
    table = openings(fabric, state)
    rng = np.random.default_rng(1000 + seed)
    rates: dict[Sort, float] = {}

    def rate_of(sort: Sort) -> float:
        """More devices serve more, about as many times; rings a little more than lines."""
        n = int(np.prod(sort[0]))
        if sort not in rates:
            rates[sort] = round(n * float(rng.uniform(0.6, 1.2)) + 0.5 * sort[1], 2)
        return rates[sort]

    listed = [(rate_of(sort), 0.0, cells) for sort, cells in _slices(fabric, free)]
    asked = 0.6 * max((len(free), 1))
    most, fewest = _best(listed, free, asked)
    sizes = np.sort(table.orientation, axis=1).tolist()
    sorts: list[Sort] = [
        ((a, b, c), bool(ring)) for (a, b, c), ring in zip(sizes, table.closes.any(1), strict=True)
    ]
    rate = np.array([rate_of(sort) for sort in sorts])
    for objective, demand, expected in (
        (-rate, 0.0, -most),
        (table.n_devices.astype(float), asked, fewest),
    ):
        program = _program(table, rate, objective, demand)
        for solver in BACKENDS:
            if solver == "exhaustive" and len(table) > 30:
                continue
            found = solve_placement(program, solver=solver, effort=Effort())
            if found.answer is None:
                assert (found.status, expected) == (Status.INFEASIBLE, np.inf)
                continue
            assert found.objective == pytest.approx(expected, abs=1e-7)
            assert found.bound == pytest.approx(expected, abs=1e-6)
            assert violations(program, found.answer) == {}


def test_rows_left_out_are_implied_by_those_that_stay() -> None:
    """Of every pair of slices that share a cell, a row that stays holds both."""
    for seed in range(8):
        table = openings(*_pool(seed))
        uses = cell_rows(table, np.arange(len(table))).uses
        stays = {
            pair
            for r in np.unique(uses.resource)
            for pair in product(uses.column[uses.resource == r].tolist(), repeat=2)
        }
        starts, cells = table.devices()
        owners = [set(cells[starts[i] : starts[i + 1]].tolist()) for i in range(len(table))]
        for i, j in product(range(len(table)), repeat=2):
            assert ((i, j) in stays) == bool(owners[i] & owners[j])


def test_meshes_of_openings_count_every_place() -> None:
    fabric, state = _pool(1)
    table = openings(fabric, state)
    meshes, mesh = opening_meshes(fabric, table)
    assert meshes.n_positions.sum() == len(table)
    assert (meshes.n_devices[mesh] == table.n_devices).all()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("by", "within"), [("all", 1e-9), ("parts", 1e-9), ("swaps", 0.01)])
def test_a_packing_is_improved_up_to_the_best(by, within, seed, monkeypatch) -> None:
    """From the rule of thumb, on a pool of some 25 slices; walks by themselves come near it."""
    fabric = replace(_pool(0)[0], shape=(4, 4, 5))
    is_free = np.random.default_rng(seed).random(fabric.shape) > 0.15
    state = replace(all_free(fabric), is_free=is_free)
    table = openings(fabric, state, shapes=[(1, 2, 2), (1, 1, 3), (1, 2, 3), (2, 2, 2)])
    gain = np.sqrt(table.n_devices)
    program = _program(table, gain, -gain, 0.0)
    best = solve_placement(program, solver="cpsat", proof="one").objective
    by_thumb = greedy(program)
    assert by_thumb is not None
    assert placement_objective(program, by_thumb) > best + 0.1
    monkeypatch.setattr(narrowing, "FIRST_PART", 8)
    if by == "parts":
        monkeypatch.setattr(narrowing, "N_WALKS", 0)
    elif by == "swaps":
        n_left = iter(range(4))
        pack = lambda search, *_: next(n_left, None) is None and setattr(search, "_is_ended", True)  # noqa: E731
        monkeypatch.setattr(narrowing._Search, "_pack", pack)
    found = narrowing.solve(program, Effort(seed=seed))
    assert found.answer is not None
    assert not violations(program, found.answer)
    assert found.proof.value == pytest.approx(best, rel=within)
    assert by == "swaps" or found.proof.outcome == "optimal"
