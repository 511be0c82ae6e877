"""Options that limit a quantity, as text: made of the table of quantities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Annotated

from planner.commands.options.groups import TARGETS, text
from planner.quantities import Quantity, limited, placed

if TYPE_CHECKING:

    class Limits:
        """Fields are the arguments of `quantities.limited`."""

    class PlacedLimits:
        """Fields are the arguments of those that a placement keeps of replicas, each or all."""

    class FleetLimits:
        """Fields are the arguments of those that all replicas keep together."""

else:

    def _record(name: str, quantities: Sequence[Quantity]) -> type:
        """A record with an option for each quantity."""
        fields = [
            (
                one.argument,
                Annotated[str | None, text(TARGETS, one.metavar, one.about)],
                field(default=None),
            )
            for one in quantities
        ]
        return make_dataclass(name, fields, frozen=True, slots=True, kw_only=True)

    Limits = _record("Limits", limited())
    PlacedLimits = _record("PlacedLimits", placed("each", "all"))
    FleetLimits = _record("FleetLimits", placed("all"))
