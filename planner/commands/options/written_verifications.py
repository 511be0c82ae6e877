"""Every option of `plan verify`, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from planner.commands.options.groups import JUDGED, OUTPUT, flag, text


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenVerification:
    """Options of `plan verify`."""

    answer: Annotated[
        str | None, text(JUDGED, "FILE", "The answer: what a command with --json wrote.")
    ] = None
    prove: Annotated[
        bool, flag(JUDGED, "Search again: bounds, candidates, and what looser limits gain.")
    ] = False
    time_limit: Annotated[
        str | None,
        text(JUDGED, "TIME", "Of all searches together. [of each, that of its request]"),
    ] = None
    json: Annotated[bool, flag(OUTPUT, "Print it as JSON.")] = False
    quiet: Annotated[bool, flag(OUTPUT, "Print it in one line.")] = False
