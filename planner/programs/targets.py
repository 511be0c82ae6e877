"""Targets of a request as named limits of its program: one table for all posers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from planner.errors import RequestError
from planner.programs.layout import Limit
from planner.programs.quantities import Coefficients
from planner.quantities import QUANTITIES, refused
from planner.specs.request import Targets


def target_limits(
    targets: Targets, quantities: Mapping[str, Coefficients], without: Collection[str]
) -> tuple[Limit, ...]:
    """A limit for each target that is asked for.

    Args:
        quantities: coefficients of contexts and columns by name.
        without: names of limits to leave out.

    Raises:
        RequestError: the program cannot count what a target limits.
    """
    asked = {name: value for name, value in targets.limits().items() if name not in without}
    problems = list(refused(asked, quantities, "this runtime", {}))
    if problems:  # requests are refused before: a limit that was left out here would not hold
        raise RequestError(problems)
    return tuple(
        Limit(
            name=name,
            context=quantities[QUANTITIES[name].program][0],
            column=quantities[QUANTITIES[name].program][1],
            at_most=QUANTITIES[name].at_most(value),
            is_signed=QUANTITIES[name].is_least,
        )
        for name, value in asked.items()
    )


def further(
    quantities: Mapping[str, Coefficients], name: str, at_most: float, *, row: str = ""
) -> Limit:
    """A limit on a quantity besides those of targets; its row is named like it, or otherwise."""
    context, column = quantities[name]
    return Limit(name=row or name, context=context, column=column, at_most=at_most)
