"""A placement under way, in slots; it is improved until nothing near it is better.

held[g, i]  expert in slot i of rank g, or -1 where it is empty  [G, S]
counts[e]   copies of each expert                                [E]

    share out  the fullest rank and another one pool their slots and part them anew, as evenly
               as any of the splits looked at: all of them if there are few, else a sample
    exchange   a slot changes its expert: one of the fullest rank gains a copy, another loses one
    shake      a few slots change places, and it begins again from the best so far

Steps are counted, not timed, so that the same program and seed give the same placement.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from functools import cache

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.specs.ask.targets import Provers
from planner_workshop.experts.program import ExpertProgram

EMPTY = -1


@dataclass(slots=True, kw_only=True, eq=False)
class Slots:
    """Slots that change while a placement is improved; the copies share equally."""

    held: IntArray
    counts: IntArray

    def copy(self) -> Slots:
        return Slots(held=self.held.copy(), counts=self.counts.copy())

    def sizes(self, load: FloatArray) -> FloatArray:
        """Load of one copy of each expert, and last the 0 of an empty slot [E + 1]."""
        return np.append(load / np.maximum(self.counts, 1), 0.0)

    def values(self, load: FloatArray) -> FloatArray:
        """Load of each slot [G, S]."""
        return np.asarray(self.sizes(load)[self.held])

    def loads(self, load: FloatArray) -> FloatArray:
        """Load of each rank [G]."""
        return np.asarray(self.values(load).sum(axis=1))

    def peak(self, load: FloatArray) -> float:
        """Load of the fullest rank."""
        return float(self.loads(load).max())

    def copies(self) -> IntArray:
        """Copies of each expert on each rank [E, G]."""
        slots = np.zeros((len(self.counts) + 1, len(self.held)), dtype=np.int64)
        np.add.at(slots, (self.held, np.arange(len(self.held))[:, None]), 1)
        return slots[:-1]


def slots_of(copies: IntArray, program: ExpertProgram) -> Slots:
    """Copies of each expert on each rank [E, G] as slots."""
    held = np.full((program.n_ranks, program.n_slots), EMPTY, dtype=np.int64)
    for g in range(program.n_ranks):
        there = np.repeat(np.arange(len(copies)), copies[:, g])
        held[g, : len(there)] = there
    return Slots(held=held, counts=np.asarray(copies.sum(axis=1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How good is good enough, and how long it may take.

    Args:
        gap: distance to the bound that is good enough, as a share of it.
        seed: of shakes, exchanges and CP-SAT.
        until_s: `time.perf_counter()` to stop at.
        wanted: how many provers have to vouch for a bound: `two`, or `one`.
    """

    gap: float = 1e-3
    seed: int = 0
    until_s: float = math.inf
    wanted: Provers = "two"

    @property
    def left_s(self) -> float:
        return max(0.0, self.until_s - time.perf_counter())

    @property
    def are_over(self) -> bool:
        return time.perf_counter() >= self.until_s


MOST_SPLITS = 2_000
MOST_SHAKES = 200
_LESS = 1.0 - 1e-12  # an improvement is more than rounding
_WORK = 10_000_000  # products of sizes and splits that shakes may take, all together


def polish(
    start: Slots,
    load: FloatArray,
    *,
    goal: float,
    limits: Limits,
    work: float = 1.0,
) -> Slots:
    """The best placement found around a start; never worse than it.

    Args:
        start: where to begin.
        load: of each expert [E].
        goal: load of the fullest rank that is good enough.
        work: how long to go on, 1 for as usual.
    """
    rng = np.random.default_rng(limits.seed)
    best, at = start, start.copy()
    n_ranks, n_slots = start.held.shape
    rounds = int(
        work * _WORK / (n_ranks * n_slots * min(MOST_SPLITS, math.comb(2 * n_slots, n_slots)))
    )
    least = best.peak(load)
    for _ in range(min(max(rounds, 20), MOST_SHAKES)):
        _descend(at, load, split_masks(n_slots, rng), limits.until_s)
        value = at.peak(load)
        if value < least * _LESS:
            best, least = at.copy(), value
        if least <= goal or limits.are_over:
            break
        if exchange(at, load, until_s=limits.until_s):
            continue
        at = best.copy()
        _shake(at, rng)
    return best


def split_masks(n_slots: int, rng: np.random.Generator) -> BoolArray:
    """Ways to part twice `n_slots` slots in two halves [ways, 2 S]: all, or a sample."""
    n = 2 * n_slots
    if math.comb(n, n_slots) // 2 <= MOST_SPLITS:
        return _all_masks(n_slots)
    keys = rng.random((MOST_SPLITS, n))
    return np.asarray(keys.argsort(axis=1) < n_slots)


