"""The least rent over traffic: each step proved from where it begins to where it ends.

At a traffic the program has a least rent; at that rent there is a most traffic. Between the two the
rent is the least, since it never falls: so steps follow each other without a gap, and each takes
two programs. Stretches of the whole are independent: processes may share them.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import pairwise

from planner.errors import OutOfTimeError, Problem, RequestError
from planner.placing.fleets.candidate_sets import CandidateSet, with_joint
from planner.placing.fleets.choosing.alternatives import at_factor, largest_factor, words_of
from planner.placing.fleets.planning import opened
from planner.placing.fleets.solutions import Solution, n_devices, planned, usd_per_hour
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
    edges = _edges(lowest_per_s / request.rate_per_s, highest_per_s / request.rate_per_s, workers)
    tell = on_step or _nothing
    steps: list[Step] = []
    if workers == 1:
        for step in _steps(_opened(request), edges[0], edges[-1]):
            steps.append(step)
            tell(step)
    else:
        with ProcessPoolExecutor(max_workers=workers) as pool:
            parts = [pool.submit(_part, request, low, high) for low, high in pairwise(edges)]
            for part in as_completed(parts):
                for step in part.result():
                    steps.append(step)
                    tell(step)
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


def _edges(low: float, high: float, n_parts: int) -> list[float]:
    return [low + (high - low) * i / n_parts for i in range(n_parts + 1)]


def _part(request: FleetRequest, low: float, high: float) -> list[Step]:
    return [*_steps(_opened(request), low, high)]


def _opened(request: FleetRequest) -> CandidateSet:
    """What there is to choose from, each replica as if it were alone: of any traffic."""
    market = opened(replace(request, classes=with_joint(request.classes, sharing=request.sharing)))
    market.book.router = None
    return market


def _steps(market: CandidateSet, low: float, high: float) -> Iterator[Step]:
    """Steps of a stretch; none from where devices do not suffice."""
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
            bound_usd_per_hour=min(rent, _bound(chosen)),
            n_devices=n_devices(pools),
            words=words_of(pools),
        )
        at = upto * _NEXT


def _bound(chosen: Solution) -> float:
    return chosen.solution.vouched.bound


def _joined(steps: list[Step]) -> Iterator[Step]:
    """Steps of neighbouring stretches that are the same step, as one."""
    last: Step | None = None
    for step in steps:
        if last is not None and math.isclose(step.usd_per_hour, last.usd_per_hour):
            last = replace(last, upto_factor=max(last.upto_factor, step.upto_factor))
            continue
        if last is not None:
            yield last
        last = step
    if last is not None:
        yield last


def _nothing(step: Step) -> None:
    """Nobody listens."""
