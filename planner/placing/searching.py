"""What a placement is chosen from, and the choice: ways, program, solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.placing.asking import Serve, Site
from planner.placing.columns import Way, ways_of
from planner.placing.posing import Posed, Wanted, pose_placement, undominated
from planner.solvers.placement import PlacementSolution, solve_placement
from planner.solvers.solution import Effort
from planner.specs.request import Request, SolverOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for a placement, complete."""

    site: Site
    wanted: tuple[Serve, ...]
    requests: tuple[Request, ...]
    objective: str
    limits: dict[str, float]
    options: SolverOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What there was to choose from, and what was chosen.

    Args:
        ways: all of them; `kept` those that no other stands for.
    """

    ways: tuple[Way, ...]
    kept: tuple[Way, ...]
    posed: Posed
    solution: PlacementSolution


def searched(asked: Asked) -> Search:
    """Evaluate the ways, pose the placement, solve it."""
    ground = asked.site.ground
    ways = [
        way
        for model, request in enumerate(asked.requests)
        for kind in ground.inventory.kinds
        for way in ways_of(request, model, kind, ground)
    ]
    several = np.array([one.replicas is None for one in asked.wanted])
    kept = undominated(ways, several=several, by_latency=asked.objective == "latency")
    posed = pose_asked(asked, kept)
    options = asked.options
    effort = Effort(
        time_limit_s=options.time_limit_s,
        gap=options.gap,
        threads=options.threads,
        seed=options.seed,
    )
    solution = solve_placement(posed.program, solver=options.solver, effort=effort)
    return Search(ways=tuple(ways), kept=tuple(kept), posed=posed, solution=solution)


def pose_asked(
    asked: Asked,
    ways: Sequence[Way],
    *,
    without: Sequence[str] = (),
    objective: str | None = None,
) -> Posed:
    """The program of a request, without some of its wishes: `demand x`, `replicas x`, limits."""
    wanted = [
        Wanted(
            name=one.model.name,
            demand_tokens_per_s=(
                None if f"demand {one.model.name}" in without else one.demand_tokens_per_s
            ),
            least=0 if f"replicas {one.model.name}" in without else one.replicas or 0,
            most=one.replicas,
        )
        for one in asked.wanted
    ]
    return pose_placement(
        ways,
        asked.site.ground.inventory,
        wanted,
        objective=objective or asked.objective,
        limits={name: value for name, value in asked.limits.items() if name not in without},
    )
