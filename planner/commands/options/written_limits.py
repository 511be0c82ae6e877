"""Options that limit a quantity, made of the table of quantities, and an engine's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Annotated

from planner.commands.options.groups import MEMORY_FRACTION, RULES, TARGETS, WORKSPACE, text
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
        """A record with an option for each quantity, and for what an engine may take."""
        fields = [
            (
                one.argument,
                Annotated[str | None, text(TARGETS, one.metavar, one.about)],
                field(default=None),
            )
            for one in quantities
        ]
        memory = {"memory_fraction": MEMORY_FRACTION, "workspace": WORKSPACE, "rules": RULES}
        fields += [
            (one, Annotated[str | None, words], field(default=None))
            for one, words in memory.items()
        ]
        return make_dataclass(name, fields, frozen=True, slots=True, kw_only=True)

    Limits = _record("Limits", limited())
    PlacedLimits = _record("PlacedLimits", placed("each", "all"))
    FleetLimits = _record("FleetLimits", placed("all"))
