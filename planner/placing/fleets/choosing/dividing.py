"""How pools share classes out so that as few requests as may be are late: a local search.

Parts (P, U) say how much of each class u each pool p gets, of `WHOLE`. From some starts on, what is
late most goes from its pool to another, by itself or for as much work of another class, in smaller
and smaller parts, as long as less is late.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.placing.configurations import AnyConfiguration
from planner.placing.fleets.candidate_sets import CandidateSet
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.outcomes import Goal, held_to
from planner.placing.fleets.request_classes import WHOLE
from planner.specs.records.roles import TOGETHER

STEPS = (12, 6, 3, 1)
"""Parts of a class, of `WHOLE`, that go from one pool to another."""

MOST_STARTS = 3
"""Parts from which better ones are looked for, the best first."""

FEW, FAR = 0.25, 3.0
"""Of all requests, those that a pool is simulated with first, and the lateness at which it is left
at that."""

Lateness = Callable[[IntArray], FloatArray]
"""Of parts (P, U), what is late by pool and goal, of what may be of a goal altogether (P, G)."""


def divisions(
    shares: FloatArray, work: FloatArray, lateness: Lateness, is_over: Callable[[], bool]
) -> Iterator[Iterator[tuple[IntArray, float]]]:
    """Of each start parts (P, U), each less late than the one before, and how late they are.

    Late is 1 where one goal is just met, by all pools together, and all others are.

    Args:
        shares: of each class that each pool gets at first (P, U).
        work: of all of a class, in replicas of each pool (P, U).
        is_over: whether no more is to be tried.
    """
    starts = [rounded(it) for it in (shares, *_uneven(shares, work))]
    scores = [_score(lateness(it)) for it in starts]
    for i in np.argsort(scores, kind="stable")[:MOST_STARTS].tolist():
        yield _improved(starts[i], work, lateness, is_over)


def _improved(
    parts: IntArray, work: FloatArray, lateness: Lateness, is_over: Callable[[], bool]
) -> Iterator[tuple[IntArray, float]]:
    late, steps = lateness(parts), [*STEPS]
    yield parts, float(late.sum(axis=0).max())
    while steps:
        for moves in (_moves, partial(_swaps, work=work)):
            if is_over():
                return
            near = [(lateness(it), it) for it in moves(late, parts, steps[0])]
            best = min([(late, parts), *near], key=lambda it: _score(it[0]))
            if best[1] is not parts:
                late, parts = best
                yield parts, float(late.sum(axis=0).max())
                break
        else:
            steps.pop(0)


def _score(late: FloatArray) -> float:
    """Of what is late (P, G): the goal that is missed by most, then all of them."""
    totals = late.sum(axis=0)
    return float(totals.max() + 0.01 * totals.sum())


def _uneven(shares: FloatArray, work: FloatArray) -> Iterator[FloatArray]:
    """Shares (P, U) that keep pools as busy, in which one pool takes all that it can of a class."""
    others, classes = np.arange(len(shares)), np.arange(shares.shape[1])
    for pool, u in np.ndindex(shares.shape):
        if not 0.0 < shares[pool, u] < 1.0:
            continue
        busy, moved = shares[pool] * work[pool], shares.copy()
        moved[pool, u] = min(1.0, busy.sum() / work[pool, u])
        rest, beside = busy.sum() - moved[pool, u] * work[pool, u], busy[classes != u].sum()
        moved[pool, classes != u] *= rest / max(float(beside), float(rest), 1e-300)
        before = 1.0 - shares[pool]
        left = (1.0 - moved[pool]) / np.where(before > 0.0, before, 1.0)
        moved[others != pool] *= left
        yield np.where(before > 0.0, moved, shares)


def _moves(late: FloatArray, parts: IntArray, step: int) -> Iterator[IntArray]:
    """Parts with less of one class where most is late of the goal that is missed by most."""
    worst = _latest(late)
    for u in np.flatnonzero(parts[worst]).tolist():
        n = min(step, int(parts[worst, u]))
        for other in range(len(parts)):
            if other != worst:
                yield _with_moved(parts, worst, other, u, n)


def _swaps(late: FloatArray, parts: IntArray, step: int, work: FloatArray) -> Iterator[IntArray]:
    """The same for as much work of another class."""
    worst = _latest(late)
    for u, v in np.ndindex(parts.shape[1], parts.shape[1]):
        n = min(step, int(parts[worst, u]))
        for other in range(len(parts)):
            back = round(float(n * work[worst, u] / work[worst, v]))
            back = min(max(1, back), int(parts[other, v]))
            if n and back and u != v and other != worst:
                yield _with_moved(_with_moved(parts, worst, other, u, n), other, worst, v, back)


def _latest(late: FloatArray) -> int:
    """The pool where most is late of the goal that is missed by most."""
    return int(late[:, late.sum(axis=0).argmax()].argmax())


def _with_moved(parts: IntArray, source: int, target: int, u: int, n: int) -> IntArray:
    moved = parts.copy()
    moved[source, u] -= n
    moved[target, u] += n
    return moved


def rounded(shares: FloatArray) -> IntArray:
    """Shares (P, U) in parts, all of each class: what is left goes where most is cut off.

    >>> rounded(np.array([[0.33], [0.67]])).tolist()
    [[7], [13]]
    """
    exact = shares * WHOLE
    parts = np.floor(exact + 1e-9).astype(np.int64)
    for u in range(parts.shape[1]):
        left = WHOLE - int(parts[:, u].sum())
        parts[np.argsort(parts[:, u] - exact[:, u], kind="stable")[:left], u] += 1
    return parts


@dataclass(frozen=True, slots=True)
class Part:
    """A pool: its sort and its replicas, and the parts of classes that it gets, of `WHOLE`."""

    sort: int
    n: int
    parts: tuple[int, ...]


def parted(sizes: Sequence[tuple[int, int]], parts: IntArray) -> list[Part]:
    """Pools of such sorts and sizes, each with its parts."""
    return [Part(k, n, tuple(mine)) for (k, n), mine in zip(sizes, parts.tolist(), strict=True)]


def sizes_of(counts: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Pools of counts, as sorts and sizes: one of each sort, then two of one of them."""
    whole = [(k, n) for k, n in enumerate(counts) if n]
    yield whole
    for at, (k, n) in enumerate(whole):
        for some in range(1, n // 2 + 1):
            yield [*whole[:at], (k, some), (k, n - some), *whole[at + 1 :]]


@dataclass(kw_only=True, eq=False)
class PoolTrials:
    """Pools of one model with parts of its classes, simulated one by one.

    Args:
        market: whose book knows the ways of configurations.
        streams: in the mixture in which classes come, by number: one of every set of classes.
        units: one of each class.
        sorts: of each sort of replicas its configurations, by stream.
    """

    market: CandidateSet
    streams: Sequence[int]
    units: Sequence[int]
    sorts: Sequence[Mapping[int, AnyConfiguration]]
    late: dict[Part, FloatArray] = field(default_factory=dict)

    def members(self, stream: int) -> list[int]:
        """Numbers of the classes of a stream."""
        return [self.units.index(unit) for unit in self.market.streams[stream].units]

    def lateness(self, sizes: Sequence[tuple[int, int]], parts: IntArray) -> FloatArray:
        """Of each pool and goal, the late share of all of its class, of what may be (P, G)."""
        return np.array([self._late_of(it) for it in parted(sizes, parts)])

    @cached_property
    def _goals(self) -> list[tuple[str, Goal]]:
        """Of all classes, each with the name of its own."""
        whole = next(i for i in self.streams if len(self.members(i)) == len(self.units))
        stream = self.market.streams[whole]
        return [(stream.classes[it.member].name, it) for it in held_to(stream, TOGETHER) or ()]

    def _late_of(self, part: Part) -> FloatArray:
        """Of each goal, what comes too late in a pool, in what may be late of its class (G,)."""
        if part not in self.late:
            late = self._simulated(part, FEW)
            self.late[part] = late if late.max() > FAR else self._simulated(part, 1.0)
        return self.late[part]

    def _simulated(self, part: Part, some: float) -> FloatArray:
        """The same of some of all requests."""
        lateness = np.zeros(len(self._goals))
        if any(part.parts):
            config, row = self.configuration(part)
            shares = source_of(config).stream.part_of
            late = iter(self.market.book.late(config, row, part.n, some))
            for g, (name, goal) in enumerate(self._goals):
                if name in shares:
                    lateness[g] = shares[name] * next(late) / (1.0 - goal.target.share)
        return lateness

    def configuration(self, part: Part) -> tuple[AnyConfiguration, int]:
        """Of a pool, whose stream has its parts of classes; and the row of its way."""
        of_unit = dict(zip(self.units, part.parts, strict=True))
        some = {unit for unit, n in of_unit.items() if n}
        i = next(i for i in self.streams if {*self.market.streams[i].units} == some)
        stream, offered = self.market.streams[i], self.sorts[part.sort][i]
        names = {stream.rate_of_unit[unit][0]: n for unit, n in of_unit.items() if n}
        source = replace(source_of(offered), stream=stream.in_parts(names))
        return replace(offered, source=source), self.market.book.now(offered).choice
