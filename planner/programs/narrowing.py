"""The columns that a frontier may need, of a program that comes in blocks.

In this order, each losing none of the frontier's points:

    empty, rows    as in `screens`
    dominated      another column of the same context and slot is no worse in price, in delay
                   and in every row that couples slots
    bound          even with the least of the other slots, in price and in delay each by
                   itself, the column is beyond the staircase of assignments in hand

In hand are every column with good company, then, in few contexts, every combination.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.blocks import BlockProgram, ProgramBlocks, joined
from planner.programs.layout import LayoutProgram
from planner.programs.rows import Row, Stairs, merged, rows_of
from planner.programs.screens import Field, is_idle, reject_over
from planner.programs.tradeoff import (
    Tradeoff,
    companies,
    grids,
    reject_beyond,
    reject_dominated,
    tradeoff_of,
)
from planner.running.deadlines import is_over


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Narrowed:
    """What is left of a trade-off.

    Args:
        posed: the contexts and columns that are left.
        delay: the quantity that is set against the objective.
        rejected: columns and contexts that each screen rejected.
        in_hand: assignments of `posed` that keep every row.
        prices: of each context of the whole: model, number, and its own objective.
        n_columns: of the whole, as far as it was looked at.
        is_cut: whether time ended before all of it was.
    """

    posed: BlockProgram
    delay: str
    rejected: Mapping[str, tuple[int, int]]
    in_hand: Stairs
    prices: tuple[IntArray, IntArray, FloatArray]
    n_columns: int
    is_cut: bool

    @property
    def n_contexts(self) -> int:
        """Of the whole."""
        return len(self.prices[0])

    @property
    def tradeoff(self) -> Tradeoff:
        return tradeoff_of(self.posed, self.delay)


def narrow(source: ProgramBlocks, delay: str) -> Narrowed:
    """Reduce a trade-off without losing any point of its frontier.

    A row that couples the slots nowhere must not say which of equal columns stays: where one
    turns out to be so, everything is looked through once more without it.

    Args:
        source: the program, whose objective is the price, block by block.
        delay: the quantity to keep small too.
    """
    idle: frozenset[str] = frozenset()
    while True:
        left = _Left(delay, idle)
        for posed in source.blocks():
            if left.is_begun and is_over():
                left.is_cut = True
                break
            left.add(posed)
        left.is_cut |= source.is_cut
        if left.is_cut or left.shared <= left.coupling:
            return left.narrowed()
        idle |= left.shared - left.coupling


class _Left:
    """What is left of one block after the other.

    Args:
        delay: the quantity to keep small.
        idle: rows that couple the slots in no block.
    """

    def __init__(self, delay: str, idle: frozenset[str]) -> None:
        self.shared, self.coupling = set[str](), set[str]()
        self.is_cut = False
        self._delay, self._idle = delay, idle
        self._parts: list[BlockProgram] = []
        self._prices: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._rejected: dict[str, tuple[int, int]] = {}
        self._in_hand: Stairs | None = None
        self._n_columns = 0

    @property
    def is_begun(self) -> bool:
        return bool(self._parts)

    def add(self, posed: BlockProgram) -> None:
        tradeoff, program = tradeoff_of(posed, self._delay), posed.program
        field, rows = Field(program), rows_of(program)
        field.reject("empty", np.zeros(program.n_columns, dtype=np.bool_))
        for row in sorted(rows, key=lambda row: bool(row.column.any())):  # whole contexts first
            reject_over(field, row, rest=None)
        shared = [row for row in rows if row.name not in self._idle and _is_shared(program, row)]
        self.shared |= {row.name for row in shared}
        self.coupling |= {row.name for row in shared if not is_idle(field, row)}
        reject_dominated(field, tradeoff, shared)
        staircase = companies(field, tradeoff, rows, shared)
        staircase = replace(
            staircase, columns=np.zeros_like(staircase.columns)
        )  # they are of this block
        self._in_hand = staircase if self._in_hand is None else merged(self._in_hand, staircase)
        reject_beyond(field, tradeoff, self._in_hand)
        self._count(field)
        self._n_columns += program.n_columns
        self._prices.append((posed.model, posed.number, program.context_objective))
        contexts = np.flatnonzero(field.contexts)
        self._parts.append(posed.take(contexts=contexts, columns=field.columns))

    def narrowed(self) -> Narrowed:
        """What all blocks together leave."""
        whole = joined(self._parts)
        tradeoff, program = tradeoff_of(whole, self._delay), whole.program
        field, rows = Field(program), rows_of(program)
        shared = [row for row in rows if row.name in self.coupling]
        in_hand = companies(field, tradeoff, rows, shared)
        reject_beyond(field, tradeoff, in_hand)
        in_hand = merged(in_hand, grids(field, tradeoff, rows))
        reject_beyond(field, tradeoff, in_hand)
        self._count(field)
        position = np.full(program.n_columns, -1, dtype=np.int64)
        position[field.columns] = np.arange(len(field.columns))
        models, numbers, prices = zip(*self._prices, strict=True)
        return Narrowed(
            posed=whole.take(contexts=np.flatnonzero(field.contexts), columns=field.columns),
            delay=self._delay,
            rejected=self._rejected,
            in_hand=replace(in_hand, columns=position[in_hand.columns]),
            prices=(np.concatenate(models), np.concatenate(numbers), np.concatenate(prices)),
            n_columns=self._n_columns,
            is_cut=self.is_cut,
        )

    def _count(self, field: Field) -> None:
        for name, (n_columns, n_contexts) in field.rejected.items():
            columns, contexts = self._rejected.get(name, (0, 0))
            self._rejected[name] = columns + n_columns, contexts + n_contexts


def _is_shared(program: LayoutProgram, row: Row) -> bool:
    """Whether columns of several slots count in a row."""
    in_row = [bool(row.column[program.column_slot == s].any()) for s in range(program.n_slots)]
    return sum(in_row) > 1
