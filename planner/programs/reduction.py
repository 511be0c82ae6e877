"""A program that comes in blocks, reduced to what may matter, and the account of the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.programs.amounts import PREFILLED
from planner.programs.blocks import NO_RELIEFS, BlockProgram, LeftOut, ProgramBlocks, joined
from planner.programs.incumbents import Incumbents
from planner.programs.layout import Assignment, restrict
from planner.programs.screens import Field, Screening, Sieve, screen
from planner.running.deadlines import is_over

MOST_KEPT = 250_000
"""Columns that blocks may leave before what they left is looked through again."""

MOST_WHOLE = 50_000
"""Columns of a program that is kept whole: so few that no screen has to be believed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reduced:
    """What is left of a program, and how much there was.

    Args:
        posed: what no row rejects by itself and no bound: all assignments as good as those of the
            `n_best` best contexts are among its columns, dominated ones too. Of a small program,
            everything.
        screening: what the screens leave of it; its account is that of the whole program.
        relieved: the same where one limit is loosened, by the limit's name.
        n_columns, n_contexts: of the whole program, as far as it was looked at.
        is_cut: whether time ended before all of it was.
    """

    posed: BlockProgram
    screening: Screening
    relieved: Mapping[str, BlockProgram]
    n_columns: int
    n_contexts: int
    is_cut: bool

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out before the screens."""
        return self.posed.program.n_columns == self.n_columns and not self.is_cut


def reduced(
    source: ProgramBlocks,
    *,
    n_best: int = 1,
    known: float = np.inf,
    reliefs: Mapping[str, float] = NO_RELIEFS,
    until_met: bool = False,
) -> Reduced:
    """Reduce a program without losing the best assignment of any of its `n_best` best contexts.

    Args:
        n_best: how many contexts must survive with their best, for runners-up.
        known: see `Sieve`.
        reliefs: factors by which limits, or the memory `hbm`, are loosened, one at a time.
        until_met: whether the first assignment that keeps every row is enough: then blocks after
            its own are not looked at.
    """
    incumbents = Incumbents(n_best)
    near = _Kept(Sieve(incumbents, known=known))
    relieved = {name: _Kept(Sieve(incumbents, known=known, searches=False)) for name in reliefs}
    n_columns = n_contexts = 0
    is_cut = False
    whole: list[BlockProgram] = []
    left_out: list[LeftOut] = []
    for posed in source.blocks(n_best, reliefs):
        if n_contexts and is_over():
            is_cut = True
            break
        left_out.append(posed.left_out)
        n_columns += posed.program.n_columns + sum(posed.left_out.rejected.values())
        n_contexts += posed.program.n_contexts + posed.left_out.n_contexts
        # few columns need no sifting block by block, and of them any screen can be checked
        whole = [*whole, posed] if n_columns <= MOST_WHOLE else []
        field = near.add(posed)
        for name, relief in reliefs.items():
            loose = loosened(posed, name, relief)
            rejecting = {"hbm" if one == PREFILLED else one for one in field.rejecting}
            # more is feasible only where this limit rejected a column, or hid one that it never was
            if name in rejecting or loose.program.n_columns > posed.program.n_columns:
                relieved[name].add(loose)
            else:  # nothing that the limit kept out
                relieved[name].keep(loose, field)
        if until_met and near.has_met:
            break
    if whole:
        posed = joined(whole)
        screening = screen(posed.program, n_best=n_best, known=known)
    else:
        posed, screening = near.settled()
    return Reduced(
        posed=posed,
        screening=_with(screening, left_out),
        relieved={name: kept.joined() for name, kept in relieved.items()},
        n_columns=n_columns,
        n_contexts=n_contexts,
        is_cut=is_cut or source.is_cut,
    )


def _with(screening: Screening, left_out: Sequence[LeftOut]) -> Screening:
    """With what was left out before there was a program."""
    rejected = dict(screening.rejected)
    for block in left_out:
        for name, n_columns in block.rejected.items():
            columns, contexts = rejected.get(name, (0, 0))
            rejected[name] = columns + n_columns, contexts
    bound = min(screening.bound, *(one.bound for one in left_out))
    return replace(screening, rejected=rejected, bound=bound)


def loosened(posed: BlockProgram, name: str, relief: float) -> BlockProgram:
    """A program with one limit loosened, or on devices of more memory."""
    if name == "hbm" and posed.roomier is not None:
        return posed.roomier(relief)
    limits = tuple(
        replace(limit, at_most=limit.at_most * relief) if limit.name == name else limit
        for limit in posed.program.limits
    )
    return replace(posed, program=replace(posed.program, limits=limits))


class _Kept:
    """What a sieve leaves of one block after the other."""

    def __init__(self, sieve: Sieve) -> None:
        self._sieve = sieve
        self._parts: list[BlockProgram] = []
        self._best: BlockProgram | None = None
        self._n_kept = self._n_looked_through = 0

    def add(self, posed: BlockProgram) -> Field:
        """Sift a block, and keep what is left of it."""
        field, best = self._sieve.sift(posed.program)
        if best is not None:
            k, columns = np.array([best.context]), np.array(best.columns)
            self._best = posed.take(contexts=k, columns=columns)
        self.keep(posed, field)
        # at every doubling, so that all looking through together is in proportion to what came
        if self._n_kept > 2 * self._n_looked_through + MOST_KEPT:
            self._look_through()
        return field

    @property
    def has_met(self) -> bool:
        """Whether an assignment was met that keeps every row."""
        return self._best is not None

    def joined(self) -> BlockProgram:
        """All that is left, by what is good by now."""
        self._look_through()
        return joined(self._parts)

    def settled(self) -> tuple[BlockProgram, Screening]:
        """All that is left, and what the screens that need all of it leave of that."""
        whole = self.joined()
        field = Field(whole.program)
        self._sieve.settle(field)
        self._sieve.count(field)
        contexts, best = np.flatnonzero(field.contexts), self._best
        in_best_order = Assignment(context=0, columns=tuple(range(whole.program.n_slots)))
        return whole, Screening(
            program=restrict(whole.program, contexts=contexts, columns=field.columns),
            contexts=contexts,
            columns=field.columns,
            rejected=self._sieve.rejected,
            bound=float(self._sieve.bound),
            incumbent=None if best is None else whole.place_of(best, in_best_order),
        )

    def keep(self, posed: BlockProgram, field: Field) -> None:
        """Keep what is left of a block that was sifted."""
        self._sieve.count(field)
        self._parts.append(
            posed.take(contexts=np.flatnonzero(field.contexts), columns=field.columns)
        )
        self._n_kept += len(field.columns)

    def _look_through(self) -> None:
        """Once more, by what is good by now."""
        parts, self._parts, self._n_kept = self._parts, [], 0
        for posed in parts:
            field = Field(posed.program)
            self._sieve.prune(field)
            self.keep(posed, field)
        self._n_looked_through = self._n_kept
