"""Bounds of packings by branches: pairs of resources that share a column, or do not.

Where the relaxation is some per cent above any packing, because what is free between others comes
in odd pieces, solvers of rows search for long without a better bound. Branches on pairs move it: of
two resources with room for one copy each, either no column that uses both is chosen, or one is, and
then no column that uses one of the two alone [RyanFoster1981]. Each branch leaves columns out. In
each HiGHS prices the rows, and the prices prove a bound of the branch by arithmetic
(`programs.relaxation.priced`); the least of all branches that are open is a bound of the program.

Before that the same is done for sums that are whole numbers (`programs.relaxation.whole_counts`):
their bounds are rounded down, and stand as further rows. Where slices differ little but in their
places, it is these that close most of a gap.

So nothing here is a solver's word: prices are proved by whoever adds them up, and the branches are
two cases of which one holds.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.programs.mixed import MixedProgram, priced, with_row
from planner.programs.placement import Counts, PlacementProgram, placement_objective
from planner.programs.proofs import MULTIPLIERS, beyond, is_closed, refusal
from planner.programs.relaxation import relaxation, whole_counts
from planner.solvers.placement.pricing import Vertices
from planner.solvers.placement.starting import greedy
from planner.solvers.solution import Clock, Effort, Stop, Word
from planner.specs.records.certificates import Outcome, Proof

MOST_ENTRIES = 200_000
"""Uses of resources of a program that branches are tried on."""
MOST_RESOURCES = 1024
"""Its resources: pairs of them are looked at."""
N_TRIED = 4
"""Pairs of which both branches are priced, to take the one that moves the bound most."""
N_LOOKED_AT = 400
"""Pairs that are nearest to undecided, of which those are taken."""
COUNT_SHARE = 0.5
"""Of the time, for whole numbers."""
MOST_SPLITS = 2000
"""Pairs that are branched on at most: without a time limit other provers have their turn."""
DIVE_EVERY = 16
"""Branchings after which a packing is looked for below the best branch."""
_CLOSE = 1e-6
_PROVER = f"{MULTIPLIERS} in branches"


def applies(program: PlacementProgram) -> bool:
    """Whether pairs can be branched on: a packing, of a size that is priced in milliseconds."""
    amounts = program.uses.amount
    is_small = len(amounts) <= MOST_ENTRIES and program.n_resources <= MOST_RESOURCES
    return is_small and bool((amounts > 0).all()) and bool((_single(program)).any())


def solve(program: PlacementProgram, effort: Effort) -> Word[Counts]:
    """A bound by branches, and the best packing that was met on the way.

    Raises:
        SolverError: HiGHS failed.
    """
    clock = Clock()
    limit_s = effort.seconds()
    left_s = math.inf if limit_s is None else limit_s
    best = _BestPacking(program)
    best.take(greedy(program))
    relaxed, n_splits, is_interrupted = _counted(program, best, effort, (clock, left_s))
    tree = _Tree(program, relaxed, effort, (clock, 0.0 if is_interrupted else left_s))
    bound = tree.run(best, effort.gap)
    if beyond(bound, best.value):
        why = f"its bound {bound:.9g} is beyond its packing of {best.value:.9g}"
        return Word(answer=best.counts, proof=refusal(_PROVER, why, clock.elapsed_s()))
    closed = best.counts is not None and is_closed(best.value, bound, effort.gap)
    outcome: Outcome = "optimal" if closed else "stopped"
    is_late = not closed and clock.elapsed_s() >= left_s
    is_interrupted = is_interrupted or tree.is_interrupted
    stopped_by: Stop = "interrupt" if is_interrupted else "time limit" if is_late else ""
    proof = Proof(
        prover=_PROVER,
        outcome=outcome,
        value=best.value,
        bound=best.value if is_closed(best.value, bound, 0.0) else min(bound, best.value),
        wall_s=clock.elapsed_s(),
        note={"time limit": "out of time"}.get(stopped_by, stopped_by),
    )
    return Word(
        answer=best.counts,
        proof=proof,
        n_nodes=2 * (n_splits + tree.n_splits),
        stopped_by=stopped_by,
    )


def _counted(
    program: PlacementProgram, best: _BestPacking, effort: Effort, time: tuple[Clock, float]
) -> tuple[MixedProgram, int, bool]:
    """Prove a row for each sum that is whole; each may take half of what is left for all.

    Returns:
        The relaxation with these rows, pairs that were branched on, and whether it was interrupted.
    """
    (clock, left_s), relaxed, n_splits = time, relaxation(program), 0
    for count in whole_counts(program):
        spent_s = clock.elapsed_s()
        until_s = spent_s + max(0.0, COUNT_SHARE * left_s - spent_s) / 2
        aimed = replace(relaxed, cost=np.append(-count, 0.0))  # that sum as large as can be
        tree = _Tree(program, aimed, effort, (clock, until_s))
        most = tree.whole(best.counted(count))
        n_splits += tree.n_splits
        if math.isfinite(most):
            members = np.flatnonzero(count)
            name = f"whole[{relaxed.n_rows}]"
            relaxed = with_row(relaxed, members, count[members], most, name)
        if tree.is_interrupted:
            return relaxed, n_splits, True
    return relaxed, n_splits, False


def _single(program: PlacementProgram) -> BoolArray:
    """Resources that have room for one copy of anything, (R,)."""
    return np.asarray(program.free == 1)


class _BestPacking:
    """The best packing so far."""

    def __init__(self, program: PlacementProgram) -> None:
        self._program = program
        self.counts: Counts | None = None
        self.value = math.inf

    def take(self, counts: Counts | None) -> None:
        """Keep it if it is better."""
        if counts is None:
            return
        value = placement_objective(self._program, counts)
        if value < self.value:
            self.counts, self.value = counts, value

    def counted(self, count: FloatArray) -> float:
        """What a sum comes to in it; -inf without one."""
        if self.counts is None:
            return -math.inf
        return float(count @ np.array(self.counts.copies, dtype=float))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Branch:
    """Columns that are left, what is proved of them, and the vertex of their relaxation."""

    most: FloatArray
    bound: float
    values: FloatArray


class _Tree:
    """Branches of one objective, the one with the least bound first."""

    def __init__(
        self,
        program: PlacementProgram,
        relaxed: MixedProgram,
        effort: Effort,
        time: tuple[Clock, float],
    ) -> None:
        self._program, self._relaxed, self._effort = program, relaxed, effort
        self._clock, self._until_s = time
        self._vertices = Vertices(relaxed, replace(effort, time_limit_s=None), Clock())
        uses = program.uses
        self._rows = np.flatnonzero(_single(program))
        number = np.full(program.n_resources, -1)
        number[self._rows] = np.arange(len(self._rows))
        stands = number[uses.resource] >= 0
        self._uses = np.zeros((len(self._rows), program.n_columns), np.bool_)
        self._uses[number[uses.resource[stands]], uses.column[stands]] = True
        self._order = itertools.count()
        self._open: list[tuple[float, int, _Branch]] = []
        self._ended = math.inf  # the least bound of branches that are not branched on
        self.n_splits = 0
        self._push(self._branch(relaxed.upper, -math.inf))

    @property
    def bound(self) -> float:
        """No choice has a smaller objective."""
        return min(self._ended, self._open[0][0] if self._open else math.inf)

    def whole(self, at_least: float) -> float:
        """The largest value of a sum of whole numbers that is not excluded.

        Args:
            at_least: what a packing reaches: not worth excluding.
        """
        if not math.isfinite(self.bound):
            return math.inf
        # the sum is whole, so what is proved of it may be rounded down
        most = math.floor(-self.bound)
        while most > at_least and self._split(None):
            most = min(most, math.floor(-self.bound))
        return float(most)

    def run(self, best: _BestPacking, gap: float) -> float:
        """The bound when the time is over, or it is as near to what is found as was asked."""
        # the branches that are open cover all that is left, so the least of their bounds is one
        while self._open and not is_closed(best.value, self.bound, gap):
            self._effort.tell(best.value, self.bound, self._clock, 2 * self.n_splits)
            if self.n_splits % DIVE_EVERY == 0:
                self._dive(self._open[0][2], best)
            if not self._split(best):
                break
        return self.bound

    def _dive(self, branch: _Branch, best: _BestPacking) -> None:
        """Choose one column after the other, the nearest to chosen first, and price the rest."""
        most, values = branch.most.copy(), branch.values
        is_chosen = np.zeros(len(values), np.bool_)
        while self._left_s() > 0:
            best.take(greedy(self._program, first=is_chosen[:-1] + values[:-1]))
            open_to = np.where(is_chosen | (most <= 0), 0.0, values)
            column = int(np.argmax(open_to[:-1]))
            if open_to[column] <= _CLOSE:
                return
            is_chosen[column] = True
            # there is room for one in each of its rows, and it is the one
            shares = np.flatnonzero(self._uses[self._uses[:, column]].any(axis=0))
            most[shares[shares != column]] = 0.0
            at = self._vertices.at(most, max(self._left_s(), 0.05))
            if at is None:
                return
            values = at[1]

    def _left_s(self) -> float:
        """Time that is left; none after Ctrl-C [s]."""
        return 0.0 if self.is_interrupted else self._until_s - self._clock.elapsed_s()

    @property
    def is_interrupted(self) -> bool:
        return self._vertices.is_interrupted

    def _split(self, incumbent: _BestPacking | None) -> bool:
        """Branch on the branch with the least bound; False where time is over."""
        if not self._open or self._left_s() <= 0 or self.n_splits >= MOST_SPLITS:
            return False
        _, _, branch = self._open[0]
        if incumbent is not None:
            incumbent.take(greedy(self._program, first=branch.values[:-1]))
        best: tuple[float, list[_Branch]] | None = None
        for gone in self._pairs(branch):
            both = [self._branch(np.where(out, 0.0, branch.most), branch.bound) for out in gone]
            # by the product, a pair that moves both branches is taken before one that moves one
            # far: the bound of the program rises with the worse of the two
            moved = [max(one.bound - branch.bound, _CLOSE) for one in both]
            if best is None or moved[0] * moved[1] > best[0]:
                best = moved[0] * moved[1], both
            if self._left_s() <= 0:
                break
        heapq.heappop(self._open)
        self.n_splits += 1
        if best is None:
            # no pair is undecided: nothing raises this bound any more
            self._ended = min(self._ended, branch.bound)
            return True
        for one in best[1]:
            self._push(one)
        return True

    def _push(self, branch: _Branch) -> None:
        heapq.heappush(self._open, (branch.bound, next(self._order), branch))

    def _branch(self, most: FloatArray, at_least: float) -> _Branch:
        """What prices prove of the columns that are left; at least what was proved of more.

        Where HiGHS has no prices, because no choice is left or for want of time, that is all.
        """
        vertex = self._vertices.at(most, max(self._left_s(), 0.05))
        if vertex is None:
            return _Branch(most=most, bound=at_least, values=np.zeros(len(most)))
        prices, values = vertex
        bound = priced(replace(self._relaxed, upper=most), -prices).bound
        return _Branch(most=most, bound=max(bound, at_least), values=values)

    def _pairs(self, branch: _Branch) -> list[tuple[BoolArray, BoolArray]]:
        """For each of some pairs, the columns that each of its branches leaves out, (J + 1,)."""
        values = branch.values[:-1]
        parts = np.flatnonzero((values > _CLOSE) & (values < 1.0 - _CLOSE))
        if not len(parts):
            return []
        use = self._uses[:, parts].astype(np.float64)
        # of a packing, columns that hold both rows come to 0 or 1; what is between is undecided,
        # and neither branch has this vertex any more [RyanFoster1981]
        together = (use * values[parts]) @ use.T
        np.fill_diagonal(together, 0.0)
        first, second = np.triu_indices(len(self._rows), 1)
        undecided = np.minimum(together, 1.0 - together)[first, second]
        near = np.argsort(-undecided, kind="stable")[:N_LOOKED_AT]
        pairs: list[tuple[BoolArray, BoolArray]] = []
        met: set[bytes] = set()
        for pair in near[undecided[near] > _CLOSE].tolist():
            left, other = self._uses[first[pair]], self._uses[second[pair]]
            which = (left & other)[parts].tobytes()  # pairs of the same columns are the same
            if which in met:
                continue
            met.add(which)
            pairs.append((np.append(left & other, False), np.append(left ^ other, False)))
            if len(pairs) == N_TRIED:
                break
        return pairs
