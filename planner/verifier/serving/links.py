"""Messages of a group of devices in scalars: inside a node as measured, else as links are."""

from __future__ import annotations

from math import ceil, log2

from planner.specs.records import Fabric, NodesFabric, TorusFabric
from planner.specs.stages_request import StageGroup
from planner.verifier.findings import Refused
from planner.verifier.scalar.tiers import fitted_s

MEASURED, COUNTED = "two regimes", "latency + bytes / bandwidth"
"""How messages are timed: by what was measured inside a node, or by links."""

ERRORS = {MEASURED: 0.07, COUNTED: 0.3}
"""Relative errors of both, `assumed`: fits miss their tables by 3 to 14 %."""

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")


class Links:
    """What connects the devices of a cluster; a torus counts as one node.

    Args:
        fabric: of the cluster.

    Raises:
        Refused: it is a list of links, which has no nodes.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        if isinstance(fabric, NodesFabric):
            self.n_per_node = fabric.n_devices_per_node
            inside = fabric.scale_up_bytes_per_s * fabric.scale_up_fraction
            outside = fabric.scale_out_bytes_per_s * fabric.scale_out_fraction
            self.near = (inside, fabric.scale_up_latency_s)
            self.far = (outside, fabric.scale_out_latency_s)
        elif isinstance(fabric, TorusFabric):
            self.n_per_node = fabric.n_devices
            self.near = self.far = (2.0 * fabric.link_bytes_per_s, fabric.hop_s)
        else:
            raise Refused("is a fabric of listed links, which has no nodes")

    def collective_s(self, kind: str, n_bytes: float, n_devices: float) -> float:
        """Over consecutive devices; in steps where they are in several nodes.

        Args:
            kind: one of `COLLECTIVES`.
            n_bytes: the whole buffer of a device.
        """
        inside, nodes = min(n_devices, self.n_per_node), ceil(n_devices / self.n_per_node)
        if nodes == 1:
            return self._inside_s(kind, n_bytes, inside)
        between = _stepped_s(kind, n_bytes / inside, nodes, self.far)
        if kind == "all_reduce":
            halves = ("reduce_scatter", "all_gather")
            return between + sum(self._inside_s(half, n_bytes, inside) for half in halves)
        return between + self._inside_s(kind, n_bytes, inside)

    @property
    def is_measured(self) -> bool:
        """Whether collectives inside a node were measured."""
        return isinstance(self.fabric, NodesFabric) and bool(self.fabric.scale_up_measured)

    def send_s(self, n_bytes: float, *, leaves_node: bool) -> float:
        """To one device of the next stage."""
        rate, latency = self.far if leaves_node else self.near
        return n_bytes / rate + latency

    def _inside_s(self, kind: str, n_bytes: float, n_devices: float) -> float:
        known = self.fabric.scale_up_measured if isinstance(self.fabric, NodesFabric) else None
        if known is not None:
            return fitted_s(getattr(known, kind), n_devices, n_bytes)
        return _stepped_s(kind, n_bytes, n_devices, self.near)


def _stepped_s(kind: str, n_bytes: float, n: float, link: tuple[float, float]) -> float:
    """Steps of a tree, and the share of a buffer that goes to others; twice to reduce it all."""
    rate, latency = link
    once = log2(n) * latency + n_bytes * (n - 1) / n / rate
    return 2 * once if kind == "all_reduce" else once


def handing_s(sender: StageGroup, receiver: StageGroup, n_bytes: float) -> float:
    """From all devices of a group to all of the next: the slower side, and the longer wait.

    Groups of a kind that together fill one node stay in it; others are in nodes of their own.
    """
    stays = sender.name == receiver.name and (
        sender.n_tensor * sender.n_groups <= Links(sender.cluster.fabric).n_per_node
    )
    ports = []
    for group in (sender, receiver):
        links = Links(group.cluster.fabric)
        rate, latency = links.near if stays else links.far
        ports.append((group.n_tensor * rate, latency))
    return n_bytes / min(rate for rate, _ in ports) + max(wait for _, wait in ports)
