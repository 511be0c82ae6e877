"""Every cut of a small program: the referee. It knows no rows, only what a cut is."""

import math

from planner.errors import SolverError
from planner.programs.proofs import enumeration
from planner.solvers.solution import Clock, Effort, Word
from planner.tools.staging.cuts.program import Columns, Cut, Stage, StageProgram, successors

MOST_CUTS = 5_000_000


def word_of(program: StageProgram, columns: Columns, effort: Effort) -> Word[Cut]:
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
