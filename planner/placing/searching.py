"""What a placement is chosen from, and the choice: configurations, program, solution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from planner.placing.configurations import AnyConfiguration, ConfigKey, config_key
from planner.placing.fabrics.site import NodesOffers
from planner.placing.program import (
    ModelDemand,
    Objective,
    Step,
    Weighed,
    in_si,
    with_few_sorts,
    without_proof,
)
from planner.placing.runtimes import Runtime
from planner.placing.sites import OfferRequest, Site, SiteModel, SiteOffers, SiteProgram
from planner.programs.handover import Handover
from planner.programs.layout import exceeds
from planner.programs.placement import Counts, PlacementProgram, n_sorts, placement_objective, total
from planner.programs.proofs import Vouched
from planner.running.deadlines import out_of_time, share
from planner.solvers.placement import N_ALWAYS, PlacementSolution, solve_placement
from planner.solvers.placement.handing import solve_handing
from planner.solvers.recording import solving_for
from planner.solvers.solution import Status, effort_of
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.roles import APART

CONFIGURATIONS_SHARE = 0.7
"""Of the time, that making configurations may take: what is left is for placing them."""

ANYWHERE_SHARE = 0.3
"""Of the time, that looking for replicas before places may take."""

MOST_DIRECT = 100
"""Columns up to which the backend that was asked for sees all of a packing at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A request for a placement, with what is free and who times each model's deployments.

    Args:
        runtimes: by model.
        sorts: of the configurations that may be taken; None for all.
    """

    request: PlacementRequest
    site: Site
    runtimes: tuple[tuple[Runtime, ...], ...]
    sorts: frozenset[ConfigKey] | None = None

    @property
    def wanted(self) -> tuple[Serve, ...]:
        return self.request.models

    @property
    def options(self) -> SolverOptions:
        return self.request.options

    @property
    def served(self) -> tuple[SiteModel, ...]:
        return tuple(
            SiteModel(
                runtimes=timers,
                several=demand.replicas is None,
                n_output_tokens=float((demand.workload or self.request.workload).n_written_tokens),
            )
            for timers, demand in zip(self.runtimes, self.wanted, strict=True)
        )

    @property
    def wishes(self) -> list[str]:
        """What is asked of all replicas together, by name: `demand x`, `replicas x`, limits."""
        wished = []
        for demand in self.wanted:
            if demand.demand_tokens_per_s is not None and self.request.objective != "share":
                wished.append(f"demand {demand.model.name}")
            if demand.replicas is not None:
                wished.append(f"replicas {demand.model.name}")
        return [*wished, *self.request.limits]

    @property
    def n_sorts(self) -> int:
        """The fewest sorts of replicas: one a model that is asked for, one a phase."""
        n_asked = sum(bool(one.demand_tokens_per_s or one.replicas) for one in self.wanted)
        return max(n_asked, 1) * (2 if self.request.roles.name == APART else 1)

    def aim(self, *, without: Sequence[str] = (), objective: str | None = None) -> Objective:
        """What is asked of all replicas together, without some of it."""
        return Objective(
            wanted=tuple(_model_demand(self.request, one, without) for one in self.wanted),
            objective=objective or self.request.objective,
            limits={name: v for name, v in self.request.limits.items() if name not in without},
        )


def capacity_for(request: PlacementRequest, wish: Serve) -> float | None:
    """What replicas of a model have to be able to serve for its demand [token/s], if it has one."""
    demand, targets = wish.demand_tokens_per_s, wish.targets or request.targets
    if demand is None or request.objective == "share":  # of which as much is served as there is
        return demand
    return targets.capacity_of(demand)


def _model_demand(request: PlacementRequest, demand: Serve, without: Sequence[str]) -> ModelDemand:
    name, targets = demand.model.name, demand.targets or request.targets
    replicas = None if f"replicas {name}" in without else demand.replicas
    return ModelDemand(
        name=name,
        demand_tokens_per_s=None if f"demand {name}" in without else capacity_for(request, demand),
        least=replicas or 0,
        most=replicas,
        ttft_s=targets.ttft_s,
        n_output_tokens=float((demand.workload or request.workload).n_written_tokens),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Copies of the columns of a program, and what its pairs hand over [ktoken/s]."""

    posed: SiteProgram
    counts: Counts
    flows: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What there was to choose from, and what was chosen.

    Args:
        posed, solution: of all there is.
        choice: one as good, of a program of its own; None for what the solution says.
        flows: what pairs of columns hand over in the solution [ktoken/s].
        steps: the best of each number of sorts that was looked at.
    """

    offered: SiteOffers
    posed: SiteProgram
    solution: PlacementSolution
    choice: Choice | None = None
    flows: tuple[float, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether what was chosen is no replica at all."""
        counts, n_parts = self.solution.answer, self.posed.columns.n_parts
        return counts is not None and not any(counts.copies[n_parts:])


def offered(task: Task, *, whole: bool = False) -> SiteOffers:
    """The configurations of a request that fit its site.

    Args:
        whole: also those that copies of others outdo, on which replicas may stand.
    """
    wanted = OfferRequest(
        models=task.served,
        roles=task.request.roles,
        by_latency=task.request.objective == "latency",
        whole=whole or task.sorts is not None,
    )
    with share(CONFIGURATIONS_SHARE):
        offers = task.site.offered(wanted)
    return offers if task.sorts is None else offers.only(task.sorts)


