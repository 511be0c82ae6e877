"""What replicas come to together, by plain sums: the same judge for fabrics and for tori."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from planner.errors import SolverError
from planner.placement_results import Served
from planner.specs.placement_request import Serve

UNITS = {
    "throughput": (-1e3, "token/s"),
    "share": (-1.0, "1"),
    "rent": (1.0, "USD/h"),
    "devices": (1.0, "1"),
    "latency": (1e-3, "s"),
}
"""Factor from a program's unit to SI, and the dimension; what is most counts negative."""

CLOSE = 1e-9


class Wishes(Protocol):
    """What a request has, wherever it is to be placed."""

    @property
    def wanted(self) -> tuple[Serve, ...]: ...

    @property
    def objective(self) -> str: ...

    @property
    def limits(self) -> Mapping[str, float]: ...


def in_si(objective: str, value: float) -> float:
    """A program's objective in SI."""
    return value * UNITS[objective][0]


def check_totals(
    asked: Wishes, served: Sequence[Served], tpot_s: Iterable[float], *, objective: float
) -> None:
    """That the replicas, which take `tpot_s` a token, keep the wishes and come to the objective.

    Raises:
        SolverError: they do not.
    """
    total = _reached(asked, served, tpot_s)
    if not math.isclose(objective, total, rel_tol=1e-8):
        raise SolverError(f"{asked.objective} {objective!r} is {total!r} in the placement")
    broken = _broken_wishes(asked, served)
    if broken:
        raise SolverError("the placement does not keep what was asked: " + "; ".join(broken))


def _reached(asked: Wishes, served: Sequence[Served], tpot_s: Iterable[float]) -> float:
    """What the replicas come to in the objective, SI."""
    return {
        "throughput": math.fsum(one.output_tokens_per_s for one in served),
        "share": min((one.share for one in served if one.share is not None), default=math.inf),
        **_totals(served),
        "latency": math.fsum(tpot_s),
    }[asked.objective]


def _broken_wishes(asked: Wishes, served: Sequence[Served]) -> list[str]:
    """Demands, replicas and limits that the replicas do not keep."""
    broken = []
    for wish, one in zip(asked.wanted, served, strict=True):
        short = one.share is not None and one.share < 1 - 2 * CLOSE
        if short and asked.objective != "share":
            broken.append(f"{one.model} gets {one.share!r} of its demand")
        if wish.replicas is not None and one.n_replicas != wish.replicas:
            broken.append(f"{one.model} has {one.n_replicas} replicas")
    totals = _totals(served)
    return broken + [n for n, most in asked.limits.items() if totals[n] > most * (1 + CLOSE)]


def _totals(served: Sequence[Served]) -> dict[str, float]:
    return {
        "rent": math.fsum(one.usd_per_hour for one in served),
        "devices": float(sum(one.n_devices for one in served)),
    }
