"""What is asked of layers on mixed machines: the machines with their links, and how near."""

from __future__ import annotations

from dataclasses import dataclass

from planner.specs.layer_files import LayersSpec
from planner.specs.targets import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersRequest:
    """One request for a placement of layers, defaults filled in.

    Args:
        layers: of which model, on which machines, over which links.
        gap: relative distance of rate and bound at which to stop.
        time_limit_s: of the search.
        seed: of the search.
        proof: how many solvers have to vouch for what solvers prove.
    """

    layers: LayersSpec
    gap: float = 1e-4
    time_limit_s: float | None = None
    seed: int = 0
    proof: Wanted = "two"
