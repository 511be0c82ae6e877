"""One time limit for everything that happens within it, however deep.

A deadline is made once, where a call of the library or a command begins, and holds for whatever
happens until that ends, in its thread: enumerations look at it between their blocks, searches
between their programs, explanations between their questions, and each solver is given what is
left. Limits within limits end with the first of them. In a command all of them count from its
start, so that reading files and importing solvers counts too.
"""

import inspect
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

from planner.errors import OutOfTimeError
from planner.running import meanwhile

P = ParamSpec("P")
R = TypeVar("R")

_UNTIL_S: ContextVar[tuple[float, float]] = ContextVar("until_s", default=(math.inf, math.inf))
"""When the deadline is, and the limit that it came from."""

_SINCE_S: ContextVar[float | None] = ContextVar("since_s", default=None)

_IS_CLOSED: ContextVar[bool] = ContextVar("is_closed", default=False)
"""Whether limits that are asked for set none any more."""

LEAST_TIME_S = 0.01
"""Time that a solver is given even where none is left: to say what it can at once."""


def counted_from(since_s: float | None) -> AbstractContextManager[None]:
    """Let all limits that are set meanwhile count from an instant of `time.perf_counter`.

    None lets each count from where it is set.
    """
    return meanwhile(_SINCE_S, since_s)


@contextmanager
def within(limit_s: float | None) -> Iterator[None]:
    """Let what happens meanwhile end after so many seconds; None sets no limit of its own."""
    if _IS_CLOSED.get():
        yield
        return
    since_s = _SINCE_S.get()
    began_s = time.perf_counter() if since_s is None else since_s
    limit_s = math.inf if limit_s is None else limit_s
    with meanwhile(_UNTIL_S, min((began_s + limit_s, limit_s), _UNTIL_S.get())):
        yield


@contextmanager
def only_within(limit_s: float) -> Iterator[None]:
    """The same, whatever limits are asked for meanwhile."""
    with within(limit_s), meanwhile(_IS_CLOSED, True):
        yield


def share(fraction: float) -> AbstractContextManager[None]:
    """Let what happens meanwhile take no more than a part of the time that is left."""
    until_s, limit_s = _UNTIL_S.get()
    began_s = time.perf_counter()
    ends_s = min(until_s, began_s + fraction * max(0.0, until_s - began_s))
    return meanwhile(_UNTIL_S, (ends_s, limit_s))


def left_s() -> float:
    """Seconds until the deadline: inf without one, 0 where it is over."""
    return max(0.0, _UNTIL_S.get()[0] - time.perf_counter())


def is_over() -> bool:
    return time.perf_counter() >= _UNTIL_S.get()[0]


def is_set() -> bool:
    """Whether there is a deadline at all."""
    return _UNTIL_S.get()[0] < math.inf


def out_of_time(bound: float = 0.0, dimension: str | None = None) -> OutOfTimeError:
    """The error that there is no answer within the limit; see there for the bound."""
    return OutOfTimeError(time_limit_s=_UNTIL_S.get()[1], bound=bound, dimension=dimension)


def check() -> None:
    """Go on only if there is time left: where half of something is nothing.

    Raises:
        OutOfTimeError: there is none.
    """
    if is_over():
        raise out_of_time()


def solver_limit_s() -> float | None:
    """What a solver is given of the time that is left; None where there is no limit."""
    left = left_s()
    return None if left == math.inf else max(left, LEAST_TIME_S)


def timed(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function end within the limit that it is given.

    The limit is its argument `time_limit_s`, or that of its `options`, its `effort` or the options
    of its `request`, also among its keywords; one that is no number of seconds is the function's to
    refuse.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = signature.bind_partial(*args, **kwargs).arguments
        except TypeError:  # the call itself says what is wrong
            given = {}
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                given = {**given, **given.get(name, {})}
        options = given.get("options", given.get("effort"))
        if options is None:
            options = getattr(given.get("request"), "options", None)
        limit_s = given.get("time_limit_s", getattr(options, "time_limit_s", None))
        if isinstance(limit_s, bool) or not (isinstance(limit_s, int | float) and limit_s >= 0):
            limit_s = None
        with within(limit_s):
            return function(*args, **kwargs)

    return run
