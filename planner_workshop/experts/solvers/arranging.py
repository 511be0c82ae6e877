"""Which rank gets which contents: ranks are alike, so the loads do not care.

nodes   contents of ranks change places between nodes while that saves traffic; where a
        slack is allowed, single copies do too
moves   contents go where most of them is already: an assignment, exact for given nodes
"""

import numpy as np
from ortools.graph.python import linear_sum_assignment  # type: ignore[import-untyped]

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner_workshop.experts.program import ExpertProgram, equal_placement, node_shares, objective
from planner_workshop.experts.solvers.slots import Slots, exchange, slots_of

_LEAST_GAIN = 1e-9  # of the traffic at stake: less is rounding
MOST_SWAPS = 2_000


def arranged(program: ExpertProgram, copies: IntArray, *, load_limit: float) -> IntArray:
    """The same contents on other ranks: less traffic first, fewer moves then [E, G].

    Args:
        program: with what is known of co-activations and of present copies.
        copies: of each expert on each rank [E, G].
        load_limit: what no rank may exceed where copies change places for less traffic.
    """
    if program.coactivation is not None and program.n_nodes > 1 and program.group is None:
        copies = _swapped_ranks(program, copies)
        copies = _swapped_copies(program, copies, load_limit)
        copies = _swapped_ranks(program, copies)
    if program.present is not None:
        copies = _matched(program, copies)
    return copies


def _swapped_ranks(program: ExpertProgram, copies: IntArray) -> IntArray:
    """Exchange contents of two ranks of different nodes, the best exchange each time.

    The load served together is Σ_m s_mᵀ C s_m / 2 over node shares s_m. With the rank shares y
    and d = y_h - y_g, exchanging g of node A and h of node B adds dᵀC(s_A - s_B) + dᵀCd.
    """
    pairs, copies = _pairs(program), copies.copy()
    node = program.node_of_rank
    counts = np.maximum(copies.sum(axis=1), 1)
    for _ in range(MOST_SWAPS):
        y = copies / counts[:, None]
        by_node = node_shares(program, y)
        pull = y.T @ pairs @ by_node  # of each rank's contents to each node [G, M]
        bond = y.T @ pairs @ y
        own = pull[np.arange(len(node)), node]
        gain = pull[:, node].T - own[:, None] + pull[:, node] - own[None, :]
        gain += np.diag(bond)[:, None] + np.diag(bond)[None, :] - 2.0 * bond
        gain[node[:, None] == node[None, :]] = 0.0
        g, h = divmod(int(np.argmax(gain)), len(node))
        if gain[g, h] <= _LEAST_GAIN * float(pairs.sum()):
            break
        copies[:, [g, h]] = copies[:, [h, g]]
    return copies


def _swapped_copies(program: ExpertProgram, copies: IntArray, load_limit: float) -> IntArray:
    """Exchange single copies of two ranks of different nodes, within the load limit."""
    pairs, copies = _pairs(program), copies.copy()
    node, counts = program.node_of_rank, np.maximum(copies.sum(axis=1), 1)
    size = program.load / counts
    for _ in range(MOST_SWAPS):
        expert, rank = _listed(copies)
        pull = pairs @ node_shares(program, copies / counts[:, None])  # [E, M]
        own, to = node[rank], node[rank]
        there = pull[expert][:, to] - pull[expert, own][:, None]  # copy i to the node of copy j
        each = 1.0 / counts[expert]
        gain = there * each[:, None] + (there * each[:, None]).T
        gain -= 2.0 * each[:, None] * each[None, :] * pairs[np.ix_(expert, expert)]
        loads = size @ copies
        after = loads[rank][:, None] - size[expert][:, None] + size[expert][None, :]
        allowed = (after <= load_limit) & (load_limit >= after.T) & (own[:, None] != to[None, :])
        gain = np.where(allowed, gain, 0.0)
        i, j = divmod(int(np.argmax(gain)), len(expert))
        if gain[i, j] <= _LEAST_GAIN * float(pairs.sum()):
            break
        for e, leaves, enters in ((expert[i], rank[i], rank[j]), (expert[j], rank[j], rank[i])):
            copies[e, leaves] -= 1
            copies[e, enters] += 1
    return copies