@cache
def _all_masks(n_slots: int) -> BoolArray:
    """Every way, the first slot always in the first half; few enough to keep."""
    n = 2 * n_slots
    chosen = [(0, *rest) for rest in itertools.combinations(range(1, n), n_slots - 1)]
    masks = np.zeros((len(chosen), n), dtype=np.bool_)
    for row, half in zip(masks, chosen, strict=True):
        row[list(half)] = True
    return masks


def _descend(at: Slots, load: FloatArray, masks: BoolArray, until_s: float) -> None:
    """Share out the fullest rank's slots until no other rank helps."""
    sizes, halves = at.sizes(load), masks.T.astype(float)
    values = sizes[at.held]
    loads = values.sum(axis=1)
    while True:
        g = int(np.argmax(loads))
        pooled = np.concatenate([np.broadcast_to(values[g], values.shape), values], axis=1)
        first = pooled @ halves
        fuller = np.maximum(first, (loads[g] + loads)[:, None] - first)
        fuller[g] = np.inf
        h, way = divmod(int(np.argmin(fuller)), fuller.shape[1])
        if fuller[h, way] >= loads[g] * _LESS or time.perf_counter() >= until_s:
            return
        both, mask = np.concatenate([at.held[g], at.held[h]]), masks[way]
        at.held[g], at.held[h] = both[mask], both[~mask]
        values[[g, h]] = sizes[at.held[[g, h]]]
        loads[[g, h]] = values[[g, h]].sum(axis=1)


def exchange(at: Slots, load: FloatArray, *, until_s: float = math.inf) -> bool:
    """Give an expert of the fullest rank one more copy, in the slot where that helps most.

    Returns:
        whether anything helped; `at` is changed then.
    """
    loads, table = at.loads(load), at.copies()
    fullest = int(np.argmax(loads))
    best, least = None, float(loads[fullest]) * _LESS
    for gains in np.unique(at.held[fullest][at.held[fullest] != EMPTY]).tolist():
        more = load[gains] / (at.counts[gains] + 1)
        base = loads - (load[gains] / at.counts[gains] - more) * table[gains]
        for loses in (EMPTY, *np.flatnonzero(at.counts >= 2).tolist()):
            if time.perf_counter() >= until_s:
                return False
            if loses == gains:
                continue
            after, where = _without(at, loses, base, (load, table))
            if not len(where):
                continue
            peak = _peaks(after, where, more - (0.0 if loses == EMPTY else _size(at, load, loses)))
            k = int(np.argmin(peak))
            if peak[k] < least:
                best, least = (gains, loses, int(where[k])), float(peak[k])
    if best is None:
        return False
    _replace(at, *best)
    return True


def _size(at: Slots, load: FloatArray, e: int) -> float:
    """Load of a copy of an expert that has one copy less."""
    return float(load[e] / (at.counts[e] - 1))


def _without(
    at: Slots, loses: int, loads: FloatArray, known: tuple[FloatArray, IntArray]
) -> tuple[FloatArray, IntArray]:
    """Loads of ranks while an expert's copies share what one of them leaves, and where it is."""
    load, table = known
    if loses == EMPTY:
        return loads, np.flatnonzero((at.held == EMPTY).any(axis=1))
    rise = _size(at, load, loses) - load[loses] / at.counts[loses]
    return loads + rise * table[loses], np.flatnonzero(table[loses])


def _peaks(loads: FloatArray, where: IntArray, change: float) -> FloatArray:
    """The fullest rank's load if one of these ranks changes [len(where)]."""
    order = np.argsort(loads)[::-1][:2]
    others = np.where(
        where == order[0], loads[order[-1]] if len(order) > 1 else 0.0, loads[order[0]]
    )
    return np.maximum(others, loads[where] + change)


def _replace(at: Slots, gains: int, loses: int, g: int) -> None:
    slot = int(np.flatnonzero(at.held[g] == loses)[0])
    at.held[g, slot] = gains
    at.counts[gains] += 1
    if loses != EMPTY:
        at.counts[loses] -= 1


def _shake(at: Slots, rng: np.random.Generator) -> None:
    n_ranks, n_slots = at.held.shape
    for _ in range(int(rng.integers(2, 6))):
        (g, h), (i, j) = rng.integers(n_ranks, size=2), rng.integers(n_slots, size=2)
        at.held[g, i], at.held[h, j] = at.held[h, j], at.held[g, i]
