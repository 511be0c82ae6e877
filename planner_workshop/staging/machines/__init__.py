"""Place layers on mixed machines: placements from several searches, bounds from several proofs.

A small pool is searched whole: every placement that could be better is tried, with every link as
it is. Of a larger one rows of stages are found by bisection of the rate, placements near them are
searched, and the bound comes from prices of layers and from covers. What is open between the two
is closed by the flow program, proved by two solvers, where the pool is small enough for it.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner_workshop.staging.machines.enumeration import enumerate_all, improve
from planner_workshop.staging.machines.incumbents import Incumbent, Tries
from planner_workshop.staging.machines.program import (
    Classes,
    MachineSpan,
    Placement,
    Pool,
    classes,
    rate_table,
    regions,
)
from planner_workshop.staging.machines.spans import Spans, rates_by_layers, spans
from planner_workshop.staging.machines.sweep import sweep
from planner_workshop.staging.machines.worth import priced_bound

EVEN_PRICES, PRICES, COVERS, ROWS = "even prices", "layer prices", "layer covers", "rows of stages"
"""Provers of the project's own, beside enumeration; solvers prove by their names."""

MOST_AT_ONCE = 8
"""Machines of a pool that is searched whole before anything else is tried."""

MOST_SEARCHED = 16
"""Machines of a pool that may be searched whole."""

MOST_NEAR = 64
"""Machines of a pool of which placements near the best one are searched."""

AT_FIRST, THEN = 100_000_000, 600_000_000
"""Work of searching a small pool, before and after what else there is to try."""

NEAR = 300_000_000
"""Work of searching near a placement."""


def place(pool: Pool, tries: Tries) -> Incumbent:
    """The best placement that the searches find, and the least bound that is proven on all."""
    known, some = Incumbent(pool=pool, tries=tries), spans(pool)
    known.n_spans = sum(len(one) - 1 for one in some.rate)
    is_tiny, is_small, is_medium = (
        len(pool.names) <= most for most in (MOST_AT_ONCE, MOST_SEARCHED, MOST_NEAR)
    )
    _price(known, some)
    region = regions(pool, known.bound)
    steps: list[tuple[bool, Callable[[], object]]] = [
        (is_tiny, lambda: _whole(known, some)),
        (not is_small, lambda: chain(known)),
        (True, lambda: _rows(known, some, region)),
        (is_small and not is_tiny, lambda: _whole(known, some)),
        (is_medium, lambda: sweep(known, some)),
        (is_medium, lambda: improve(known, some, NEAR)),
        (True, lambda: _flow(known, some)),
        (is_small, lambda: improve(known, some, NEAR)),
        (is_small, lambda: enumerate_all(known, some, THEN)),
    ]
    for applies, step in steps:
        if applies and not known.is_closed and not known.is_late:
            step()
    return known


def _price(known: Incumbent, some: Spans) -> None:
    """The first bound, which every pool has."""
    pool = known.pool
    through = min(float(pool.from_coordinator.sum()), float(pool.to_coordinator.sum()))
    most = sum(float(rates.max()) for rates in some.rate)
    priced = priced_bound(some, min(through, most))
    known.prices = None if priced.is_even else priced.prices
    prover = EVEN_PRICES if priced.is_even else PRICES
    known.prove(prover, priced.bound, known.began_s)


def _whole(known: Incumbent, some: Spans) -> None:
    """Search all placements, from good ones on, as far as that is soon done."""
    for step in (partial(improve, cells=NEAR), partial(enumerate_all, cells=AT_FIRST)):
        if not known.is_closed and not known.is_late:
            step(known, some)


def _rows(known: Incumbent, some: Spans, region: np.ndarray) -> None:
    """Rows of stages, and between them the bound by covers."""
    from planner_workshop.staging.machines.rows import best_row

    pool, deadline_s = known.pool, known.deadline_s
    alike, hoped = classes(pool, region), classes(pool, region, hopes=True)
    half_s = (time.perf_counter() + deadline_s) / 2
    known.attempt(ROWS, lambda: best_row(known, alike, deadline_s=half_s, quick=True))
    if not known.is_closed:
        known.attempt(COVERS, lambda: _cover(known, some))
    if not known.is_closed:
        known.attempt(ROWS, lambda: best_row(known, alike, deadline_s=deadline_s))
    if not known.is_closed and not _is_same(alike, hoped):
        known.attempt(ROWS, lambda: best_row(known, hoped, deadline_s=deadline_s, hopes=True))


