"""`plan verify`: a saved answer, counted anew; every figure that is not so."""

from __future__ import annotations

from planner.commands.options.said import Said
from planner.commands.reporting import reported
from planner.report.files import Answer

TRUE, FALSE = 0, 1


def verify(said: Said) -> Answer:
    """Whether every figure of a saved answer is so."""
    from planner.planning.verification import verify as find

    said.check()
    path = said.answer
    answer = find(path, prove=said.prove, time_limit_s=said.time_limit, shown=path)
    return reported(said, answer, code=TRUE if answer.is_true else FALSE)
