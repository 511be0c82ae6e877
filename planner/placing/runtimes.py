"""Who times the deployments of one model on what a site offers; layouts on nodes among them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.estimates.candidates import machine_of
from planner.estimates.networks import network_table
from planner.estimates.steps import Machine
from planner.placing.configurations import Configuration
from planner.placing.fabrics.domains import Domain, piece_sizes
from planner.placing.fabrics.patterns import NODE, STAGE, Beaten, NodeConfiguration, NodePattern
from planner.placing.layouts import best_of_roles
from planner.placing.tori.slices import TorusOffers, slice_configurations
from planner.specs.ask.request import Request
from planner.specs.records.devices import NodesFabric, TorusFabric
from planner.specs.records.kernels import EngineTables
from planner.specs.records.roles import TOGETHER
from planner.specs.validation.hints import from_fields
from planner.topology.meshes import MeshTable
from planner.topology.openings import Openings


class Runtime:
    """Deployments of one model: complete, the best of each pattern of devices."""

    __slots__ = ()

    @property
    def tables(self) -> tuple[EngineTables, ...]:
        """What was measured that its times follow from; nothing of layouts."""
        return ()

    def on_nodes(
        self, model: int, domain: Domain, beaten: Beaten, *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        """Configurations on devices of nodes, without what is beaten.

        Args:
            model: number of the model.
            whole: the best of each sharding of the weights, not only of each pattern.
        """
        raise NotImplementedError

    @property
    def torus(self) -> str:
        """The torus that it times slices of, by its name; empty of servers."""
        return ""

    def on_slices(self, model: int, openings: Openings, *, whole: bool = False) -> TorusOffers:
        """Configurations on slices of that torus, and where each runs; arguments as above."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline(Runtime):
    """The layouts, where phases take turns.

    Args:
        request: the model and its targets; on nodes its cluster is not looked at.
        roles: that replicas may have.
    """

    request: Request
    roles: tuple[str, ...] = (TOGETHER,)

    @property
    def torus(self) -> str:
        cluster = self.request.cluster
        return cluster.name if isinstance(cluster.fabric, TorusFabric) else ""

    def on_slices(self, model: int, openings: Openings, *, whole: bool = False) -> TorusOffers:
        return slice_configurations(self.request, model, openings, self.roles, whole=whole)

    def on_nodes(
        self, model: int, domain: Domain, beaten: Beaten, *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        """Of each shape the best, those of `beaten` left out.

        A shape is t devices in each of m places, p stages. A pipeline inside a node is one piece;
        others have a piece for each row of a stage.
        """
        is_even = domain.per_node in piece_sizes(domain.ground.inventory, domain.kind)
        if domain.span != NODE and (domain.n_nodes < 2 or not is_even):
            return
        request = replace(self.request, cluster=domain.cluster)
        machine = machine_of(request.cluster, request.model)
        meshes = machine.meshes
        shape = np.stack([meshes.n_inside, meshes.n_across, meshes.n_stages], axis=1)
        wanted = [tuple(one) not in beaten.shapes for one in shape.tolist()]
        rows = np.flatnonzero(_offered(shape, domain) & np.array(wanted, dtype=np.bool_))
        if not len(rows):
            return
        shape, meshes = shape[rows], _handing(meshes.take(rows), request, domain)
        network = network_table(meshes, request.cluster.fabric)
        machine = Machine(device=machine.device, meshes=meshes, network=network)
        groups = [tuple(one) for one in shape.tolist()]
        for row, quantities in best_of_roles(request, machine, groups, self.roles, whole=whole):
            t, m, p = (int(n) for n in shape[row])
            pattern = from_fields(
                NodePattern,
                domain,
                n_inside=t,
                n_across=m,
                n_stages=p,
                pieces=(t * p,) if domain.span == NODE else (t,) * (m * p),
            )
            yield Configuration(model=model, pattern=pattern, **quantities)


def _offered(shape: IntArray, domain: Domain) -> BoolArray:
    """Meshes that lie as the span says, (M,): pieces are powers of two or whole nodes.

    A pipeline inside a node is one piece; other pipelines have a piece for each stage, and are
    costed as if each lay in a node of its own: where two share one, nothing gets slower.
    """
    (t, m, p), ground = shape.T, domain.ground
    n_devices = t * m * p
    fits = n_devices <= ground.most_devices
    if domain.span == NODE:
        sizes = piece_sizes(ground.inventory, domain.kind)
        return np.asarray(fits & (m == 1) & np.isin(n_devices, sizes))
    apart = (m > 1) & (p > 1) if domain.span == STAGE else n_devices > t
    return np.asarray(fits & apart & (t == t.max()))


def _handing(meshes: MeshTable, request: Request, domain: Domain) -> MeshTable:
    """The meshes, with what stages hand over led through the spine where the span says so."""
    if domain.span != STAGE:
        return meshes
    assert isinstance(request.cluster.fabric, NodesFabric)
    attained = domain.need.spine_bytes_per_s * request.cluster.fabric.scale_out_fraction
    return replace(
        meshes,
        stage_bytes_per_s=np.full(len(meshes), attained),
        stage_hop_s=np.full(len(meshes), domain.ground.inventory.spine_s[domain.kind]),
    )
