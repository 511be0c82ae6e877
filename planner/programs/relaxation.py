"""The linear relaxation of a placement program, and what any prices of its rows prove.

All rows as sums that are at most something; s stands in a demand's row of a share only:

    Σ_j amount_rj n_j ≤ free_r                    ∀ r                 free
    s - Σ_{j of m} rate_j / demand_m n_j ≤ 0      (without s: ≤ -1)   demand
    Σ_{j of m} n_j ≤ most_m,   -Σ n_j ≤ -least_m                      replicas
    Σ_j column_j n_j ≤ at_most                                        limits
    s - Σ_j column_j n_j ≤ added   (without s: ≤ added - 1)           cuts

Prices y ≥ 0 of the rows give a bound by arithmetic alone, whoever found them (Lagrange): the
objective plus y times the excess of each row is no larger than the objective wherever the rows
hold, and its least over 0 ≤ n ≤ most falls apart into columns,

    bound = Σ_j min(0, d_j) most_j - Σ_r y_r right_r,       d_j = objective_j + Σ_r y_r a_rj.

With the d_j, the reduced costs, it says more: whoever uses a column of d_j > 0 pays at least
bound + d_j. So a column whose d_j is more than what is between the bound and a choice in hand
is in no better choice, and may be left out. All sums are rounded down: what n products may be
off by, n u / (1 - n u) of what is summed absolutely, is taken off ([Higham2002] 3.5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.layout import RELATIVE_TOLERANCE, ceiling
from planner.programs.placement import (
    UNLIMITED,
    AnyInts,
    PlacementProgram,
    largest_share,
    most_copies,
    sizes,
)

MOST_COUNTS = 6
"""Ways of counting that are tried."""
MOST_COUNTED = 1e6
"""Of the least column, that another is worth."""

_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relaxation:
    """A placement program as one matrix of R rows over J columns and, last, the share.

    Args:
        row, column, value: the entries of the matrix, (E,); no pair twice.
        right: right sides, (R,).
        objective: what is minimised, (J + 1,).
        most: the largest value of each, (J + 1,).
    """

    row: AnyInts
    column: AnyInts
    value: FloatArray
    right: FloatArray
    objective: FloatArray
    most: FloatArray

    @property
    def n_rows(self) -> int:
        return len(self.right)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """What prices of the rows prove.

    Args:
        bound: no choice is better.
        reduced: a choice that uses a column is no better than `bound + reduced`, (J,).
    """

    bound: float
    reduced: FloatArray


def relaxation(program: PlacementProgram) -> Relaxation:
    """The rows of a program that can bind."""
    most = most_copies(program).astype(float)
    uses, n = program.uses, program.n_columns
    used = np.zeros(program.n_resources)
    np.add.at(used, uses.resource, np.maximum(uses.amount, 0) * most[uses.column])
    binds = np.flatnonzero(used > program.free)
    number = np.full(program.n_resources, -1, np.int32)
    number[binds] = np.arange(len(binds))
    stands = number[uses.resource] >= 0
    rows = [number[uses.resource[stands]]]
    columns, values = [uses.column[stands]], [uses.amount[stands].astype(float)]
    right = [float(free) for free in program.free[binds]]
    for members, coefficients, most_of_row, share in _other_rows(program):
        rows.append(np.full(len(members) + (share > 0), len(right)))
        columns.append(np.append(members, n) if share else members)
        values.append(np.append(coefficients, share) if share else coefficients)
        right.append(most_of_row)
    return Relaxation(
        row=np.concatenate(rows, dtype=np.int32),
        column=np.concatenate(columns, dtype=np.int32),
        value=np.concatenate(values),
        right=np.array(right),
        objective=_objective(program),
        most=np.append(most, largest_share(program)),
    )


def _objective(program: PlacementProgram) -> FloatArray:
    if program.is_for_share:
        return np.append(np.zeros(program.n_columns), -1.0)
    return np.append(program.objective, 0.0)


def _other_rows(program: PlacementProgram) -> list[tuple[IntArray, FloatArray, float, float]]:
    """Rows of models, limits and cuts: columns, coefficients, right side, coefficient of s."""
    rows: list[tuple[IntArray, FloatArray, float, float]] = []
    for m in range(len(program.models)):
        mine = np.flatnonzero(program.column_model == m)
        asked, ones = float(program.demand[m]), np.ones(len(mine))
        if asked > 0:
            share = 1.0 if program.is_for_share else 0.0
            # an answer may be short of a demand by rounding, and what it counts must be here too
            served = 0.0 if program.is_for_share else 1.0 - RELATIVE_TOLERANCE
            rows.append((mine, -program.rate[mine] / asked, -served, share))
        if program.most[m] < UNLIMITED:
            rows.append((mine, ones, float(program.most[m]), 0.0))
        if program.least[m] > 0:
            rows.append((mine, -ones, -float(program.least[m]), 0.0))
    everything = np.arange(program.n_columns)
    for limit in program.limits:
        if math.isfinite(limit.at_most):
            rows.append((everything, limit.column, ceiling(limit.at_most), 0.0))
    return rows + _cut_rows(program)


def _cut_rows(program: PlacementProgram) -> list[tuple[IntArray, FloatArray, float, float]]:
    rows = []
    for cut in program.cuts:
        members, needed = np.flatnonzero(cut.column), program.needed(cut)
        lost = RELATIVE_TOLERANCE * (needed or abs(cut.added))
        share = 0.0 if needed else 1.0
        rows.append((members, -cut.column[members], cut.added - needed + lost, share))
    return rows


def priced(relaxed: Relaxation, prices: FloatArray) -> Priced:
    """What prices of the rows, (R,), prove, rounded down; those that are none count as zero."""
    prices = np.where(np.isfinite(prices), np.maximum(prices, 0.0), 0.0)
    paid, size = relaxed.value * prices[relaxed.row], len(relaxed.objective)
    reduced = relaxed.objective + np.bincount(relaxed.column, paid, size)
    mass = np.abs(relaxed.objective) + np.bincount(relaxed.column, np.abs(paid), size)
    off = _share_lost(len(paid) + size + relaxed.n_rows)
    reduced -= off * mass
    least, spent = np.minimum(reduced, 0.0) * relaxed.most, prices * relaxed.right
    lost = off * (np.abs(least).sum() + np.abs(spent).sum())
    bound = float(least.sum() - spent.sum() - 2.0 * lost)
    return Priced(bound=bound if math.isfinite(bound) else -math.inf, reduced=reduced[:-1])


def _share_lost(n_terms: int) -> float:
    """What a sum of so many products may be off by, as a share of the sum of their sizes."""
    n = n_terms + 8
    return n * _UNIT_ROUNDOFF / (1.0 - n * _UNIT_ROUNDOFF)


def with_row(relaxed: Relaxation, coefficients: FloatArray, at_most: float) -> Relaxation:
    """With one more row, Σ coefficients_j n_j ≤ at_most, that whoever adds it has proved.

    Args:
        coefficients: of the columns, (J,).
    """
    members = np.flatnonzero(coefficients)
    return replace(
        relaxed,
        row=np.append(relaxed.row, np.full(len(members), relaxed.n_rows, np.int32)),
        column=np.append(relaxed.column, members.astype(np.int32)),
        value=np.append(relaxed.value, coefficients[members]),
        right=np.append(relaxed.right, at_most),
    )


def whole_counts(program: PlacementProgram) -> list[FloatArray]:
    """What may be counted of a packing in whole numbers: in how many least columns' worth each is.

    Of all columns that gain anything, then of fewer and fewer, those of the most gain for what they
    count; (J,) each, and divided by what they have in common. That a sum of them is whole says more
    than the objective, of which columns have a little more or less.
    """
    gains = np.where(program.objective < 0, -program.objective, 0.0)
    if program.is_for_share or not gains.any():
        return []
    least = float(gains[gains > 0].min())
    count = np.rint(np.minimum(gains / least, MOST_COUNTED))
    worth = np.where(gains > 0, gains / np.maximum(count, 1.0), 0.0)
    found = []
    for threshold in np.unique(np.round(worth[gains > 0], 9))[:MOST_COUNTS]:
        among = np.where(worth >= threshold - 1e-9, count, 0.0)
        found.append(among / float(np.gcd.reduce(among[among > 0].astype(np.int64))))
    return found


def even_bound(program: PlacementProgram) -> float:
    """What one price of every resource proves: no unit of it is worth more than the best column's.

    Prices at which no column is better than nothing (Farley), so that the bound is what all that
    is free comes to. Where columns differ in little but their places, nothing beats it.
    """
    uses = program.uses
    if program.is_for_share or (uses.amount < 0).any():
        return -math.inf
    size = sizes(program)
    gains = program.objective < 0
    if (size[gains] == 0).any():
        return -math.inf
    price = float((-program.objective[gains] / size[gains]).max(initial=0.0))
    price *= 1.0 + 4 * float(np.finfo(np.float64).eps)  # outward, so that none is better
    return -price * float(np.maximum(program.free, 0).sum())
