"""Any program of linear rows over whole and real numbers, as arrays: what solvers of rows read.

    minimise   offset + Σ_j cost_j x_j
    such that  low_r ≤ Σ_j a_rj x_j ≤ high_r     ∀ r
               lower_j ≤ x_j ≤ upper_j           ∀ j, all of them finite
               x_j whole where `is_whole`

Every column has finite bounds: solvers err far more often without, and multipliers prove
nothing (docs/decisions/0016-two-provers.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-9
"""Of a row, as a share of its right side or absolute: rounding, never a real excess."""

_UNIT_ROUNDOFF = 2.0**-53

Hints = Mapping[str, Mapping[str, Any]]
"""Options of solvers, by the solver's name: how it comes to an optimum, never which."""


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
        columns, rows: their names, unique (N,), (R,).
        offset: added to the objective.
        rounding: share of its side by which an answer may exceed a row, beyond what the row says:
            what counts in whole steps adds it, so that a side that is met exactly is met.
        hints: options that solvers of this program have beside those of the effort.
        start: values of all columns to begin at, (N,); None without any.

    Raises:
        ValueError: shapes differ, a column has no finite bounds, or a value is no number.
    """

    name: str
    cost: FloatArray
    row: IntArray
    column: IntArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray
    is_whole: BoolArray
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    offset: float = 0.0
    rounding: float = 0.0
    hints: Hints = field(default_factory=dict)
    start: FloatArray | None = None

    def __post_init__(self) -> None:
        n, r, e = len(self.columns), len(self.rows), len(self.value)
        wanted = {
            "cost": n, "lower": n, "upper": n, "is_whole": n,
            "low": r, "high": r, "row": e, "column": e, "value": e,
        }  # fmt: skip
        for name, length in wanted.items():
            if getattr(self, name).shape != (length,):
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, not ({length},)")
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
        broken[program.columns[j]] = float(max(outside[j], whole[j]))
    left, terms = activity(program, values), np.ones(program.n_rows)
    np.maximum.at(terms, program.row, np.abs(program.value * values[program.column]))
    excess = np.maximum(program.low - left, left - program.high)
    for r in np.flatnonzero(excess > tolerance * terms).tolist():
        broken[program.rows[r]] = float(excess[r])
    return broken


def safe_bound(program: MixedProgram, multipliers: FloatArray) -> float:
    """What any multipliers (R,) of the rows prove: no feasible choice is below this.

    With y_r times the row taken off the objective, what is left falls apart into columns:

        bound = offset + Σ_r min over the row's sides of y_r b_r + Σ_j min over the box of d_j x_j,
        d_j = cost_j − Σ_r y_r a_rj.

    A multiplier of a side that is infinite counts as zero. Nobody's word is needed for y: the
    bound holds for any, and all its sums are rounded down: of a sum of n products each result
    is off by at most n u / (1 − n u) times the sum of what is summed, absolutely
    [Higham2002, 3.5]; that much, of every sum together, is taken off.

    Returns:
        −inf where a sum overflows.

    Source: [NeumaierShcherbina2004].
    """
    y = np.where(np.isfinite(multipliers), multipliers, 0.0)
    y = np.where((y > 0) & ~np.isfinite(program.low), 0.0, y)
    y = np.where((y < 0) & ~np.isfinite(program.high), 0.0, y)
    side = np.where(y > 0, program.low, program.high)
    of_rows = np.where(y != 0, y * np.where(y != 0, side, 0.0), 0.0)
    taken = program.value * y[program.row]
    reduced, mass = program.cost.copy(), np.abs(program.cost)
    np.subtract.at(reduced, program.column, taken)
    np.add.at(mass, program.column, np.abs(taken))
    box = np.maximum(np.abs(program.lower), np.abs(program.upper))
    of_columns = np.minimum(reduced * program.lower, reduced * program.upper)
    bound = program.offset + float(of_rows.sum()) + float(of_columns.sum())
    longest = program.n_rows + program.n_columns + len(program.value) + 8
    share = longest * _UNIT_ROUNDOFF / (1.0 - longest * _UNIT_ROUNDOFF)
    # the last factor covers the rounding of this sum itself
    off = share * (abs(program.offset) + np.abs(of_rows).sum() + mass @ box) * 2.0
    safe = bound - float(off)
    return safe if math.isfinite(safe) else -math.inf


def as_mps(program: MixedProgram, *, notes: Sequence[str] = ()) -> str:
    """The program in free MPS, every number as exact as it is here.

    Args:
        notes: lines of comment at its head.
    """
    columns = _words(program.columns, "x")
    rows = _words(program.rows, "r")
    lines = [
        *(f"* {note}" for note in notes),
        f"NAME {_word(program.name)}",
        "ROWS",
        " N objective",
    ]
    kinds = [_kind(a, b) for a, b in zip(program.low.tolist(), program.high.tolist(), strict=True)]
    lines += [f" {kind} {row}" for kind, row in zip(kinds, rows, strict=True)]
    lines.append("COLUMNS")
    order = np.lexsort((program.row, program.column))
    starts = np.searchsorted(program.column[order], np.arange(program.n_columns + 1))
    is_whole = False
    for j, name in enumerate(columns):
        if bool(program.is_whole[j]) != is_whole:
            is_whole = not is_whole
            lines.append(f" M{j} 'MARKER' 'INT{'ORG' if is_whole else 'END'}'")
        lines.append(f" {name} objective {float(program.cost[j])!r}")
        for e in order[starts[j] : starts[j + 1]].tolist():
            lines.append(f" {name} {rows[program.row[e]]} {float(program.value[e])!r}")
    if is_whole:
        lines.append(" MEND 'MARKER' 'INTEND'")
    lines.append("RHS")
    if program.offset:
        lines.append(f" rhs objective {-program.offset!r}")
    sides = np.where(np.isfinite(program.high), program.high, program.low).tolist()
    for row, kind, side in zip(rows, kinds, sides, strict=True):
        if kind != "N" and side:
            lines.append(f" rhs {row} {side!r}")
    ranged = np.isfinite(program.low) & np.isfinite(program.high) & (program.low != program.high)
    if ranged.any():
        lines.append("RANGES")
        for r in np.flatnonzero(ranged).tolist():
            lines.append(f" rng {rows[r]} {float(program.high[r] - program.low[r])!r}")
    lines.append("BOUNDS")
    for name, low, high in zip(
        columns, program.lower.tolist(), program.upper.tolist(), strict=True
    ):
        lines += [f" LO bnd {name} {low!r}", f" UP bnd {name} {high!r}"]
    return "\n".join([*lines, "ENDATA", ""])


def _kind(low: float, high: float) -> str:
    if low == high:
        return "E"
    if math.isfinite(high):
        return "L"
    return "G" if math.isfinite(low) else "N"


def _words(names: Sequence[str], letter: str) -> list[str]:
    """Names as MPS takes them: without blanks, and numbered where two would be one."""
    words = [_word(name) for name in names]
    if len(set(words)) == len(words) and "objective" not in words:
        return words
    return [f"{letter}{i}_{word}" for i, word in enumerate(words)]


def _word(name: str) -> str:
    return re.sub(r"[^\w()\[\],.+\-/]", "_", name) or "_"


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
