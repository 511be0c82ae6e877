"""What is asked of a placement of layers: machines, how fast each is, links, how to search."""

from __future__ import annotations

from dataclasses import dataclass

from planner.specs.provenance import Provenance
from planner.specs.targets import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """Machines of one type in one region.

    Args:
        rates_tokens_per_s: of one that holds 1, 2, … layers.
    """

    type: str
    count: int
    region: str
    rates_tokens_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersSpec:
    """Layers, machines and links.

    Args:
        enters_within: a machine may take over from inside another's layers.
        between_tokens_per_s: of each ordered pair of machines, in one region.
        across_tokens_per_s: of each ordered pair in two regions.
        coordinator_tokens_per_s: to and from the machine that requests come to, of each.
        from_coordinator_tokens_per_s, to_coordinator_tokens_per_s: the same of each machine in
            their order; empty if it is the same of all.
        matrix_tokens_per_s: of each ordered pair, in the order of the machines; empty if the
            three above say it.
        published_tokens_per_s: the best that the source found; None if it says none.
    """

    name: str
    title: str
    n_layers: int
    enters_within: bool
    machines: tuple[MachineType, ...]
    between_tokens_per_s: float
    across_tokens_per_s: float
    coordinator_tokens_per_s: float
    matrix_tokens_per_s: tuple[tuple[float, ...], ...]
    from_coordinator_tokens_per_s: tuple[float, ...]
    to_coordinator_tokens_per_s: tuple[float, ...]
    published_tokens_per_s: float | None
    provenance: tuple[Provenance, ...]

    @property
    def n_machines(self) -> int:
        return sum(one.count for one in self.machines)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersRequest:
    """One request for a placement, defaults filled in.

    Args:
        layers: the file of machines, as read.
        gap: relative distance of rate and bound at which to stop.
        time_limit_s: of the search; None for as long as it takes.
        seed: of what the search draws.
        proof: how many solvers have to vouch for what solvers prove.
    """

    layers: LayersSpec
    gap: float = 1e-4
    time_limit_s: float | None = None
    seed: int = 0
    proof: Wanted = "two"
