"""What replicas are held to, and what became of the requests of a stream that were simulated.

Where phases are apart, a first token takes

    TTFT = wait and read + hand-over + wait for the link + wait for a place and first pass

What nothing waits for is known. Of what the target leaves for waiting, a replica of prefill gets
`READ_SHARE` and the link `LINK_SHARE`: percentiles of waits do not add up, and of two independent
exponential waits that are alike the 95th of the sum is 0.79 of the sum of both. The simulation
judges the whole. Targets of whole requests are left to it there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.simulation.arrays import N_BINS, SimulatedRun
from planner.placing.fleets.request_classes import RequestClass
from planner.runtimes.simulation import bin_of, gaps_at
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT, GoodputTarget, PercentileTarget

N_BATCHES, ERROR, STUDENT = 10, 0.005, 3.25
"""Of runs that are cut short: batches, and the quantile of Student's t of 9 that leaves so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a class of a stream is held to.

    Args:
        member: number of the class within the stream.
    """

    target: PercentileTarget | GoodputTarget
    member: int

    @property
    def quantity(self) -> str:
        """What it is a percentile of; empty of several at once."""
        return self.target.quantity if isinstance(self.target, PercentileTarget) else ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Requests of a stream in the order of arrival, (N,) each.

    Args:
        counted: whether they are.
    """

    arrived_s: FloatArray
    tokens: IntArray
    member: IntArray
    counted: BoolArray

    def only(self, which: BoolArray) -> Sample:
        return Sample(
            arrived_s=self.arrived_s[which],
            tokens=self.tokens[:, which],
            member=self.member[which],
            counted=self.counted[which],
        )


def edges_of(counted: BoolArray) -> IntArray:
    """Numbers of the requests with which batches of those that are counted begin and end."""
    rows = np.flatnonzero(counted)
    first, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
    return np.linspace(first, end, N_BATCHES + 1).astype(np.int64)


class Run:
    """What became of the requests of a sample."""

    def __init__(
        self, goals: Sequence[Goal], sample: Sample, served: SimulatedRun, spread: float
    ) -> None:
        self.goals, self.sample, self.served = goals, sample, served
        arrived_s = sample.arrived_s * spread
        n_gaps = sample.tokens[1] - 1
        refused = np.isinf(served.last_s)
        with np.errstate(invalid="ignore"):  # of two infinite times
            tpot_s = (served.last_s - served.first_s) / np.maximum(n_gaps, 1)
        tpot_s[refused] = np.inf
        self.times = {
            TTFT: served.first_s - arrived_s,
            TPOT: tpot_s,
            E2E: served.last_s - arrived_s,
        }
        self.several = n_gaps > 0

    @property
    def stay_s(self) -> float:
        """Of requests that were served, on average, in the class that stays longest."""
        stays = self.times[E2E]
        stays_s = [
            float(np.mean(stays[rows & np.isfinite(stays)]))
            for k in np.unique(self.sample.member).tolist()
            if (rows := self.sample.member == k).any() and np.isfinite(stays[rows]).any()
        ]
        return max(stays_s, default=0.0)

    @cached_property
    def _batch(self) -> IntArray:
        """Of each request that is counted, the number of its batch (N,)."""
        edges = edges_of(self.sample.counted)
        return np.searchsorted(edges, np.arange(len(self.several)), side="right") - 1

    def _late(self, goal: Goal) -> tuple[BoolArray, BoolArray]:
        """Which requests a goal is over, and which of all are late."""
        rows = self.sample.counted & (self.sample.member == goal.member)
        if isinstance(goal.target, GoodputTarget):
            it = goal.target
            limits = {TTFT: it.ttft_s, E2E: it.e2e_s}
            late = np.zeros(len(rows), np.bool_)
            for name, most in limits.items():
                late |= False if most is None else self.times[name] > most
            if it.tpot_s is not None:
                late |= self.several & (self.times[TPOT] > it.tpot_s)
            return rows, late
        if goal.target.quantity == TPOT:
            rows = rows & self.several
        return rows, self.times[goal.target.quantity] > goal.target.at_most_s

    def kept(self) -> bool:
        """Whether all goals are, as the simulation of a whole fleet tells them."""
        return all(self._is_kept(it) for it in self.goals)

    def _is_kept(self, goal: Goal) -> bool:
        if isinstance(goal.target, GoodputTarget):
            rows, late = self._late(goal)
            return not rows.any() or 1.0 - float(late[rows].mean()) >= goal.target.share
        percentile = self.percentile_s(goal.target.quantity, goal.target.share, goal.member)
        return not percentile > goal.target.at_most_s  # of no request there is none

    def percentile_s(self, quantity: str, share: float, member: int | None = None) -> float:
        """Of the requests that are counted, of one class or of all; NaN of none."""
        if quantity == ITL:
            mine = slice(None) if member is None else slice(member, member + 1)
            return gaps_at(self.served.gaps[1:-1, mine].sum(axis=(0, 1)), [share])[0]
        rows = self.sample.counted.copy()
        if member is not None:
            rows &= self.sample.member == member
        if quantity == TPOT:
            rows &= self.several
        values = self.times[quantity][rows]
        return float(np.quantile(values, share)) if len(values) else math.nan

    def late_share(self, goal: Goal) -> float:
        """Of the requests, or tokens, that a goal is over."""
        _, parts = self._late_parts(goal)
        return float(np.mean(parts)) if len(parts) else 0.0

    def surely_kept(self) -> bool | None:
        """Whether all goals are kept, or one is not, by more than its interval."""
        sure: bool | None = True
        for goal in self.goals:
            is_kept = self._is_sure(goal)
            if is_kept is False:
                return False
            sure = sure and is_kept
        return sure

    def _is_sure(self, goal: Goal) -> bool | None:
        n, parts = self._late_parts(goal)
        if n < 2 * N_BATCHES or len(parts) < N_BATCHES:
            return None
        late, allowed = float(np.mean(parts)), 1.0 - goal.target.share
        least = math.sqrt(max(allowed * (1.0 - allowed), 1.0 / n) / n)
        wide = STUDENT * max(float(np.std(parts, ddof=1)) / math.sqrt(len(parts)), least)
        if abs(late - allowed) <= wide:
            return None
        return late < allowed

    def _late_parts(self, goal: Goal) -> tuple[int, FloatArray]:
        """Requests or tokens that a goal is over, and the share of each batch that is late."""
        if isinstance(goal.target, PercentileTarget) and goal.quantity == ITL:
            gaps = self.served.gaps[1:-1, goal.member]
            counts = gaps.sum(axis=1)
            late = gaps[:, min(bin_of(goal.target.at_most_s) + 1, N_BINS) :].sum(axis=1)
        else:
            rows, is_late = self._late(goal)
            batch = self._batch[rows]
            counts = np.bincount(batch, minlength=N_BATCHES)[:N_BATCHES]
            late = np.bincount(batch, is_late[rows], minlength=N_BATCHES)[:N_BATCHES]
        return int(counts.sum()), late[counts > 0] / counts[counts > 0]


