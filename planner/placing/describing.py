"""A solved placement in the words of people: recipes, replicas, ranks, channels, certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from planner.placing.flows import Handed, handed_over
from planner.placing.program import UNITS, comes_to, in_si
from planner.placing.searching import Asked, Choice, Search
from planner.placing.sites import Considered, Located
from planner.placing.sorting import Step
from planner.quantities import QUANTITIES
from planner.results.placements import (
    AnyDeployment,
    Handover,
    Placement,
    Recipe,
    Replica,
    Served,
)
from planner.solvers.certify import certified, screens_of
from planner.solvers.placement import PlacementSolution
from planner.specs.certificates import CLOSER, OPTIMAL, SIMPLER, Certificate, SortStep
from planner.specs.engine_request import BEST, SIMPLEST
from planner.specs.roles import TOGETHER
from planner.specs.targets import SolverOptions
from planner.verifier.placements import checks_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What was chosen, of what, and how that is proved.

    Args:
        n_solved: columns that a solver saw.
        handed: what replicas hand over to each other.
        steps: the best of each number of sorts that was looked at.
    """

    located: Sequence[Located]
    solution: PlacementSolution
    considered: Considered
    n_solved: int
    handed: Sequence[Handed] = ()
    steps: Sequence[Step] = ()


def chosen_of(search: Search) -> Chosen:
    """What a search found; it found something."""
    assert search.solution.answer is not None
    n_columns = search.posed.program.n_columns
    choice = search.choice or Choice(
        posed=search.posed, counts=search.solution.answer, flows=search.flows
    )
    return Chosen(
        located=choice.posed.located(choice.counts),
        solution=search.solution,
        considered=search.offered.considered(n_columns),
        n_solved=n_columns,
        handed=handed_over(choice),
        steps=search.steps,
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
    handovers = _handovers(asked, located, replicas, chosen.handed)
    connector = asked.request.roles.connector
    provenance = (
        *site.provenance,
        *(connector.provenance if connector else ()),
        *(value for one in asked.wanted for value in one.model.provenance),
    )
    return Placement(
        request=asked.request,
        pool=site.name,
        title=site.title,
        recipes=recipes,
        replicas=replicas,
        served=_served(asked, recipes, replicas, handovers),
        kinds=tuple(site.kinds(located)),
        certificate=certificate_of(
            chosen,
            asked.request.objective,
            verified=checks_of(asked.site.checks, recipes),
            began_s=began_s,
            options=asked.options,
            prefer=asked.request.prefer,
        ),
        provenance=tuple(dict.fromkeys(provenance)),
        further={
            name: math.fsum(comes_to(name, one.configuration) for one in located)
            for name in asked.request.limits
            if QUANTITIES[name].counted
        },
        handovers=handovers,
    )


def _handovers(
    asked: Asked, located: Sequence[Located], replicas: Sequence[Replica], handed: Sequence[Handed]
) -> tuple[Handover, ...]:
    """What replicas hand over to each other, by their names."""
    found = []
    for one in handed:
        source, target = (located[i].configuration for i in (one.source, one.target))
        wish = asked.wanted[source.model]
        n_output = (wish.workload or asked.request.workload).n_output_tokens
        seconds = max(source.handover_s, target.handover_s)
        found.append(
            Handover(
                source=replicas[one.source].name,
                target=replicas[one.target].name,
                requests_per_s=one.output_tokens_per_s / n_output,
                request_bytes=source.handed_bytes,
                seconds=seconds,
                ttft_s=source.ttft_s + seconds,
            )
        )
    return tuple(found)


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
    asked: Asked,
    recipes: Sequence[Recipe],
    replicas: Sequence[Replica],
    handovers: Sequence[Handover],
) -> tuple[Served, ...]:
    """What each model gets: of replicas that do both phases, and of what is handed over."""
    model_of = {one.name: one.model for one in replicas}
    handing = [(model_of[one.source], one.requests_per_s) for one in handovers]
    found = []
    for wish in asked.wanted:
        name = wish.model.name
        of_it = [recipes[one.recipe] for one in replicas if one.model == name]
        mine = [one.deployment for one in of_it]
        n_output = (wish.workload or asked.request.workload).n_output_tokens
        handed = n_output * math.fsum(rate for model, rate in handing if model == name)
        found.append(
            Served(
                model=wish.model.name,
                demand_tokens_per_s=wish.demand_tokens_per_s,
                output_tokens_per_s=math.fsum([*_rates(of_it), handed]),
                n_replicas=len(mine),
                n_devices=sum(one.n_devices for one in mine),
                usd_per_hour=_rent(mine),
            )
        )
    return tuple(found)


def _rent(mine: Sequence[AnyDeployment]) -> float:
    return math.fsum(one.usd_per_hour for one in mine)


def _rates(recipes: Sequence[Recipe]) -> list[float]:
    """Of replicas that do both phases."""
    return [one.deployment.output_tokens_per_s for one in recipes if one.role == TOGETHER]


def certificate_of(
    chosen: Chosen,
    objective: str,
    *,
    verified: tuple[str, ...],
    began_s: float,
    options: SolverOptions,
    prefer: str = BEST,
) -> Certificate:
    """The proof in numbers, in SI units."""
    considered = chosen.considered
    found = certified(
        chosen.solution,
        objective_name=objective,
        to_si=partial(in_si, objective),
        dimension=UNITS[objective][1],
        n_candidates=considered.n_candidates,
        n_contexts=considered.n_contexts,
        screens=screens_of(considered.rejected, considered.reasons),
        n_solved=chosen.n_solved,
        verified=verified,
        wall_s=time.perf_counter() - began_s,
    )
    is_near = found.status == OPTIMAL and found.gap > options.gap
    steps = [(n, in_si(objective, value), in_si(objective, at)) for n, value, at in chosen.steps]
    return replace(
        found,
        sorts=tuple(SortStep(n_sorts=n, objective=value, bound=at) for n, value, at in steps),
        sort_price=options.sort_price if steps else None,
        given_up_for=(SIMPLER if prefer == SIMPLEST else CLOSER) if is_near else "",
    )
