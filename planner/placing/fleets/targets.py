"""What replicas are held to: the targets of each class of a stream, by role.

Where phases are apart, a first token takes

    TTFT = wait and read + hand-over + wait for the link + wait for a place and first pass

What nothing waits for is known. Of what the target leaves for waiting, a replica of prefill gets
`READ_SHARE` and the link `LINK_SHARE`: percentiles of waits do not add up, and of two independent
exponential waits that are alike the 95th of the sum is 0.79 of the sum of both. The simulation
judges the whole. Targets of whole requests are left to it there.
"""

import math
from dataclasses import dataclass, replace

from planner.placing.fleets.outcomes import Goal
from planner.placing.fleets.request_classes import RequestClass
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.traffic.percentiles import ITL, TPOT, TTFT, PercentileTarget

READ_SHARE, LINK_SHARE = 0.75, 0.5
"""Of what a target of TTFT leaves for waiting, what is for waiting until a prompt is read, and for
the link; `assumed`."""

N_PASSES = 2.0
"""Of a decode replica, until a cache that came has its token: the rest of one, and its own."""

_HALVINGS = 30

USUAL_PASS_S = 0.05
"""Of a decode replica without a target of TPOT; `assumed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """What handing a cache over takes.

    Args:
        seconds: of one, if nothing waits.
        link_s: of these, what it keeps the link of a pair of replicas for.
    """

    seconds: float = 0.0
    link_s: float = 0.0


NOTHING_HANDED = HandedOver()


def held_to(
    stream: RequestClass, role: str, handed: HandedOver = NOTHING_HANDED
) -> list[Goal] | None:
    """Goals of a replica of a role; None where no time is left for what it does.

    Args:
        handed: what is handed over, where it does one phase.
    """
    goals: list[Goal] = []
    if role == TOGETHER:
        for number, each in enumerate(stream.classes):
            goals += [Goal(target=target, member=number) for target in each.targets]
            if each.goodput is not None:
                goals.append(Goal(target=each.goodput, member=number))
        return goals
    for aimed in stream.targets:
        target = _of_role(aimed.target, role, waiting_s(stream, aimed.target, handed))
        if target is not None and not target.at_most_s > 0.0:
            return None
        if target is not None:
            goals.append(Goal(target=target, member=aimed.member))
    return goals


def _of_role(target: PercentileTarget, role: str, waiting: float) -> PercentileTarget | None:
    if target.quantity == TTFT:
        read = waiting * READ_SHARE
        return replace(target, at_most_s=read if role == PREFILL else waiting - read)
    return target if role == DECODE and target.quantity in (TPOT, ITL) else None


def waiting_s(stream: RequestClass, target: PercentileTarget, handed: HandedOver) -> float:
    """What a target of TTFT leaves for waiting and reading, where caches are handed over."""
    passes = [one.target.at_most_s for one in stream.targets if one.target.quantity == TPOT]
    return target.at_most_s - handed.seconds - N_PASSES * min(passes, default=USUAL_PASS_S)


def link_rate(stream: RequestClass, handed: HandedOver) -> float:
    """Caches a second that the link of a pair moves, so that waiting for it is within targets.

    M/D/1: a cache waits longer than t with probability ρ exp(−2 (1 − ρ) t / s), s the time of one
    on the link, so that the mean is the exact ρ s / 2 (1 − ρ). Source: [Kleinrock1975].
    """
    if handed.link_s <= 0.0:
        return math.inf
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _is_in_time(stream, handed, middle) else (low, middle)
    return low / handed.link_s


def _is_in_time(stream: RequestClass, handed: HandedOver, rho: float) -> bool:
    """Whether few enough wait too long for a link that is in use for such a share of the time."""
    for target in stream.targets:
        if target.target.quantity == TTFT:
            most_s = waiting_s(stream, target.target, handed) * LINK_SHARE
            longer = rho * math.exp(-2.0 * (1.0 - rho) * max(0.0, most_s) / handed.link_s)
            if longer > 1.0 - target.target.share:
                return False
    return True
