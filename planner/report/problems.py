"""What is wrong with a request: every fault with its remedy, then a hint.

error: the request cannot be read, for 2 reasons

  `--topology h100-nvl8-x5`  no such topology
  `--latency-target 30`      no unit: write `30ms` or `0.03s`

hint: did you mean `h100-nvl8-x4`? `plan topologies` lists them all
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.errors import Problem, RequestError
from planner.report.lines import wrapped
from planner.specs.visible import visible

MOST_LISTED = 100
_LEAST_ROOM = 32  # columns that a fact needs beside its literal


def request_text(error: RequestError, width: int) -> str:
    """The whole message of an error."""
    n_reasons = len(error.problems)
    reasons = f", for {n_reasons:,} reasons" if n_reasons > 1 else ""
    hints = [line for hint in error.hint.splitlines() if hint for line in _hint(hint, width)]
    parts = [f"error: the request cannot be read{reasons}", _body(error.problems, width)]
    if n_reasons > MOST_LISTED:
        parts.append(f"  … and {n_reasons - MOST_LISTED:,} more")
    return "\n\n".join(filter(None, (*parts, "\n".join(hints))))


def _body(problems: Sequence[Problem], width: int) -> str:
    problems = problems[:MOST_LISTED]
    literals = [f"`{literal(problem)}`" for problem in problems]
    column = max(map(len, literals), default=0) + 4
    lines = []
    for text, problem in zip(literals, problems, strict=True):
        said = shown(problem.fact) + (f": {shown(problem.remedy)}" if problem.remedy else "")
        if column + _LEAST_ROOM <= width:
            first, *rest = wrapped(said, width - column)
            lines += [f"  {text:<{column - 4}}  {first}", *(" " * column + line for line in rest)]
        else:
            lines += [f"  {text}", *(f"      {line}" for line in wrapped(said, width - 6))]
    return "\n".join(lines)


def _hint(hint: str, width: int) -> list[str]:
    """A hint in lines; one that is a command stays in one, to be copied."""
    text = f"hint: {hint}"
    return [text] if "`plan " in hint else wrapped(text, width)


def literal(problem: Problem) -> str:
    """The place and the text of a fault: `--batch 0`, `my.toml: memory.hbm = 32`."""
    where, key = shown(problem.where, 60), shown(problem.key, 60)
    value = shown(problem.value, 60)
    if where.startswith(("-", "plan ")):
        return f"{where} {value}".rstrip()
    if key:
        return f"{where}: {key} = {value}" if value else f"{where}: {key}"
    return f"{where}: {value}" if value else where


def shown(text: str, longest: int = 300) -> str:
    """Text from outside in one line: what does not print is escaped, and it is not too long."""
    line = visible(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"
