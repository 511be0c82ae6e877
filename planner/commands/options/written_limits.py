"""Options that limit a quantity, as text: made of the table of quantities."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Annotated

from planner.commands.options.groups import TARGETS, text
from planner.quantities import limited

if TYPE_CHECKING:

    class Limits:
        """Fields are the arguments of `quantities.limited`."""

else:
    Limits = make_dataclass(
        "Limits",
        [
            (
                one.argument,
                Annotated[str | None, text(TARGETS, one.metavar, one.about)],
                field(default=None),
            )
            for one in limited()
        ],
        frozen=True,
        slots=True,
        kw_only=True,
    )
