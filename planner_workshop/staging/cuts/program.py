"""The stage program: a chain of layers cut into pipeline stages on groups of unequal kinds.

A *unit* is what a cut cannot divide: the embedding, a layer, the head. A *kind* is a kind of
group of devices, such as eight H100 that share each layer; there are some groups of each kind.
A *column* (t, i, j) is a stage: a group of kind t holds units i to j − 1. Stages follow each
other along the chain, so the order of the groups is chosen with the cut.

The mathematics is in docs/formulation.md. Rows keep one name everywhere: `start`, `leave`,
`enter`, `groups`, and `memory` and `bottleneck`, which are rows by the columns left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray

Objective = Literal["latency", "bottleneck"]

RELATIVE_TOLERANCE = 1e-9
"""Share of a right side that is rounding."""

SAME_TIME = 1e-12
"""Relative difference below which two times are one, far below `RELATIVE_TOLERANCE`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageProgram:
    """What to cut, and onto what.

    Args:
        kinds: names of the kinds of groups [T].
        n_groups: groups there are of each (T,).
        run_ms: time of a stage (T, U + 1, U + 1), by kind, first unit, and unit after the last;
            infinite where there is no such stage [ms].
        held_gib: what the fullest device of it holds, likewise [GiB].
        room_gib: what a device of each kind may hold (T,) [GiB].
        hand_ms: handing over from a stage of one kind to one of another (T, T) [ms].

    Raises:
        ValueError: shapes differ.
    """

    kinds: tuple[str, ...]
    n_groups: IntArray
    run_ms: FloatArray
    held_gib: FloatArray
    room_gib: FloatArray
    hand_ms: FloatArray

    def __post_init__(self) -> None:
        n_kinds, ends = len(self.kinds), self.run_ms.shape[-1]
        wanted = {
            "n_groups": (n_kinds,),
            "run_ms": (n_kinds, ends, ends),
            "held_gib": (n_kinds, ends, ends),
            "room_gib": (n_kinds,),
            "hand_ms": (n_kinds, n_kinds),
        }
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, not {shape}")

    @property
    def n_units(self) -> int:
        return int(self.run_ms.shape[-1]) - 1

    def allowed(self) -> BoolArray:
        """Columns that there are: at least one unit, a finite time, and `memory` kept."""
        ends = np.arange(self.n_units + 1)
        room = self.room_gib[:, None, None] * (1.0 + RELATIVE_TOLERANCE)
        some = ends[:, None] < ends[None, :]
        return np.asarray(some & np.isfinite(self.run_ms) & (self.held_gib <= room))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage: units first to last − 1 on a group of a kind."""

    kind: int
    first: int
    last: int


Cut = tuple[Stage, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """Columns that a program is posed over, (J,) each.

    Args:
        kind, first, last: of each stage.
        run_ms: its time.
        n_next: how many kinds may follow it, in the order of `successors`.
    """

    kind: IntArray
    first: IntArray
    last: IntArray
    run_ms: FloatArray
    n_next: IntArray

    def __len__(self) -> int:
        return len(self.kind)

    def stage(self, index: int) -> Stage:
        first, last = int(self.first[index]), int(self.last[index])
        return Stage(kind=int(self.kind[index]), first=first, last=last)


def successors(program: StageProgram) -> IntArray:
    """For each kind the kinds that may follow, those that are handed to soonest first (T, T)."""
    return np.argsort(program.hand_ms, axis=1, kind="stable")


def columns(program: StageProgram, *, at_most_ms: float = np.inf) -> Columns:
    """The columns that keep `memory` and `bottleneck`.

    A column whose time leaves room for handing over to some kinds only keeps these: they are
    the first `n_next` of `successors`, so one number says which. The last stage hands nothing.
    """
    limit = _limit(at_most_ms)
    kind, first, last = np.nonzero(program.allowed() & (program.run_ms <= limit))
    run = program.run_ms[kind, first, last]
    hand = np.sort(program.hand_ms, axis=1)[kind]
    n_next = np.count_nonzero(run[:, None] + hand <= limit, axis=1)
    ends = last == program.n_units
    n_next = np.where(ends, 0, n_next)
    kept = ends | (n_next > 0)
    return Columns(
        kind=kind[kept], first=first[kept], last=last[kept], run_ms=run[kept], n_next=n_next[kept]
    )


def _limit(at_most_ms: float) -> float:
    return at_most_ms * (1.0 + RELATIVE_TOLERANCE)


def stage_times_ms(program: StageProgram, cut: Cut) -> list[float]:
    """Time of each stage, with handing over to the next [ms]."""
    following = (*cut[1:], None)
    return [
        float(program.run_ms[stage.kind, stage.first, stage.last])
        + (float(program.hand_ms[stage.kind, then.kind]) if then else 0.0)
        for stage, then in zip(cut, following, strict=True)
    ]


def latency_ms(program: StageProgram, cut: Cut) -> float:
    """What one pass takes through all stages [ms]."""
    return sum(stage_times_ms(program, cut))


def bottleneck_ms(program: StageProgram, cut: Cut) -> float:
    """What the slowest stage takes: one pass leaves a full pipeline in this time [ms]."""
    return max(stage_times_ms(program, cut))


def bottleneck_values(program: StageProgram) -> FloatArray:
    """Every time that can be a bottleneck, ascending: of a stage and what it hands over [ms].

    Of times that differ by rounding only, equal layers in other places, the longest stands.
    """
    allowed = program.allowed()
    inner, last = allowed[:, :, :-1], allowed[:, :, -1]
    between = program.run_ms[:, :, :-1, None] + program.hand_ms[:, None, None, :]
    values = np.sort(np.concatenate([between[inner].ravel(), program.run_ms[:, :, -1][last]]))
    longer = values[1:] - values[:-1] > SAME_TIME * values[:-1]
    is_last = np.append(longer, np.ones(min(1, len(values)), dtype=np.bool_))
    return np.asarray(values[is_last])


def violations(program: StageProgram, cut: Cut, *, at_most_ms: float = np.inf) -> dict[str, float]:
    """Rows that a cut breaks, by how much; written without the solvers' models.

    Returns:
        Units for `start` and `leave`, groups for `groups`, GiB for `memory`, ms for
        `bottleneck`; `enter` for a stage that is none, in stages. Empty if all rows hold.
    """
    return dict(_broken(program, cut, at_most_ms))


def _broken(program: StageProgram, cut: Cut, at_most_ms: float) -> Iterator[tuple[str, float]]:
    n_kinds, n_units = len(program.kinds), program.n_units
    strange = [
        it for it in cut if not (0 <= it.kind < n_kinds and 0 <= it.first < it.last <= n_units)
    ]
    if strange or not cut:
        yield "enter", float(max(1, len(strange)))
        return
    if cut[0].first != 0:
        yield "start", float(cut[0].first)
    followers = [*(stage.first for stage in cut[1:]), n_units]
    torn = sum(abs(s.last - then) for s, then in zip(cut, followers, strict=True))
    if torn:
        yield "leave", float(torn)
    used = [sum(s.kind == t for s in cut) for t in range(n_kinds)]
    over = sum(max(0, n - int(have)) for n, have in zip(used, program.n_groups, strict=True))
    if over:
        yield "groups", float(over)
    missing = max(_missing_gib(program, s) for s in cut)
    if missing > 0:
        yield "memory", missing
    slowest = max(stage_times_ms(program, cut))
    if not slowest <= _limit(at_most_ms) or not np.isfinite(slowest):
        yield "bottleneck", slowest - at_most_ms if np.isfinite(slowest) else np.inf


def _missing_gib(program: StageProgram, stage: Stage) -> float:
    held = float(program.held_gib[stage.kind, stage.first, stage.last])
    room = float(program.room_gib[stage.kind])
    return held - room if held > room * (1.0 + RELATIVE_TOLERANCE) else 0.0
