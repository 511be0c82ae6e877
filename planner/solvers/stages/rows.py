"""The stage program as rows, for HiGHS, CP-SAT and SCIP, and for multipliers.

There may be ten thousand columns, so no modelling language stands between.
"""

from __future__ import annotations

from planner.programs.stages import Columns, Cut, StageProgram
from planner.solvers.mixed import solver_of
from planner.solvers.solution import Effort, Word
from planner.solvers.stages.flow import cut_of, flow


def word_of(name: str, program: StageProgram, columns: Columns, effort: Effort) -> Word[Cut]:
    """What a solver of rows, a name in `MIXED_SOLVERS`, says of the program."""
    word = solver_of(name)(flow(program, columns), effort)
    found = None if word.answer is None else cut_of(columns, word.answer)
    return Word(answer=found, proof=word.proof, n_nodes=word.n_nodes, stopped_by=word.stopped_by)
