"""Configurations of a serving engine: deployments timed by its measured kernels, on nodes.

A deployment takes consecutive devices: t that share heads, d such ranks to a stage, p stages. It
lies in one node, or has an equal share on each of several; groups of t and of t·d lie in one share,
or fill several whole ones, so that no group straddles a node that it does not fill.
Memory is counted by the engine's own rule, times by its kernels on devices as slow and links as
narrow as the domain says. Devices of experts by themselves follow those of attention, in nodes
of their own where these do not share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import IntArray
from planner.errors import Problem, RequestError
from planner.estimates.serving.choices import EngineChoices, degrees, pool_degrees, traffic_of
from planner.estimates.serving.deployments import has_experts
from planner.estimates.serving.memory import handed_bytes
from planner.estimates.serving.timer import MOST_ROWS, Timer
from planner.placing.configurations import Configuration, Offers, Pairing, Sharding, sharding_of
from planner.placing.engine_choosing import BestOfShapes, lying, wanted_choices
from planner.placing.fabrics.domains import Domain
from planner.placing.fabrics.patterns import STAGE, Beaten, NodeConfiguration, NodePattern
from planner.placing.runtimes import Runtime
from planner.placing.sites import Site, check_nodes
from planner.programs.bounding import Bounding
from planner.results.engines import EngineDeployment
from planner.runtimes.engine_requests import engine_request, machines_of
from planner.runtimes.engines import describe_choice
from planner.runtimes.predicting import Machines, given_deployment
from planner.runtimes.registry import layers_of
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.placement import PlacementRequest, Serve, replica_options
from planner.specs.files.ledger import remark
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import DeviceSpec
from planner.specs.records.kernels import EngineTables
from planner.specs.records.roles import DECODE, TOGETHER
from planner.specs.region import BELIEFS, MEDIAN
from planner.specs.validation.hints import from_fields
from planner.topology.inventory import Kind


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineOffers(Offers):
    """The deployments of an engine on one domain.

    Args:
        request: with the cluster of the domain.
        machines: its devices and what connects them.
    """

    model: Architecture
    machines: Machines
    request: EngineRequest
    choices: EngineChoices

    @property
    def n_candidates(self) -> int:
        return self.choices.n_considered

    @property
    def device(self) -> DeviceSpec:
        return self.machines.device

    def believing(self, belief: str) -> EngineOffers:
        """Its deployments as a belief has them."""
        confidence = 0.0 if belief == MEDIAN else self.request.confidence
        request = replace(self.request, confidence=confidence)
        return replace(self, request=request, choices=self.choices.believing(belief))

    def handed_bytes(self, cache_format: str) -> float:
        """Of the cache of one request that was read, in whole blocks of the engine."""
        return handed_bytes(
            self.model,
            cache_format,
            n_tokens=float(self.request.workload.n_input_tokens),
            n_block_tokens=self.machines.engine.n_block_tokens,
        )

    def deployment(self, choice: int, n_alike: int) -> EngineDeployment:
        """One choice by its own evaluation; whatever else is placed, it is the same."""
        return describe_choice(self.model, self.machines, self.request, self.choices, choice)

    def shard(self, choice: int, model: str, engine: str) -> tuple[Sharding, float]:
        """As any other's, without an account: there are many."""
        some = self.choices.take(np.array([choice]))
        traffic = traffic_of(self.request, some.role)
        given = given_deployment(self.model, self.machines, some.table, traffic, None)
        held_bytes = float(some.fixed_bytes[0]) - self.machines.engine.workspace_bytes
        return sharding_of(model, engine, given), held_bytes


