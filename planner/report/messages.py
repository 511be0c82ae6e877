"""What went wrong: every fault of a request with its remedy, time, a failed check, a defect.

error: the request cannot be read, for 2 reasons

  `--topology h100-nvl8-x5`  no such topology
  `--latency-target 30`      no unit: write `30ms` or `0.03s`

hint: did you mean `h100-nvl8-x4`? `plan topologies` lists them all

And what is said beside an answer: files that replace those that ship, fields without effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from planner.errors import OutOfTimeError, Problem, RequestError, SolverError, UnsettledError
from planner.quantities.units import show
from planner.report.words import wrapped
from planner.specs.files.texts import visible

if TYPE_CHECKING:
    from planner.specs.files.ledger import DataFile, Ledger

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


INTERRUPTED = "error: interrupted before a plan was found"
OUT_OF_MEMORY = """\
error: out of memory before a plan was found

hint: a smaller pool, fewer `--batch` sizes or fewer formats take less of it"""


def out_of_time_text(error: OutOfTimeError, *, objective: str, command: str) -> str:
    """No plan within the time limit.

    Args:
        error: says the limit, and the bound if one was proved.
        objective: what was optimised, one of `OBJECTIVES`.
        command: the same request with more time.
    """
    head = f"error: no plan was found within {show(error.time_limit_s, 's')}"
    from planner.report.words import objective_dimension

    dimension = error.dimension or objective_dimension(objective)
    bound = f"  No plan can be better than {show(error.bound, dimension)}."
    hint = f"hint: give it more time: `{command}`"
    known = math.isfinite(error.bound) and error.bound != 0
    return "\n\n".join((head, bound, hint) if known else (head, hint))


def solver_text(error: SolverError, width: int, *, has_solvers: bool = True) -> str:
    """An answer that failed its verification is never shown as a plan, nor one solver's "no".

    Args:
        has_solvers: the command has a choice of them.
    """
    reason = "\n".join(f"  {line}" for line in wrapped(shown(str(error)), width - 2))
    hint = "hint: `--solver cpsat` answers the same request by other means"
    head = "error: the answer failed its verification"
    if isinstance(error, UnsettledError):
        head = "error: it is not known whether there is an answer"
    return "\n\n".join((head, reason, hint) if has_solvers else (head, reason))


def refused_text(error: OSError) -> str:
    """The system did not let the planner work: no process, no thread, a folder that is closed."""
    where = f": `{shown(str(error.filename))}`" if error.filename else ""
    return f"error: {_reason(error)}{where}"


def unwritten_text(name: str, error: OSError) -> str:
    """The system did not let an answer out: a full disk, a limit, a folder that is gone.

    Args:
        name: of a file; empty for stdout.
    """
    if name:
        return f"error: `{shown(name)}` was not written, and is as it was: {_reason(error)}"
    return f"error: the answer was not written: {_reason(error)}"


def _reason(error: OSError) -> str:
    reason = error.strerror or str(error)
    return reason[:1].lower() + reason[1:]


def defect_text(error: BaseException, *, command: str, width: int) -> str:
    """Something that should not happen, without a traceback.

    Args:
        error: what happened.
        command: the same request with a traceback.
        width: columns.
    """
    kind, reason = type(error).__name__, shown(str(error)) or "no reason given"
    body = "\n".join(f"  {line}" for line in wrapped(f"{kind}: {reason}", width - 2))
    hint = f"hint: `{command}` shows where it happened"
    return f"error: the planner failed, which is a defect of its own\n\n{body}\n\n{hint}"


def remarks_text(ledger: Ledger, width: int) -> str:
    """Everything that a ledger says; empty if it says nothing."""
    lines = [*_replaced(ledger.files, width), *_remarked(ledger.remarks, width)]
    return "\n".join(lines)


def _replaced(files: Iterable[DataFile], width: int) -> Iterator[str]:
    for file in files:
        if file.replaces:
            said = f"`{file.path}` replaces the {file.kind} `{file.name}` that ships"
            yield from _hung(f"note: {shown(said)}", width)


def _remarked(remarks: Iterable[Problem], width: int) -> Iterator[str]:
    for one in remarks:
        remedy = f": {shown(one.remedy)}" if one.remedy else ""
        yield from _hung(f"warning: `{_place(one)}` {shown(one.fact)}{remedy}", width)


def _place(remark: Problem) -> str:
    """Where something stands; several keys in full."""
    if remark.value or not remark.key:
        return literal(remark)
    return f"{shown(remark.where, 60)}: {shown(remark.key)}"


def _hung(text: str, width: int) -> list[str]:
    """Lines of at most `width`, all but the first indented."""
    first, *rest = wrapped(text, width - 2)
    return [first, *(f"  {line}" for line in rest)]
