"""Every error that the planner raises on purpose.

    PlannerError
    ├── RequestError      what was asked cannot be read          exit 2
    │   └── SpecError     the faults of a file, all at once      exit 2
    ├── NoPlanError       nothing satisfies what was asked       exit 1
    ├── OutOfTimeError    the time limit came before any plan    exit 3
    └── SolverError       an answer failed its verification, or nobody confirms it      exit 4

Errors are data until the command line draws them: a message is composed of facts
and remedies, never of a traceback.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a request or a file, and what mends it.

    Args:
        where: option or file that holds the fault, as the user named it.
        key: dotted path of the fault inside the file, empty for an option.
        value: the literal as it was written, empty when it is missing.
        fact: what is wrong, lower case, no full stop.
        remedy: what to write instead, empty when the fact says it all.
    """

    where: str
    fact: str
    key: str = ""
    value: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: {self.key}" if self.key else self.where
        shown = f" `{self.value}`" if self.value else ""
        tail = f": {self.remedy}" if self.remedy else ""
        return f"{place}{shown}  {self.fact}{tail}"


class FactError(ValueError):
    """A text or a value that cannot be; who knows where it stands makes a problem of it.

    A kind of them says the `fact`, what to write instead, and the `key` within what was read.
    """

    fact = remedy = key = ""

    def problem(self, where: str, *, key: str = "", value: str = "", remedy: str = "") -> Problem:
        remedy = remedy or self.remedy
        return Problem(where=where, key=key or self.key, value=value, fact=self.fact, remedy=remedy)


class PlannerError(Exception):
    """The root of all deliberate errors."""

    exit_code = 4


class RequestError(PlannerError):
    """What was asked cannot be read; carries every problem found."""

    exit_code = 2

    def __init__(self, problems: tuple[Problem, ...] | list[Problem], *, hint: str = "") -> None:
        self.problems = tuple(problems)
        self.hint = hint
        super().__init__("; ".join(str(problem) for problem in self.problems))

    @classmethod
    def raise_if_any(cls, problems: Iterable[Problem], *, hint: str = "") -> None:
        """Go on only if there are no problems; each is told once."""
        if distinct := list(dict.fromkeys(problems)):
            raise cls(distinct, hint=hint)


class SpecError(RequestError):
    """A device, cluster or model file says something that cannot be."""


class NoPlanError(PlannerError):
    """No deployment satisfies the request.

    Args:
        conflict: why (`results.Conflict`).
        requests: what was asked, each runtime in its own words, so that it can be asked again.
    """

    exit_code = 1

    def __init__(self, conflict: object, *, requests: Iterable[object] = ()) -> None:
        self.conflict = conflict
        self.requests = tuple(requests)
        super().__init__(str(conflict))


class OutOfTimeError(PlannerError):
    """The time limit ended before a first plan was found.

    Args:
        time_limit_s: as asked.
        bound: no plan is better; 0 or infinite where none was proved.
        dimension: of the bound; that of the objective asked for if None.
    """

    exit_code = 3

    def __init__(self, *, time_limit_s: float, bound: float, dimension: str | None = None) -> None:
        self.time_limit_s = time_limit_s
        self.bound = bound
        self.dimension = dimension
        super().__init__(f"no plan within {time_limit_s:g} s; none can be better than {bound:g}")


class SolverError(PlannerError):
    """A solver broke a promise: its answer fails verification, or it failed by itself."""


class UnsettledError(SolverError):
    """No prover found an answer, and what they say does not prove that there is none."""
