"""Copies of experts on ranks, one by one: loads in exact fractions, bounds, the greedy rules.

The greedy balancer is the one that engines run, written from the description of its rules
[EPLB2025]; the least load that copies can reach with shares of any size is a cut of a network.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import networkx as nx

from planner.specs.ask.stages import ExpertsRequest

Copies = Sequence[Mapping[int, int]]
"""Of each rank the copies that it holds, by expert."""

HALVINGS = 80
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Copies, and how much of an expert's load each rank serves.

    Args:
        held: copies of each rank, by expert.
        shares: of each rank, by expert.
    """

    held: Copies
    shares: Sequence[Mapping[int, Fraction]]

    def loads(self, request: ExpertsRequest) -> list[Fraction]:
        return [
            sum((Fraction(request.loads[e]) * share for e, share in rank.items()), Fraction())
            for rank in self.shares
        ]

    def traffic(self, request: ExpertsRequest) -> float | None:
        """Pairs that went to different nodes: copies of a pair are drawn independently."""
        if request.coactivation is None:
            return None
        on_node: list[dict[int, float]] = [{} for _ in request.loads]
        for g, rank in enumerate(self.shares):
            for e, share in rank.items():
                m = node_of(request, g)
                on_node[e][m] = on_node[e].get(m, 0.0) + float(share)
        apart = (
            pairs * (1.0 - sum(share * on_node[f].get(m, 0.0) for m, share in on_node[e].items()))
            for e, row in enumerate(request.coactivation)
            for f, pairs in enumerate(row[:e])
            if pairs
        )
        return math.fsum(apart)


def node_of(request: ExpertsRequest, rank: int) -> int:
    return rank // (request.n_ranks // request.n_nodes)


def group_of(request: ExpertsRequest, expert: int) -> int:
    """The group of an expert: neighbours share one."""
    return expert // (request.n_experts // request.n_groups)


