"""Who times the deployments of one model on what a site offers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from planner.placing.fabrics.domains import Domain
from planner.placing.fabrics.layouts import configurations_on_nodes
from planner.placing.fabrics.patterns import Beaten, NodeConfiguration
from planner.placing.tori.slices import OfferedOnTorus, slice_configurations
from planner.specs.kernels import EngineTables
from planner.specs.request import Request
from planner.specs.roles import TOGETHER
from planner.topology.openings import Openings


class Runtime(Protocol):
    """Deployments of one model: complete, the best of each pattern of devices."""

    @property
    def tables(self) -> tuple[EngineTables, ...]:
        """What was measured that its times follow from; nothing of layouts."""

    def on_nodes(
        self, model: int, domain: Domain, beaten: Beaten, *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        """Configurations on devices of nodes, without what is beaten.

        Args:
            whole: the best of each sharding of the weights, not only of each pattern.
        """

    def on_torus(self, model: int, openings: Openings, *, whole: bool = False) -> OfferedOnTorus:
        """Configurations on slices, and at which openings they run; `whole` as on nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """The layouts, where phases take turns.

    Args:
        request: the model and its targets; on nodes its cluster is not looked at.
        roles: that replicas may have.
    """

    request: Request
    roles: tuple[str, ...] = (TOGETHER,)

    @property
    def tables(self) -> tuple[EngineTables, ...]:
        return ()

    def on_nodes(
        self, model: int, domain: Domain, beaten: Beaten, *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        return configurations_on_nodes(
            self.request, model, domain, beaten.shapes, self.roles, whole=whole
        )

    def on_torus(self, model: int, openings: Openings, *, whole: bool = False) -> OfferedOnTorus:
        return slice_configurations(self.request, model, openings, self.roles, whole=whole)