def _matched(program: ExpertProgram, copies: IntArray) -> IntArray:
    """Contents on the ranks that hold most of them; nodes stay together where they matter."""
    assert program.present is not None
    kept = np.minimum(copies[:, :, None], program.present[:, None, :]).sum(axis=0)  # [G, G]
    width = program.n_ranks // program.n_nodes
    are_nodes_alike = program.coactivation is None and program.group is None
    if are_nodes_alike or program.n_nodes == 1:
        return _moved(copies, _assigned(kept))
    blocks = kept.reshape(program.n_nodes, width, program.n_nodes, width)
    inner = {
        (m, n): _assigned(blocks[m, :, n, :])
        for m in range(program.n_nodes)
        for n in range(program.n_nodes)
    }
    best = np.array(
        [
            [blocks[m, np.arange(width), n, inner[m, n]].sum() for n in range(program.n_nodes)]
            for m in range(program.n_nodes)
        ]
    )
    places = np.empty(program.n_ranks, dtype=np.int64)
    for m, n in enumerate(_assigned(best).tolist()):
        places[m * width : (m + 1) * width] = n * width + inner[m, n]
    return _moved(copies, places)


def _moved(copies: IntArray, places: IntArray) -> IntArray:
    moved = np.empty_like(copies)
    moved[:, places] = copies
    return moved


def _assigned(worth: IntArray) -> IntArray:
    """The column of each row in an assignment of the most worth [n]."""
    n = len(worth)
    solver = linear_sum_assignment.SimpleLinearSumAssignment()
    left, right = np.divmod(np.arange(n * n), n)
    solver.add_arcs_with_cost(left, right, (worth.max() - worth).ravel())
    if solver.solve() != solver.OPTIMAL:
        raise SolverError("the assignment of contents to ranks failed")
    return np.array([solver.right_mate(i) for i in range(n)])


def _pairs(program: ExpertProgram) -> FloatArray:
    """Co-activations of different experts [E, E]."""
    assert program.coactivation is not None
    pairs = program.coactivation.copy()
    np.fill_diagonal(pairs, 0.0)
    return pairs


def _listed(copies: IntArray) -> tuple[IntArray, IntArray]:
    """Expert and rank of each copy."""
    expert, rank = np.nonzero(copies)
    often = copies[expert, rank]
    return np.repeat(expert, often), np.repeat(rank, often)


MOST_STEPS = 400


def complete(program: ExpertProgram, copies: IntArray) -> Slots | None:
    """Copies with those experts added that are nowhere; None where they do not fit.

    Where a move has a price, the best placement may be near the present one. Each step changes what
    helps the fullest rank most: one slot's expert (a move), or two slots' places (two moves). Every
    state passed is a candidate, and the cheapest counts.

    An expert that is missing goes to the least loaded rank with a free slot.
    """
    copies = copies.copy()
    if (copies.sum(axis=0) > program.n_slots).any():
        return None
    for e in np.flatnonzero(copies.sum(axis=1) == 0):
        free = copies.sum(axis=0) < program.n_slots
        if not free.any():
            return None
        loads = program.load @ (copies / np.maximum(copies.sum(axis=1, keepdims=True), 1))
        copies[e, int(np.argmin(np.where(free, loads, np.inf)))] = 1
    return slots_of(copies, program)


def cheapest_on_the_way(program: ExpertProgram, start: Slots) -> IntArray:
    """The copies [E, G] of least load and price of moves among the states passed."""
    at = start.copy()
    best = at.copies()
    least = objective(program, equal_placement(best))
    for _ in range(MOST_STEPS):
        slots, two = at.copy(), at.copy()
        if not exchange(slots, program.load):
            slots = at
        _swap(two, program.load)
        peaks = [float(state.loads(program.load).max()) for state in (at, slots, two)]
        gains = (peaks[0] - peaks[1], (peaks[0] - peaks[2]) / 2.0)  # by move
        if max(gains) <= 0.0:
            break
        at = slots if gains[0] >= gains[1] else two
        copies = at.copies()
        value = objective(program, equal_placement(copies))
        if value < least:
            best, least = copies, value
    return best


def _swap(at: Slots, load: FloatArray) -> None:
    """Exchange a slot of the fullest rank with one of another, where that helps most."""
    values = at.values(load)
    loads = values.sum(axis=1)
    g = int(np.argmax(loads))
    change = values[None, :, :] - values[g][:, None, None]  # [slot of g, rank, its slot]
    peak = np.maximum(loads[g] + change, loads[None, :, None] - change)
    peak[:, g, :] = np.inf
    i, h, j = np.unravel_index(int(np.argmin(peak)), peak.shape)
    if peak[i, h, j] < loads[g]:
        at.held[g, i], at.held[h, j] = at.held[h, j], at.held[g, i]
