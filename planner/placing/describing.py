"""A solved placement as its choice: recipes, replicas by device, hand-overs, certificate."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from planner.errors import Problem, RequestError
from planner.placing.configurations import AnyConfiguration
from planner.placing.program import KTOKEN, UNITS, Step, in_si
from planner.placing.searching import Choice, Search, Task
from planner.placing.sites import CandidateCounts, Located
from planner.results.placements import Handover, Placement, Rank, Replica, RunConfig
from planner.solvers.certify import certified, screens_of
from planner.solvers.placement import PlacementSolution
from planner.specs.ask.engine import BEST, SIMPLEST
from planner.specs.ask.placement import GroupCost
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.certificates import (
    CLOSER,
    NO_GAP,
    OPTIMAL,
    SIMPLER,
    Certificate,
    ConfigurationStep,
)
from planner.specs.validation.hints import from_fields
from planner.topology.costs import GroupCosts, is_cost
from planner.verifier.placing.parts import parts_of

PLACED = ("pool", "title", "served", "kinds", "further", "provenance", "verified")
LAID = ("nodes", "leaves", "ranks", "channels")
"""What a placement, and each replica of it, leaves to the account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was chosen, of what, and how that is proved.

    Args:
        n_solved: columns that a solver saw.
        handed: what replicas hand over to each other.
        steps: the best of each number of sorts that was looked at.
    """

    located: Sequence[Located]
    solution: PlacementSolution
    candidate_counts: CandidateCounts
    n_solved: int
    handed: Sequence[CacheFlow] = ()
    steps: Sequence[Step] = ()


def placement_choice(search: Search) -> Outcome:
    """What a search found; it found something."""
    assert search.solution.answer is not None
    n_columns = search.posed.program.n_columns
    choice = search.choice or Choice(
        posed=search.posed, counts=search.solution.answer, flows=search.flows
    )
    return Outcome(
        located=choice.posed.located(choice.counts),
        solution=search.solution,
        candidate_counts=search.offered.candidate_counts(n_columns),
        n_solved=n_columns,
        handed=handed_over(choice),
        steps=search.steps,
    )


def placement_of(task: Task, chosen: Outcome, *, began_s: float) -> Placement:
    """What was chosen and proved; the account of the placement fills in all else."""
    located = chosen.located
    configurations = list(dict.fromkeys(one.configuration for one in located))
    recipes = [configurations.index(one.configuration) for one in located]
    models = [task.wanted[config.model].model.name for config in configurations]
    replicas = tuple(replicas_of(located, recipes, [(name, name) for name in models]))
    return Placement(
        request=task.request,
        pool="",
        title="",
        recipes=tuple(
            run_config(config, models[i], recipes.count(i))
            for i, config in enumerate(configurations)
        ),
        replicas=replicas,
        served=(),
        kinds=(),
        certificate=certificate_of(
            chosen,
            task.request.objective,
            began_s=began_s,
            options=task.options,
            prefer=task.request.prefer,
        ),
        provenance=(),
        handovers=tuple(_handovers(task, located, replicas, chosen.handed)),
    )


def run_config(config: AnyConfiguration, model: str, n_alike: int) -> RunConfig:
    """What a configuration is chosen for, of which so many replicas are placed."""
    pattern = config.pattern
    return from_fields(
        RunConfig,
        pattern,
        model=model,
        engine=config.engine,
        kind=pattern.kind_name,
        deployment=config.deployment(n_alike),
        role=config.role,
    )


def replicas_of(
    located: Sequence[Located], recipes: Sequence[int], whose: Sequence[tuple[str, str]]
) -> Iterator[Replica]:
    """Replicas with their devices, by rank.

    Args:
        whose: of each recipe what its replicas are counted in, which opens their names; and the
            model.
    """
    numbers = Counter[str]()
    for replica, recipe in zip(located, recipes, strict=True):
        name, model = whose[recipe]
        ranks = (
            Rank(rank=rank, device=device, node="", leaf="", stage=0, axes=())
            for rank, device in enumerate(replica.devices)
        )
        yield Replica(
            name=f"{name}/{numbers[name]}",
            model=model,
            recipe=recipe,
            nodes=(),
            leaves=(),
            ranks=tuple(ranks),
            channels=(),
        )
        numbers[name] += 1


def _handovers(
    task: Task, located: Sequence[Located], replicas: Sequence[Replica], handed: Sequence[CacheFlow]
) -> Iterator[Handover]:
    """What replicas hand over to each other, by their names."""
    for handover in handed:
        source, target = (located[i].configuration for i in (handover.source, handover.target))
        wish, seconds = task.wanted[source.model], max(source.handover_s, target.handover_s)
        n_output = (wish.workload or task.request.workload).n_written_tokens
        yield Handover(
            source=replicas[handover.source].name,
            target=replicas[handover.target].name,
            requests_per_s=handover.output_tokens_per_s / n_output,
            request_bytes=source.handed_bytes,
            seconds=seconds,
            ttft_s=source.ttft_s + seconds,
        )


def groups_of(placement: Placement) -> Iterator[tuple[str, ...]]:
    """Devices that talk to each other, of all replicas, and of those that stand beside them."""
    for it in (placement, placement.inside, placement.anywhere):
        if it is not None:
            for one in it.replicas:
                for _, groups in parts_of(one, it.recipes[one.recipe]).groups():
                    yield from groups


def certificate_of(
    chosen: Outcome, objective: str, *, began_s: float, options: SolverOptions, prefer: str = BEST
) -> Certificate:
    """The proof in numbers, in SI units."""
    candidate_counts = chosen.candidate_counts
    certificate = certified(
        chosen.solution,
        objective_name=objective,
        to_si=partial(in_si, objective),
        dimension=UNITS[objective][1],
        n_candidates=candidate_counts.n_candidates,
        n_contexts=candidate_counts.n_contexts,
        screens=screens_of(candidate_counts.rejected, candidate_counts.reasons),
        n_solved=chosen.n_solved,
        wall_s=time.perf_counter() - began_s,
    )
    is_near = certificate.status == OPTIMAL and certificate.gap > options.gap + NO_GAP
    steps = [(n, in_si(objective, value), in_si(objective, at)) for n, value, at in chosen.steps]
    return replace(
        certificate,
        sorts=tuple(
            ConfigurationStep(n_sorts=n, objective=value, bound=at) for n, value, at in steps
        ),
        sort_price=options.sort_price if steps else None,
        given_up_for=(SIMPLER if prefer == SIMPLEST else CLOSER) if is_near else "",
    )


LEAST = 1e-12
"""Of a rate, below which it is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFlow:
    """Answers whose prompts one replica reads and another writes, by number of the replicas."""

    source: int
    target: int
    output_tokens_per_s: float