def serving_engine(
    name: str, request: PlacementRequest, demand: Serve, site: Site
) -> ServingEngine:
    """An engine for one model of a placement, on the kinds of devices that it has kernels of.

    Raises:
        RequestError: the model cannot be asked for so, or no kind has measured kernels.
    """
    check_nodes(name, site)
    model, served = layers_of(demand.model), [it.model.name for it in request.models]
    machines: dict[Kind, Machines] = {}
    requests: dict[Kind, EngineRequest] = {}
    problems: list[Problem] = []
    for kind, cluster in site.clusters.items():
        try:
            machines[kind] = machines_of(cluster, name, models=served)
        except RequestError as error:
            problems += error.problems
            continue
        options = replica_options(request, demand)
        requests[kind] = engine_request(model, cluster, machines[kind], options)
    if not machines:
        raise RequestError(problems)
    for problem in problems:
        remark(problem, once=f"{problem.where} {problem.fact}")
    return ServingEngine(
        model=model,
        machines=machines,
        requests=requests,
        by_latency=request.objective == "latency",
        by_belief=request.has_region,
        roles=request.roles.roles,
        expert_devices=request.roles.expert_devices if has_experts(model) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServingEngine(Runtime):
    """One engine that may serve one model.

    Args:
        machines: of each kind of devices that its kernels were measured on, as if all were well.
        requests: what is asked on each of them.
        by_latency: whether the quickest replica is the best, not the one that serves most.
        by_belief: whether the best by each belief is offered, and not only by the request's.
        roles: that replicas may have.
        expert_devices: of a replica that decodes, see `RoleOptions`.
    """

    model: Architecture
    machines: Mapping[Kind, Machines]
    requests: Mapping[Kind, EngineRequest]
    by_latency: bool
    by_belief: bool = False
    roles: tuple[str, ...] = (TOGETHER,)
    expert_devices: int | None = None

    @property
    def tables(self) -> tuple[EngineTables, ...]:
        """What its times follow from, on each kind of devices."""
        return tuple(
            EngineTables(engine=machines.engine, kernels=replace(machines.kernels, rivals={}))
            for machines in self.machines.values()
        )

    def on_nodes(
        self, model: int, domain: Domain, beaten: Beaten, *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        """The best deployments of each shape and role on a domain; none without kernels.

        Args:
            beaten: what replicas that do both phases have to serve more than.
        """
        if domain.kind not in self.machines or domain.span == STAGE:
            return
        for role, has_pools in self._ways:
            targets, is_quick = self.requests[domain.kind].targets, self.by_latency
            names = BELIEFS if self.by_belief and not whole else BELIEFS[:1]
            best = BestOfShapes(targets, beaten, names, by_latency=is_quick, whole=whole)
            source = self.source(domain, role, best, has_pools=has_pools)
            is_one = len(names) == 1 or not source.choices.outside_error.any()
            for beliefs in [BELIEFS] if is_one else [(one,) for one in names]:
                first = source.believing(beliefs[0])
                rows = [*wanted_choices(first.choices, targets, by_latency=is_quick, whole=whole)]
                # of all others nothing is asked again: a source keeps a few of its many choices
                kept = np.isin(np.arange(len(first.choices)), rows)
                few = replace(first, choices=first.choices.take(kept))
                places = (np.cumsum(kept) - 1)[np.array(rows, dtype=np.int64)]
                for one in configurations_of(few, model, domain, places):
                    yield replace(one, beliefs=beliefs)

    @property
    def _ways(self) -> Iterator[tuple[str, bool]]:
        """Roles, and whether experts have devices of their own."""
        for role in self.roles:
            if role != DECODE or not self.expert_devices:
                yield role, False
            if role == DECODE and self.expert_devices is not None:
                yield role, True

    def source(
        self,
        domain: Domain,
        role: str,
        best: BestOfShapes | None = None,
        *,
        has_pools: bool = False,
    ) -> EngineOffers:
        """All deployments of a role on a domain.

        Args:
            best: which of both phases may be wanted; all others are timed.
            has_pools: whether they are those whose experts have devices of their own.
        """
        machines = replace(self.machines[domain.kind], cluster=domain.cluster)
        request = self.requests[domain.kind]
        pool = replace(
            request.cluster, n_devices=domain.n_devices, n_devices_per_node=domain.per_node
        )
        request = replace(request, cluster=pool)
        cuts = (pool_degrees if has_pools else degrees)(self.model, request)
        cuts = cuts.take(lying(cuts, domain))
        if has_pools and self.expert_devices:
            cuts = cuts.take(cuts.n_expert_devices == self.expert_devices)
        timer = Timer(model=self.model, clock=machines.clock, request=request, role=role)
        if best is None or role != TOGETHER or not len(cuts):
            choices = timer.choices(cuts, 1.0)
        else:
            some = timer.blocks(cuts, n_first=MOST_ROWS)
            choices = best.counted(Bounding(timer, best, 1.0).kept(some))
        return EngineOffers(model=self.model, machines=machines, request=request, choices=choices)


def configurations_of(
    source: EngineOffers, model: int, domain: Domain, rows: IntArray
) -> Iterator[NodeConfiguration]:
    """Some choices on a domain, by the averages of their engine: nothing waits."""
    choices, table, is_apart = source.choices, source.choices.table, source.choices.role != TOGETHER
    rates = table.batch * table.n_data / choices.place_s
    cuts = (table.n_tensor, table.n_data, table.n_stages, table.n_expert_devices)
    numbers = (*cuts, table.format_index, rates, choices.tpot_high_s, choices.ttft_high_s)
    rules = tuple(one for one in source.machines.engine.rules if one.is_of_pairs)
    for row, t, d, p, n_pool, index, rate, tpot_s, ttft_s in zip(
        rows.tolist(), *(one[rows].tolist() for one in numbers), strict=True
    ):
        n_devices = t * d * p + n_pool
        n_nodes = max(1, n_devices // domain.per_node)
        pattern = from_fields(
            NodePattern,
            domain,
            n_inside=t,
            n_across=d,
            n_stages=p,
            pieces=(n_devices // n_nodes,) * n_nodes,
            n_pool=n_pool,
            own_nodes=n_nodes > 1,
        )
        cache = table.formats[index].cache if is_apart else ""
        pairing = Pairing(rules=rules, model=source.model, n_tensor=t, n_data=d, n_stages=p)
        yield Configuration(
            model=model,
            pattern=pattern,
            engine=source.request.engine,
            output_tokens_per_s=rate,
            tpot_s=tpot_s,
            usd_per_hour=n_devices * source.request.cluster.usd_per_hour,
            source=source,
            choice=row,
            role=choices.role,
            ttft_s=ttft_s if is_apart else 0.0,
            kv_format=cache,
            handed_bytes=source.handed_bytes(cache) if is_apart else 0.0,
            pairing=pairing if is_apart and rules else None,
            n_cache_devices=t * d * p,
        )
