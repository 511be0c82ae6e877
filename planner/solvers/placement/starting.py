"""First placements: by the rule of thumb, and of a few sorts of replicas.

The first is a packing, and one price of everything may prove that nothing is better. The others
are of a program that is solved at once: of each model those replicas are taken that
use least for what they serve: one sort that does both phases, or one that reads prompts and one
that decodes what it is handed over. Whoever stops a search early has at least one of these.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.programs.handover import NO_PART, TOGETHER, Handover
from planner.programs.placement import (
    Counts,
    PlacementProgram,
    columns_of,
    most_copies,
    placement_objective,
    sizes,
    violations,
)
from planner.programs.proofs import MULTIPLIERS
from planner.programs.relaxation import even_bound
from planner.solvers.solution import Clock, Word
from planner.specs.records.certificates import Proof

N_TEAMS = (1, 2, 4, 8)
"""Of each model, the most promising, until they do."""

Team = frozenset[int]
"""Sorts of one model that serve it without others."""


def few_sorts(program: PlacementProgram, network: Handover) -> Iterator[IntArray]:
    """Columns of the best teams of each model, and of the parts that their replicas take.

    Args:
        program: whose replicas have sorts.
    """
    assert program.sort is not None
    served = np.unique(program.column_model[network.role != NO_PART]).tolist()
    teams = [_teams(program, network, model) for model in served]
    for n_teams in N_TEAMS:
        sorts = frozenset[int]().union(*(one for mine in teams for one in mine[:n_teams]))
        yield _with_parts(program, np.isin(program.sort, sorted(sorts)))


def restricted(program: PlacementProgram, columns: IntArray) -> PlacementProgram:
    """The program over some columns: nothing of ties, which first placements have no time for."""
    return replace(columns_of(program, columns), ties=(), ties_within=0.0)


def spread(program: PlacementProgram, columns: IntArray, counts: Counts) -> Counts:
    """Counts of some columns as counts of all."""
    copies = np.zeros(program.n_columns, np.int64)
    copies[columns] = counts.copies
    return Counts(copies=tuple(copies.tolist()))


def _teams(program: PlacementProgram, network: Handover, model: int) -> list[Team]:
    """Teams of a model, those first that come to least for what they serve."""
    sort, mine = program.sort, program.column_model == model
    assert sort is not None
    # a copy of a column is charged its objective where that is a cost, else its size
    is_cost = not program.is_for_share and bool((program.objective >= 0).all())
    charge = program.objective if is_cost and program.objective.any() else sizes(program)
    each = charge / np.where(program.rate > 0, program.rate, math.nan)
    alone = np.flatnonzero(mine & (network.role == TOGETHER))
    first = np.concatenate([alone, network.prefill[mine[network.prefill]]])
    then = np.concatenate([alone, network.decode[mine[network.prefill]]])
    cost = np.where(first == then, each[first], each[first] + each[then])
    order = np.argsort(cost, kind="stable")
    key = (sort[first] * (int(sort.max()) + 1) + sort[then])[order]
    best = order[np.sort(np.unique(key, return_index=True)[1])]
    return [frozenset({int(sort[first[i]]), int(sort[then[i]])}) for i in best.tolist()]


def _with_parts(program: PlacementProgram, kept: BoolArray) -> IntArray:
    """Some columns, and those of no sort that add to what they take."""
    assert program.sort is not None
    uses, of_none = program.uses, program.sort < 0
    adds = (uses.amount < 0) & of_none[uses.column]
    while True:
        wanted = np.zeros(program.n_resources, np.bool_)
        wanted[uses.resource[kept[uses.column] & (uses.amount > 0)]] = True
        more = kept.copy()
        more[uses.column[adds & wanted[uses.resource]]] = True
        if (more == kept).all():
            return np.flatnonzero(kept)
        kept = more


def at_even_prices(program: PlacementProgram) -> Word[Counts]:
    """The greedy packing, and the bound that one price of all resources proves.

    Where slices that are worth most for what they use fill all that is free, that is all there
    is to prove, whatever the number of columns.
    """
    clock = Clock()
    counts = greedy(program)
    proof = Proof(
        prover=f"{MULTIPLIERS} of one price",
        outcome="stopped",
        value=math.inf if counts is None else placement_objective(program, counts),
        bound=even_bound(program),
        wall_s=clock.elapsed_s(),
    )
    return Word(answer=counts, proof=proof)


def greedy(program: PlacementProgram, *, first: FloatArray | None = None) -> Counts | None:
    """One column after the other, what is worth most for what it uses first; None if not valid.

    Args:
        first: what goes before worth, the largest first, (J,).
    """
    uses = program.uses
    resource, column, amount = uses.resource, uses.column, uses.amount
    if (np.diff(column) < 0).any():
        order = np.argsort(column, kind="stable")
        resource, column, amount = resource[order], column[order], amount[order]
    starts = np.searchsorted(column, np.arange(program.n_columns + 1))
    left = program.free.copy()
    copies = np.zeros(program.n_columns, np.int64)
    worth = program.objective / np.maximum(sizes(program), 1.0)
    most = most_copies(program)
    order = np.argsort(worth, kind="stable") if first is None else np.lexsort((worth, -first))
    for j in order.tolist():
        if program.objective[j] >= 0 or most[j] < 1:
            continue
        mine = slice(starts[j], starts[j + 1])
        if (left[resource[mine]] >= amount[mine]).all():
            left[resource[mine]] -= amount[mine]
            copies[j] = 1
    counts = Counts(copies=tuple(copies.tolist()))
    return None if violations(program, counts) else counts
