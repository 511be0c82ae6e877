"""A torus as a site: replicas are slices of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.equations.arrays import IntArray
from planner.placing.configurations import (
    AnyConfiguration,
    ConfigKey,
    CurrentReplica,
    Pattern,
    Sharding,
    config_key,
)
from planner.placing.handing import Wire
from planner.placing.program import Objective
from planner.placing.sites import CandidateCounts, OfferRequest, Site, check_free
from planner.placing.tori import slices
from planner.placing.tori.repairing import RepairOnTorus, pose_repair
from planner.programs.placement import Counts, PlacementProgram
from planner.running.deadlines import is_over
from planner.specs.records.devices import ClusterSpec, TorusFabric
from planner.topology.graph import Graph
from planner.topology.inventory import Kind
from planner.topology.openings import Openings, openings

_REASONS = {
    "layouts": "others are better on the same slice",
    "tiled": "slices that smaller ones fill, and serve as much from",
}


class Torus:
    """A torus as it is.

    Args:
        cluster: the torus.
        graph: of it, in its state.
        aligned: whether slices start at its cubes only.
        most_devices: of one replica; None for as many as there are.

    Raises:
        RequestError: nothing is free.
    """

    def __init__(
        self, cluster: ClusterSpec, graph: Graph, *, aligned: bool, most_devices: int | None
    ) -> None:
        assert isinstance(cluster.fabric, TorusFabric)
        self.cluster, self.fabric = cluster, cluster.fabric
        self.name = cluster.name
        self.graph = graph
        left = slices.torus_state(self.fabric, self.graph)
        self.n_free = int(left.is_free.sum())
        check_free(self.name, self.n_free, self.n_devices)
        free = openings(self.fabric, left, aligned=aligned)
        if most_devices is not None:
            free = free.take(np.flatnonzero(free.n_devices <= most_devices))
        self.openings = free

    @property
    def clusters(self) -> Mapping[Kind, ClusterSpec]:
        return {}

    @property
    def parts(self) -> tuple[Site, ...]:
        return (self,)

    @property
    def n_of_kind(self) -> dict[str, tuple[int, int]]:
        return {self.name: (self.n_devices, self.n_free)}

    @property
    def n_devices(self) -> int:
        return self.fabric.n_devices

    @property
    def reach(self) -> str:
        return (
            f"no layout meets the targets on any of the {len(self.openings)} slices that lie among "
            f"the {self.n_free} free devices"
        )

    def offered(self, wanted: OfferRequest) -> OfferedSlices:
        """The configurations of all models, and where they run, in time.

        A slice hands caches over on one link of each of its devices: over which others they go
        is not looked at.
        """
        link = self.fabric.link_bytes_per_s
        wire = Wire(own_bytes_per_s=link, far_bytes_per_s=link)
        of_models = []
        for m, model in enumerate(wanted.models):
            # engines have no kernels of any torus, tables no slices; of a model there may be none
            of_each = [it.on_slices(m, self.openings, whole=wanted.whole) for it in model.runtimes]
            offers = next(iter(of_each), slices.offers_at([], []))
            of_models.append(offers.handing(wanted.roles, wire, model.n_output_tokens))
        return OfferedSlices(
            openings=self.openings,
            of_models=tuple(of_models),
            several=tuple(model.several for model in wanted.models),
            by_latency=wanted.by_latency,
            is_cut=is_over(),
            n_free=self.n_free,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class OfferedSlices:
    """Configurations of each model, and at which openings they run.

    Args:
        several: whether a model may have any number of replicas, by model.
        n_free: devices of the torus.
    """

    openings: Openings
    of_models: tuple[slices.TorusOffers, ...]
    several: tuple[bool, ...]
    by_latency: bool
    is_cut: bool
    n_free: int

    @property
    def configurations(self) -> list[slices.SliceConfiguration]:
        return [one for offered in self.of_models for one in offered.configurations]

    @cached_property
    def kept(self) -> tuple[slices.TorusOffers, ...]:
        """None at openings that smaller ones fill, and serve as much from."""
        return tuple(
            slices.without_tiled(offers, several=several and not self.by_latency)
            for offers, several in zip(self.of_models, self.several, strict=True)
        )

    def only(self, sorts: Collection[ConfigKey]) -> OfferedSlices:
        return self._where(lambda config: config_key(config) in sorts)

    def taking(
        self, configurations: Sequence[AnyConfiguration], n_models: int | None = None
    ) -> OfferedSlices:
        places: dict[Pattern, IntArray] = {}
        for it in self.of_models:
            places.update(it.places)
        several = self.several if n_models is None else (True,) * n_models
        of_each = [[one for one in configurations if one.model == m] for m in range(len(several))]
        offers = (slices.offers_at(mine, [places[one.pattern] for one in mine]) for mine in of_each)
        return replace(self, of_models=tuple(offers), several=several)

    def named(self, kind: str) -> OfferedSlices:
        """The same on devices of a kind of that name."""
        return replace(self, of_models=tuple(one.named(kind) for one in self.of_models))

    def _where(self, is_taken: Callable[[slices.SliceConfiguration], bool]) -> OfferedSlices:
        def some(offered: slices.TorusOffers) -> slices.TorusOffers:
            is_it = np.array(list(map(is_taken, offered.configurations)), np.bool_)
            return offered.where(is_it[offered.which])

        return replace(self, of_models=tuple(map(some, self.of_models)))

    @cached_property
    def listed(self) -> list[slices.SliceConfiguration]:
        """Those that have a place and that no other stands for."""
        return [it.configurations[i] for it in self.kept for i in np.unique(it.which).tolist()]

    @property
    def n_kept(self) -> int:
        """Places of those."""
        return sum(len(it.which) for it in self.kept)

    def by_kinds(self, aim: Objective) -> PlacementProgram:
        return slices.pose_anywhere(self.listed, self.n_free, aim)

    def anywhere(self, aim: Objective) -> None:
        del aim  # places decide

    def of(self, counts: Counts) -> OfferedSlices:
        taken = {id(self.listed[j]) for j, _ in counts.chosen}
        return self._where(lambda config: id(config) in taken)

    def posed(self, aim: Objective) -> slices.TorusProgram:
        return slices.pose_on_torus(self.openings, self.kept, aim)

    def repaired(self, standing: Sequence[CurrentReplica], aim: Objective) -> RepairOnTorus:
        """Slices whose weights stand already, and those that no other stands for.

        While something stands, one stands for another only where it loads no more bytes either.
        """
        stands = {one.sharding for one in standing}
        shardings: dict[slices.SliceConfiguration, tuple[Sharding, float]] = {}
        offered: list[slices.TorusOffers] = []
        for every, several in zip(self.of_models, self.several, strict=True):
            for one in every.configurations:
                shardings[one] = one.shard(aim.wanted[one.model].name)
            kept = slices.without_tiled(
                every,
                several=several and not self.by_latency,
                loaded=[shardings[one][1] * one.n_devices for one in every.configurations],
                by_latency=self.by_latency,
            )
            sharded = [shardings[one][0] in stands for one in every.configurations]
            is_kept = np.array(sharded, np.bool_)
            is_kept[kept.which] = True
            offered.append(every.where(is_kept[every.which]))
        return pose_repair(self.openings, offered, shardings, standing, aim)

    def candidate_counts(self, n_columns: int) -> CandidateCounts:
        configurations = self.configurations
        sources = {id(one.source): one.source for one in configurations}.values()
        n_candidates = sum(one.n_candidates for one in sources)
        n_places = sum(len(offered.which) for offered in self.of_models)
        return CandidateCounts(
            n_candidates=n_candidates,
            n_contexts=n_places,
            rejected={"layouts": n_candidates - len(configurations), "tiled": n_places - n_columns},
            reasons=_REASONS,
        )
