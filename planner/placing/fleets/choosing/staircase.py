"""The least rent over traffic: each step proved from where it begins to where it ends.

At a traffic the program has a least rent; at that rent there is a most traffic. Between the two the
rent is the least, since it never falls: so steps follow each other without a gap, and each takes
two programs. Stretches of the whole are independent: processes may share them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import pairwise

from planner.errors import OutOfTimeError, Problem, RequestError
from planner.placing.fleets.choosing.alternatives import at_factor, largest_factor, words_of
from planner.placing.fleets.planning import opened
from planner.placing.fleets.solutions import n_devices, planned, usd_per_hour
from planner.programs.layout import RELATIVE_TOLERANCE
from planner.results.fleets import FleetStaircase, Step
from planner.running.deadlines import check, timed
from planner.specs.ask.fleet import FleetRequest

_NEXT = 1.0 + 1e-6
"""Times the traffic at the end of a step, where the next begins: within what proofs tolerate."""

OnStep = Callable[[Step], None]


@timed
def staircase(
    request: FleetRequest,
    *,
    lowest_per_s: float,
    highest_per_s: float,
    workers: int = 1,
    on_step: OnStep | None = None,
) -> FleetStaircase:
    """The least rent for every traffic in a range, at the rates that queues say.

    Args:
        lowest_per_s, highest_per_s: requests a second of all classes together, which keep their
            shares.
        workers: processes that share the range.
        on_step: called with each step as it is found, in any order.

    Raises:
        RequestError: a range that is none.
        NoPlanError: a target that no replica meets.
    """
    _check(lowest_per_s, highest_per_s, workers)
    low, high = lowest_per_s / request.rate_per_s, highest_per_s / request.rate_per_s
    edges = [low + (high - low) * i / workers for i in range(workers + 1)]
    steps: list[Step] = []
    for step in _in_any_order(request, edges):
        steps.append(step)
        if on_step is not None:
            on_step(step)
    if not steps:
        check()
    joined = tuple(_joined(sorted(steps, key=lambda step: step.above_factor)))
    is_whole = bool(joined) and joined[-1].upto_factor >= edges[-1] * (1.0 - RELATIVE_TOLERANCE)
    return FleetStaircase(request=request, steps=joined, is_whole=is_whole)


def _check(lowest: float, highest: float, workers: int) -> None:
    problems = []
    if not 0.0 < lowest < highest < math.inf:
        value, fact = f"{lowest:g}:{highest:g}", "is no range of rates above zero"
        remedy = "write `--staircase 1:200req/s`"
        problems.append(Problem(where="--staircase", value=value, fact=fact, remedy=remedy))
    if workers < 1:
        fact = "is no positive number of processes"
        problems.append(Problem(where="--workers", value=str(workers), fact=fact))
    RequestError.raise_if_any(problems)


def _in_any_order(request: FleetRequest, edges: Sequence[float]) -> Iterator[Step]:
    """Steps of all stretches as they are found, each stretch by a process of its own."""
    if len(edges) == 2:
        yield from _steps(request, *edges)
        return
    with ProcessPoolExecutor(max_workers=len(edges) - 1) as pool:
        parts = [pool.submit(_part, request, low, high) for low, high in pairwise(edges)]
        for part in as_completed(parts):
            yield from part.result()


def _part(request: FleetRequest, low: float, high: float) -> list[Step]:
    return [*_steps(request, low, high)]


def _steps(request: FleetRequest, low: float, high: float) -> Iterator[Step]:
    """Steps of a stretch; none from where devices do not suffice."""
    market = opened(request)
    market.book.router = None  # each replica as if it were alone: of any traffic
    at = low
    while at <= high:
        try:
            chosen = at_factor(market, at)
            if not chosen.is_found:
                return
            pools = planned(chosen).pools
            rent = usd_per_hour(pools)
            upto = largest_factor(market, rent)
        except OutOfTimeError:
            return
        if upto is None:
            return
        upto = max(upto, at)
        yield Step(
            above_factor=at,
            upto_factor=min(upto, high),
            usd_per_hour=rent,
            bound_usd_per_hour=min(rent, chosen.solution.vouched.bound),
            n_devices=n_devices(pools),
            words=words_of(pools),
        )
        at = upto * _NEXT


def _joined(steps: Sequence[Step]) -> list[Step]:
    """Steps of neighbouring stretches that are the same step, as one."""
    joined: list[Step] = []
    for step in steps:
        if joined and math.isclose(step.usd_per_hour, joined[-1].usd_per_hour):
            upto = max(joined[-1].upto_factor, step.upto_factor)
            joined[-1] = replace(joined[-1], upto_factor=upto)
        else:
            joined.append(step)
    return joined
