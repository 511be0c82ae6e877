"""Replicas that are all alike, where a mixture is no better: what somebody would rather run.

Many placements cost the least, since replicas are whole devices. Of these a placement takes what
`plan` takes of its deployments (`planner.programs.amounts.Fleet`): all replicas of one sort, the
smallest, then the one cut into fewest stages and rows, then the one that could serve most, over no
more nodes. Only where no sort by itself is as good are they mixed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.placing.configurations import AnyConfiguration, Sort, sort_of
from planner.placing.program import KTOKEN
from planner.placing.searching import Asked, Choice, Search, capacity_for, solved
from planner.programs.layout import RELATIVE_TOLERANCE, exceeds
from planner.programs.placement import Counts, PlacementProgram, total
from planner.running.deadlines import is_over
from planner.solvers.placement import PlacementSolution
from planner.specs.roles import TOGETHER

OBJECTIVES = ("rent", "devices")
"""Those that many placements are equally good in."""


def alike(asked: Asked, search: Search) -> Search:
    """The search with the simplest of its optima whose replicas are all of one sort, if any is.

    Of several models, and where the optimum is not known, what was found stays.
    """
    solution, is_one = search.solution, len(asked.wanted) == 1
    if asked.request.objective not in OBJECTIVES or not is_one or not solution.status.is_final:
        return search
    if solution.answer is None or search.is_nothing:
        return search
    once = replace(asked.options, proof="one", gap=0.0)
    for sort in _sorts(asked, search.offered.configurations, solution.objective):
        if is_over():
            break
        posed = search.offered.only((sort,)).posed(asked.aim())
        if not posed.program.n_columns:
            continue
        found = solved(posed.program, once)
        if _is_as_good(posed.program, found, search):
            assert found.answer is not None
            return replace(search, choice=Choice(posed=posed, counts=found.answer))
    return search


def _is_as_good(program: PlacementProgram, found: PlacementSolution, search: Search) -> bool:
    """Whether it costs no more than what was found, over no more nodes."""
    counts, other = found.answer, search.solution.answer
    if counts is None or other is None or exceeds(found.objective, search.solution.objective):
        return False
    return _spread(program, counts) <= _spread(search.posed.program, other)


def _spread(program: PlacementProgram, counts: Counts) -> float:
    """Nodes beyond one a replica; none where the program does not tell."""
    return total(program.ties[0], counts) if program.ties else 0.0


def _sorts(asked: Asked, configurations: Sequence[AnyConfiguration], most: float) -> Iterator[Sort]:
    """Those of which enough replicas may cost no more, the simplest first, then the idlest."""
    (wish,) = asked.wanted
    demand = (capacity_for(asked.request, wish) or 0.0) * KTOKEN
    best: dict[Sort, AnyConfiguration] = {}
    for one in configurations:
        if one.role != TOGETHER:  # by itself it serves nobody
            continue
        sort = sort_of(one)
        if sort not in best or one.output_tokens_per_s > best[sort].output_tokens_per_s:
            best[sort] = one
    for sort, one in sorted(best.items(), key=lambda item: _order(item[1])):
        share = demand / (one.output_tokens_per_s * KTOKEN)
        n_replicas = max(math.ceil(share * (1.0 - RELATIVE_TOLERANCE)), wish.replicas or 0)
        each = one.usd_per_hour if asked.request.objective == "rent" else float(one.n_devices)
        if not exceeds(n_replicas * each, most):
            yield sort


def _order(one: AnyConfiguration) -> tuple[tuple[int, ...], float]:
    return one.pattern.simplicity, -one.output_tokens_per_s
