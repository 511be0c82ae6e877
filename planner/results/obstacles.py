"""A limit that stands in the way of an answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One limit of a conflict: what was asked, and what is reachable when only it yields.

    Args:
        name: the constraint's name.
        asked: the limit, SI.
        reachable: the best value with the other limits kept, or with those of its conflict
            where all others conflict too.
        dimension: of both, as `units.show` takes it.
        reason: the fact that stands in the way, one sentence for people.
    """

    name: str
    asked: float
    reachable: float
    dimension: str
    reason: str
