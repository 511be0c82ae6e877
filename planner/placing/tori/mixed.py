"""Servers and tori side by side as one site: a replica lies in one of them, a program in all.

Each part makes its own configurations and states where they fit, as if it were alone; what is asked
of all replicas together is asked of the parts' columns side by side. So a packing of boxes is as
exact here as on a torus by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import RequestError
from planner.placing.configurations import AnyConfiguration, ConfigKey, CurrentReplica
from planner.placing.fabrics.site import Fabric
from planner.placing.program import Columns, Objective
from planner.placing.runtimes import Roofline, Runtime
from planner.placing.sites import (
    CandidateCounts,
    Located,
    Site,
    SiteModel,
    SiteOffers,
    SiteProgram,
    SiteRepair,
)
from planner.placing.tori.site import OfferedSlices, Torus
from planner.programs.placement import Counts, PlacementProgram, side_by_side
from planner.running.deadlines import share
from planner.specs.files.pools import MixedPoolSpec
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.roles import RoleOptions
from planner.specs.validation.problems import Problems
from planner.topology.costs import CostTable, GroupCosts
from planner.topology.inventory import Kind

if TYPE_CHECKING:
    import networkx as nx


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
        graph: nx.Graph[str],
        *,
        aligned: bool,
        most_devices: int | None,
        costs: GroupCosts | CostTable | None = None,
    ) -> None:
        self.name, self.graph, self.n_devices = spec.name, graph, spec.n_devices
        before = tuple(f"{torus.name}/" for torus in spec.tori)
        servers = [name for name in graph if not name.startswith(before)]
        makers = [
            partial(
                Torus,
                torus,
                _part_of(graph, [name for name in graph if name.startswith(own)], own),
                aligned=aligned,
                most_devices=most_devices,
            )
            for torus, own in zip(spec.tori, before, strict=True)
        ]
        of_servers = partial(
            Fabric, spec.servers, _part_of(graph, servers), most_devices=most_devices, costs=costs
        )
        taken = Problems()
        parts = taken.each(
            lambda make: make(), [*([of_servers] * bool(spec.servers.groups)), *makers]
        )
        if not parts:
            taken.settle(RequestError)
        self.parts: tuple[Site, ...] = parts

    @property
    def cluster(self) -> ClusterSpec:
        return self.parts[0].cluster

    @property
    def clusters(self) -> Mapping[Kind, ClusterSpec]:
        return {kind: one for part in self.parts for kind, one in part.clusters.items()}

    @property
    def n_free(self) -> int:
        return sum(part.n_free for part in self.parts)

    @property
    def reach(self) -> str:
        return "; and ".join(f"{part.reach} of `{part.name}`" for part in self.parts)

    def offered(
        self, models: Sequence[SiteModel], roles: RoleOptions, *, by_latency: bool, whole: bool
    ) -> MixedOffers:
        """The configurations of all models on each part, each in its share of the time."""
        offers: list[SiteOffers] = []
        for n_left, part in zip(range(len(self.parts), 0, -1), self.parts, strict=True):
            served = [
                replace(one, runtimes=tuple(it for it in one.runtimes if serves(it, part)))
                for one in models
            ]
            with share(1.0 / n_left):
                made = part.offered(served, roles, by_latency=by_latency, whole=whole)
            offers.append(made.named(part.name) if isinstance(made, OfferedSlices) else made)
        before = (f"{part.name}/" if isinstance(part, Torus) else "" for part in self.parts)
        return MixedOffers(parts=tuple(offers), before=tuple(before))


def serves(runtime: Runtime, part: Site) -> bool:
    """Whether a runtime times replicas on a part: layouts are asked for each torus by itself."""
    if isinstance(runtime, Roofline) and isinstance(part, Torus):
        return runtime.request.cluster == part.cluster
    is_of_servers = not isinstance(runtime, Roofline) or runtime.request.cluster in [
        *part.clusters.values()
    ]
    return is_of_servers and not isinstance(part, Torus)


def _part_of(graph: nx.Graph[str], names: Sequence[str], before: str = "") -> nx.Graph[str]:
    """Some vertices in their order, and what joins them, without what their names begin with."""
    import networkx as nx

    own: nx.Graph[str] = nx.Graph()
    own.add_nodes_from((name.removeprefix(before), graph.nodes[name]) for name in names)
    own.add_edges_from(
        (a.removeprefix(before), b.removeprefix(before), edge)
        for a, b, edge in graph.edges(names, data=True)
    )
    return own


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixedOffers:
    """Configurations of each part.

    Args:
        parts: servers first, if there are any: parts of their replicas are the first columns.
        before: what the names of each one's devices begin with.
    """

    parts: tuple[SiteOffers, ...]
    before: tuple[str, ...]

    @property
    def configurations(self) -> list[AnyConfiguration]:
        return [one for part in self.parts for one in part.configurations]

    @property
    def listed(self) -> list[AnyConfiguration]:
        return [one for part in self.parts for one in part.listed]

    @property
    def is_cut(self) -> bool:
        return any(part.is_cut for part in self.parts)

    def only(self, sorts: Collection[ConfigKey]) -> MixedOffers:
        return replace(self, parts=tuple(part.only(sorts) for part in self.parts))

    def by_kinds(self, aim: Objective) -> PlacementProgram:
        return side_by_side([part.by_kinds(aim) for part in self.parts], self.before)

    def anywhere(self, aim: Objective) -> PlacementProgram:
        return self.by_kinds(aim)

    def of(self, counts: Counts) -> MixedOffers:
        each = _divided(counts, [len(part.listed) for part in self.parts])
        parts = (part.of(own) for part, own in zip(self.parts, each, strict=True))
        return replace(self, parts=tuple(parts))

    def posed(self, aim: Objective) -> MixedProgram:
        parts = tuple(part.posed(aim) for part in self.parts)
        return MixedProgram(parts=parts, before=self.before)

    def repaired(self, standing: Sequence[CurrentReplica], aim: Objective) -> MixedRepair:
        parts = (
            part.repaired([*_standing_on(standing, own, self.before)], aim)
            for part, own in zip(self.parts, self.before, strict=True)
        )
        return MixedRepair(parts=tuple(parts), before=self.before)

    def candidate_counts(self, n_columns: int) -> CandidateCounts:
        """Of all parts: what is no column is so for the reason that its part has."""
        each = [
            part.candidate_counts(part.n_kept if isinstance(part, OfferedSlices) else 0)
            for part in self.parts
        ]
        rejected = Counter[str]()
        for one in each:
            rejected.update(one.rejected)
        return CandidateCounts(
            n_candidates=sum(one.n_candidates for one in each),
            n_contexts=sum(one.n_contexts for one in each),
            rejected=rejected,
            reasons={name: why for one in reversed(each) for name, why in one.reasons.items()},
        )


def _standing_on(
    standing: Sequence[CurrentReplica], own: str, before: Sequence[str]
) -> Iterator[CurrentReplica]:
    """Replicas on the part whose devices' names begin so, by the names that they have there."""
    for one in standing:
        on = next((name for name in before if name and one.devices[0].startswith(name)), "")
        if on == own:
            yield replace(one, devices=tuple(name.removeprefix(own) for name in one.devices))