def _cover(known: Incumbent, some: Spans) -> None:
    """The bound by layer covers."""
    from planner_workshop.staging.machines.covers import CoverSearch

    began_s, bound = time.perf_counter(), known.bound
    counts, rates = rates_by_layers(some)
    search = CoverSearch(
        n_machines=counts, rates=rates, n_layers=known.pool.n_layers, deadline_s=known.deadline_s
    )
    least = search.least_bound(known.rate, bound, tolerance=known.tries.gap / 4)
    known.n_solves += search.n_rounds
    if least < bound:
        known.prove(COVERS, least, began_s)


def _flow(known: Incumbent, some: Spans) -> None:
    """The flow program, if it is small enough, by two solvers."""
    from planner_workshop.staging.machines.flow import prove_flow

    known.attempt("flow program", lambda: prove_flow(known, some))


def _is_same(alike: Classes, hoped: Classes) -> bool:
    """Whether it never matters which machine of a class stands where."""
    links = ("crossing", "entry", "leaving")
    return all(np.array_equal(getattr(alike, name), getattr(hoped, name)) for name in links)


MOST_STEPS = 5_000
"""Machines that are appended in a search for one chain, right or wrong."""

TARGETS = 24
"""Rates that are tried, each between one that has a chain and one that seems to have none."""


def chain(known: Incumbent) -> None:
    """Bisect the rate at which a chain is found; the best is offered."""
    low, high = known.rate, known.bound
    for _ in range(TARGETS):
        if high <= low * 1.01 or known.is_late:
            return
        # far below the bound the rate falls by factors
        target = (low + high) / 2 if low > high / 8 else max(high / 4, 1e-9)
        placement = best_chain(known.pool, target)
        if placement is None:
            high = target
        else:
            low = max(target, known.offer(placement))


def best_chain(pool: Pool, rate: float) -> Placement | None:
    """Machines that hold all layers one after the other and pass on the rate, or None.

    Each holds as many layers as it serves at the rate. Depth first, those with the most layers
    first, and of them those that can send to the most others.
    """
    held, after = _most_layers(pool, rate), pool.links >= rate
    last = pool.to_coordinator >= rate
    worth = held * (1.0 + after.sum(axis=1) / (1.0 + len(held)))
    order = np.argsort(-worth, kind="stable")
    path: list[int] = []
    used = np.zeros(len(held), dtype=np.bool_)
    stack = [_next(order, used, held, pool.from_coordinator >= rate)]
    n_layers, steps = 0, 0
    while stack and steps < MOST_STEPS:
        if not stack[-1]:
            stack.pop()
            if path:
                gone = path.pop()
                used[gone] = False
                n_layers -= int(held[gone])
            continue
        machine = stack[-1].pop()
        steps += 1
        path.append(machine)
        used[machine] = True
        n_layers += int(held[machine])
        if n_layers >= pool.n_layers and last[machine]:
            return _placed(path, held, pool.n_layers)
        is_done = n_layers >= pool.n_layers
        stack.append([] if is_done else _next(order, used, held, after[machine]))
    return None


def _most_layers(pool: Pool, rate: float) -> IntArray:
    """The most layers of each machine at which it serves the rate (M,)."""
    table: FloatArray = rate_table(pool)[pool.type_of]
    return np.asarray(np.where(table >= rate, np.arange(1, table.shape[1] + 1), 0).max(axis=1))


def _next(order: IntArray, used: np.ndarray, held: IntArray, linked: np.ndarray) -> list[int]:
    """Machines that may come next, the best last."""
    free = order[(held[order] > 0) & linked[order] & ~used[order]]
    return [int(machine) for machine in free[::-1]]


def _placed(path: list[int], held: IntArray, n_layers: int) -> Placement:
    """The chain; its last machine holds no more layers than are left."""
    placed, first = [], 0
    for machine in path:
        most = min(int(held[machine]), n_layers - first)
        placed.append(MachineSpan(machine=machine, first=first, n_layers=most))
        first += most
    return tuple(placed)
