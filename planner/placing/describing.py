"""A solved placement in the words of people: recipes, replicas, ranks, channels, certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from planner.placing.program import comes_to
from planner.placing.searching import Asked, Choice, Search
from planner.placing.sites import Considered, Located
from planner.placing.totals import UNITS, in_si
from planner.quantities import QUANTITIES
from planner.results.placements import Placement, Recipe, Replica, Served
from planner.solvers.certify import certified, screens_of
from planner.solvers.placement import PlacementSolution
from planner.specs.certificates import Certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What was chosen, of what, and how that is proved.

    Args:
        n_solved: columns that a solver saw.
    """

    located: Sequence[Located]
    solution: PlacementSolution
    considered: Considered
    n_solved: int


def chosen_of(search: Search) -> Chosen:
    """What a search found; it found something."""
    assert search.solution.answer is not None
    n_columns = search.posed.program.n_columns
    choice = search.choice or Choice(posed=search.posed, counts=search.solution.answer)
    return Chosen(
        located=choice.posed.located(choice.counts),
        solution=search.solution,
        considered=search.offered.considered(n_columns),
        n_solved=n_columns,
    )


def placement_of(asked: Asked, chosen: Chosen, *, began_s: float) -> Placement:
    """Describe and certify; who asked for it has it judged."""
    site, located = asked.site, chosen.located
    configurations = list(dict.fromkeys(one.configuration for one in located))
    recipes = tuple(
        Recipe(
            model=asked.wanted[one.model].model.name,
            engine=one.engine,
            kind=one.pattern.kind_name,
            span=one.pattern.span,
            speed_fraction=one.pattern.speed_fraction,
            counted_bytes_per_s=one.pattern.counted_bytes_per_s,
            pieces=one.pattern.pieces,
            deployment=one.deployment(sum(it.configuration is one for it in located)),
            role=one.role,
        )
        for one in configurations
    )
    replicas = _replicas(asked, located, [configurations.index(it.configuration) for it in located])
    provenance = (
        *site.provenance,
        *(value for one in asked.wanted for value in one.model.provenance),
    )
    return Placement(
        request=asked.request,
        pool=site.name,
        title=site.title,
        recipes=recipes,
        replicas=replicas,
        served=_served(asked, recipes, replicas),
        kinds=tuple(site.kinds(located)),
        certificate=_certificate(asked, chosen, began_s),
        provenance=tuple(dict.fromkeys(provenance)),
        further={
            name: math.fsum(comes_to(name, one.configuration) for one in located)
            for name in asked.request.limits
            if QUANTITIES[name].counted
        },
    )


def _replicas(
    asked: Asked, located: Sequence[Located], recipes: Sequence[int]
) -> tuple[Replica, ...]:
    """Each replica where it lies; names count the replicas of a model."""
    numbers = [0] * len(asked.wanted)
    found = []
    for one, recipe in zip(located, recipes, strict=True):
        model = one.configuration.model
        laid, name = asked.site.laid(one), asked.wanted[model].model.name
        found.append(
            Replica(
                name=f"{name}/{numbers[model]}",
                model=name,
                recipe=recipe,
                nodes=laid.nodes,
                leaves=laid.leaves,
                ranks=laid.ranks,
                channels=laid.channels,
            )
        )
        numbers[model] += 1
    return tuple(found)


def _served(
    asked: Asked, recipes: Sequence[Recipe], replicas: Sequence[Replica]
) -> tuple[Served, ...]:
    """What each model gets, added up from the deployments of its replicas."""
    found = []
    for wish in asked.wanted:
        mine = [recipes[one.recipe].deployment for one in replicas if one.model == wish.model.name]
        found.append(
            Served(
                model=wish.model.name,
                demand_tokens_per_s=wish.demand_tokens_per_s,
                output_tokens_per_s=math.fsum(one.output_tokens_per_s for one in mine),
                n_replicas=len(mine),
                n_devices=sum(one.n_devices for one in mine),
                usd_per_hour=math.fsum(one.usd_per_hour for one in mine),
            )
        )
    return tuple(found)


def _certificate(asked: Asked, chosen: Chosen, began_s: float) -> Certificate:
    """The proof in numbers, in SI units."""
    name, considered = asked.request.objective, chosen.considered
    return certified(
        chosen.solution,
        objective_name=name,
        to_si=partial(in_si, name),
        dimension=UNITS[name][1],
        n_candidates=considered.n_candidates,
        n_contexts=considered.n_contexts,
        screens=screens_of(considered.rejected, considered.reasons),
        n_solved=chosen.n_solved,
        verified=asked.site.checks,
        wall_s=time.perf_counter() - began_s,
    )
