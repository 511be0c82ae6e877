"""The placement program of experts: which rank holds which, how often, and what that costs.

sets      experts e, ranks g, nodes m of equally many ranks in order
choose    copies[e, g]  whole numbers: copies of expert e in the slots of rank g
          shares[e, g]  fraction of the load of e that rank g serves
minimise  max_g load_g + move_price × mean load × moves,
          load_g = Σ_e load_e shares[e, g],  moves = Σ_eg max(0, copies - present)
then      traffic between nodes, where co-activations are known
such that
    placed   Σ_g copies[e, g] ≥ 1                                                      ∀ e
    slots    Σ_e copies[e, g] ≤ n_slots                                                ∀ g
    groups   the copies of the experts of a group are on ranks of one node         ∀ group
    split    Σ_g shares[e, g] = 1, shares ≥ 0, none without a copy;
             `equal`: shares[e, g] = copies[e, g] / Σ copies[e, ·]                     ∀ e

Two ways to split: `equal` as today's engines do (a token goes to any copy with the same
probability), `weighted` where the router may send more to one copy than to another.
Slots may stay empty. `violations` is written apart from all that finds placements.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.equations.arrays import FloatArray, IntArray

Split = Literal["equal", "weighted"]
SPLITS: tuple[Split, ...] = ("equal", "weighted")
RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpertProgram:
    """A placement to be found.

    Args:
        load: load of each expert [E], not negative, in any unit; tokens in a time, say.
        n_ranks: expert-parallel ranks.
        n_slots: experts that one rank has room for.
        n_nodes: nodes; it divides the ranks.
        split: how the copies of an expert share its load.
        group: group of each expert [E], whose copies stay on one node; None without groups.
        present: copies that are in place [E, G]; None where nothing is.
        move_price: share of the mean load that a moved copy has to save.
        coactivation: tokens sent to both experts, symmetric [E, E]; None where unknown.
    """

    load: FloatArray
    n_ranks: int
    n_slots: int
    n_nodes: int = 1
    split: Split = "equal"
    group: IntArray | None = None
    present: IntArray | None = None
    move_price: float = 0.0
    coactivation: FloatArray | None = None

    @property
    def n_experts(self) -> int:
        return len(self.load)

    @property
    def n_all_slots(self) -> int:
        return self.n_ranks * self.n_slots

    @property
    def mean_load(self) -> float:
        """Load of a rank if all had the same."""
        return float(self.load.sum()) / self.n_ranks

    @property
    def node_of_rank(self) -> IntArray:
        """Node of each rank [G]: neighbours share one."""
        return np.arange(self.n_ranks) // (self.n_ranks // self.n_nodes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement:
    """An answer: copies [E, G], and the share of each expert's load that a rank serves [E, G]."""

    copies: IntArray
    shares: FloatArray

    @property
    def n_copies(self) -> IntArray:
        """Copies of each expert [E]."""
        return np.asarray(self.copies.sum(axis=1))


def equal_placement(copies: IntArray) -> Placement:
    """The placement whose copies of an expert have the same load each."""
    counts = np.maximum(copies.sum(axis=1, keepdims=True), 1)
    return Placement(copies=copies, shares=copies / counts)


def rank_loads(program: ExpertProgram, placement: Placement) -> FloatArray:
    """Load of each rank [G]."""
    return np.asarray(program.load @ placement.shares)


def max_load(program: ExpertProgram, placement: Placement) -> float:
    """Load of the fullest rank."""
    return float(rank_loads(program, placement).max())


def n_moves(program: ExpertProgram, placement: Placement) -> int:
    """Copies that a rank does not hold yet; zero where nothing is in place."""
    if program.present is None:
        return 0
    return int(np.maximum(placement.copies - program.present, 0).sum())


def objective(program: ExpertProgram, placement: Placement) -> float:
    """The fullest rank's load and the price of the moves, in units of load."""
    price = program.move_price * program.mean_load
    return max_load(program, placement) + price * n_moves(program, placement)


def traffic(program: ExpertProgram, placement: Placement) -> float:
    """Co-activated pairs of experts that are served on different nodes.

    Σ_{e<f} C[e, f] (1 - Σ_m s[e, m] s[f, m]), where s[e, m] is the share of the load of e
    that node m serves: the copies of a pair are drawn independently of each other.
    """
    pairs = program.coactivation
    if pairs is None:
        return 0.0
    by_node = node_shares(program, placement.shares)
    together = float(np.einsum("em,ef,fm->", by_node, pairs, by_node, optimize=True))
    same = float(np.einsum("em,e,em->", by_node, np.diag(pairs), by_node))
    apart = float(pairs.sum() - np.trace(pairs)) - (together - same)
    return max(0.0, apart / 2.0)  # of pairs that are all together, rounding may leave less


