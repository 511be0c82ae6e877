"""What a little more of each limit would buy: exact solves of the same program, one row changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from planner.errors import OutOfTimeError, UnsettledError
from planner.programs.posed import InMemory, Source
from planner.quantities import MEMORY, QUANTITIES
from planner.running.deadlines import is_over
from planner.runtimes.candidates import Aim, Among, limits_of
from planner.solvers.search import Found, optimum
from planner.solvers.solution import Status
from planner.specs.request import SolverOptions


def reliefs_of(among: Among) -> dict[str, float]:
    """How much each limit is loosened to see what it costs, where that can be known.

    It cannot within a gap; nor of the demand, which is also what a plan is credited with: with
    less of it, tokens cost more.
    """
    if among.request.options.gap:
        return {}
    return {name: QUANTITIES[name].relief for name in limits_of(among) if name != "demand"}


def gains(among: Among, aim: Aim, found: Found) -> Mapping[str, tuple[float, float | None]]:
    """(relief, share of the objective gained) for each limit, loosened one at a time.

    The share is `None` where it is not known: the plan, or the better one, is not proved
    optimal in the time that is left, or see `reliefs_of`.

    Args:
        found: the search, which was told of the reliefs.
    """
    objective, options = found.solution.objective, among.request.options
    known: dict[str, tuple[float, float | None]] = {}
    for name in limits_of(among):
        relief = QUANTITIES[name].relief
        known[name] = relief, None
        proved = found.solution.status is Status.OPTIMAL
        if name in found.reduced.relieved and proved and objective and not is_over():
            parts = among.parts if name == MEMORY else ()
            heavier = chain.from_iterable(one.heavier(aim, relief) for one in parts)
            sources = chain([InMemory(found.reduced.relieved[name])], heavier)
            better = _least(sources, options, objective)
            if better is not None:
                known[name] = relief, max((objective - better) / abs(objective), 0.0)
    return known


def _least(sources: Iterable[Source], options: SolverOptions, known: float) -> float | None:
    """The optimum of several programs, and of what is known; `None` if time ends before."""
    best = known
    for source in sources:
        if is_over():
            return None
        try:
            solution = optimum(source, options, known=best)
        except (OutOfTimeError, UnsettledError):
            return None
        if solution.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            return None
        best = min(best, solution.objective)
    return best
