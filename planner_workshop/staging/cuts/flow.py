"""The rows of the stage program, for HiGHS, CP-SAT and SCIP, and for multipliers; and every cut.

There may be ten thousand columns, so no modelling language stands between.

Variables are the columns y of `program.columns`, then the hand-overs e(b, t, r, t′): at
boundary b from a stage of kind t that may be followed by r kinds, to one of kind t′. With the
classes r, no hand-over needs a row of its own that forbids it.

Every cut of a small program is the referee: it knows no rows, only what a cut is.
"""

import math
from collections import defaultdict

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.mixed import MixedBuilder, MixedProgram
from planner.programs.proofs import enumeration
from planner.running.deadlines import check
from planner.solvers.mixed import solver_of
from planner.solvers.solution import Clock, Effort, Word
from planner_workshop.staging.cuts.program import Columns, Cut, Stage, StageProgram, successors

AT_ONCE = 1 << 12
"""Columns after which somebody looks at the clock."""


def flow(program: StageProgram, columns: Columns) -> MixedProgram:
    """Pose the program over its columns.

    start            Σ_{t,j} y(t, 0, j) = 1
    leave(b, t, r)   Σ_{i in class r} y(t, i, b) − Σ_t′ e(b, t, r, t′) = 0
    enter(b, t′)     Σ_{t,r} e(b, t, r, t′) − Σ_j y(t′, b, j) = 0
    groups(t)        Σ_{i,j} y(t, i, j) ≤ n_groups(t)

    Raises:
        OutOfTimeError: there are many columns, and time ended meanwhile.
    """
    # flows are seen by their linear relaxation and not by propagation, so all rows are relaxed
    build = MixedBuilder(hints={"cpsat": {"linearization_level": 2}})
    rows: dict[tuple[object, ...], dict[int, float]] = defaultdict(dict)
    rows["start",] = {}  # though nothing may start
    parts = (columns.kind, columns.first, columns.last, columns.n_next, columns.run_ms)
    exits: set[tuple[int, int, int]] = set()
    for number, (t, i, j, r, run) in enumerate(zip(*(one.tolist() for one in parts), strict=True)):
        if number % AT_ONCE == AT_ONCE - 1:
            check()
        y = build.column(f"y({program.kinds[t]},{i},{j})", 1.0, cost=run, is_whole=True)
        rows[("enter", i, t) if i else ("start",)][y] = -1.0 if i else 1.0
        if j < program.n_units:
            rows["leave", j, t, r][y] = 1.0
            exits.add((j, t, r))
    order = successors(program)
    for b, t, r in sorted(exits):
        for then in order[t, :r].tolist():
            name = f"e({b},{program.kinds[t]},{r},{program.kinds[then]})"
            e = build.column(name, 1.0, cost=float(program.hand_ms[t, then]), is_whole=True)
            rows["leave", b, t, r][e] = -1.0
            rows["enter", b, then][e] = 1.0
    for y, t in enumerate(columns.kind.tolist()):
        rows["groups", t][y] = 1.0
    for key, terms in rows.items():
        low = high = 1.0 if key == ("start",) else 0.0
        if key[0] == "groups":
            low, high = -np.inf, float(program.n_groups[int(str(key[1]))])
        build.row(_row_name(program, key), terms, low, high)
    return build.program("stages")


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


def word_of(name: str, program: StageProgram, columns: Columns, effort: Effort) -> Word[Cut]:
    """What a solver of rows, a name in `MIXED_SOLVERS`, says of the program."""
    word = solver_of(name)(flow(program, columns), effort)
    cut = None if word.answer is None else cut_of(columns, word.answer)
    return Word(answer=cut, proof=word.proof, n_nodes=word.n_nodes, stopped_by=word.stopped_by)


MOST_CUTS = 5_000_000


def every_cut(program: StageProgram, columns: Columns, effort: Effort) -> Word[Cut]:
    """The least sum of all cuts. The effort does not matter.

    Raises:
        SolverError: there are too many cuts.
    """
    del effort
    clock = Clock()
    starting: dict[int, list[tuple[Stage, float, int]]] = {}
    for index in range(len(columns)):
        stage = columns.stage(index)
        row = (stage, float(columns.run_ms[index]), int(columns.n_next[index]))
        starting.setdefault(stage.first, []).append(row)
    left = program.n_groups.tolist()
    followers = [list(map(int, row)) for row in successors(program)]
    best: tuple[float, Cut] = (math.inf, ())
    n_cuts = 0

    def extend(at: int, so_far: Cut, cost: float, kinds: list[int]) -> None:
        nonlocal best, n_cuts
        for stage, run, n_next in starting.get(at, []):
            if stage.kind not in kinds or not left[stage.kind]:
                continue
            n_cuts += 1
            if n_cuts > MOST_CUTS:
                raise SolverError(f"exhaustive looks at no more than {MOST_CUTS} cuts")
            hand = float(program.hand_ms[so_far[-1].kind, stage.kind]) if so_far else 0.0
            total, longer = cost + hand + run, (*so_far, stage)
            if stage.last == program.n_units:
                best = min(best, (total, longer), key=lambda pair: pair[0])
                continue
            left[stage.kind] -= 1
            extend(stage.last, longer, total, followers[stage.kind][:n_next])
            left[stage.kind] += 1

    extend(0, (), 0.0, list(range(len(left))))
    proof = enumeration(n_cuts, best[0], clock.elapsed_s())
    return Word(answer=best[1] or None, proof=proof, n_nodes=n_cuts)