READ_SHARE, LINK_SHARE = 0.75, 0.5
"""Of what a target of TTFT leaves for waiting, what is for waiting until a prompt is read, and for
the link; `assumed`."""

N_PASSES = 2.0
"""Of a decode replica, until a cache that came has its token: the rest of one, and its own."""

_HALVINGS = 30

USUAL_PASS_S = 0.05
"""Of a decode replica without a target of TPOT; `assumed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """What handing a cache over takes.

    Args:
        seconds: of one, if nothing waits.
        link_s: of these, what it keeps the link of a pair of replicas for.
    """

    seconds: float = 0.0
    link_s: float = 0.0


NOTHING_HANDED = HandedOver()


def held_to(
    stream: RequestClass, role: str, handed: HandedOver = NOTHING_HANDED
) -> list[Goal] | None:
    """Goals of a replica of a role; None where no time is left for what it does.

    Args:
        handed: what is handed over, where it does one phase.
    """
    goals: list[Goal] = []
    if role == TOGETHER:
        for number, each in enumerate(stream.classes):
            goals += [Goal(target=target, member=number) for target in each.targets]
            if each.goodput is not None:
                goals.append(Goal(target=each.goodput, member=number))
        return goals
    for aimed in stream.targets:
        target = _of_role(aimed.target, role, waiting_s(stream, aimed.target, handed))
        if target is not None and not target.at_most_s > 0.0:
            return None
        if target is not None:
            goals.append(Goal(target=target, member=aimed.member))
    return goals


def _of_role(target: PercentileTarget, role: str, waiting: float) -> PercentileTarget | None:
    if target.quantity == TTFT:
        read = waiting * READ_SHARE
        return replace(target, at_most_s=read if role == PREFILL else waiting - read)
    return target if role == DECODE and target.quantity in (TPOT, ITL) else None


def waiting_s(stream: RequestClass, target: PercentileTarget, handed: HandedOver) -> float:
    """What a target of TTFT leaves for waiting and reading, where caches are handed over."""
    passes = [one.target.at_most_s for one in stream.targets if one.target.quantity == TPOT]
    return target.at_most_s - handed.seconds - N_PASSES * min(passes, default=USUAL_PASS_S)


def link_rate(stream: RequestClass, handed: HandedOver) -> float:
    """Caches a second that the link of a pair moves, so that waiting for it is within targets.

    M/D/1: a cache waits longer than t with probability ρ exp(−2 (1 − ρ) t / s), s the time of one
    on the link, so that the mean is the exact ρ s / 2 (1 − ρ). Source: [Kleinrock1975].
    """
    if handed.link_s <= 0.0:
        return math.inf
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _is_in_time(stream, handed, middle) else (low, middle)
    return low / handed.link_s


def _is_in_time(stream: RequestClass, handed: HandedOver, rho: float) -> bool:
    """Whether few enough wait too long for a link that is in use for such a share of the time."""
    for target in stream.targets:
        if target.target.quantity == TTFT:
            most_s = waiting_s(stream, target.target, handed) * LINK_SHARE
            longer = rho * math.exp(-2.0 * (1.0 - rho) * max(0.0, most_s) / handed.link_s)
            if longer > 1.0 - target.target.share:
                return False
    return True