@solving_for("best placement")
def searched(task: Task, offers: SiteOffers | None = None) -> Search:
    """Make the configurations, if there are none yet, pose the placement, solve it."""
    offers = offers or offered(task)
    pose = cache(lambda: offers.posed(task.aim()))

    def solve(most_sorts: int | None) -> Search:
        if (simple := _as_good_as_anywhere(task, offers, most_sorts)) is not None:
            return simple
        posed = pose()
        program = replace(posed.program, most_sorts=most_sorts)
        solution, flows = mastered(program, posed.network, task.options)
        if offers.is_cut:
            solution = unproved(solution, program)
        return Search(offered=offers, posed=posed, solution=solution, flows=flows)

    def weighed(search: Search) -> Weighed:
        counts = search.solution.answer
        return search.solution, n_sorts(search.posed.program, counts) if counts else 0

    search, steps, is_weighed = with_few_sorts(solve, weighed, task.n_sorts, task.options)
    proved = search.solution if is_weighed else without_proof(search.solution)
    return replace(search, solution=proved, steps=steps)


def _as_good_as_anywhere(task: Task, offers: SiteOffers, most_sorts: int | None) -> Search | None:
    """The best replicas wherever they lie, if there are places for them that are as good.

    No placement is better then, and few columns are solved, of however many nodes.
    """
    program = None if offers.is_cut else offers.anywhere(task.aim())
    if program is None or program.is_for_share or (program.objective < 0).any():
        return None
    with share(ANYWHERE_SHARE):
        best = solved(replace(program, most_sorts=most_sorts), task.options)
        if best.answer is None or not best.status.is_final:
            return None
        posed = offers.of(best.answer).posed(task.aim())
        few = replace(posed.program, most_sorts=most_sorts)
        counts = solved(few, replace(task.options, proof="one")).answer
    # boxes side by side are seldom as compact as each by itself: there only the objective counts
    n_ties = N_ALWAYS if isinstance(offers, NodesOffers) else 0
    known = _worth_of(program, best.answer, n_ties)
    if counts is None or any(map(exceeds, _worth_of(few, counts, n_ties), known)):
        return None
    return Search(offered=offers, posed=posed, solution=replace(best, answer=counts))


def _worth_of(program: PlacementProgram, counts: Counts, n_ties: int) -> list[float]:
    """The objective, and the first of the ties."""
    ties = (total(tie, counts) for tie in program.ties[:n_ties])
    return [placement_objective(program, counts), *ties]


def mastered(
    program: PlacementProgram,
    network: Handover | None,
    options: SolverOptions,
    *,
    most_direct: int = MOST_DIRECT,
) -> tuple[PlacementSolution, tuple[float, ...]]:
    """Solve, with what caches are handed over, if any are: also the rate of each pair."""
    if network is None:
        return solved(program, options, most_direct=most_direct), ()
    solution, flows = solve_handing(
        program, network, solver=options.solver, effort=effort_of(options), proof=options.proof
    )
    return solution, () if flows is None else tuple(flows.tolist())


def solved(
    program: PlacementProgram, options: SolverOptions, *, most_direct: int = MOST_DIRECT
) -> PlacementSolution:
    """Solve; large packings of cells are narrowed whatever the backend."""
    is_of_cells = bool((program.free == 1).all() and (program.uses.amount > 0).all())
    is_packing = is_of_cells and program.most_sorts is None
    solver = "narrowing" if is_packing and program.n_columns > most_direct else options.solver
    return solve_placement(program, solver=solver, effort=effort_of(options), proof=options.proof)


def unproved(solution: PlacementSolution, program: PlacementProgram) -> PlacementSolution:
    """A solution where not all columns there are were made: an answer, and no proof.

    What is never negative is at least zero, and that is all that is known.
    """
    is_positive = not program.is_for_share and bool((program.objective >= 0).all())
    bound = 0.0 if is_positive else -math.inf
    nobody = Vouched(proofs=(), bound=bound, alone=bound, by=())
    status = Status.UNKNOWN if solution.answer is None else Status.FEASIBLE
    return replace(solution, status=status, vouched=nobody)


def unsettled(task: Task, search: Search) -> BaseException:
    """What is raised where time ended before a first placement."""
    bound = in_si(task.request.objective, search.solution.bound)
    return out_of_time(bound) if search.offered.is_cut else search.solution.unsettled(bound)


def chosen_first(task: Task) -> frozenset[ConfigKey]:
    """The shape that each model would have on each kind by itself: the most of one device.

    With `latency` for an objective, the quickest. It is what a planner chooses that does not
    know what is free; the site of the request is then one where all is.
    """
    by_latency = task.request.objective == "latency"
    best: dict[tuple[int, str], AnyConfiguration] = {}
    for config in offered(task, whole=True).configurations:
        key = (config.model, config.pattern.kind_name)
        if key not in best or _worth(config, by_latency) > _worth(best[key], by_latency):
            best[key] = config
    return frozenset(map(config_key, best.values()))


def _worth(config: AnyConfiguration, by_latency: bool) -> float:
    return -config.tpot_s if by_latency else config.output_tokens_per_s / config.n_devices
