"""Options that limit a quantity, as text: made of the table of quantities."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from planner.commands.options.groups import TARGETS, text
from planner.quantities import limited


def with_limits(name: str, *bases: type, is_shown: bool = True) -> type:
    """A record with an option for each quantity that one limits.

    Args:
        bases: with other options.
        is_shown: in the help; else they parse, and are refused by their names.
    """
    hidden = Parameter(show=False)
    fields = [
        (
            one.argument,
            Annotated[str | None, text(TARGETS, one.metavar, one.about) if is_shown else hidden],
            field(default=None),
        )
        for one in limited()
    ]
    return make_dataclass(name, fields, bases=bases, frozen=True, slots=True, kw_only=True)


if TYPE_CHECKING:

    class Limits:
        """Fields are the arguments of `quantities.limited`."""

else:
    Limits = with_limits("Limits")
