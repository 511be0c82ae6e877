"""A limit that stands in the way of an answer."""

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


def beyond_text(limit: float, reachable: float, error: float) -> str:
    """How far what is reachable is from what was asked, and whether predictions tell them apart.

    Args:
        error: relative, of what is predicted to be reachable; 0 where nobody knows [1].

    >>> beyond_text(30.0, 35.7, 0.24)
    'as predicted, 19 % beyond: within the error of prediction, 24 %'
    >>> beyond_text(30.0, 60.0, 0.24)
    'as predicted, 100 % beyond'
    """
    off = abs(reachable / limit - 1.0) if limit else 0.0
    within = f": within the error of prediction, {100 * error:.3g} %" if off <= error else ""
    return f"as predicted, {100 * off:.3g} % beyond{within}"
