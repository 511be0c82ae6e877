"""What each machine may hold, as arrays, and what many placements at once could serve at most.

A *span* is what a machine holds: layers `first` to `end` − 1, or nothing. A placement is one span
a machine. Of thousands of placements, whole or in part, `layer_rates` says at once what could pass
through each layer, and `cut_rates` what passes a cut, so that a search may drop most of them.
Nothing here asks a solver; docs/formulation.md says why no placement is dropped that has the rate.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner_workshop.staging.machines.program import MachineSpan, Pool

Number = TypeVar("Number", np.int64, np.float64)

IDLE = -1
"""First layer, and end, of a span of no layers."""

MOST_COMPARED = 100
"""Machines of which it is found out which may change places: of more, none is said to."""

_ROUNDS = 3
"""Of what links leave of the rates, which leaves less of what links carry."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """Spans of M machines; the first of each machine is to hold nothing.

    Args:
        pool: the machines.
        first, end: layers of each span of each machine [M] of (A_m,).
        rate: tokens/s that it serves, no more than could ever come to it or leave it [M] of (A_m,).
        links: tokens/s that each ordered pair could pass on, no more than either serves (M, M).
        groups: machines that may change places in any placement; each machine is in one.
    """

    pool: Pool
    first: tuple[IntArray, ...]
    end: tuple[IntArray, ...]
    rate: tuple[FloatArray, ...]
    links: FloatArray
    groups: tuple[tuple[int, ...], ...]

    def placement(self, chosen: IntArray) -> tuple[MachineSpan, ...]:
        """The placement of one span a machine, by index (M,)."""
        return tuple(
            MachineSpan(machine=m, first=int(self.first[m][i]), n_layers=int(held))
            for m, i in enumerate(chosen.tolist())
            if (held := self.end[m][i] - self.first[m][i])
        )

    def best_rates(self, machine: int) -> FloatArray:
        """Tokens/s of a machine by layers held: from the first layer on, inside, to the last
        (3, L); where it holds all layers, the first and the last row."""
        n_layers = self.pool.n_layers
        most = np.zeros((3, n_layers + 1))
        first, end, rate = self.first[machine], self.end[machine], self.rate[machine]
        for row, there in enumerate((first == 0, (first > 0) & (end < n_layers), end == n_layers)):
            np.maximum.at(most[row], (end - first)[there], rate[there])
        return most[:, 1:]


def layer_table(some: Spans) -> FloatArray:
    """Tokens/s of each machine by layers held, wherever it holds them (M, L)."""
    return np.array([some.best_rates(m).max(axis=0) for m in range(len(some.first))])


def rates_by_layers(some: Spans) -> tuple[IntArray, FloatArray]:
    """Machines whose rates are alike: how many (C,), and tokens/s by layers held (C, L)."""
    kinds, counts = np.unique(layer_table(some), axis=0, return_counts=True)
    return counts.astype(np.int64), kinds


def spans(pool: Pool) -> Spans:
    """Every span of every machine that could serve something."""
    listed = [_all(pool, kind) for kind in range(len(pool.types))]
    first, end, rate = ([listed[kind][part] for kind in pool.type_of] for part in range(3))
    links = pool.links.copy()
    np.fill_diagonal(links, 0.0)
    for _ in range(_ROUNDS):
        most = np.array([one.max() for one in rate])
        links = np.minimum(links, np.minimum(most[:, None], most[None, :]))
        into, out = links.sum(axis=0), links.sum(axis=1)
        for m, served in enumerate(rate):
            starts, ends = first[m] == 0, end[m] == pool.n_layers
            comes = np.where(starts, pool.from_coordinator[m], 0.0)
            comes += np.where(~starts | pool.enters_within, into[m], 0.0)
            goes = np.where(ends, pool.to_coordinator[m], out[m])
            rate[m] = np.minimum(served, np.minimum(comes, goes))
    kept = [np.concatenate([[True], one[1:] > 0]) for one in rate]
    return Spans(
        pool=pool,
        first=tuple(one[k] for one, k in zip(first, kept, strict=True)),
        end=tuple(one[k] for one, k in zip(end, kept, strict=True)),
        rate=tuple(one[k] for one, k in zip(rate, kept, strict=True)),
        links=links,
        groups=interchangeable(pool),
    )


def _all(pool: Pool, kind: int) -> tuple[IntArray, IntArray, FloatArray]:
    """First layer, end and rate of every span of a type of machines; the idle one first."""
    rates = np.asarray(pool.rates[kind], dtype=np.float64)[: pool.n_layers]
    held = np.repeat(np.arange(1, len(rates) + 1), pool.n_layers - np.arange(len(rates)))
    first = np.concatenate([np.arange(pool.n_layers - k) for k in range(len(rates))])
    none = np.array([IDLE])
    return (
        np.concatenate([none, first]),
        np.concatenate([none, first + held]),
        np.concatenate([[0.0], rates[held - 1]]),
    )


def fixed(some: Spans, placement: Sequence[MachineSpan], free: Collection[int]) -> Spans:
    """The spans of free machines; of all others only what a placement has them hold.

    A machine that holds what is no span of it, as more than its links let through, is free too.
    """
    held = {one.machine: (one.first, one.first + one.n_layers) for one in placement}
    first, end, rate = list(some.first), list(some.end), list(some.rate)
    for m in range(len(first)):
        if m not in free:
            begins, ends = held.get(m, (IDLE, IDLE))
            at = np.flatnonzero((first[m] == begins) & (end[m] == ends))
            if len(at):
                first[m], end[m], rate[m] = first[m][at], end[m][at], rate[m][at]
    return replace(some, first=tuple(first), end=tuple(end), rate=tuple(rate))


def interchangeable(pool: Pool) -> tuple[tuple[int, ...], ...]:
    """Machines that may change places in any placement: alike, with the same links to all.

    In a large pool each is a group by itself, which is always right.
    """
    n = len(pool.names)
    if n > MOST_COMPARED:
        return tuple((machine,) for machine in range(n))
    groups: list[list[int]] = []
    for machine in range(n):
        home = next((group for group in groups if _are_alike(pool, group[0], machine)), None)
        if home is None:
            groups.append(home := [])
        home.append(machine)
    return tuple(tuple(group) for group in groups)


def _are_alike(pool: Pool, a: int, b: int) -> bool:
    same = (pool.type_of, pool.from_coordinator, pool.to_coordinator)
    if any(values[a] != values[b] for values in same) or pool.links[a, b] != pool.links[b, a]:
        return False
    others = np.ones(len(pool.names), dtype=np.bool_)
    others[[a, b]] = False
    return np.array_equal(pool.links[a, others], pool.links[b, others]) and np.array_equal(
        pool.links[others, a], pool.links[others, b]
    )


def meet(pool: Pool, first: IntArray, end: IntArray) -> BoolArray:
    """Whether each machine may hand to each other one, in N placements: (N, M, M).

    Args:
        first, end: of each machine's span (N, M).
    """
    ends, begins = end[:, :, None], first[:, None, :]
    if pool.enters_within:
        return (begins <= ends) & (ends < end[:, None, :])
    return np.asarray(ends == begins)


def layer_rates(
    some: Spans, machines: Sequence[int], chosen: IntArray, free: Sequence[int]
) -> FloatArray:
    """Tokens/s that could pass through each layer by the spans of some machines (N, L).

    What comes to a machine is no more than those before it send, each no more than it serves,
    over links; and what leaves it likewise. Free machines may stand anywhere.

    Args:
        machines: whose spans are chosen (D,).
        chosen: by index, in N placements (N, D).
        free: machines whose spans are not chosen yet; all others are as if they were not there.
    """
    pool, n_layers = some.pool, some.pool.n_layers
    used = list(machines)
    first, end = _of(some.first, used, chosen), _of(some.end, used, chosen)
    rate = _of(some.rate, used, chosen)
    links = np.where(meet(pool, first, end), some.links[np.ix_(used, used)], 0.0)
    starts, ends = first == 0, end == n_layers
    sent = np.where(starts, pool.from_coordinator[used], 0.0)
    sent += np.where(~starts | pool.enters_within, some.links[np.ix_(free, used)].sum(axis=0), 0.0)
    taken = np.where(ends, pool.to_coordinator[used], some.links[np.ix_(used, free)].sum(axis=1))
    for _ in range(_ROUNDS - 1):
        passed = np.minimum(links, np.minimum(rate[:, :, None], rate[:, None, :]))
        rate = np.minimum(rate, sent + passed.sum(axis=1))
        rate = np.minimum(rate, taken + np.where(ends, 0.0, passed.sum(axis=2)))
    layer = np.arange(n_layers)
    holds = (first[:, :, None] <= layer) & (layer < end[:, :, None])
    return np.asarray(np.einsum("nd,ndl->nl", rate, holds.astype(np.float64)))


def _of(
    values: tuple[NDArray[Number], ...], machines: Sequence[int], chosen: IntArray
) -> NDArray[Number]:
    """What is said of the chosen span of each machine, in N placements (N, D)."""
    values_of = np.empty(chosen.shape, dtype=values[0].dtype)
    for d, m in enumerate(machines):
        values_of[:, d] = values[m][chosen[:, d]]
    return values_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """Tokens that come from the coordinator's side of a cut and end on the other pass it.

    Args:
        before: whether the way into each machine is on the coordinator's side (M,).
        behind: whether the way out of it is (M,).
    """

    before: BoolArray
    behind: BoolArray


def cut_rates(some: Spans, cuts: Sequence[Cut], chosen: IntArray) -> FloatArray:
    """Tokens/s that can pass each cut, which is no less than what a placement serves (N, C).

    Args:
        chosen: span of each machine in N placements (N, M).
    """
    pool = some.pool
    every = range(chosen.shape[1])
    first, end = _of(some.first, every, chosen), _of(some.end, every, chosen)
    rate = _of(some.rate, every, chosen)
    before = np.array([cut.before for cut in cuts]).T
    behind = np.array([cut.behind for cut in cuts]).T
    links = np.where(meet(pool, first, end), some.links, 0.0).reshape(len(chosen), -1)
    passes = (behind[:, None, :] & ~before[None, :, :]).reshape(-1, len(cuts))
    total = rate @ (before & ~behind).astype(np.float64)
    total += links @ passes.astype(np.float64)
    sent = np.where(first == 0, np.minimum(rate, pool.from_coordinator), 0.0)
    taken = np.where(end == pool.n_layers, np.minimum(rate, pool.to_coordinator), 0.0)
    total += sent @ (~before).astype(np.float64) + taken @ behind.astype(np.float64)
    return np.asarray(total)
