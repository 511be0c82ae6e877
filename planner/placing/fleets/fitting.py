"""Which engines may serve classes on a site, and whether it holds their models and requests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np

from planner.equations.arrays import IntArray
from planner.errors import Problem
from planner.estimates.serving.choices import degrees
from planner.estimates.serving.memory import Holding, holding
from planner.estimates.serving.usual_engines import engines_of
from planner.placing.fabrics.site import MOST_DEVICES, Fabric
from planner.placing.fleets.classes import OptionNames
from planner.placing.sites import Site
from planner.quantities.units import show
from planner.runtimes.engine_requests import engine_request, machines_of
from planner.runtimes.predicting import Machines
from planner.runtimes.registry import layers_of
from planner.specs.ask.engine import EngineRequest, PlanOptions
from planner.specs.ask.fleet import FleetRequest
from planner.specs.ask.targets import Targets
from planner.specs.files.ledger import remark
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import NodesFabric, Workload
from planner.specs.records.runtimes import ENGINES
from planner.specs.traffic.records import TrafficClass
from planner.specs.validation.hints import from_fields
from planner.specs.validation.problems import Problems
from planner.topology.inventory import Kind

_NO_CUT = "cannot be cut over the devices that are free"
_SHORTEST = Workload(n_input_tokens=1, n_output_tokens=2)
"""What engines are asked of formats, batches and chunks with: lengths are judged class by class."""


def usual_engines(classes: Sequence[TrafficClass], site: Site) -> tuple[str, ...]:
    """Those that can start a model of the classes on a kind whose kernels were measured."""
    models = {model.name: model for one in classes for model in one.models}.values()
    clusters = site.clusters.values()
    engines = {name for model in models for one in clusters for name in engines_of(model, one)}
    return tuple(name for name in ENGINES if name in engines)


def unserved(classes: Sequence[TrafficClass], site: Site, shown: str) -> Iterator[Problem]:
    """Classes without a model that an engine starts there, where no engine is named."""
    devices = ", ".join(dict.fromkeys(one.device.name for one in site.clusters.values()))
    for index, traffic in enumerate(classes):
        clusters = site.clusters.values()
        if any(engines_of(model, each) for model in traffic.models for each in clusters):
            continue
        place = OptionNames(shown=shown, index=index).at("--model")
        for model in traffic.models:
            fact = "no engine starts it: it names no repository"
            remedy = "name one: `--engine vllm`"
            if model.repository:
                fact = f"no engine's own kernels were measured on {devices}"
                remedy = "take devices that `kernels` has tables of, or name an engine"
            yield Problem(**place, value=model.name, fact=fact, remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Askable:
    """One model under one engine on one kind of devices."""

    model: Architecture
    kind: Kind
    machines: Machines
    request: EngineRequest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """One model in one format on devices of one kind.

    Args:
        n_devices: of each cut, (N,).
        held: memory of the fullest device of each cut, with the longest request.
    """

    kind: Kind
    n_devices: IntArray
    held: Holding

    @property
    def most_room_bytes(self) -> float:
        """For caches, of the cut that leaves most."""
        return float(np.max(self.held.room_bytes))

    @property
    def holds_longest(self) -> bool:
        return bool(np.any(self.held.room_bytes >= self.held.sequence_bytes))

    @property
    def words(self) -> str:
        """What the cut that leaves most room lacks."""
        row = int(np.argmax(self.held.room_bytes))
        weights, n = float(self.held.weights_bytes[row]), int(self.n_devices[row])
        devices = f"one {self.kind.name}" if n == 1 else f"each of {n} {self.kind.name}"
        room = show(weights + self.most_room_bytes, "B")
        return f"takes {show(weights, 'B')} of weights on {devices}, which has {room} for them"


@dataclass(slots=True, kw_only=True)
class Fitting:
    """What may serve the models of a request.

    Args:
        request: whose engines are known.
        site: what is free of its devices.
    """

    request: FleetRequest
    site: Fabric
    ways: dict[str, list[Askable]] = field(default_factory=dict)

    def problems(self, shown: str) -> list[Problem]:
        """Why a class cannot be served: engines that refuse its models, devices without room.

        What only some of its models, kinds or engines refuse is remarked.
        """
        reasons: list[Problem] = []
        models = {model.name: model for it in self.request.classes for model in it.models}
        refused = {name: self._without_engine(layers_of(it)) for name, it in models.items()}
        for index, traffic in enumerate(self.request.classes):
            said = OptionNames(shown=shown, index=index)
            if any(self.ways[model.name] for model in traffic.models):
                reasons += self._without_room(traffic, said)
            else:
                reasons += (problem for model in traffic.models for problem in refused[model.name])
        for problem in chain.from_iterable(refused.values()):
            if problem not in reasons:
                remark(problem, once=f"{problem.where} {problem.fact}")
        return reasons

    def _without_engine(self, model: Architecture) -> list[Problem]:
        """Keep the ways to serve a model; why others cannot."""
        refused = Problems()
        self.ways[model.name] = []
        for engine in self.request.engines:
            for kind in self.site.clusters:
                way = refused.collect(partial(self._askable, model, engine, kind))
                if way is not None:
                    self.ways[model.name].append(way)
        return refused.problems

    def _askable(self, model: Architecture, engine: str, kind: Kind) -> Askable:
        whole, cluster = self.request, self.site.clusters[kind]
        fabric = cluster.fabric
        assert isinstance(fabric, NodesFabric)
        n_nodes = -(-self._most_devices // fabric.n_devices_per_node)
        cluster = replace(cluster, fabric=replace(fabric, n_nodes=n_nodes))
        names = dict.fromkeys(it.name for one in whole.classes for it in one.models)
        machines = machines_of(cluster, engine, models=list(names))
        choices = from_fields(
            PlanOptions,
            whole,
            workload=_SHORTEST,
            targets=Targets(quality_loss_fraction=whole.quality_loss_fraction),
            objective="throughput",
            prefer="objective",
        )
        request = engine_request(model, cluster, machines, choices)
        return Askable(model=model, kind=kind, machines=machines, request=request)

    @property
    def _most_devices(self) -> int:
        return self.request.most_devices or MOST_DEVICES

    def _without_room(self, traffic: TrafficClass, said: OptionNames) -> Iterator[Problem]:
        """A class of which no model, or not the longest request, fits anywhere."""
        ways = [way for model in traffic.models for way in self.ways[model.name]]
        held = [fit for way in ways for fit in self._memory(way, traffic)]
        names = " or ".join(dict.fromkeys(way.model.name for way in ways))
        if not any(fit.most_room_bytes > 0.0 for fit in held):
            remedy = "offer more or larger devices, or smaller formats: `--weights fp8`"
            fact = max(held, key=lambda fit: fit.most_room_bytes).words if held else _NO_CUT
            yield Problem(**said.at("--model"), value=names, fact=fact, remedy=remedy)
        elif not any(fit.holds_longest for fit in held):
            n_input, n_output = traffic.lengths.longest
            fact = f"has requests of {n_input:,} tokens in and {n_output:,} out, of which no "
            fact += "replica has room for one"
            remedy = "cut lengths, like `lognormal:1500:p99=8000:max=16000`"
            yield Problem(**said.at("--model"), value=names, fact=fact, remedy=remedy)

    def _memory(self, way: Askable, traffic: TrafficClass) -> Iterator[Fit]:
        """Memory of each cut of the model over what is free of the kind, in each format."""
        pool = replace(way.request.cluster, n_devices=self._n_usable(way.kind))
        cuts = degrees(way.model, replace(way.request, cluster=pool))
        if not len(cuts):
            return
        cuts = cuts.with_chunk(min(way.request.chunks))
        for formats in way.request.formats:
            held = holding(
                way.model,
                cuts,
                formats,
                way.machines.engine,
                hbm_bytes=way.machines.device.hbm_bytes,
                n_tokens=float(sum(traffic.lengths.longest)),
            )
            yield Fit(kind=way.kind, n_devices=cuts.n_devices, held=held)

    def _n_usable(self, kind: Kind) -> int:
        """Devices of a kind that one replica may have at most."""
        n_free = sum(len(node.free) for node in self.site.inventory.nodes if node.kind == kind)
        return min(n_free, self.request.counts.get(kind.name, n_free), self._most_devices)
