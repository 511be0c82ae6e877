"""Where configurations are looked for: devices of a kind that meet a need, some to a node.

A need is what replicas ask of their devices at least: a group runs at its slowest member. What
is timed on a domain is timed on the cluster that devices make which just meet the need, each
piece in a node of its own: where two share a node, nothing gets slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from planner.placing.fabrics.patterns import LEAF, NODE, POOL, SPANS, STAGE
from planner.specs.records import devices
from planner.topology.inventory import Ability, Inventory, Kind


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """Devices that replicas of one sort may have.

    Args:
        kind, span, need: see `NodePattern`.
        n_nodes: pieces of the largest size that there are places for.
        per_node: devices of the largest piece.
        n_devices: that a replica may have there at most.
        n_shares: nodes that have such a piece, of those where a replica may lie.
    """

    ground: DomainContext
    kind: Kind
    span: str
    need: Ability
    n_nodes: int
    per_node: int
    n_devices: int
    n_shares: int = 1

    @property
    def cluster(self) -> devices.ClusterSpec:
        """Nodes of so many devices, as wide and as fast as the need says."""
        base, least, inventory = self.ground.bases[self.kind], self.need, self.ground.inventory
        assert isinstance(base.fabric, devices.NodesFabric)
        out = least.spine_bytes_per_s if self.span == POOL else least.nic_bytes_per_s
        # of `stage` the groups lie in a leaf; what its stages hand over is said in its meshes
        hops = inventory.spine_s if self.span == POOL else inventory.scale_out_s
        is_inside = self.span == NODE
        fabric = replace(
            narrowed(base.fabric, least.scale_up_bytes_per_s),
            n_nodes=self.n_nodes,
            n_devices_per_node=self.per_node,
            scale_out_bytes_per_s=out or base.fabric.scale_out_bytes_per_s,
            scale_out_latency_s=base.fabric.scale_out_latency_s if is_inside else hops[self.kind],
        )
        device = slowed(base.device, least.speed_fraction)
        return replace(base, device=device, fabric=fabric)


def domains(ground: DomainContext, kind: Kind, span: str, need: Ability) -> Iterator[Domain]:
    """The domains of one need, from the smallest pieces to the largest."""
    whole, most = largest_piece(ground.inventory, kind), ground.most_devices
    for per_node in [whole] if span == NODE else range(1, whole + 1):
        n_places, n_able, n_shares = 1, per_node, 1
        if span != NODE:
            n_places, n_shares = _n_places(ground, kind, (span, need), per_node)
            n_able, _ = _n_places(ground, kind, (span, need), 1)
        yield Domain(
            ground=ground,
            kind=kind,
            span=span,
            need=need,
            n_nodes=1 if span == NODE else min(n_places, most // per_node),
            per_node=per_node,
            n_devices=min(n_able, most),
            n_shares=n_shares,
        )


def largest_piece(inventory: Inventory, kind: Kind) -> int:
    """Devices of a whole node of a kind, the largest there is."""
    return piece_sizes(inventory, kind)[-1]


def piece_sizes(inventory: Inventory, kind: Kind) -> list[int]:
    """Devices that may lie in one node together: powers of two, and whole nodes."""
    whole = max(node.n_devices for node in inventory.nodes_of(kind))
    return sorted({*(1 << k for k in range(whole.bit_length())), whole})


def needs(inventory: Inventory, kind: Kind) -> Iterator[tuple[str, Ability]]:
    """What replicas of each span may ask of their devices, each set of devices once.

    A need is the tightest that its devices meet, so no two needs are met by the same ones.
    """
    able = {*inventory.abilities(kind)}
    leaves = {node.leaf for node in inventory.nodes_of(kind) if node.free}
    for span in SPANS if len(leaves) > 1 else (NODE, LEAF):
        cut = {ability: _asked_by(span, ability) for ability in able}
        # many a need is met by the same devices, which then differ in what they have to spare
        for meeting in dict.fromkeys(_meeting(span, cut)):
            least = {axis: min(getattr(cut[one], axis) for one in meeting) for axis in _AXES}
            yield span, Ability(**least)


def _meeting(span: str, cut: Mapping[Ability, Ability]) -> Iterator[frozenset[Ability]]:
    """Devices, as what they can do, that meet each need of a span that some can meet.

    Args:
        cut: what a replica of the span may ask of each of them.
    """
    axes = [sorted({getattr(one, axis) for one in cut.values()}) for axis in _AXES]
    for values in product(*axes):
        need = Ability(**dict(zip(_AXES, values, strict=True)))
        meeting = frozenset(ability for ability in cut if ability.meets(need))
        if meeting and _reaches(span, need):
            yield meeting


_AXES = ("speed_fraction", "scale_up_bytes_per_s", "nic_bytes_per_s", "spine_bytes_per_s")


def _asked_by(span: str, ability: Ability) -> Ability:
    """An ability without what a span does not use."""
    return replace(
        ability,
        nic_bytes_per_s=ability.nic_bytes_per_s if span in (LEAF, STAGE) else 0.0,
        spine_bytes_per_s=ability.spine_bytes_per_s if span in (STAGE, POOL) else 0.0,
    )


def _reaches(span: str, least: Ability) -> bool:
    """Whether devices of an ability can talk over a span at all."""
    nic, spine = least.nic_bytes_per_s, least.spine_bytes_per_s
    return {NODE: 1.0, LEAF: nic, STAGE: min(nic, spine), POOL: spine}[span] > 0


def _n_places(
    ground: DomainContext, kind: Kind, need: tuple[str, Ability], per_node: int
) -> tuple[int, int]:
    """Pieces of a size that a replica of a span may have at most, and nodes that have one."""
    span, least = need
    places: Counter[int] = Counter()
    shares: Counter[int] = Counter()
    for node in ground.inventory.nodes:
        if node.kind == kind:
            n_able = sum(one.meets(least) for _, one in node.free)
            places[node.leaf] += n_able // per_node
            shares[node.leaf] += n_able >= per_node

    def most(of_leaf: Counter[int]) -> int:
        return of_leaf.total() if span in (STAGE, POOL) else max(of_leaf.values(), default=0)

    return most(places), most(shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainContext:
    """What ways are looked for on.

    Args:
        inventory: what is free.
        bases: the cluster of each kind, as if all were well: device, conventions, rent.
        most_devices: devices of one replica at most.
    """

    inventory: Inventory
    bases: dict[Kind, devices.ClusterSpec]
    most_devices: int
    _domains: dict[Kind, tuple[Domain, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def domains(self, kind: Kind) -> tuple[Domain, ...]:
        """Those of every need, made once for all models and engines."""
        if kind not in self._domains:
            every = needs(self.inventory, kind)
            self._domains[kind] = tuple(it for one in every for it in domains(self, kind, *one))
        return self._domains[kind]


def slowed(device: devices.DeviceSpec, fraction: float) -> devices.DeviceSpec:
    """A device that computes and reads its memory at a fraction of its speed."""
    if fraction == 1.0:
        return device
    return replace(
        device,
        peak_flop_per_s={name: rate * fraction for name, rate in device.peak_flop_per_s.items()},
        hbm_bytes_per_s=device.hbm_bytes_per_s * fraction,
    )


def narrowed(fabric: devices.NodesFabric, scale_up_bytes_per_s: float) -> devices.NodesFabric:
    """Nodes whose devices send no more than so much to each other; what was measured, too."""
    ratio = scale_up_bytes_per_s / fabric.scale_up_bytes_per_s
    if not np.isfinite(ratio) or ratio == 1.0:
        return fabric
    pair, measured = fabric.scale_up_pair_bytes_per_s, fabric.scale_up_measured
    return replace(
        fabric,
        scale_up_bytes_per_s=scale_up_bytes_per_s,
        scale_up_pair_bytes_per_s=None if pair is None else pair * ratio,
        scale_up_measured=None if measured is None else _narrowed(measured, ratio),
    )


def _narrowed(measured: devices.MeasuredCollectives, ratio: float) -> devices.MeasuredCollectives:
    def at(fits: devices.TwoRegimes) -> devices.TwoRegimes:
        return replace(
            fits,
            short_bytes_per_s=tuple(rate * ratio for rate in fits.short_bytes_per_s),
            long_bytes_per_s=tuple(rate * ratio for rate in fits.long_bytes_per_s),
        )

    return devices.MeasuredCollectives(
        all_reduce=at(measured.all_reduce),
        all_gather=at(measured.all_gather),
        reduce_scatter=at(measured.reduce_scatter),
        all_to_all=at(measured.all_to_all),
    )
