"""`plan verify`: a saved answer, counted anew; every figure that is not so."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_verifications import WrittenVerification
from planner.errors import Problem
from planner.report.delivery import Answer, answered
from planner.report.paint import width
from planner.units import parse

TRUE, FALSE = 0, 1
_NOTHING_GIVEN = WrittenVerification()


def verify(
    written: Annotated[WrittenVerification, Parameter(name="*")] = _NOTHING_GIVEN,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Count a saved answer anew, from the request that is in it: is every figure so?"""
    from planner.commands.options.reading import Faults
    from planner.planning.verification import verify as find

    found, faults = Arguments(problems=list(said.problems), hints=said.hints), Faults()
    path = written.answer
    if path is None:
        remedy = "name what a command with `--json` wrote"
        problem = Problem(where="plan verify", fact="no answer is given", remedy=remedy)
        found.problems.append(problem)
    if written.json and written.quiet:
        found.problems.append(Problem(where="--quiet", fact="cannot go with `--json`"))
    limit_s = faults.read("--time-limit", written.time_limit, lambda text: parse(text, "s"))
    if written.time_limit is not None and not written.prove:
        fact, remedy = "means nothing without `--prove`", "leave it out, or write `--prove`"
        problem = Problem(where="--time-limit", value=written.time_limit, fact=fact, remedy=remedy)
        faults.problems.append(problem)
    found.problems += faults.problems
    found.check()
    assert path is not None
    answer = find(path, prove=written.prove, time_limit_s=limit_s, shown=path)
    from planner.report.verification import verification_line, verification_text

    is_short = written.quiet
    return answered(
        answer,
        lambda: verification_line(answer) if is_short else verification_text(answer, width()),
        is_json=written.json,
        code=TRUE if answer.is_true else FALSE,
    )
