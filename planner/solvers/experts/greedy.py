"""The greedy balancer that serving engines run, from the description of its rules.

[EPLB2025] replicates, one slot after another, the expert whose copies have the highest load
each; then it places copies, heaviest first, on the least loaded rank with a free slot. Where
groups of experts have to stay on a node, it first deals the groups, heaviest first, to the
least loaded node with room, equally many to each, and replicates and places within nodes.

It fills every slot, and knows no bound.
"""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import IntArray
from planner.equations.routing import place, replicate
from planner.programs.experts import ExpertProgram
from planner.solvers.experts.slots import EMPTY, Slots


def greedy(program: ExpertProgram) -> Slots:
    """Place by the greedy rules; within groups, if the program has them and they deal evenly."""
    held = np.full((program.n_ranks, program.n_slots), EMPTY, dtype=np.int64)
    width = program.n_ranks // program.n_nodes
    counts = np.zeros(program.n_experts, dtype=np.int64)
    for m, members in enumerate(_members(program)):
        here = slice(m * width, (m + 1) * width)
        node = held[here]
        n_slots = program.n_slots * (width if program.group is not None else program.n_ranks)
        if program.group is None:
            node = held
        own = replicate(program.load[members], n_slots)
        counts[members] = own
        place(program.load[members] / own, own, node)
        node[node != EMPTY] = members[node[node != EMPTY]]
    return Slots(held=held, counts=counts)


def _members(program: ExpertProgram) -> list[IntArray]:
    """Experts of each node, or all of them together where there are no groups."""
    if program.group is None:
        return [np.arange(program.n_experts)]
    node = deal_groups(program)
    return [np.flatnonzero(node[program.group] == m) for m in range(program.n_nodes)]


def deal_groups(program: ExpertProgram) -> IntArray:
    """Node of each group: heaviest first, to the least loaded node with room for it."""
    assert program.group is not None
    weight = np.bincount(program.group, weights=program.load)
    n_members = np.bincount(program.group)
    room = np.full(program.n_nodes, program.n_slots * program.n_ranks // program.n_nodes)
    most = -(-len(weight) // program.n_nodes)
    loads, dealt = np.zeros(program.n_nodes), np.zeros(program.n_nodes, dtype=np.int64)
    node = np.zeros(len(weight), dtype=np.int64)
    for group in np.argsort(-weight, kind="stable"):
        fits = (room >= n_members[group]) & (dealt < most)
        fits = fits if fits.any() else room >= n_members[group]
        m = int(np.argmin(np.where(fits, loads, np.inf)))
        node[group], loads[m] = m, loads[m] + weight[group]
        dealt[m] += 1
        room[m] -= n_members[group]
    return node
