"""Programs of several models as one: their contexts side by side, so that one proof serves all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.deployment import PosedProgram
from planner.programs.layout import Assignment, LayoutProgram, Limit
from planner.programs.quantities import Coefficients, Quantities


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joined:
    """Several programs as one.

    Args:
        posed: all contexts and columns, those of the first program first.
        parts: the programs.
    """

    posed: PosedProgram
    parts: tuple[PosedProgram, ...]

    def part_of(self, assignment: Assignment) -> tuple[int, Assignment]:
        """Which program an assignment is of, and what it is there."""
        context, first_column = assignment.context, 0
        for which, part in enumerate(self.parts):
            if context < part.program.n_contexts:
                columns = tuple(column - first_column for column in assignment.columns)
                return which, Assignment(context=context, columns=columns)
            context -= part.program.n_contexts
            first_column += part.program.n_columns
        raise IndexError(f"there is no context {assignment.context}")


def joined(parts: Sequence[PosedProgram]) -> Joined:
    """Programs of requests that differ in the model only: equal slots, limits and quantities.

    Raises:
        ValueError: they differ in more.
    """
    first = parts[0]
    for part in parts[1:]:
        names = [[limit.name for limit in one.program.limits] for one in (first, part)]
        same = first.program.slots == part.program.slots and names[0] == names[1]
        if not same or set(first.quantities) != set(part.quantities):
            raise ValueError("programs of different requests cannot be joined")
    if len(parts) == 1:
        return Joined(posed=first, parts=(first,))
    ways: dict[str, Callable[[], Coefficients]] = {
        name: partial(_coefficients, parts, name) for name in first.quantities
    }
    whole = PosedProgram(
        program=_program([part.program for part in parts]),
        arm=np.concatenate([part.arm for part in parts]),
        batch=np.concatenate([part.batch for part in parts]),
        variant=np.concatenate([part.variant for part in parts]),
        quantities=Quantities(ways),
        tie_breaker=first.tie_breaker,
        n_unfit=sum(part.n_unfit for part in parts),
        last_tie_breaker=first.last_tie_breaker,
    )
    return Joined(posed=whole, parts=tuple(parts))


def _coefficients(parts: Sequence[PosedProgram], name: str) -> Coefficients:
    found = [part.quantities[name] for part in parts]
    contexts, columns = zip(*found, strict=True)
    return np.concatenate(contexts), np.concatenate(columns)


def _program(parts: Sequence[LayoutProgram]) -> LayoutProgram:
    def of(name: str) -> FloatArray:
        return np.concatenate([getattr(part, name) for part in parts])

    before = np.cumsum([0, *(part.n_contexts for part in parts)])
    context: IntArray = np.concatenate(
        [part.column_context + n for part, n in zip(parts, before[:-1], strict=True)]
    )
    limits = (
        Limit(
            name=same[0].name,
            context=np.concatenate([limit.context for limit in same]),
            column=np.concatenate([limit.column for limit in same]),
            at_most=same[0].at_most,
            unit=same[0].unit,
        )
        for same in zip(*(part.limits for part in parts), strict=True)
    )
    return LayoutProgram(
        slots=parts[0].slots,
        context_objective=of("context_objective"),
        column_context=context,
        column_slot=np.concatenate([part.column_slot for part in parts]),
        column_objective=of("column_objective"),
        context_bytes=of("context_bytes"),
        column_bytes=of("column_bytes"),
        capacity_bytes=of("capacity_bytes"),
        limits=tuple(limits),
    )
