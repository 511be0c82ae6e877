"""Records of options made anew: what an option says, what it is by default, whether it is shown."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection
from typing import Annotated, Any, TypeVar, cast, get_type_hints

from cyclopts import Parameter

from planner.specs.meanings import refused_by

T = TypeVar("T", bound=type)

_PERCENTILE = re.compile(r"(_p\d+)_(\d+)$")


def option(name: str) -> str:
    """An argument as it is typed.

    >>> option("max_cost"), option("ttft_p99_9")
    ('--max-cost', '--ttft-p99.9')
    """
    return "--" + _PERCENTILE.sub(r"\1.\2", name).replace("_", "-")


def remade(
    written: T, changed: Callable[[str, Parameter], Parameter], *, unsaid: Collection[str] = ()
) -> T:
    """A record of options, each with the parameter that it gets by its name.

    Args:
        unsaid: names of those that say nothing by default.
    """
    hints = get_type_hints(written, include_extras=True)
    fields: list[tuple[str, Any, Any]] = []
    for one in dataclasses.fields(written):
        hint = hints[one.name]
        (parameter,) = hint.__metadata__
        nothing = () if isinstance(one.default, tuple) else None
        field = dataclasses.field(default=nothing if one.name in unsaid else one.default)
        fields.append((one.name, Annotated[hint.__origin__, changed(one.name, parameter)], field))
    made: Any = dataclasses.make_dataclass(
        written.__name__, fields, bases=(written,), frozen=True, slots=True, kw_only=True
    )
    made.__doc__, made.__module__ = written.__doc__, written.__module__
    return cast("T", made)


def hiding_refused(command: str) -> Callable[[T], T]:
    """A record of options with those out of its help that the command refuses by their names."""
    refused = refused_by(command)

    def changed(name: str, parameter: Parameter) -> Parameter:
        is_hidden = option(name) in refused
        return Parameter.combine(parameter, Parameter(show=False)) if is_hidden else parameter

    return lambda written: remade(written, changed)
