"""Deployments of serving engines, timed by their measured kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.estimates.serving.choices import EngineChoices, ground_of, traffic_of
from planner.estimates.serving.deployments import has_experts
from planner.estimates.serving.grids import nearest, thinned, whole_requests
from planner.estimates.serving.rules import is_valid
from planner.estimates.serving.timer import Timer
from planner.programs.blocks import BlockProgram, Objective
from planner.programs.engine import OF_A_CUT, cuts_of, row_of
from planner.programs.layout import Assignment
from planner.report.launch.telling import with_commands
from planner.results.engines import EngineDeployment
from planner.results.plans import AnyDeployment, VariantReport
from planner.runtimes.candidates import Candidates
from planner.runtimes.describe import agree, larger_pools
from planner.runtimes.engine_requests import asked_pool, command_of, engine_request, machines_of
from planner.runtimes.engine_source import ChoiceCache, EngineBlocks, Forbidden
from planner.runtimes.predicting import Machines, Speculating, account, given_deployment
from planner.specs.ask.engine import EngineRequest, PlanOptions
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.model_errors import Quantity, engine_error, kernels_share
from planner.specs.region import BELIEFS
from planner.specs.validation.hints import from_fields
from planner.verifier.runtimes.engines import engine_deployment

WITHOUT_ERROR = ("rent", "devices")
"""Objectives of which nothing is predicted."""


def engine_candidates(
    model: Architecture,
    cluster: ClusterSpec,
    engine: str,
    choices: PlanOptions,
    variants: Sequence[Architecture] = (),
) -> tuple[EngineCandidates, ...]:
    """Of the model, and of each variant that can be served in its place.

    Raises:
        RequestError: the request cannot be read; all problems are listed.
    """
    every = [model.name, *(one.name for one in variants)]
    machines = machines_of(cluster, engine, choices.experts_backend, every)
    return candidates_of_request(
        engine_request(model, cluster, machines, choices, variants), machines
    )


def candidates_of_request(
    request: EngineRequest, machines: Machines
) -> tuple[EngineCandidates, ...]:
    """Of the model of a request, and of each of its variants."""
    return tuple(
        EngineCandidates(request=request, model=model, machines=machines)
        for model in request.records.models
    )


MOST_FORBIDDEN = 4096
"""Deployments that are timed of those that a rule forbids, before all of the best cut are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineCandidates(Candidates):
    """Every deployment of one model that an engine would start on a pool.

    Args:
        request: of the model that is asked for and its variants.
        model: which of them these serve.
    """

    request: EngineRequest
    model: Architecture
    machines: Machines
    forbidden: Forbidden | None = None

    @property
    def runtime(self) -> str:
        return self.request.engine

    @cached_property
    def offered(self) -> ChoiceCache:
        """Cuts over few devices first: by the device, the best is often among them.

        Copies of a cut without experts take as long: they follow each other.
        """
        model, clock, only = self.model, self.machines.clock, self.forbidden
        if only is not None:
            timer = Timer(model=model, clock=clock, request=only.offered, forbidden=only.rule)
            return ChoiceCache(timer, only.cuts, self._spare)
        timer = Timer(model=model, clock=clock, request=self.request)
        cuts = timer.equal_cuts.take(is_valid(model, timer.equal_cuts, ground_of(self.request)))
        copies = (cuts.n_data, cuts.n_stages, cuts.n_tensor, cuts.n_data > 1)
        order = np.lexsort((cuts.n_devices,) if has_experts(self.model) else copies)
        return ChoiceCache(timer, cuts.take(order), self._spare)

    @property
    def choices(self) -> EngineChoices:
        """All that fit, timed."""
        return self.offered.timer.choices(self.offered.cuts, 1.0)

    @property
    def n_candidates(self) -> int:
        """All that the engine starts, but for small chunks: whether these are offered is timed."""
        return self.offered.n_candidates

    def _spare(self, objective: str, best: EngineChoices) -> float:
        """The error of the best choice without what others err in common: ties lose less."""
        if not objective or objective in WITHOUT_ERROR:
            return 0.0
        name: Quantity = "TTFT" if objective == "ttft" else "TPOT"
        error = best.ttft_error if name == "TTFT" else best.tpot_error
        kind = self.request.models[int(best.model_index[0])].kind
        common = engine_error(self.machines.engine, kind, name) ** 2 + best.outside_error[0] ** 2
        return math.sqrt(max(0.0, float(error[0]) ** 2 - common)) * (1.0 + 1e-9)

    @property
    def variant(self) -> VariantReport | None:
        model = next((one for one in self.request.variants if one.name == self.model.name), None)
        return None if model is None else from_fields(VariantReport, model)

    def source(self, aim: Objective, number: int = 0) -> EngineBlocks:
        return EngineBlocks(self.offered, aim, number)

    def deployment(self, posed: BlockProgram, assignment: Assignment) -> EngineDeployment:
        column, timer = assignment.columns[0], self.offered.timer
        number, arm = int(posed.number[assignment.context]), int(posed.arm[column])
        row, n_drafted = row_of(number, arm, self.request.formats)
        (drafts,) = (one for one in timer.drafts if timer.n_drafted(one) == n_drafted)
        row, _ = timer.offered(row, drafts)
        choices = timer.exact(row, drafts, math.inf).believing(BELIEFS[int(posed.variant[column])])
        targets = self.request.targets
        n_replicas, demand = posed.fleet(1, assignment, targets)
        candidates = self.with_targets(replace(targets, demand_tokens_per_s=demand))
        return candidates.described(choices, 0, n_replicas)

    def described(
        self, choices: EngineChoices, choice: int, n_replicas: int = 1
    ) -> EngineDeployment:
        """The deployment of one of some choices, those that do not fit among them."""
        held = float(choices.fixed_bytes[choice] + choices.moving_bytes[choice])
        machines, most = self.machines, choices.limit_bytes
        if held > most:  # as if the device had room for it
            cluster, hbm_bytes = machines.cluster, machines.device.hbm_bytes * 2.0 * held / most
            device = replace(cluster.device, hbm_bytes=hbm_bytes)
            machines = replace(machines, cluster=replace(cluster, device=device))
        best = describe_choice(
            self.model, machines, self.request, choices, choice, n_replicas=n_replicas
        )
        return replace(best, capacity_bytes=most)

    def error(self, objective: str, deployment: AnyDeployment) -> float:
        assert isinstance(deployment, EngineDeployment)
        is_rent = objective == "cost" and self.request.targets.demand_tokens_per_s is not None
        if is_rent or objective in WITHOUT_ERROR:  # rent over a demand is rent
            return 0.0
        name: Quantity = "TTFT" if objective == "ttft" else "TPOT"
        times = deployment.ttft_s if name == "TTFT" else deployment.tpot_s
        kinds = {one.name: one.kind for one in self.request.models}
        kind = kinds[deployment.model]
        error = times.high / times.value - 1.0
        return kernels_share(
            error, engine_error(self.machines.engine, kind, name), deployment.outside
        )

    def without_rules(self, near: AnyDeployment | None) -> Iterator[tuple[str, EngineCandidates]]:
        own, engine = self.request, self.request.records.engine
        chunk = near.chunk_tokens if isinstance(near, EngineDeployment) else max(own.chunks)
        batches = thinned(whole_requests(own.batches, self.offered.timer.traffic))
        forbidden = self.offered.timer.cuts_forbidden(chunk)
        for rule in engine.rules:
            if rule.name not in forbidden:
                continue
            rest = replace(engine, rules=tuple(one for one in engine.rules if one != rule))
            request = replace(own, records=replace(own.records, engine=rest))
            n_cuts = max(1, MOST_FORBIDDEN // len(batches))
            only = Forbidden(
                rule=rule,
                cuts=nearest(forbidden[rule.name], near.n_devices if near else 1, n_cuts),
                offered=replace(request, batches=batches, chunks=(chunk,)),
            )
            machines = replace(self.machines, engine=rest)
            yield rule.name, replace(self, request=request, machines=machines, forbidden=only)

    def around(self, posed: BlockProgram) -> EngineCandidates:
        assert self.forbidden is not None
        cuts = cuts_of(np.unique(posed.number & OF_A_CUT), self.request.formats)
        return replace(self, forbidden=replace(self.forbidden, cuts=cuts, offered=self.request))

    def larger(self, served_tokens_per_s: float) -> Iterator[tuple[str, str, EngineCandidates]]:
        own, here = self.request, self.machines.cluster
        for cluster in larger_pools(here, own.targets, served_tokens_per_s):
            backend, names = own.records.kernels.experts_backend, [it.name for it in own.models]
            machines = machines_of(cluster, own.engine, backend, names)
            records = replace(own.records, cluster=cluster)
            request = replace(own, cluster=asked_pool(cluster, machines), records=records)
            yield "--topology", cluster.name, replace(self, request=request, machines=machines)

    def command(self, changes: Mapping[str, str]) -> str:
        return command_of(self.request, changes)


def describe_choice(
    model: Architecture,
    machines: Machines,
    request: EngineRequest,
    choices: EngineChoices,
    column: int,
    n_replicas: int = 1,
) -> EngineDeployment:
    """Replicas of one choice, by the account.

    Args:
        choices: timed on the machines, planned for a confidence of their own.

    Raises:
        SolverError: the arrays say otherwise.
    """
    table, drafting = choices.table.take(np.array([column])), request.drafting
    speculating = None
    if drafting and (n_drafted := int(choices.n_drafted[column])):
        speculating = from_fields(Speculating, drafting, n_drafted=n_drafted)
    traffic = traffic_of(request, choices.role)
    given = given_deployment(model, machines, table, traffic, speculating)
    counted = account(given, machines)
    believed = replace(request, confidence=choices.confidence)
    deployment = engine_deployment(believed, given, counted, n_replicas)
    times = counted.times
    place_s = deployment.n_replicas * deployment.n_sequences / deployment.output_tokens_per_s
    held = choices.fixed_bytes[column] + choices.moving_bytes[column]
    agree(
        {
            "TPOT": (choices.tpot_s[column], times.tpot_s),
            "TTFT": (choices.ttft_s[column], times.ttft_s),
            "error of TPOT": (choices.tpot_error[column], times.tpot_error),
            "error of TTFT": (choices.ttft_error[column], times.ttft_error),
            "planned TPOT": (choices.tpot_high_s[column], deployment.planned_tpot_s),
            "planned TTFT": (choices.ttft_high_s[column], deployment.planned_ttft_s),
            "time of a token": (choices.place_s[column], place_s),
            "memory": (held, deployment.used_bytes),
            "sequences that run": (table.batch[0], times.n_running),
        }
    )
    return with_commands(request, deployment)