def _divided(counts: Counts, sizes: Sequence[int]) -> list[Counts]:
    """Copies of the columns of each part."""
    ends = np.cumsum(sizes).tolist()
    return [Counts(copies=counts.copies[end - n : end]) for n, end in zip(sizes, ends, strict=True)]


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedProgram:
    """The programs of the parts as one; see `MixedOffers`."""

    parts: tuple[SiteProgram, ...]
    before: tuple[str, ...]
    network: None = None

    @cached_property
    def program(self) -> PlacementProgram:
        return side_by_side([part.program for part in self.parts], self.before)

    @cached_property
    def columns(self) -> Columns:
        every = [part.columns for part in self.parts]
        first = np.cumsum([0, *(len(one.configurations) for one in every)]).tolist()
        return Columns(
            configurations=[config for one in every for config in one.configurations],
            which=np.concatenate([one.which + n for one, n in zip(every, first, strict=False)]),
            n_parts=every[0].n_parts,
        )

    def located(self, counts: Counts) -> list[Located]:
        return _located(self.parts, self.before, counts)


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedRepair:
    """The repairs of the parts as one; see `MixedOffers`."""

    parts: tuple[SiteRepair, ...]
    before: tuple[str, ...]

    @cached_property
    def program(self) -> PlacementProgram:
        return side_by_side([part.program for part in self.parts], self.before)

    @property
    def moved(self) -> FloatArray:
        return np.concatenate([part.moved for part in self.parts])

    def located(self, counts: Counts) -> list[Located]:
        return _located(self.parts, self.before, counts)


def _located(
    parts: Sequence[SiteProgram | SiteRepair], before: Sequence[str], counts: Counts
) -> list[Any]:
    """Replicas of all parts, by the names that their devices have beside each other."""
    each = _divided(counts, [part.program.n_columns for part in parts])
    located: list[tuple[str, Any]] = [
        (name, one)
        for part, name, own in zip(parts, before, each, strict=True)
        for one in part.located(own)
    ]
    return [
        replace(one, devices=tuple(f"{name}{it}" for it in one.devices)) if name else one
        for name, one in located
    ]
