"""What happened to requests, for all ranks that serve them."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.verifier.simulation.gaps import Gaps


@dataclass(slots=True, kw_only=True)
class Log:
    """What happened to each request, by its number; times are since the beginning [s].

    Args:
        n_input, n_output: tokens.
        ready_s: when it stands in line.
        first_s, last_s: of its first and last token; NaN until then.
        gaps: between tokens.
        n_cached: tokens of the prompt that need not be read; empty where all are read.
        of_class: number of its class; empty where there is one.
        family, n_shared: prompts of a family begin with so many tokens that are alike; below 0 of
            none. Empty where no prompts do.
        priority: the lower goes first, where the engine heeds it.
        n_begun_again: how often a request lost its place.
    """

    n_input: list[int]
    n_output: list[int]
    ready_s: list[float]
    first_s: list[float]
    last_s: list[float]
    gaps: Gaps
    n_cached: list[int] = field(default_factory=list)
    of_class: list[int] = field(default_factory=list)
    family: list[int] = field(default_factory=list)
    n_shared: list[int] = field(default_factory=list)
    priority: list[int] = field(default_factory=list)
    n_begun_again: int = 0
