"""Shares that a router may choose: for given copies the best are a linear program.

    minimise T   such that  Σ_g x_eg = load_e,   Σ_e x_eg ≤ T,   x ≥ 0 where there is a copy

It starts from placements with equal shares, which it can only improve, and exchanges copies of
full and of empty ranks for as long as that helps.
"""

import math
import time

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.programs.mixed import MixedProgram
from planner.solvers.mixed.highs import linear
from planner.solvers.solution import Effort
from planner.tools.experts.program import ExpertProgram, Placement

MOST_EXCHANGES = 150


def best_shares(program: ExpertProgram, copies: IntArray) -> Placement:
    """The shares of given copies [E, G] with the least load of the fullest rank.

    Raises:
        SolverError: HiGHS failed.
    """
    scale = program.mean_load or 1.0
    expert, rank = np.nonzero(copies)
    x = _solve(expert, rank, (program.load / scale, program.n_ranks))
    served = np.zeros(copies.shape)
    served[expert, rank] = np.maximum(x, 0.0)
    equal = (copies > 0) / np.maximum((copies > 0).sum(axis=1, keepdims=True), 1)
    total = served.sum(axis=1, keepdims=True)
    shares = np.where(total > 0.0, served / np.where(total > 0.0, total, 1.0), equal)
    return Placement(copies=copies, shares=shares)


def _solve(expert: IntArray, rank: IntArray, posed: tuple[FloatArray, int]) -> FloatArray:
    """What each copy serves, in mean loads [copies]."""
    (load, n_ranks), n = posed, len(expert)
    here, ranks = np.arange(n), len(load) + np.arange(n_ranks)
    shares = MixedProgram(
        name="shares",
        row=np.concatenate([expert, len(load) + rank, ranks]),
        column=np.concatenate([here, here, np.full(n_ranks, n)]),
        value=np.concatenate([np.ones(2 * n), -np.ones(n_ranks)]),
        low=np.append(load, np.full(n_ranks, -math.inf)),
        high=np.append(load, np.zeros(n_ranks)),
        cost=np.append(np.zeros(n), 1.0),
        lower=np.zeros(n + 1),
        upper=np.append(load[expert], load.sum()),
        is_whole=np.zeros(n + 1, np.bool_),
        hints={"highs": {"solver": "simplex"}},
    )
    vertex = linear(shares, Effort())
    if not vertex.is_optimal:
        raise SolverError(f"highs ended with: {vertex.status}")
    return vertex.values[:n]


def improve(
    program: ExpertProgram,
    starts: tuple[IntArray, ...],
    *,
    goal: float,
    seed: int,
    until_s: float = math.inf,
) -> Placement:
    """The best placement found from starts [E, G]; no worse than the best shares of each.

    Args:
        program: with weighted shares.
        starts: copies to begin with.
        goal: load of the fullest rank that is good enough.
        seed: of the exchanges.
        until_s: `time.perf_counter()` to stop at.
    """
    rng = np.random.default_rng(seed)
    tried = [best_shares(program, copies) for copies in starts]
    peaks = [float((program.load @ one.shares).max()) for one in tried]
    best, least = tried[int(np.argmin(peaks))], min(peaks)
    for _ in range(MOST_EXCHANGES):
        if least <= goal or time.perf_counter() >= until_s:
            break
        copies = _exchanged(program, best, rng)
        if copies is None:
            continue
        placement = best_shares(program, copies)
        peak = float((program.load @ placement.shares).max())
        if peak <= least:
            best, least = placement, peak
    return best


def _exchanged(program: ExpertProgram, at: Placement, rng: np.random.Generator) -> IntArray | None:
    """Copies of a full rank and of an emptier one, exchanged; within the groups' nodes."""
    loads = program.load @ at.shares
    full = rng.choice(np.flatnonzero(loads >= loads.max() * (1 - 1e-6)))
    other = rng.integers(program.n_ranks)
    node = program.node_of_rank
    if full == other or (program.group is not None and node[full] != node[other]):
        return None
    gives, takes = np.flatnonzero(at.copies[:, full]), np.flatnonzero(at.copies[:, other])
    if not len(gives) or not len(takes):
        return None
    copies = at.copies.copy()
    for e, leaves, enters in ((rng.choice(gives), full, other), (rng.choice(takes), other, full)):
        copies[e, leaves] -= 1
        copies[e, enters] += 1
    return copies
