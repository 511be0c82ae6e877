"""What went wrong that no option can mend: time, a failed check, a defect, Ctrl-C."""

from __future__ import annotations

import math

from planner.errors import OutOfTimeError, SolverError, UnsettledError
from planner.report.lines import wrapped
from planner.report.problems import shown
from planner.report.words import objective_dimension
from planner.units import show

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
