"""What a little more of each limit would buy: exact solves of the same program, one row changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from planner.deadlines import is_over
from planner.errors import OutOfTimeError, UnsettledError
from planner.estimates.candidates import CandidateTable
from planner.estimates.requested import table_of
from planner.programs.deployment import Posing
from planner.programs.posed import InMemory, Source
from planner.quantities import MEMORY, QUANTITIES
from planner.search import Found, optimum
from planner.solvers.solution import Status
from planner.specs.request import Request


def limits_of(request: Request) -> dict[str, float]:
    """The limits of a request by name, SI; the memory of a device is always one."""
    return {**request.targets.limits(), MEMORY: request.cluster.device.hbm_bytes}


def reliefs_of(request: Request) -> dict[str, float]:
    """How much each limit is loosened to see what it costs, where that can be known.

    It cannot within a gap; nor of the demand, which is also what a plan is credited with: with
    less of it, tokens cost more.
    """
    if request.options.gap:
        return {}
    return {name: QUANTITIES[name].relief for name in limits_of(request) if name != "demand"}


def gains(
    tables: Sequence[CandidateTable], requests: Sequence[Request], found: Found
) -> Mapping[str, tuple[float, float | None]]:
    """(relief, share of the objective gained) for each limit, loosened one at a time.

    The share is `None` where it is not known: the plan, or the better one, is not proved
    optimal in the time that is left, or see `reliefs_of`.

    Args:
        tables, requests: of every model that was chosen among.
        found: the search, which was told of the reliefs.
    """
    objective, request = found.solution.objective, requests[0]
    known: dict[str, tuple[float, float | None]] = {}
    for name in limits_of(request):
        relief = QUANTITIES[name].relief
        known[name] = relief, None
        proved = found.solution.status is Status.OPTIMAL
        if name in found.reduced.relieved and proved and objective:
            heavier = _heavier(tables, requests) if name == MEMORY else ()
            sources = chain([InMemory(found.reduced.relieved[name])], heavier)
            better = _least(sources, request, objective)
            if better is not None:
                known[name] = relief, max((objective - better) / abs(objective), 0.0)
    return known


def _heavier(tables: Sequence[CandidateTable], requests: Sequence[Request]) -> Iterator[Source]:
    """What more memory also lets in: weights that did not fit; no context has both sorts."""
    relief = QUANTITIES[MEMORY].relief
    for table, request in zip(tables, requests, strict=True):
        heavier = table_of(request, table.machine, weights_within=(1.0, relief))
        if len(heavier.arms):
            yield Posing(heavier, request, objective=request.objective, memory_scale=relief)


def _least(sources: Iterable[Source], request: Request, known: float) -> float | None:
    """The optimum of several programs, and of what is known; `None` if time ends before."""
    best = known
    for source in sources:
        if is_over():
            return None
        try:
            solution = optimum(source, request.options, known=best)
        except (OutOfTimeError, UnsettledError):
            return None
        if solution.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            return None
        best = min(best, solution.objective)
    return best
