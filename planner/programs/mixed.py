"""Any program of linear rows over whole and real numbers, as arrays: what solvers of rows read.

    minimise   offset + Σ_j cost_j x_j
    such that  low_r ≤ Σ_j a_rj x_j ≤ high_r     ∀ r
               lower_j ≤ x_j ≤ upper_j           ∀ j, all of them finite
               x_j whole where `is_whole`

Every column has finite bounds: solvers err far more often without, and multipliers prove
nothing (docs/decisions/0016-two-provers.md).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from planner.equations.arrays import AnyInts, BoolArray, FloatArray

TOLERANCE = 1e-9
"""Of a row, as a share of its right side or absolute: rounding, never a real excess."""

_UNIT_ROUNDOFF = 2.0**-53

Hints = Mapping[str, Mapping[str, Any]]
"""Options of solvers, by the solver's name: how it comes to an optimum, never which.

Besides its own, of `highs` and of `cpsat` a `start`: values (N,) of the columns to begin at, of
`cpsat` also of some of them, the others not finite; and of `cpsat` `objective_bits`: the width of
the largest sum of costs.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixedProgram:
    """A program of R rows over N columns.

    Args:
        name: what is asked, one word.
        cost: of each column (N,).
        row, column, value: entries of the matrix (E,); no pair twice.
        low, high: of each row (R,); one of them may be infinite.
        lower, upper: of each column (N,), finite.
        is_whole: whether a column takes whole numbers only (N,).
        columns, rows: their names, unique (N,), (R,); numbered where there are none.
        offset: added to the objective.
        rounding: share of its side by which an answer may exceed a row, beyond what the row says:
            what counts in whole steps adds it, so that a side that is met exactly is met.
        hints: options that solvers of this program have beside those of the effort.

    Raises:
        ValueError: shapes differ, a column has no finite bounds, or a value is no number.
    """

    name: str
    cost: FloatArray
    row: AnyInts
    column: AnyInts
    value: FloatArray
    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray
    is_whole: BoolArray
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    offset: float = 0.0
    rounding: float = 0.0
    hints: Hints = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, r, e = self.n_columns, self.n_rows, len(self.value)
        wanted = {
            "cost": n, "lower": n, "upper": n, "is_whole": n,
            "low": r, "high": r, "row": e, "column": e, "value": e,
        }  # fmt: skip
        for name, length in wanted.items():
            if getattr(self, name).shape != (length,):
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, not ({length},)")
        for names, length in ((self.columns, n), (self.rows, r)):
            if len(names) not in (0, length):
                raise ValueError(f"{len(names)} names of {length} columns or rows")
        for name in ("cost", "value", "lower", "upper"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{self.name}: `{name}` has entries that are not finite")
        if np.isnan(self.low).any() or np.isnan(self.high).any():
            raise ValueError(f"{self.name}: a row's sides are no numbers")
        for what, index, length in (("row", self.row, r), ("column", self.column, n)):
            if e and not (index.min() >= 0 and index.max() < length):
                raise ValueError(f"{self.name}: an entry is of no {what}")

    @property
    def n_columns(self) -> int:
        return len(self.cost)

    @property
    def n_rows(self) -> int:
        return len(self.low)

    def column_name(self, j: int) -> str:
        return self.columns[j] if self.columns else f"x[{j}]"

    def row_name(self, r: int) -> str:
        return self.rows[r] if self.rows else f"row[{r}]"


def mixed_objective(program: MixedProgram, values: FloatArray) -> float:
    """What the values (N,) of the columns come to, in the program's unit."""
    return program.offset + float(program.cost @ values)


def activity(program: MixedProgram, values: FloatArray) -> FloatArray:
    """Σ_j a_rj x_j of each row (R,)."""
    total = np.zeros(program.n_rows)
    np.add.at(total, program.row, program.value * values[program.column])
    return total


def mixed_violations(
    program: MixedProgram, values: FloatArray, *, tolerance: float = TOLERANCE
) -> dict[str, float]:
    """Rows and columns that the values (N,) break, by name and by how much; {} means none.

    Args:
        tolerance: excess that counts as rounding, as a share of the side that is broken or of
            the largest term of the row, and at least absolute.
    """
    if values.shape != (program.n_columns,) or not np.isfinite(values).all():
        return {"values": 1.0}
    broken: dict[str, float] = {}
    outside = np.maximum(program.lower - values, values - program.upper)
    whole = np.where(program.is_whole, np.abs(values - np.rint(values)), 0.0)
    for j in np.flatnonzero((outside > tolerance) | (whole > tolerance)).tolist():
        broken[program.column_name(j)] = float(max(outside[j], whole[j]))
    left, terms = activity(program, values), np.ones(program.n_rows)
    np.maximum.at(terms, program.row, np.abs(program.value * values[program.column]))
    excess = np.maximum(program.low - left, left - program.high)
    for r in np.flatnonzero(excess > tolerance * terms).tolist():
        broken[program.row_name(r)] = float(excess[r])
    return broken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """What multipliers of the rows prove.

    Args:
        bound: no feasible choice is below it; −inf where a sum overflows.
        reduced: of each column (N,): where 0 is its lower bound, a choice that uses a whole unit
            of it is no better than `bound + reduced`.
    """

    bound: float
    reduced: FloatArray


def priced(program: MixedProgram, multipliers: FloatArray) -> Priced:
    """What any multipliers (R,) of the rows prove.

    With y_r times each row taken off the objective, what is left falls apart into columns:

        bound = offset + Σ_r min over the row's sides of y_r b_r + Σ_j min over the box of d_j x_j,
        d_j = cost_j − Σ_r y_r a_rj.

    A multiplier of a side that is infinite counts as zero. Nobody's word is needed for y: the
    bound holds for any, and all its sums are rounded down: of a sum of n products each result
    is off by at most n u / (1 − n u) times the sum of what is summed, absolutely
    [Higham2002, 3.5]; that much, of every sum, is taken off.

    Source: [NeumaierShcherbina2004].
    """
    y = np.where(np.isfinite(multipliers), multipliers, 0.0)
    y = np.where((y > 0) & ~np.isfinite(program.low), 0.0, y)
    y = np.where((y < 0) & ~np.isfinite(program.high), 0.0, y)
    side = np.where(y > 0, program.low, program.high)
    of_rows = np.where(y != 0, y * np.where(y != 0, side, 0.0), 0.0)
    taken, n = program.value * y[program.row], program.n_columns
    reduced = program.cost - np.bincount(program.column, taken, n)
    mass = np.abs(program.cost) + np.bincount(program.column, np.abs(taken), n)
    share = _share_lost(program.n_rows + n + len(taken))
    # d_j x_j is linear in x_j, so its least is at an end of the box; d_j itself is off by no more
    # than share × mass, which counts against the bound at either end
    corners = (reduced * at - share * mass * np.abs(at) for at in (program.lower, program.upper))
    of_columns = np.minimum(*corners)
    lost = share * (abs(program.offset) + np.abs(of_rows).sum() + np.abs(of_columns).sum())
    # the last factor covers the rounding of this sum itself
    bound = program.offset + float(of_rows.sum()) + float(of_columns.sum()) - 2.0 * float(lost)
    bound = bound if math.isfinite(bound) else -math.inf
    return Priced(bound=bound, reduced=reduced - share * mass)


def _share_lost(n_terms: int) -> float:
    """What a sum of so many products may be off by, as a share of the sum of their sizes."""
    n = n_terms + 8
    return n * _UNIT_ROUNDOFF / (1.0 - n * _UNIT_ROUNDOFF)


def with_row(
    program: MixedProgram, columns: AnyInts, values: FloatArray, at_most: float, name: str = ""
) -> MixedProgram:
    """With one more row, Σ values × columns ≤ at_most.

    Args:
        name: where rows have names.
    """
    return replace(
        program,
        row=np.append(program.row, np.full(len(columns), program.n_rows, program.row.dtype)),
        column=np.append(program.column, columns.astype(program.column.dtype)),
        value=np.append(program.value, values),
        low=np.append(program.low, -np.inf),
        high=np.append(program.high, at_most),
        rows=(*program.rows, name) if program.rows else (),
    )


@dataclass(slots=True)
class MixedBuilder:
    """Columns from 0 to an upper bound, and rows, in the order in which they came."""

    columns: list[str] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    is_whole: list[bool] = field(default_factory=list)
    rows: list[tuple[str, float, float]] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    rounding: float = 0.0
    hints: Hints = field(default_factory=dict)

    def column(self, name: str, upper: float, *, cost: float = 0.0, is_whole: bool = False) -> int:
        self.columns.append(name)
        self.upper.append(upper)
        self.cost.append(cost)
        self.is_whole.append(is_whole)
        return len(self.columns) - 1

    def row(self, name: str, terms: Mapping[int, float], low: float, high: float) -> None:
        """low ≤ Σ value × column ≤ high, without values that are 0."""
        r = len(self.rows)
        self.entries += [(r, column, value) for column, value in terms.items() if value]
        self.rows.append((name, low, high))

    def take(self, program: MixedProgram, columns: Iterable[str]) -> None:
        """Begin with a program of columns from 0, under names for its columns."""
        of_columns = zip(
            columns,
            program.upper.tolist(),
            program.cost.tolist(),
            program.is_whole.tolist(),
            strict=True,
        )
        for name, upper, cost, is_whole in of_columns:
            self.column(name, upper, cost=cost, is_whole=is_whole)
        sides = zip(program.low.tolist(), program.high.tolist(), strict=True)
        self.rows += [(program.row_name(r), *each) for r, each in enumerate(sides)]
        entries = (part.tolist() for part in (program.row, program.column, program.value))
        self.entries += zip(*entries, strict=True)

    def program(self, name: str) -> MixedProgram:
        """All of it, to be minimised."""
        row, column, value = (np.array([one[i] for one in self.entries]) for i in range(3))
        return MixedProgram(
            name=name,
            cost=np.array(self.cost),
            row=row.astype(np.int64),
            column=column.astype(np.int64),
            value=value.astype(np.float64),
            low=np.array([one[1] for one in self.rows], dtype=np.float64),
            high=np.array([one[2] for one in self.rows], dtype=np.float64),
            lower=np.zeros(len(self.columns)),
            upper=np.array(self.upper, dtype=np.float64),
            is_whole=np.array(self.is_whole, dtype=np.bool_),
            columns=tuple(self.columns),
            rows=tuple(one[0] for one in self.rows),
            rounding=self.rounding,
            hints=self.hints,
        )
