"""Random placements that hand over, and all choices of them with flows by another solver: GLOP."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from ortools.linear_solver import pywraplp

from planner.programs.handover import (
    AIMS,
    DECODE,
    DEMAND,
    NO_PART,
    PREFILL,
    SHARE,
    THROUGHPUT,
    TOGETHER,
    Handover,
)
from planner.programs.placement import (
    UNLIMITED,
    Counts,
    PlacementLimit,
    PlacementProgram,
    Uses,
    most_copies,
    violations,
)


@dataclass(frozen=True)
class Instance:
    """A program, and what hands over in it."""

    program: PlacementProgram
    network: Handover


def instance(seed: int) -> Instance:
    """Up to 8 devices in 3 resources, some busy; up to 2 models, 6 columns and 3 links."""
    rng = np.random.default_rng(seed)
    aim = AIMS[seed % len(AIMS)]
    n_columns, n_models = int(rng.integers(2, 7)), int(rng.integers(1, 3))
    free, uses = _rooms(rng, n_columns)
    model = rng.integers(0, n_models, n_columns)
    role = rng.choice([NO_PART, TOGETHER, PREFILL, DECODE], n_columns, p=[0.05, 0.2, 0.375, 0.375])
    if rng.random() < 0.9:  # so that there is something to hand over
        model[:2], role[:2] = 0, (PREFILL, DECODE)
    rate = np.round(rng.uniform(0.2, 4.0, n_columns), int(rng.integers(0, 4)))
    rate[role == NO_PART] = 0.0
    demand = np.where(rng.random(n_models) < 0.8, np.round(rng.uniform(0.1, 3.0, n_models), 2), 0.0)
    if aim == DEMAND:
        demand *= 0.2
    if aim == SHARE:
        demand[0] = max(demand[0], 1.0)
    if aim == THROUGHPUT and rng.random() < 0.5:
        demand[:] = 0.0
    costs = np.round(rng.uniform(0.5, 5.0, n_columns), 1)
    limit = PlacementLimit(name="rent", column=costs, at_most=float(rng.integers(3, 20)))
    program = PlacementProgram(
        resources=tuple(f"r{i}" for i in range(len(free))),
        free=free,
        uses=uses,
        models=tuple(f"m{i}" for i in range(n_models)),
        column_model=model,
        objective=np.round(rng.uniform(0.5, 5.0, n_columns), 2),
        rate=rate,
        demand=np.zeros(n_models),
        least=np.where(rng.random(n_models) < 0.1, 1, 0),
        most=np.where(rng.random(n_models) < 0.1, 3, UNLIMITED),
        limits=(limit,) if rng.random() < 0.3 else (),
        ties=(rng.integers(0, 3, n_columns).astype(float),) if rng.random() < 0.5 else (),
    )
    return Instance(program=program, network=_network(rng, program, role, (aim, demand)))


def _rooms(rng, n_columns):
    n_resources = int(rng.integers(1, 4))
    whole = rng.multinomial(int(rng.integers(5, 9)), [1 / n_resources] * n_resources)
    free = whole - rng.integers(0, 2, len(whole)) * (whole > 2)
    takes = np.zeros((len(free), n_columns), np.int64)
    taken = rng.choice([1, 1, 1, 2, 3], n_columns)
    takes[rng.integers(0, len(free), n_columns), np.arange(n_columns)] = taken
    takes += (rng.random(takes.shape) < 0.05).astype(np.int64)
    resource, column = np.nonzero(takes)
    return free, Uses(resource=resource, column=column, amount=takes[resource, column])


def _network(rng, program, role, asked):
    aim, demand = asked
    pairs = [
        (p, d)
        for p, d in itertools.product(
            np.flatnonzero(role == PREFILL), np.flatnonzero(role == DECODE)
        )
        if program.column_model[p] == program.column_model[d] and rng.random() < 0.8
    ]
    prefill, decode = np.array(pairs, np.int64).reshape(-1, 2).T
    n_links = int(rng.integers(0, 4))
    use_pair, use_link = np.nonzero(rng.random((len(pairs), n_links)) < 0.5)
    return Handover(
        role=role,
        prefill=prefill,
        decode=decode,
        gbytes=np.round(rng.uniform(0.1, 2.0, len(pairs)), 2),
        use_pair=use_pair,
        use_link=use_link,
        links=tuple(f"l{i}" for i in range(n_links)),
        capacity=np.where(
            rng.random(n_links) < 0.1, np.inf, np.round(rng.uniform(0.1, 4.0, n_links), 2)
        ),
        demand=demand,
        aim=aim,
    )


def choices(program: PlacementProgram) -> list[Counts]:
    """All copies that keep every row of the program, which knows of no hand-over."""
    most = most_copies(program)
    every = np.array([*itertools.product(*(range(int(u) + 1) for u in most))])
    use = np.zeros((len(program.free), program.n_columns), dtype=np.int64)
    np.add.at(use, (program.uses.resource, program.uses.column), program.uses.amount)
    fitting = every[np.all(every @ use.T <= program.free, axis=1)]
    found = (Counts(copies=tuple(copies)) for copies in fitting.tolist())
    return [counts for counts in found if not violations(program, counts)]


def handed(one: Instance, counts: Counts) -> float:
    """What copies come to at best, by GLOP: t of the module, -inf where a demand is not met.

    Of demands, the share that is served of them; inf where there are none.
    """
    program, network = one.program, one.network
    solver = pywraplp.Solver.CreateSolver("GLOP")
    flows = [solver.NumVar(0, solver.infinity(), "") for _ in range(network.n_pairs)]
    most = program.rate * np.array(counts.copies)
    for j in range(program.n_columns):
        mine = [
            f for f, p, d in zip(flows, network.prefill, network.decode, strict=True) if j in (p, d)
        ]
        if mine:
            solver.Add(solver.Sum(mine) <= float(most[j]))
    for link, capacity in enumerate(network.capacity.tolist()):
        pairs = network.use_pair[network.use_link == link]
        if len(pairs) and np.isfinite(capacity):
            solver.Add(solver.Sum([float(network.gbytes[e]) * flows[e] for e in pairs]) <= capacity)
    served = []
    for m in range(len(program.models)):
        alone = (network.role == TOGETHER) & (program.column_model == m)
        mine = [
            f for f, p in zip(flows, network.prefill, strict=True) if program.column_model[p] == m
        ]
        served.append(solver.Sum(mine) + float(most[alone].sum()))
    t = solver.NumVar(0, solver.infinity(), "t")
    asks = np.flatnonzero(network.demand > 0).tolist()
    if network.aim == THROUGHPUT:
        solver.Add(t <= solver.Sum(served))
        for m in asks:
            solver.Add(served[m] >= float(network.demand[m]) * (1 - 1e-9))
    else:
        if not asks:
            return np.inf
        for m in asks:
            solver.Add(float(network.demand[m]) * t <= served[m])
    solver.Maximize(t)
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return -np.inf
    return t.solution_value()


def best(one: Instance) -> float:
    """The least objective of all choices that hand over what is asked; inf without one.

    More copies never hand over less: where the most is asked for, only those are tried to which
    none can be added.
    """
    every = choices(one.program)
    if one.network.aim == DEMAND:
        costs = [float(one.program.objective @ np.array(counts.copies)) for counts in every]
        ascending = sorted(zip(costs, every, strict=True), key=lambda it: it[0])
        return next((cost for cost, it in ascending if handed(one, it) >= 1 - 1e-9), np.inf)
    copies = np.array([counts.copies for counts in every])
    is_full = [np.all(copies >= it, axis=1).sum() == 1 for it in copies]
    full = itertools.compress(every, is_full)
    return min((-handed(one, counts) for counts in full), default=np.inf)


def two_halls(capacity: float, n_decode: int = 1) -> Instance:
    """2 devices in each of two halls: prefill fits in one, decode in the other, a device a copy.

    Each copy has a rate of 1, each column of decode a link of its own.
    """
    n_columns = 1 + n_decode
    hall = np.minimum(np.arange(n_columns), 1)
    program = PlacementProgram(
        resources=("hall0", "hall1"),
        free=np.array([2, 2]),
        uses=Uses(resource=hall, column=np.arange(n_columns), amount=np.ones(n_columns, np.int64)),
        models=("m0",),
        column_model=np.zeros(n_columns, np.int64),
        objective=np.ones(n_columns),
        rate=np.ones(n_columns),
        demand=np.zeros(1),
        least=np.zeros(1, np.int64),
        most=np.array([UNLIMITED]),
    )
    network = Handover(
        role=np.array([PREFILL, *[DECODE] * n_decode]),
        prefill=np.zeros(n_decode, np.int64),
        decode=np.arange(1, n_columns),
        gbytes=np.ones(n_decode),
        use_pair=np.arange(n_decode),
        use_link=np.arange(n_decode),
        links=tuple(f"link{i}" for i in range(n_decode)),
        capacity=np.full(n_decode, capacity),
        demand=np.ones(1),
        aim=SHARE,
    )
    return Instance(program=program, network=network)
