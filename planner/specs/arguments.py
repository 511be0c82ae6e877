"""Arguments of the library, checked before they are used.

The command line turns text into numbers, and finds what is none. A caller of the library may
pass anything. Of an argument of another type nothing else can be said, so it is refused at once;
a number that cannot be is told together with what `checking` and its like find.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, wraps
from types import MappingProxyType
from typing import Any, Literal, ParamSpec, TypeVar

from planner.errors import Problem, RequestError
from planner.quantities import limited
from planner.specs.conforming import Conforming, Known, Spot, hints_of

_P = ParamSpec("_P")
_R = TypeVar("_R")

Ranges = Literal["raised", "heeded", "later"]
"""What becomes of numbers that cannot be: an error of their own; problems that the function
heeds among those that it finds; or nothing yet, where what the function calls checks them."""

_OPTIONS = MappingProxyType(
    {
        "batches": "--batch",
        "prefill_batches": "--prefill-batch",
        "weights_formats": "--weights",
        "kv_formats": "--kv",
        "objective": "--objective",
        "prefill": "--prefill",
        "chunks": "--chunk",
        "overlaps": "--overlap",
        "hit_fraction": "--hit-rate",
        "experts_backend": "--experts-backend",
        "confidence": "--confidence",
        "prefer": "--prefer",
    }
)
"""Arguments by the option that says the same."""

_FIELDS = {
    "Workload.n_input_tokens": "--input",
    "Workload.n_output_tokens": "--output",
    **{f"Targets.{one.target}": one.option for one in limited() if one.target},
    "Targets.max_utilisation": "--max-utilisation",
    "Targets.quality_loss_fraction": "--max-quality-loss",
    "Targets.degrees": "degrees",
    "Degrees.tensor": "--tp",
    "Degrees.pipeline": "--pp",
    "Degrees.expert": "--ep",
    "Degrees.data": "--dp",
    "Targets.layouts": "--layout",
    "Layouts.prefill": "--layout",
    "Layouts.decode": "--layout",
    "PhaseLayout.name": "--layout",
    "PhaseLayout.attention": "--layout",
    "SolverOptions.solver": "--solver",
    "SolverOptions.time_limit_s": "--time-limit",
    "SolverOptions.gap": "--gap",
    "SolverOptions.threads": "--threads",
    "SolverOptions.seed": "--seed",
    "SolverOptions.sort_price": "--sort-price",
    "SolverOptions.most_sorts": "--sorts",
    "Speculation.acceptance": "--acceptance",
    "Speculation.lookaheads": "--lookahead",
    "Speculation.convention": "--speculation",
    "ClusterSpec.usd_per_hour": "--price",
}
"""Fields of records by the option that says the same."""

_MAKERS = {
    "ModelSpec": "load_model",
    "Architecture": "load_architecture",
    "ClusterSpec": "load_cluster",
    "PoolSpec": "load_pool",
    "DeviceSpec": "load_device",
    "LayersSpec": "load_layers",
    "State": "load_state",
    "Placement": "place",
}

_UNHEEDED: ContextVar[tuple[Problem, ...]] = ContextVar("unheeded", default=())
_KNOWN: ContextVar[Known | None] = ContextVar("known", default=None)
"""What conforms, during the outermost call: what that calls need not look again."""


def arguments_checked(
    *, ranges: Ranges = "raised", options: Mapping[str, str] = _OPTIONS
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A function that refuses arguments that do not conform to its hints, all at once.

    Args:
        ranges: what becomes of numbers that cannot be.
        options: of its arguments, the option that says the same.

    Raises:
        RequestError: with a problem for each argument, and for each field of a record.
    """

    def decorated(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            bound = _signature(function).bind(*args, **kwargs)  # a `TypeError` like Python's own
            known = _KNOWN.get()
            known = {} if known is None else known
            conforming = Conforming(options=_FIELDS, makers=_MAKERS, known=known)
            hints = hints_of(function)
            for name, value in bound.arguments.items():
                spot = Spot(options.get(name, name), name)
                bound.arguments[name] = conforming.conform(value, hints.get(name, Any), spot)
            faults = (*conforming.misfits, *conforming.faults)
            if conforming.misfits or (faults and ranges == "raised"):
                raise RequestError(faults)
            token = _UNHEEDED.set(faults if ranges == "heeded" else ())
            outer = _KNOWN.set(known)
            try:
                return function(*bound.args, **bound.kwargs)
            finally:
                _KNOWN.reset(outer)
                _UNHEEDED.reset(token)

        return call

    return decorated


def heed(problems: Iterable[Problem]) -> None:
    """Go on only if nothing is wrong with the arguments of a function, whose ranges are `heeded`.

    Args:
        problems: that the function found; where it says more of an argument, this is told.

    Raises:
        RequestError: with these problems, and those of numbers that cannot be.
    """
    found = list(problems)
    known = {problem.where for problem in found}
    faults = [*(one for one in _UNHEEDED.get() if one.where not in known), *found]
    if faults:
        raise RequestError(faults)


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
    hints: dict[str, Any] = {}
    for function in reversed(functions):
        hints |= hints_of(function)
    for name in ("return", *without):
        hints.pop(name, None)
    conforming = Conforming(options=_FIELDS, makers=_MAKERS, known=_KNOWN.get())
    found = {
        name: conforming.conform(value, hints[name], Spot(_OPTIONS.get(name, name), name))
        for name, value in said.items()
        if name in hints
    }
    problems = [*_strangers(said, hints), *conforming.misfits]
    if problems:
        raise RequestError([*problems, *conforming.faults])
    return found


def _strangers(said: Iterable[str], known: Iterable[str]) -> Iterator[Problem]:
    for name in sorted(set(said) - set(known)):
        from planner.specs.values import did_you_mean  # loads pydantic, for a mistake only

        yield Problem(where=name, fact="is no argument", remedy=did_you_mean(name, known))


@cache
def _signature(function: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(function)
