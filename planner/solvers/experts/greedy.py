"""The greedy balancer that serving engines run, from the description of its rules.

[EPLB2025] replicates, one slot after another, the expert whose copies have the highest load
each; then it places copies, heaviest first, on the least loaded rank with a free slot. Where
groups of experts have to stay on a node, it first deals the groups, heaviest first, to the
least loaded node with room, equally many to each, and replicates and places within nodes.

It fills every slot, and knows no bound.
"""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
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


def replicate(load: FloatArray, n_slots: int) -> IntArray:
    """Copies of each expert [E]: each free slot goes to whose copies are heaviest."""
    counts = np.ones(len(load), dtype=np.int64)
    for _ in range(n_slots - len(load) if len(load) else 0):
        counts[np.argmax(load / counts)] += 1
    return counts


def place(size: FloatArray, counts: IntArray, held: IntArray) -> None:
    """Fill empty slots [G, S] with copies, the heaviest first, always on the least loaded rank.

    Args:
        size: load of one copy of each expert [E].
        counts: copies of each expert [E].
        held: slots, all of them empty; filled in place.
    """
    item = np.repeat(np.arange(len(size)), counts)
    order = np.argsort(-size[item], kind="stable")
    loads, filled = np.zeros(len(held)), np.zeros(len(held), dtype=np.int64)
    for e in item[order]:
        g = int(np.argmin(np.where(filled < held.shape[1], loads, np.inf)))
        held[g, filled[g]] = e
        loads[g] += size[e]
        filled[g] += 1


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
