"""What is asked of a placement of experts: their loads, the ranks, and what holds them there."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.specs.targets import Wanted

USUAL_GAP = 1e-3
"""Loads are counts of tokens seen: rarely are they known better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertWeights:
    """What is known of the experts beside their loads.

    Args:
        model: name of the model.
        n_bytes: of one expert of one layer.
        source: where the loads come from.
    """

    model: str = ""
    n_bytes: float | None = None
    source: str = "as given"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertsRequest:
    """One request for a placement of experts, defaults filled in.

    Args:
        loads: of each expert, in any unit.
        n_ranks, n_slots, n_nodes: ranks, slots of each, nodes of equally many ranks.
        n_groups: groups of neighbouring experts that stay on one node; 0 without.
        split: `equal` or `weighted`.
        present: experts that each rank holds now; None where nothing is in place.
        move_price: share of the mean load that a moved copy has to save.
        coactivation: tokens that went to both of two experts, symmetric; None where unknown.
        slack: share of the least load that may be given up for less traffic.
        weights: name, bytes and source of the experts.
        gap: distance to the bound that is good enough, as a share of it.
        seed: of the search.
        time_limit_s: wall time; None for as many steps as are usual.
        proof: how many have to vouch for a bound.
    """

    loads: tuple[float, ...]
    n_ranks: int
    n_slots: int
    n_nodes: int = 1
    n_groups: int = 0
    split: str = "equal"
    present: tuple[tuple[int, ...], ...] | None = None
    move_price: float = 0.0
    coactivation: tuple[tuple[float, ...], ...] | None = None
    slack: float = 0.0
    weights: ExpertWeights = field(default_factory=ExpertWeights)
    gap: float = USUAL_GAP
    seed: int = 0
    time_limit_s: float | None = None
    proof: Wanted = "two"

    @property
    def n_experts(self) -> int:
        return len(self.loads)