def handed_over(choice: Choice) -> tuple[CacheFlow, ...]:
    """Between replicas in the order in which they are located; none where nothing is.

    Replicas of a column share evenly what it hands over, so that none does more than it can; and
    a share goes to as few others as may be.
    """
    network = choice.posed.network
    if network is None:
        return ()
    first: dict[int, int] = {}
    n_before = choice.posed.columns.n_parts
    n_so_far = 0
    for j, n in enumerate(choice.counts.copies[n_before:], n_before):
        first[j] = n_so_far
        n_so_far += n
    handovers: list[CacheFlow] = []
    pairs = zip(network.prefill.tolist(), network.decode.tolist(), choice.flows, strict=True)
    for p, d, rate in pairs:
        if rate <= LEAST:
            continue
        n_sources, n_targets = choice.counts.copies[p], choice.counts.copies[d]
        handovers += [
            CacheFlow(source=first[p] + i, target=first[d] + k, output_tokens_per_s=share / KTOKEN)
            for i, k, share in _dealt(rate, n_sources, n_targets)
        ]
    return tuple(handovers)


def _dealt(rate: float, n_sources: int, n_targets: int) -> Iterator[tuple[int, int, float]]:
    """An even share of each source to targets that each take an even share, in their order.

    In shares of rate / (sources × targets) all cuts are whole numbers.
    """
    part, i, k = rate / (n_sources * n_targets), 0, 0
    left, room = n_targets, n_sources
    while i < n_sources:
        n = min(left, room)
        yield i, k, n * part
        left, room = left - n, room - n
        if not left:
            i, left = i + 1, n_targets
        if not room:
            k, room = k + 1, n_sources


class Recorder:
    """A function of groups' costs that remembers what it was asked and said.

    Args:
        costs: the function.
    """

    def __init__(self, costs: GroupCosts) -> None:
        self._costs = costs
        self._said: dict[tuple[str, ...], tuple[float, float]] = {}

    def __call__(self, devices: tuple[str, ...]) -> tuple[float, float]:
        if devices not in self._said:
            key = f"of {len(devices)} devices from {devices[0]}"
            try:
                cost = self._costs(devices)
            except Exception as error:
                fact = f"raises {type(error).__name__}: {error}"[:200]
                raise RequestError([Problem(where="group_costs", key=key, fact=fact)]) from error
            if not is_cost(cost):
                fact = "is not a positive bandwidth and a latency"
                problem = Problem(where="group_costs", key=key, value=repr(cost)[:60], fact=fact)
                raise RequestError([problem])
            self._said[devices] = cost
        return self._said[devices]

    @property
    def asked(self) -> tuple[GroupCost, ...]:
        return tuple(
            GroupCost(name="", devices=devices, bytes_per_s=float(width), latency_s=float(wait))
            for devices, (width, wait) in self._said.items()
        )
