"""A mixed program as it is written down: one column, one row after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from planner.programs.mixed import MixedProgram


@dataclass(slots=True)
class MixedBuilder:
    """Columns from 0 to an upper bound, and rows, in the order in which they came."""

    columns: list[str] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    is_whole: list[bool] = field(default_factory=list)
    rows: list[tuple[str, float, float]] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)

    def column(self, name: str, upper: float, *, cost: float = 0.0, is_whole: bool = False) -> int:
        """A column; its index."""
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
        )
