"""The rows of the stage program, for any solver of rows.

Variables are the columns y of `programs.stages.columns`, then the hand-overs e(b, t, r, t′): at
boundary b from a stage of kind t that may be followed by r kinds, to one of kind t′. With the
classes r, no hand-over needs a row of its own that forbids it.
"""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.mixed import MixedProgram
from planner.programs.stages import Columns, Cut, Stage, StageProgram, successors
from planner.running.deadlines import check

AT_ONCE = 1 << 12
"""Columns after which somebody looks at the clock."""


class _Rows:
    """Rows by name, and their entries as they come."""

    def __init__(self) -> None:
        self.place: dict[tuple[object, ...], int] = {("start",): 0}  # though nothing may start
        self.limits: list[tuple[float, float]] = [(1.0, 1.0)]
        self.entries: list[tuple[int, int, float]] = []

    def add(self, key: tuple[object, ...], variable: int, value: float) -> None:
        if key not in self.place:
            self.place[key] = len(self.place)
            self.limits.append((0.0, 0.0))
        self.entries.append((self.place[key], variable, value))


def flow(program: StageProgram, columns: Columns) -> MixedProgram:
    """Pose the program over its columns.

    start            Σ_{t,j} y(t, 0, j) = 1
    leave(b, t, r)   Σ_{i in class r} y(t, i, b) − Σ_t′ e(b, t, r, t′) = 0
    enter(b, t′)     Σ_{t,r} e(b, t, r, t′) − Σ_j y(t′, b, j) = 0
    groups(t)        Σ_{i,j} y(t, i, j) ≤ n_groups(t)

    Raises:
        OutOfTimeError: there are many columns, and time ended meanwhile.
    """
    rows = _Rows()
    names = [
        f"y({program.kinds[t]},{i},{j})"
        for t, i, j in zip(columns.kind, columns.first, columns.last, strict=True)
    ]
    cost = columns.run_ms.tolist()
    kinds = zip(
        columns.kind.tolist(),
        columns.first.tolist(),
        columns.last.tolist(),
        columns.n_next.tolist(),
        strict=True,
    )
    exits: set[tuple[int, int, int]] = set()
    for index, (t, i, j, r) in enumerate(kinds):
        if index % AT_ONCE == AT_ONCE - 1:
            check()
        rows.add(("enter", i, t) if i else ("start",), index, -1.0 if i else 1.0)
        if j < program.n_units:
            rows.add(("leave", j, t, r), index, 1.0)
            exits.add((j, t, r))
    order = successors(program)
    for b, t, r in sorted(exits):
        for then in order[t, :r].tolist():
            index = len(names)
            names.append(f"e({b},{program.kinds[t]},{r},{program.kinds[then]})")
            cost.append(float(program.hand_ms[t, then]))
            rows.add(("leave", b, t, r), index, -1.0)
            rows.add(("enter", b, then), index, 1.0)
    for index, t in enumerate(columns.kind.tolist()):
        rows.add(("groups", t), index, 1.0)
    for key, place in rows.place.items():
        if key[0] == "groups":
            rows.limits[place] = (-np.inf, float(program.n_groups[int(str(key[1]))]))
    row, column, value = (np.array(part) for part in zip(*rows.entries, strict=True))
    low, high = (np.array(side) for side in zip(*rows.limits, strict=True))
    n = len(cost)
    return MixedProgram(
        name="stages",
        cost=np.array(cost),
        row=row.astype(np.int64),
        column=column.astype(np.int64),
        value=value.astype(float),
        low=low,
        high=high,
        lower=np.zeros(n),
        upper=np.ones(n),
        is_whole=np.ones(n, dtype=np.bool_),
        columns=tuple(names),
        rows=tuple(_row_name(program, key) for key in rows.place),
    )


def _row_name(program: StageProgram, key: tuple[object, ...]) -> str:
    name, *places = key
    if not places:
        return str(name)
    kind_at = {"leave": 1, "enter": 1, "groups": 0}[str(name)]
    words = [
        program.kinds[int(str(place))] if index == kind_at else str(place)
        for index, place in enumerate(places)
    ]
    return f"{name}({','.join(words)})"


def cut_of(columns: Columns, values: FloatArray) -> Cut:
    """The stages that a solver's values chose, along the chain."""
    chosen = np.flatnonzero(values[: len(columns)] > 0.5)
    stages: list[Stage] = [columns.stage(int(index)) for index in chosen]
    return tuple(sorted(stages, key=lambda stage: stage.first))
