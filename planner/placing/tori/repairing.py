"""Repair on a torus: slices whose ranks are laid so that most of them stay on their devices.

The ranks of a slice may be counted along any of its axes that are alike, from either end of a line
and from anywhere on a ring: all these orders run alike. A rank stays where its device has the same
rank of the same sharding, in whatever replica; all other ranks load their shards. So each place of
a slice moves what its best order leaves to be loaded. That order is found by votes: given which
way axes run and are counted, each device that has a shard says by how much rings are turned.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from math import prod

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.placing.configurations import CurrentReplica, Sharding
from planner.placing.fabrics.repairing import GIB
from planner.placing.program import Objective
from planner.placing.tori import slices
from planner.programs.placement import Counts, PlacementProgram
from planner.topology.openings import Openings
from planner.topology.slices import Shape, torus_device

AT_ONCE = 1 << 20
"""Devices of openings that are looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How ranks of a slice are counted.

    Args:
        axes: axis of the pool that each axis of the mesh lies on.
        turned: whether it is counted from its far end.
        shift: how far a ring is turned.
    """

    axes: Shape
    turned: tuple[bool, ...]
    shift: Shape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepairOnTorus:
    """A program, what its columns move [GiB], and in which order the ranks of some are laid."""

    base: slices.TorusProgram
    moved: FloatArray
    orders: Mapping[int, Order]

    @property
    def program(self) -> PlacementProgram:
        return self.base.program

    def located(self, counts: Counts) -> tuple[slices.LocatedSlice, ...]:
        """Devices of every replica, in the order in which most ranks stay."""
        chosen = [j for j, n in counts.chosen for _ in range(n)]
        listed = zip(chosen, self.base.located(counts), strict=True)
        return tuple(self._ordered(j, one) if j in self.orders else one for j, one in listed)

    def _ordered(self, column: int, replica: slices.LocatedSlice) -> slices.LocatedSlice:
        order = self.orders[column]
        place = self.base.openings.take(self.base.opening[[column]])
        dims = replica.configuration.pattern.dimensions
        inside = np.indices(dims).reshape(3, -1)
        at = np.zeros_like(inside)
        for axis, along in enumerate(order.axes):
            back = (inside[axis] - order.shift[axis]) % dims[axis]
            back = dims[axis] - 1 - back if order.turned[axis] else back
            back = (back + place.first[0, along]) % dims[axis]
            at[along] = (back + place.offset[0, along]) % place.pool[along]
        devices = tuple(torus_device(*cell) for cell in at.T.tolist())
        return replace(replica, axes=order.axes, devices=devices)


def pose_repair(
    openings: Openings,
    offered: Sequence[slices.TorusOffers],
    shardings: Mapping[slices.SliceConfiguration, tuple[Sharding, float]],
    standing: Sequence[CurrentReplica],
    aim: Objective,
) -> RepairOnTorus:
    """State the repair over the openings.

    Args:
        offered: of each model its configurations, and where they run.
        shardings: of each configuration: its sharding, and bytes of a rank's shard.
    """
    base = slices.pose_on_torus(openings, offered, aim)
    ranks = _ranks(openings.pool, standing)
    n_moved = np.array([one.n_devices for one in base.configurations], np.int64)[base.which]
    orders: dict[int, Order] = {}
    for number, config in enumerate(base.configurations):
        sharding, _ = shardings[config]
        if sharding not in ranks:
            continue
        columns = np.flatnonzero(base.which == number)
        size = max(1, AT_ONCE // config.n_devices)
        for some in np.split(columns, range(size, len(columns), size)):
            places = base.openings.take(base.opening[some])
            n_kept, best = _best_orders(places, config.pattern.dimensions, ranks[sharding])
            n_moved[some] -= n_kept
            orders |= {int(some[row]): order for row, order in best.items()}
    shard_bytes = np.array([shardings[one][1] for one in base.configurations])[base.which]
    return RepairOnTorus(base=base, moved=n_moved * (shard_bytes * GIB), orders=orders)


def _ranks(pool: Shape, standing: Sequence[CurrentReplica]) -> Mapping[Sharding, IntArray]:
    """The rank of each sharding that each device has, (X, Y, Z); -1 is none."""
    ranks: dict[Sharding, IntArray] = defaultdict(lambda: np.full(pool, -1, np.int64))
    for one in standing:
        at = np.array([list(map(int, name.split(","))) for name in one.devices])
        ranks[one.sharding][tuple(at.T)] = np.arange(len(at))
    return dict(ranks)


def _best_orders(
    places: Openings, dims: Shape, ranks: IntArray
) -> tuple[IntArray, dict[int, Order]]:
    """Ranks that stay at most at each of some places, (C,), and in which order, if any do."""
    n_places, n = len(places), prod(dims)
    best, orders = np.zeros(n_places, np.int64), dict[int, Order]()
    inside = np.indices(dims).reshape(3, -1)
    for axes, rows in _axis_orders(places, dims):
        index = np.zeros((3, len(rows), n), np.int64)
        for axis, along in enumerate(axes):
            back = (inside[axis] + places.first[rows, along, None]) % dims[axis]
            index[along] = (back + places.offset[rows, along, None]) % places.pool[along]
        has = ranks[tuple(index)]
        here = np.flatnonzero((has >= 0).any(axis=1))
        has = has[here]
        wanted = np.unravel_index(np.maximum(has, 0), dims)
        closes = places.closes[rows[here]][:, list(axes)]
        for turned in product(*((False, True) if dim > 1 else (False,) for dim in dims)):
            vote, counts = np.zeros(has.shape, np.int64), has >= 0
            for axis, dim in enumerate(dims):
                own = dim - 1 - inside[axis] if turned[axis] else inside[axis]
                shift = (wanted[axis] - own) % dim
                counts &= (shift == 0) | closes[:, axis, None]
                vote = vote * dim + shift
            row = np.arange(len(here))[:, None]
            votes = np.bincount((row * n + vote)[counts], minlength=len(here) * n)
            votes = votes.reshape(len(here), n)
            most, who = votes.max(axis=1, initial=0), rows[here]
            for k in np.flatnonzero(most > best[who]).tolist():
                at = np.unravel_index(int(votes[k].argmax()), dims)
                shift_at = (int(at[0]), int(at[1]), int(at[2]))
                orders[int(who[k])] = Order(axes=axes, turned=turned, shift=shift_at)
            best[who] = np.maximum(best[who], most)
    return best, orders


def _axis_orders(places: Openings, dims: Shape) -> Iterator[tuple[Shape, IntArray]]:
    """Ways to lay the axes of a mesh on those of the pool, and the places where they run alike."""
    own, met = places.axis_order(), set[tuple[int, ...]]()
    for x, y, z in permutations(range(3)):
        axes = (x, y, z)
        fits = np.ones(len(places), np.bool_)
        for values in (places.orientation, places.closes, places.link_fraction):
            alike = values[:, axes] == np.take_along_axis(values, own, axis=1)
            fits &= (alike | (np.array(dims) == 1)).all(axis=1)
        fits &= (places.orientation[:, axes] == np.array(dims)).all(axis=1)
        key = tuple(along for along, dim in zip(axes, dims, strict=True) if dim > 1)
        if key not in met and fits.any():
            met.add(key)
            yield axes, np.flatnonzero(fits)
