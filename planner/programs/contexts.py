"""The optimum of every context of a layout program by itself, without a solver."""

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.programs.amounts import PREFILLED
from planner.programs.blocks import BlockProgram, ProgramBlocks, joined
from planner.programs.deployment import DECODE, PREFILL
from planner.programs.layout import Assignment, LayoutProgram, ceiling
from planner.programs.rows import first_least, least_by_group, rows_of
from planner.running.deadlines import is_over

SHARED = ("hbm", PREFILLED)
"""Rows that both slots share."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestOfContexts:
    """The optimum of every context that has one.

    Args:
        posed: these contexts, each with its two columns.
        value: their least objectives, (K,).
        columns: the prefill and the decode column of each, (K, 2).
        n_candidates: of all contexts, whether they fit or not.
    """

    posed: BlockProgram
    value: FloatArray
    columns: IntArray
    n_candidates: int

    def assignment(self, context: int) -> Assignment:
        prefill, decode = self.columns[context].tolist()
        return Assignment(context=context, columns=(prefill, decode))


def best_of_contexts(source: ProgramBlocks) -> BestOfContexts:
    """The optimum of every context of a program by itself, block by block, while there is time.

    Raises:
        ValueError: a limit other than of the memory is on both slots.
    """
    parts: list[BlockProgram] = []
    n_candidates = 0
    for posed in source.blocks():
        if parts and is_over():
            break
        n_candidates += posed.program.n_columns + posed.n_unfit
        value, *columns = optima(posed)
        has = np.flatnonzero(np.isfinite(value))
        chosen = np.sort(np.concatenate([one[has] for one in columns]))
        parts.append(posed.take(contexts=has, columns=chosen))
    whole = joined(parts)
    value, prefill, decode = optima(whole)
    return BestOfContexts(
        posed=whole,
        value=value,
        columns=np.stack([prefill, decode], axis=1),
        n_candidates=n_candidates,
    )


def optima(posed: BlockProgram) -> tuple[FloatArray, IntArray, IntArray]:
    """The optimum of every context of a layout program by itself, (K,): value and two columns.

    Both slots share the rows of the memory; every other limit is on one slot alone and so
    strikes columns out. For each decode column the best prefill column that fits beside it is
    found by trying prefill columns from the best on, all decode columns together.

    Returns:
        the least objective, inf without any; the prefill and the decode column, -1 without.

    Raises:
        ValueError: a limit other than of the memory is on both slots.
    """
    program = posed.program
    kept = _keeps_limits(program)
    of_slot = [np.flatnonzero(kept & (program.column_slot == s)) for s in (PREFILL, DECODE)]
    before, after = of_slot
    device_time = posed.quantities["throughput"][1]  # of equals the one that takes the least
    values = (device_time, program.column_objective, program.column_context)
    order = np.lexsort([value[before] for value in values])
    before = before[order]
    context = program.column_context[after]
    start = np.searchsorted(program.column_context[before], np.arange(program.n_contexts + 1))
    shared = [row for row in rows_of(program) if row.name in SHARED]
    rooms = [(row.column, row.room[context] - row.column[after]) for row in shared]
    partner = np.full(len(after), -1, dtype=np.int64)
    open_ = np.arange(len(after))
    rank = 0
    while len(open_):
        place = start[context[open_]] + rank
        open_, place = (one[place < start[context[open_] + 1]] for one in (open_, place))
        fits = np.ones(len(open_), dtype=np.bool_)
        for column, room in rooms:
            fits &= column[before[place]] <= room[open_]
        partner[open_[fits]] = before[place[fits]]
        open_, rank = open_[~fits], rank + 1
    return _least_of_contexts(program, after, partner)


def _least_of_contexts(
    program: LayoutProgram, after: IntArray, partner: IntArray
) -> tuple[FloatArray, IntArray, IntArray]:
    """Of decode columns and their partners, the first best of each context."""
    has = partner >= 0
    after, partner = after[has], partner[has]
    context = program.column_context[after]
    total = program.column_objective[after] + program.column_objective[partner]
    total = total + program.context_objective[context]
    n_contexts = program.n_contexts
    value = least_by_group(total, context, n_contexts)
    first = first_least(total, context, n_contexts)
    is_there = first >= 0
    prefill, decode = np.full(n_contexts, -1), np.full(n_contexts, -1)
    prefill[is_there], decode[is_there] = partner[first[is_there]], after[first[is_there]]
    return value, prefill, decode


def _keeps_limits(program: LayoutProgram) -> BoolArray:
    """Columns that no limit forbids by itself (J,); each but the memory's is on one slot."""
    kept = np.ones(program.n_columns, dtype=np.bool_)
    for limit in program.limits:
        if limit.name in SHARED:
            continue
        on = [bool(limit.column[program.column_slot == s].any()) for s in (PREFILL, DECODE)]
        if all(on) or limit.context.any():
            raise ValueError(f"`{limit.name}` is on both slots")
        mine = program.column_slot == (DECODE if on[1] else PREFILL)
        kept &= ~mine | (limit.column <= ceiling(limit.at_most))
    return kept