def counted(ranks: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    """Copies of each rank by expert, from lists in which a second copy stands twice."""
    return [{e: list(rank).count(e) for e in rank} for rank in ranks]


def copies_of(held: Copies, n_experts: int) -> list[int]:
    return [sum(rank.get(e, 0) for rank in held) for e in range(n_experts)]


def shared_equally(held: Copies, n_experts: int) -> Shared:
    """Copies that have the same part of their expert's load each."""
    in_all = copies_of(held, n_experts)
    return Shared(
        held=held, shares=[{e: Fraction(n, in_all[e]) for e, n in rank.items()} for rank in held]
    )


def n_moves(held: Copies, present: Copies) -> list[int]:
    """Copies of each rank that it does not hold yet."""
    return [
        sum(max(0, n - there.get(e, 0)) for e, n in rank.items())
        for rank, there in zip(held, present, strict=True)
    ]


def counting_bound(request: ExpertsRequest) -> float:
    """What no placement is below: the mean, of a group on its node too, and copies in slots."""
    total = math.fsum(request.loads)
    least = total / request.n_ranks
    if request.n_groups:
        width = request.n_ranks // request.n_nodes
        least = max(least, max(_group_loads(request)) / width)
    low, high = 0.0, max(request.loads)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if (
            middle > 0.0
            and _n_copies_within(request.loads, middle) <= request.n_ranks * request.n_slots
        ):
            high = middle
        else:
            low = middle
    return max(least, high)


def _n_copies_within(loads: Sequence[float], at_most: float) -> float:
    """Copies of all experts, so that none of them has more than a load."""
    return sum(max(1.0, math.ceil(load / at_most * (1.0 - ROUNDING))) for load in loads)


def _group_loads(request: ExpertsRequest) -> list[float]:
    sums = [0.0] * request.n_groups
    for e, load in enumerate(request.loads):
        sums[group_of(request, e)] += load
    return sums


def least_fullest(request: ExpertsRequest, held: Copies) -> Fraction:
    """The least load of the fullest rank, if copies may share their load in any way.

    Experts whose copies are all on few ranks fill these at least to their load over the ranks;
    the worst such set is the cut that keeps a load from being served within too small a limit.
    """
    loads = [Fraction(load) for load in request.loads]
    limit = sum(loads, Fraction()) / len(held)
    while True:
        short = unserved(loads, held, [limit] * len(held))
        if not short:
            return limit
        ranks = {g for g, rank in enumerate(held) if short & rank.keys()}
        limit = sum((loads[e] for e in short), Fraction()) / len(ranks)


def unserved(loads: Sequence[Fraction], held: Copies, limits: Sequence[Fraction]) -> set[int]:
    """Experts whose load together is more than all ranks with a copy of them may have.

    Empty where every load finds ranks within their limits: a largest flow, in whole numbers.
    """
    unit = math.lcm(*(one.denominator for one in (*loads, *limits)))
    network: nx.DiGraph[tuple[str, int]] = nx.DiGraph()
    for e, load in enumerate(loads):
        network.add_edge(("", 0), ("expert", e), capacity=int(load * unit))
    for g, (rank, limit) in enumerate(zip(held, limits, strict=True)):
        network.add_edge(("rank", g), ("", 1), capacity=int(limit * unit))
        network.add_edges_from((("expert", e), ("rank", g)) for e in rank)
    served, (short, _) = nx.minimum_cut(network, ("", 0), ("", 1))
    if served == sum(int(load * unit) for load in loads):
        return set()
    return {e for kind, e in short if kind == "expert"}


def greedy_copies(request: ExpertsRequest) -> Copies:
    """Copies by the greedy rules; within nodes, where groups have to stay on one.

    Each free slot goes to the expert whose copies are heaviest, and copies are placed, heaviest
    first, on the least loaded rank with a free slot.
    """
    ranks: list[list[int]] = [[] for _ in range(request.n_ranks)]
    width = request.n_ranks // request.n_nodes
    parts = [(list(range(request.n_experts)), range(request.n_ranks))]
    if request.n_groups:
        node = _dealt(request)
        parts = [
            (
                [e for e in range(request.n_experts) if node[group_of(request, e)] == m],
                range(m * width, (m + 1) * width),
            )
            for m in range(request.n_nodes)
        ]
    for members, there in parts:
        _fill(request, members, there, ranks)
    return counted(ranks)


PARTS = 10**9
"""Of a chance, whole ones by which copies are dealt: no rounding error decides between equals."""


def fullest_of_greedy(chances: Sequence[float], n_ranks: int, n_slots: int) -> tuple[float, ...]:
    """Of the copies on the rank with most visits, if all slots are filled by the greedy rules."""
    parts = tuple(float(round(one * PARTS)) for one in chances)
    held = greedy_copies(ExpertsRequest(loads=parts, n_ranks=n_ranks, n_slots=n_slots))
    copies = copies_of(held, len(parts))
    ranks = [[e for e, n in rank.items() for _ in range(n)] for rank in held]
    most = max(ranks, key=lambda rank: sum(parts[e] / copies[e] for e in rank))
    return tuple(chances[e] / copies[e] for e in most)


def _fill(
    request: ExpertsRequest, members: Sequence[int], there: range, ranks: list[list[int]]
) -> None:
    """Copies of some experts on some ranks, by the greedy rules."""
    copies = dict.fromkeys(members, 1)
    heaviest = [(-request.loads[e], e) for e in members]
    heapq.heapify(heaviest)
    for _ in range(len(there) * request.n_slots - len(members) if members else 0):
        _, e = heaviest[0]
        copies[e] += 1
        heapq.heapreplace(heaviest, (-(request.loads[e] / copies[e]), e))
    sizes = {e: request.loads[e] / n for e, n in copies.items()}
    items = [e for e in members for _ in range(copies[e])]
    emptiest = [(0.0, g) for g in there]
    for e in sorted(items, key=lambda e: -sizes[e]):
        load, g = heapq.heappop(emptiest)
        ranks[g].append(e)
        if len(ranks[g]) < request.n_slots:
            heapq.heappush(emptiest, (load + sizes[e], g))


def _dealt(request: ExpertsRequest) -> list[int]:
    """Node of each group: heaviest first, to the least loaded node with room, equally many."""
    weight, size = _group_loads(request), request.n_experts // request.n_groups
    room = [request.n_slots * request.n_ranks // request.n_nodes] * request.n_nodes
    most = -(-request.n_groups // request.n_nodes)
    loads, dealt = [0.0] * request.n_nodes, [0] * request.n_nodes
    node = [0] * request.n_groups
    for group in sorted(range(request.n_groups), key=lambda g: -weight[g]):
        fits = [m for m in range(request.n_nodes) if room[m] >= size]
        m = min([m for m in fits if dealt[m] < most] or fits, key=lambda m: loads[m])
        node[group], loads[m] = m, loads[m] + weight[group]
        dealt[m], room[m] = dealt[m] + 1, room[m] - size
    return node
