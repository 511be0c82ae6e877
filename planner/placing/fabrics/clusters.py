"""The cluster that devices of some ability make: what the layouts of a replica are costed on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.placing.fabrics.patterns import NODE, POOL
from planner.specs.records import (
    ClusterSpec,
    DeviceSpec,
    MeasuredCollectives,
    NodesFabric,
    TwoRegimes,
)
from planner.topology.inventory import Ability, Inventory, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What ways are looked for on.

    Args:
        inventory: what is free.
        bases: the cluster of each kind, as if all were well: device, conventions, rent.
        most_devices: devices of one replica at most.
    """

    inventory: Inventory
    bases: dict[Kind, ClusterSpec]
    most_devices: int


def cluster_for(
    ground: Ground, kind: Kind, need: tuple[str, Ability], size: tuple[int, int]
) -> ClusterSpec:
    """The cluster that a need's devices make: nodes of so many, as wide and fast as it says."""
    base, (span, least), (n_nodes, per_node) = ground.bases[kind], need, size
    assert isinstance(base.fabric, NodesFabric)
    out = least.spine_bytes_per_s if span == POOL else least.nic_bytes_per_s
    # of `stage` the groups lie in a leaf; what its stages hand over is said in its meshes
    hops = ground.inventory.spine_s if span == POOL else ground.inventory.scale_out_s
    fabric = replace(
        narrowed(base.fabric, least.scale_up_bytes_per_s),
        n_nodes=n_nodes,
        n_devices_per_node=per_node,
        scale_out_bytes_per_s=out or base.fabric.scale_out_bytes_per_s,
        scale_out_latency_s=hops[kind] if span != NODE else base.fabric.scale_out_latency_s,
    )
    device = slowed(base.device, least.speed_fraction)
    return replace(base, device=device, fabric=fabric)


def slowed(device: DeviceSpec, fraction: float) -> DeviceSpec:
    """A device that computes and reads its memory at a fraction of its speed."""
    if fraction == 1.0:
        return device
    return replace(
        device,
        peak_flop_per_s={name: rate * fraction for name, rate in device.peak_flop_per_s.items()},
        hbm_bytes_per_s=device.hbm_bytes_per_s * fraction,
    )


def narrowed(fabric: NodesFabric, scale_up_bytes_per_s: float) -> NodesFabric:
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


def _narrowed(measured: MeasuredCollectives, ratio: float) -> MeasuredCollectives:
    def at(fits: TwoRegimes) -> TwoRegimes:
        return replace(
            fits,
            short_bytes_per_s=tuple(rate * ratio for rate in fits.short_bytes_per_s),
            long_bytes_per_s=tuple(rate * ratio for rate in fits.long_bytes_per_s),
        )

    return MeasuredCollectives(
        all_reduce=at(measured.all_reduce),
        all_gather=at(measured.all_gather),
        reduce_scatter=at(measured.reduce_scatter),
        all_to_all=at(measured.all_to_all),
    )
