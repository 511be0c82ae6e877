"""`plan verify`: a saved answer, counted anew; every figure that is not so."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from planner.errors import Problem
from planner.options.arguments import Arguments
from planner.options.written_verifications import WrittenVerification
from planner.report.paint import width, write, write_data

TRUE, FALSE = 0, 1
_NOTHING_GIVEN = WrittenVerification()


def verify(
    written: Annotated[WrittenVerification, Parameter(name="*")] = _NOTHING_GIVEN,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> int:
    """Count a saved answer anew, from the request that is in it: is every figure so?"""
    from planner.verification import verify as find

    found = Arguments(problems=list(said.problems), hints=said.hints)
    path = written.answer
    if path is None:
        remedy = "name what a command with `--json` wrote"
        problem = Problem(where="plan verify", fact="no answer is given", remedy=remedy)
        found.problems.append(problem)
    if written.json and written.quiet:
        found.problems.append(Problem(where="--quiet", fact="cannot go with `--json`"))
    found.check()
    assert path is not None
    answer = find(path, prove=written.prove, shown=path)
    if written.json:
        from planner.report.as_json import answer_json, dumps

        write_data(dumps(answer_json(answer)), sys.stdout)
    else:
        from planner.report.verification import verification_line, verification_text

        text = verification_line(answer) if written.quiet else verification_text(answer, width())
        write(text, sys.stdout)
    return TRUE if answer.is_true else FALSE
