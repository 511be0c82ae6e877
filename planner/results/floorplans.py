"""A cluster to draw: its devices where they are, and what each of them does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One device.

    Args:
        name: as the user calls it.
        state: `free`, `busy`, `failed` or `reserved`.
        speed_fraction: of its nominal speed.
    """

    name: str
    state: str
    speed_fraction: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A node and its devices, or a leaf and its nodes."""

    name: str
    boxes: tuple[Box, ...] = ()
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorPlan:
    """All devices of a cluster.

    Args:
        title: of the cluster, for people.
        leaves: boxes of nodes; none on a torus.
        pool: devices along the axes of a torus; None elsewhere.
        cube: devices along each side of its cubes.
        spots: of a torus, the last axis the fastest.
        lines: what is to be said of links that are down or slow.
    """

    title: str
    leaves: tuple[Box, ...] = ()
    pool: tuple[int, int, int] | None = None
    cube: int = 1
    spots: tuple[Spot, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def n_devices(self) -> int:
        return len(self.spots) + sum(len(n.spots) for leaf in self.leaves for n in leaf.boxes)
