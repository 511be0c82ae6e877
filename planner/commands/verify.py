"""`plan verify`: a saved answer, counted anew; every figure that is not so."""

from __future__ import annotations

from planner.commands.options.parsing import Said
from planner.report.delivery import Answer, answered
from planner.report.paint import width

TRUE, FALSE = 0, 1


def verify(said: Said) -> Answer:
    """Whether every figure of a saved answer is so."""
    from planner.planning.verification import verify as find
    from planner.report.verification import verification_line, verification_text

    said.check()
    path = said.answer
    answer = find(path, prove=said.prove, time_limit_s=said.time_limit, shown=path)
    return answered(
        answer,
        lambda: verification_line(answer) if said.quiet else verification_text(answer, width()),
        is_json=said.json,
        code=TRUE if answer.is_true else FALSE,
    )
