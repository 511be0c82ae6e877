"""Layers over mixed machines: which layers each machine holds, for the most tokens a second.

A machine holds consecutive layers and serves them at a rate that depends on how many they are.
Tokens flow from a coordinator through machines that hold the layers one after the other, and
back; how many is a maximum flow. Machines of one *class* are of one type in one region; inside a
region no link carries less than what any plan could send over it, so only crossings count.

The mathematics is in docs/formulation.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray

RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """Machines, one by one, and the links between them.

    Args:
        n_layers: layers of the model.
        types: names of the types of machines [T].
        rates: tokens/s of a machine of each type that holds 1, 2, … layers; it cannot hold more
            layers than there are rates [T] of (K_t,).
        names: of the machines [M].
        type_of: type of each machine (M,).
        links: tokens/s that each ordered pair of machines can carry (M, M); 0 for no link.
        from_coordinator, to_coordinator: tokens/s to and from each machine (M,).
        enters_within: a machine may take over from inside another's layers: whoever holds the
            layer that comes next can serve from there.

    Raises:
        ValueError: shapes differ, or a link is negative or not a number.
    """

    n_layers: int
    types: tuple[str, ...]
    rates: tuple[FloatArray, ...]
    names: tuple[str, ...]
    type_of: IntArray
    links: FloatArray
    from_coordinator: FloatArray
    to_coordinator: FloatArray
    enters_within: bool = False

    def __post_init__(self) -> None:
        n = len(self.names)
        shapes = {"type_of": (n,), "from_coordinator": (n,), "to_coordinator": (n,)}
        for name, shape in {**shapes, "links": (n, n)}.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, not {shape}")
        for name in ("links", "from_coordinator", "to_coordinator"):
            if not np.all(getattr(self, name) >= 0):
                raise ValueError(f"{name} has entries that are no rates")
        if len(self.rates) != len(self.types):
            raise ValueError(f"{len(self.rates)} tables of rates for {len(self.types)} types")

    def rate(self, machine: int, n_layers: int) -> float:
        """Tokens/s of a machine that holds so many layers; 0 if it cannot."""
        rates = self.rates[int(self.type_of[machine])]
        return float(rates[n_layers - 1]) if 1 <= n_layers <= len(rates) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpan:
    """A machine and the layers that it holds: first to first + n_layers − 1."""

    machine: int
    first: int
    n_layers: int


Placement = tuple[MachineSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classes:
    """Machines that are alike: of one type in one region.

    Args:
        members: machines of each class [C].
        region: of each class (C,).
        rates: tokens/s of a machine that holds 1, 2, … K layers; 0 where it cannot (C, K).
        crossing: least link between two machines of two regions (R, R); infinite inside one.
        entry, leaving: least link from and to the coordinator of each region (R,).
    """

    n_layers: int
    members: tuple[tuple[int, ...], ...]
    region: IntArray
    rates: FloatArray
    crossing: FloatArray
    entry: FloatArray
    leaving: FloatArray

    @property
    def n_machines(self) -> IntArray:
        return np.array([len(members) for members in self.members], dtype=np.int64)

    @property
    def n_regions(self) -> int:
        return len(self.entry)


def rate_table(pool: Pool) -> FloatArray:
    """Tokens/s of each type by layers held, zeros where it cannot hold so many (T, K)."""
    most = min(pool.n_layers, max((len(rates) for rates in pool.rates), default=0))
    table = np.zeros((len(pool.types), max(1, most)))
    for row, rates in zip(table, pool.rates, strict=True):
        row[: min(most, len(rates))] = rates[:most]
    return table


def regions(pool: Pool, enough: float) -> IntArray:
    """The region of each machine: inside one no link can bind (M,).

    A link binds no placement if it carries `enough` tokens/s, or as many as either of its
    machines ever serves.

    Machine after machine joins the first region that it is so linked with, both ways.
    """
    most = rate_table(pool).max(axis=1)[pool.type_of]
    used = np.minimum(enough, np.minimum(most[:, None], most[None, :]))
    wide = np.minimum(pool.links, pool.links.T) >= used
    groups: list[list[int]] = []
    for machine in range(len(pool.names)):
        home = next((r for r in groups if wide[machine, r].all()), None)
        if home is None:
            groups.append(home := [])
        home.append(machine)
    region = np.zeros(len(pool.names), dtype=np.int64)
    for index, members in enumerate(groups):
        region[members] = index
    return region


def classes(pool: Pool, region: IntArray, *, hopes: bool = False) -> Classes:
    """Machines by type and region, with the least link of each crossing.

    Args:
        hopes: take the greatest link instead, of crossings and to the coordinator; then it
            depends on which machines stand there whether a row has the rate.
    """
    pick = np.max if hopes else np.min
    table, n_regions = rate_table(pool), int(region.max(initial=-1)) + 1
    keys = sorted({(int(r), int(t)) for r, t in zip(region, pool.type_of, strict=True)})
    members = tuple(
        tuple(np.flatnonzero((region == r) & (pool.type_of == t)).tolist()) for r, t in keys
    )
    crossing = np.full((n_regions, n_regions), np.inf)
    for a in range(n_regions):
        for b in range(n_regions):
            if a != b:
                crossing[a, b] = pick(pool.links[np.ix_(region == a, region == b)])

    def least(values: FloatArray) -> FloatArray:
        return np.array([pick(values[region == r]) for r in range(n_regions)])

    return Classes(
        n_layers=pool.n_layers,
        members=members,
        region=np.array([r for r, _ in keys], dtype=np.int64),
        rates=table[[t for _, t in keys]],
        crossing=crossing,
        entry=least(pool.from_coordinator),
        leaving=least(pool.to_coordinator),
    )


def violations(pool: Pool, placement: Sequence[MachineSpan]) -> dict[str, float]:
    """Rows that a placement breaks, by how much; written without the solvers' models.

    Returns:
        `once`, machines that hold layers twice; `layers`, machines that hold what is no
        layer; `memory`, layers that they cannot hold; `cover`, layers that nobody holds.
    """
    broken: dict[str, float] = {}
    used = [held.machine for held in placement]
    twice = len(used) - len(set(used)) + sum(not 0 <= m < len(pool.names) for m in used)
    if twice:
        return {"once": float(twice)}
    strange = [
        h
        for h in placement
        if h.first < 0 or h.n_layers < 1 or h.first + h.n_layers > pool.n_layers
    ]
    if strange:
        return {"layers": float(len(strange))}
    beyond = [h.n_layers - len(pool.rates[int(pool.type_of[h.machine])]) for h in placement]
    if any(n > 0 for n in beyond):
        broken["memory"] = float(sum(max(0, n) for n in beyond))
    held = {layer for h in placement for layer in range(h.first, h.first + h.n_layers)}
    if len(held) < pool.n_layers:
        broken["cover"] = float(pool.n_layers - len(held))
    return broken
