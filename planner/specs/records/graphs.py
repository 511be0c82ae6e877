"""A graph of devices, switches and links that somebody brought, as a record.

It holds what is read of such a graph (`planner.topology.graph` says what that is), so that an
answer can be judged where the graph is not at hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.specs.records.devices import DeviceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphVertex:
    """A device or a switch; None stands for an attribute that the graph does not have.

    Args:
        name: of the vertex.
        kind: `device` or `switch`.
        device: name of the accelerator.
        kind_of: the group that it is of.
        leaf: of a switch, the leaf that it belongs to.
        hbm_bytes, speed_fraction, state: of a device, where it is said.
    """

    name: str
    kind: str
    device: str | None = None
    kind_of: str | None = None
    leaf: str | None = None
    hbm_bytes: float | None = None
    speed_fraction: float | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """A link, its bandwidth one way.

    Args:
        a, b: the vertices that it joins.
        tier: inside a node, to its leaf, above; None is inside.
        n_sharing: devices that share it, where it is said.
    """

    a: str
    b: str
    bytes_per_s: float
    latency_s: float
    tier: str | None = None
    n_sharing: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSpec:
    """A graph, and the records of its devices by name."""

    name: str
    vertices: tuple[GraphVertex, ...]
    edges: tuple[GraphEdge, ...]
    devices: Mapping[str, DeviceSpec]
