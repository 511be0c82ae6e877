"""Arguments of the library, checked before they are used.

The command line turns text into numbers, and finds what is none. A caller of the library may
pass anything. Of an argument of another type nothing else can be said, so it is refused at once;
a number that cannot be is told together with what `checking` and its like find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from planner.errors import Problem, RequestError
from planner.running import meanwhile
from planner.specs.options.table import set_by
from planner.specs.validation.hints import hints_of, signature_of

if TYPE_CHECKING:
    from planner.specs.validation.calls import Conformed, Seen

_P = ParamSpec("_P")
_R = TypeVar("_R")

Ranges = Literal["raised", "heeded", "later"]
"""What becomes of numbers that cannot be: an error of their own; problems that the function
heeds among those that it finds; or nothing yet, where what the function calls checks them."""

_UNHEEDED: ContextVar[tuple[Problem, ...]] = ContextVar("unheeded", default=())
_KNOWN: ContextVar[Seen | None] = ContextVar("known", default=None)
"""What the outermost call has looked into already."""


def arguments_checked(
    *, ranges: Ranges = "raised"
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A function that refuses arguments that do not conform to its hints, all at once.

    Args:
        ranges: what becomes of numbers that cannot be.

    Raises:
        RequestError: with a problem for each argument, and for each field of a record.
    """

    def decorated(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            bound = signature_of(function).bind(*args, **kwargs)  # a `TypeError` like Python's own
            seen = {} if (outer := _KNOWN.get()) is None else outer
            with meanwhile(_KNOWN, seen), meanwhile(_UNHEEDED, ()):
                result = _conformed(bound.arguments, hints_of(function))
                if result.misfits or (result.faults and ranges == "raised"):
                    raise RequestError([*result.misfits, *result.faults])
                bound.arguments.update(result.arguments)
                _UNHEEDED.set(tuple(result.faults) if ranges == "heeded" else ())
                return function(*bound.args, **bound.kwargs)

        return call

    return decorated


def raise_if_any(problems: Iterable[Problem]) -> None:
    """Go on only if nothing is wrong with the arguments of a function, whose ranges are `heeded`.

    Args:
        problems: that the function found; where it says more of an argument, this is told.

    Raises:
        RequestError: with these problems, and those of numbers that cannot be.
    """
    once = list(problems)
    known = {problem.where for problem in once}
    RequestError.raise_if_any([*(one for one in _UNHEEDED.get() if one.where not in known), *once])


def conformed(
    said: Mapping[str, object], *functions: Callable[..., object], without: Iterable[str] = ()
) -> dict[str, Any]:
    """Arguments that a function hands on by name, as they are to be used.

    Args:
        said: the arguments.
        functions: that they are handed to; one of them has to take each.
        without: arguments that are handed on otherwise.

    Raises:
        RequestError: some are no arguments of these functions, or have another type.
    """
    from planner.specs.validation.problems import did_you_mean

    hints: dict[str, Any] = {}
    for function in reversed(functions):
        hints |= hints_of(function)
    for name in ("return", *without):
        hints.pop(name, None)
    result = _conformed({n: value for n, value in said.items() if n in hints}, hints)
    unknown = [
        Problem(where=name, fact="is no argument", remedy=did_you_mean(name, hints))
        for name in sorted(said.keys() - hints)
    ]
    if unknown or result.misfits:
        raise RequestError([*unknown, *result.misfits, *result.faults])
    return result.arguments


def record_problems(record: object, where: str) -> list[Problem]:
    """What the fields of a record cannot be by their types.

    Args:
        where: the argument that holds it.
    """
    return value_problems({where: record}, {where: type(record)})


def value_problems(said: Mapping[str, object], hints: Mapping[str, Any]) -> list[Problem]:
    """What values cannot be by their names and types; each problem is `where` its name is.

    Args:
        hints: types by name.
    """
    result = _conformed(said, hints)
    return [*result.misfits, *result.faults]


def _conformed(arguments: Mapping[str, object], hints: Mapping[str, Any]) -> Conformed:
    from planner.specs.validation.calls import CALLS  # loads pydantic

    return CALLS.conform(arguments, hints, set_by(), _KNOWN.get())
