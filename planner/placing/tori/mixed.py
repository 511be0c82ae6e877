"""Servers and tori side by side as one site: a replica lies in one of them, a program in all.

Each part makes its own configurations and states where they fit, as if it were alone; what is asked
of all replicas together is asked of the parts' columns side by side. So a packing of boxes is as
exact here as on a torus by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import RequestError
from planner.placing.configurations import AnyConfiguration, ConfigKey, CurrentReplica
from planner.placing.fabrics.site import Fabric
from planner.placing.program import Columns, Objective
from planner.placing.sites import CandidateCounts, OfferRequest, Site, SiteOffers
from planner.placing.tori.site import OfferedSlices, Torus
from planner.programs.placement import Counts, PlacementProgram, side_by_side
from planner.running.deadlines import share
from planner.specs.files.pools import MixedPoolSpec
from planner.specs.records.devices import ClusterSpec
from planner.specs.validation.problems import Problems
from planner.topology.costs import CostTable, GroupCosts
from planner.topology.graph import Graph
from planner.topology.inventory import Kind


class MixedPool:
    """Servers and tori as they are.

    Args:
        spec: all of them.
        graph: of them, in its state.
        aligned: whether slices start at cubes only.
        most_devices: of one replica; None for what is usual on each part.
        costs: what groups of servers get, in place of what the graph says.

    Raises:
        RequestError: nothing is free.
    """

    def __init__(
        self,
        spec: MixedPoolSpec,
        graph: Graph,
        *,
        aligned: bool,
        most_devices: int | None,
        costs: GroupCosts | CostTable | None,
    ) -> None:
        self.name, self.graph, self.n_devices = spec.name, graph, spec.n_devices

        def torus(cluster: ClusterSpec) -> Site:
            own = _part_of(graph, f"{cluster.name}/")
            return Torus(cluster, own, aligned=aligned, most_devices=most_devices)

        makers: list[Callable[[], Site]] = [partial(torus, cluster) for cluster in spec.tori]
        if spec.servers.groups:
            own = _part_of(graph, "", but=tuple(f"{it.name}/" for it in spec.tori))
            servers = partial(Fabric, spec.servers, own, most_devices=most_devices, costs=costs)
            makers = [servers, *makers]
        taken = Problems()
        self.parts: tuple[Site, ...] = taken.each(lambda make: make(), makers)
        if not self.parts:
            taken.settle(RequestError)

    @property
    def cluster(self) -> ClusterSpec:
        return self.parts[0].cluster

    @property
    def clusters(self) -> Mapping[Kind, ClusterSpec]:
        return {kind: it for part in self.parts for kind, it in part.clusters.items()}

    @property
    def n_of_kind(self) -> dict[str, tuple[int, int]]:
        return {kind: n for part in self.parts for kind, n in part.n_of_kind.items()}

    @property
    def n_free(self) -> int:
        return sum(part.n_free for part in self.parts)

    @property
    def reach(self) -> str:
        return "; and ".join(f"{part.reach} of `{part.name}`" for part in self.parts)

    def offered(self, wanted: OfferRequest) -> MixedOffers:
        """The configurations of all models on each part, each in its share of the time."""
        names = tuple(part.name if isinstance(part, Torus) else "" for part in self.parts)
        offers: list[SiteOffers] = []
        for n_before, (part, name) in enumerate(zip(self.parts, names, strict=True)):
            served = [
                replace(it, runtimes=tuple(own for own in it.runtimes if own.torus == name))
                for it in wanted.models
            ]
            with share(1.0 / (len(names) - n_before) if wanted.in_part else 1.0):
                made = part.offered(replace(wanted, models=served))
            offers.append(made.named(name) if isinstance(made, OfferedSlices) else made)
        return MixedOffers(parts=tuple(offers), names=names)


def _part_of(graph: Graph, before: str, but: tuple[str, ...] = ()) -> Graph:
    """Vertices whose names begin so, in their order and without that, and what joins them."""
    import networkx as nx

    names = [name for name in graph if name.startswith(before) and not name.startswith(but or "\0")]
    own: Graph = nx.Graph()
    own.add_nodes_from((name.removeprefix(before), graph.nodes[name]) for name in names)
    edges = graph.edges(names, data=True)
    own.add_edges_from((a.removeprefix(before), b.removeprefix(before), it) for a, b, it in edges)
    return own


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixedOffers:
    """Configurations of each part.

    Args:
        parts: servers first, if there are any: parts of their replicas are the first columns.
        names: of the tori among them, which open those of their devices; empty of servers.
    """

    parts: tuple[SiteOffers, ...]
    names: tuple[str, ...]

    @property
    def configurations(self) -> list[AnyConfiguration]:
        return [it for part in self.parts for it in part.configurations]

    @property
    def listed(self) -> list[AnyConfiguration]:
        return [it for part in self.parts for it in part.listed]

    @property
    def is_cut(self) -> bool:
        return any(part.is_cut for part in self.parts)

    def only(self, sorts: Collection[ConfigKey]) -> MixedOffers:
        return replace(self, parts=tuple(part.only(sorts) for part in self.parts))

    def taking(
        self, configurations: Sequence[AnyConfiguration], n_models: int | None = None
    ) -> MixedOffers:
        parts: dict[str, list[AnyConfiguration]] = {name: [] for name in self.names}
        for config in configurations:
            kind = config.pattern.kind_name
            parts[kind if kind in parts else ""].append(config)
        each = zip(self.parts, parts.values(), strict=True)
        return replace(self, parts=tuple(part.taking(own, n_models) for part, own in each))

    def by_kinds(self, aim: Objective) -> PlacementProgram:
        return side_by_side([part.by_kinds(aim) for part in self.parts], self.names)

    def anywhere(self, aim: Objective) -> PlacementProgram:
        return self.by_kinds(aim)

    def of(self, counts: Counts) -> MixedOffers:
        each = _divided(counts, [len(part.listed) for part in self.parts])
        parts = (part.of(own) for part, own in zip(self.parts, each, strict=True))
        return replace(self, parts=tuple(parts))

    def posed(self, aim: Objective) -> MixedProgram:
        return MixedProgram(parts=[part.posed(aim) for part in self.parts], names=self.names)

    def repaired(self, standing: Sequence[CurrentReplica], aim: Objective) -> MixedProgram:
        each = zip(self.parts, self.names, strict=True)
        parts = [part.repaired([*self._standing(standing, name)], aim) for part, name in each]
        return MixedProgram(parts=parts, names=self.names)

    def _standing(self, standing: Sequence[CurrentReplica], name: str) -> Iterator[CurrentReplica]:
        """Replicas on a part, by the names that its devices have there."""
        for replica in standing:
            first, slash, _ = replica.devices[0].partition("/")
            if (first if first in self.names else "") == name:
                before = f"{name}{slash}" if name else ""
                own = tuple(device.removeprefix(before) for device in replica.devices)
                yield replace(replica, devices=own)

    def candidate_counts(self, n_columns: int) -> CandidateCounts:
        """Of all parts: what is no column is so for the reason that its part has."""
        each = [
            part.candidate_counts(part.n_kept if isinstance(part, OfferedSlices) else n_columns)
            for part in self.parts
        ]
        rejected = Counter[str]()
        for counted in each:
            rejected.update(counted.rejected)
        return CandidateCounts(
            n_candidates=sum(it.n_candidates for it in each),
            n_contexts=sum(it.n_contexts for it in each),
            rejected=rejected,
            reasons={name: why for it in reversed(each) for name, why in it.reasons.items()},
        )


def _divided(counts: Counts, sizes: Sequence[int]) -> list[Counts]:
    """Copies of the columns of each part."""
    ends = zip(sizes, accumulate(sizes), strict=True)
    return [Counts(copies=counts.copies[end - n : end]) for n, end in ends]


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedProgram:
    """The programs of the parts as one, of placements or of repairs; see `MixedOffers`."""

    parts: Sequence[Any]
    names: tuple[str, ...]
    network: None = None

    @cached_property
    def program(self) -> PlacementProgram:
        return side_by_side([part.program for part in self.parts], self.names)

    @cached_property
    def columns(self) -> Columns:
        every = [part.columns for part in self.parts]
        before = accumulate((len(it.configurations) for it in every), initial=0)
        return Columns(
            configurations=[config for it in every for config in it.configurations],
            which=np.concatenate([it.which + n for it, n in zip(every, before, strict=False)]),
            n_parts=every[0].n_parts,
        )

    @property
    def moved(self) -> FloatArray:
        return np.concatenate([part.moved for part in self.parts])

    def located(self, counts: Counts) -> list[Any]:
        """Replicas of all parts, by the names that their devices have beside each other."""
        each = _divided(counts, [part.program.n_columns for part in self.parts])
        return [
            replace(it, devices=tuple(f"{name}/{own}" for own in it.devices)) if name else it
            for part, name, copies in zip(self.parts, self.names, each, strict=True)
            for it in part.located(copies)
        ]
