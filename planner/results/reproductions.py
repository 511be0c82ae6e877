"""Tables of papers beside what the planner answers to each of their rows."""

from __future__ import annotations

from dataclasses import dataclass

from planner.specs.papers.tables import PaperTable, PublishedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedRow:
    """A figure of a paper, and the answer to its request.

    Args:
        answered: the same figure here, in the unit of the row; None where there is no plan.
        reason: why there is none; empty where there is one.
        x, published_x: where both are drawn across; None where the table has no such axis.
    """

    row: PublishedRow
    answered: float | None
    reason: str = ""
    x: float | None = None
    published_x: float | None = None

    @property
    def error(self) -> float | None:
        """Answered over published, less 1; None where a figure is missing on either side [1]."""
        published = self.row.published
        if published is None or self.answered is None:
            return None
        return self.answered / published - 1.0 if published else float(self.answered != 0.0)

    @property
    def disagrees(self) -> bool:
        """Whether one side has a plan, and the other has none."""
        if self.row.fails:
            return self.answered is not None
        return self.row.published is not None and self.answered is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedTable:
    """A table of a paper, every row answered."""

    table: PaperTable
    rows: tuple[ReproducedRow, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """Absolute errors of the rows that have one, the smallest first [1]."""
        return tuple(sorted(abs(row.error) for row in self.rows if row.error is not None))