def node_shares(program: ExpertProgram, shares: FloatArray) -> FloatArray:
    """Share of each expert's load that a node serves, of what its ranks serve [E, M]."""
    return np.asarray(shares.reshape(program.n_experts, program.n_nodes, -1).sum(axis=2))


def violations(program: ExpertProgram, placement: Placement) -> dict[str, str]:
    """Every constraint that a placement breaks, by its name; empty if it holds.

    Written rank by rank and expert by expert, from nothing but the two records.
    """
    copies, shares = placement.copies.tolist(), placement.shares.tolist()
    broken: dict[str, str] = {}
    size = (program.n_experts, program.n_ranks)
    if placement.copies.shape != size or placement.shares.shape != size:
        return {"shape": f"copies and shares have to be {size[0]} × {size[1]}"}
    if any(count < 0 or count != int(count) for row in copies for count in row):
        broken["copies"] = "counts are whole numbers from 0"
    absent = [e for e, row in enumerate(copies) if sum(row) < 1]
    if absent:
        broken["placed"] = f"expert {absent[0]} is nowhere"
    for g in range(program.n_ranks):
        held = sum(row[g] for row in copies)
        if held > program.n_slots:
            broken["slots"] = f"rank {g} holds {held} experts in {program.n_slots} slots"
    broken.update(_group_violations(program, copies))
    for e, (row, counts) in enumerate(zip(shares, copies, strict=True)):
        fault = _split_fault(row, counts, program.split)
        if fault:
            broken["split"] = f"expert {e}: {fault}"
    return broken


def _split_fault(row: list[float], counts: list[int], split: Split) -> str:
    if abs(sum(row) - 1.0) > RELATIVE_TOLERANCE:
        return f"its shares add up to {sum(row)!r}"
    if any(share < 0.0 or (share > 0.0 and not count) for share, count in zip(row, counts)):  # noqa: B905
        return "a share is negative, or without a copy"
    in_all = sum(counts)
    off = (abs(share - n / in_all) for share, n in zip(row, counts, strict=True))
    if split == "equal" and in_all and any(one > RELATIVE_TOLERANCE for one in off):
        return "its copies do not share equally"
    return ""


def _group_violations(program: ExpertProgram, copies: list[list[int]]) -> dict[str, str]:
    if program.group is None:
        return {}
    width = program.n_ranks // program.n_nodes
    nodes: dict[int, set[int]] = {}
    for e, group in enumerate(program.group.tolist()):
        nodes.setdefault(group, set()).update(g // width for g, n in enumerate(copies[e]) if n)
    torn = [group for group, found in nodes.items() if len(found) > 1]
    return {"groups": f"group {torn[0]} is on nodes {sorted(nodes[torn[0]])}"} if torn else {}


_BISECTIONS = 80  # of a float: to the last bit
_SLACK = 1e-12  # a bound may not be too high by a rounding


def simple_bound(program: ExpertProgram) -> tuple[float, str]:
    """The largest of the bounds by counting, in units of load, and which of them it is.

        mean    the fullest rank has no less than the mean
        copies  within T an expert needs ⌈load / T⌉ copies, and there are only so many slots

    Both hold however copies share their load.
    """
    mean, copies = mean_bound(program), copies_bound(program)
    return (mean, "mean") if mean >= copies else (copies, "copies")


def mean_bound(program: ExpertProgram) -> float:
    """The mean load of a rank; within groups, the load of a group on a whole node."""
    least = program.mean_load
    if program.group is not None:
        width = program.n_ranks // program.n_nodes
        by_group = np.bincount(program.group, weights=program.load)
        least = max(least, float(by_group.max()) / width)
    return least * (1.0 - _SLACK)


def copies_bound(program: ExpertProgram) -> float:
    """The least T for which Σ_e max(1, ⌈load_e / T⌉) copies find slots."""

    def fits(at_most: float) -> bool:
        return int(least_copies(program.load, at_most).sum()) <= program.n_all_slots

    return _least(fits, float(program.load.max(initial=0.0)))


def least_copies(load: FloatArray, at_most: float) -> IntArray:
    """Copies that each expert needs so that none of them exceeds a load [E]."""
    if at_most <= 0.0:
        return np.where(load > 0.0, np.iinfo(np.int32).max, 1).astype(np.int64)
    needed = np.ceil(load / at_most * (1.0 - _SLACK))
    return np.maximum(1, np.minimum(needed, np.iinfo(np.int32).max)).astype(np.int64)


def _least(fits: Callable[[float], bool], high: float) -> float:
    """The edge of a monotone test, from below."""
    low = 0.0
    if fits(low) or not fits(high):
        return 0.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if fits(middle):
            high = middle
        else:
            low = middle
    return low * (1.0 - _SLACK)
