"""Every placement that may have a rate, tried machine by machine, thousands at once.

A part of a placement is dropped if what all other machines could add does not bring every layer to
the rate; what is left at the end is judged by cuts. Both are the project's own arithmetic, so what
the search excludes is proven by no solver.
"""

import math
import time
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from ortools.graph.python import max_flow  # type: ignore[import-untyped]

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner_workshop.staging.machines.program import RELATIVE_TOLERANCE, Placement
from planner_workshop.staging.machines.spans import Cut, Spans, cut_rates, layer_rates, meet

AT_ONCE = 40_000
"""Parts of placements that are looked at together: few go down soon, many are quick."""

JUDGED = 500
"""Whole placements that are judged together."""

CELLS = 3_000_000
"""Numbers in their largest array."""

ROUNDING = 1e-11
"""Share of a sum that its rounding may come to; a hundredth of what a rate is raised by."""

MOST_CUTS = 200


@dataclass(slots=True, kw_only=True)
class Tree:
    """A search for placements above a rate, and what it has seen.

    Args:
        spans: what each machine may hold.
        above: only placements above this are looked for; each that is found raises it [tokens/s].
        deadline_s: by `time.perf_counter`.
        best: the best placement found, which serves `rate`.
        missed: no placement that was dropped beside `above` has more than this [tokens/s].
        n_tried: parts of placements looked at.
    """

    spans: Spans
    above: float
    prices: FloatArray | None = None
    deadline_s: float = math.inf
    best: Placement | None = None
    rate: float = 0.0
    missed: float = 0.0
    n_tried: int = 0
    order: list[int] = field(init=False)
    after: dict[int, int] = field(init=False)
    cuts: list[Cut] = field(init=False, default_factory=list)
    tables: list[FloatArray] = field(init=False)
    covers: list[FloatArray] = field(init=False)
    weights: list[FloatArray] = field(init=False)
    valued: tuple[float, list[FloatArray]] = field(init=False, default=(math.nan, []))

    def __post_init__(self) -> None:
        some, layer = self.spans, np.arange(self.spans.pool.n_layers)
        self.covers = [
            np.where((f[:, None] <= layer) & (layer < e[:, None]), r[:, None], 0.0)
            for f, e, r in zip(some.first, some.end, some.rate, strict=True)
        ]
        self.order, self.after = _order(some, self.covers)
        self.tables = [some.best_rates(m) for m in self.order]
        even = np.ones(len(layer))
        self.weights = [even] if self.prices is None else [even, self.prices]

    def search(self, cells: int) -> bool:
        """Try all that may be above the rate; False if that is more work than `cells` numbers."""
        n = len(self.order)
        settled = [m for m in self.order if len(self.covers[m]) == 1]
        # depth first in blocks: what is on the stack is a block a depth, however wide the tree is
        root = np.zeros((1, len(settled)), dtype=np.int64)
        stack = [(root, layer_rates(self.spans, settled, root, self.order[len(settled) :]))]
        until = self.n_tried + cells // self.width
        while stack:
            if self.n_tried > until or time.perf_counter() > self.deadline_s:
                return False
            chosen, rates = stack.pop()
            depth = chosen.shape[1]
            if depth == n:
                if len(chosen) > JUDGED:
                    stack.append((chosen[JUDGED:], rates[JUDGED:]))
                self._judge(chosen[:JUDGED])
                continue
            n_spans = len(self.covers[self.order[depth]])
            step = max(1, min(AT_ONCE, CELLS // self.width) // n_spans)
            if len(chosen) > step:
                stack.append((chosen[step:], rates[step:]))
            parts = self._grown(chosen[:step], rates[:step])
            if len(parts[0]):
                stack.append(parts)
        return True

    @property
    def width(self) -> int:
        """Numbers that are counted of each part."""
        return self.spans.pool.n_layers + len(self.order) ** 2

    @property
    def bound(self) -> float:
        """What a search that came to its end proves: no placement has more [tokens/s]."""
        return max(self.above, self.missed)

    def _grown(self, chosen: IntArray, rates: FloatArray) -> tuple[IntArray, FloatArray]:
        """Parts with one machine more that may still reach the rate; the most promising first."""
        depth = chosen.shape[1]
        cover = self.covers[self.order[depth]]
        n_spans = len(cover)
        grown = (rates[:, None, :] + cover[None]).reshape(-1, rates.shape[1])
        self.n_tried += len(grown)
        may = self._is_ordered(chosen, depth, n_spans)
        kept = np.flatnonzero(may) if may is not None else np.arange(len(grown))
        # links are left out at first, which can only let too much pass: most parts end here, and
        # what links bring to each layer is counted of the rest alone
        kept = kept[self._may_reach(grown[kept], depth + 1)]
        parts = np.concatenate([chosen[kept // n_spans], (kept % n_spans)[:, None]], axis=1)
        if not len(parts):
            return parts, grown[kept]
        linked = layer_rates(self.spans, self.order[: depth + 1], parts, self.order[depth + 1 :])
        here = self._may_reach(linked, depth + 1)
        missing = np.maximum(self.above - linked[here], 0.0).sum(axis=1)
        here = here[np.argsort(missing, kind="stable")]
        return parts[here], linked[here]

    def _is_ordered(self, chosen: IntArray, depth: int, n_spans: int) -> BoolArray | None:
        """Of machines that may change places, those after another hold no earlier span."""
        # a placement stays one when such machines change places, so of all orders of their spans
        # the ascending one is enough
        before = self.after.get(depth)
        if before is None:
            return None
        return (np.arange(n_spans)[None, :] >= chosen[:, before][:, None]).ravel()

    def _may_reach(self, rates: FloatArray, depth: int) -> IntArray:
        """Which parts the machines from `depth` on may bring to the rate in every layer."""
        # where the rest reaches the rate in every layer, it brings Σ_l w_l missing_l or more, for
        # any weights w ≥ 0; a machine on its best span brings no more than Σ_l w_l min(rate,
        # above), and no more than Σ_l w_l min(rate, missing_l), which is sharper and takes longer
        missing = np.maximum(self.above * (1.0 - ROUNDING) - rates, 0.0)
        kept = np.arange(len(missing))
        for weights, worth in zip(self.weights, self._worth(), strict=True):
            need = missing[kept] @ weights
            few = need * (1.0 - ROUNDING) <= worth[depth]
            kept, need = kept[few], need[few]
            most = _most_taken(missing[kept], weights, self.tables[depth:])
            kept = kept[need * (1.0 - ROUNDING) <= most]
        return kept

    def _worth(self) -> list[FloatArray]:
        """What machines from each depth on could add at most, by each weights (D + 1,)."""
        if self.valued[0] != self.above:
            worth = [
                [float((np.minimum(self.covers[m], self.above) @ w).max()) for m in self.order]
                for w in self.weights
            ]
            rest = [np.append(np.cumsum(one[::-1])[::-1], 0.0) for one in worth]
            self.valued = (self.above, rest)
        return self.valued[1]

    def _judge(self, chosen: IntArray) -> None:
        """Whole placements: each is dropped by a cut, or is the best so far."""
        at = np.empty_like(chosen)
        at[:, self.order] = chosen
        least = np.full(len(at), np.inf)
        if self.cuts:
            least = cut_rates(self.spans, self.cuts, at).min(axis=1)
        while True:
            at, least = at[least > self.above], least[least > self.above]
            if not len(at):
                break
            machine = int(least.argmax())
            # what passes a cut bounds the flow of every placement, not only of the one whose flow
            # it stopped: so one flow drops many others, and each cut is kept for those to come
            rate, cut = maximum_flow(self.spans, at[machine])
            self.cuts = [*self.cuts[-MOST_CUTS:], cut]
            passed = cut_rates(self.spans, [cut], at)[:, 0]
            if rate > max(self.rate, self.above):
                self.rate, self.best = rate, self.spans.placement(at[machine])
                self.above = rate * (1.0 + RELATIVE_TOLERANCE)
            self.missed = max(self.missed, float(passed[machine]))
            least = np.minimum(least, passed)
            # it is no more than what is best by now
            least[machine] = 0.0


def _order(some: Spans, covers: list[FloatArray]) -> tuple[list[int], dict[int, int]]:
    """Machines in the order in which they are placed, and whom each may not precede.

    First those that are fixed, then those that could serve most; interchangeable ones together.
    """
    worth = [float(cover.sum(axis=1).max()) for cover in covers]
    groups = [[m] for m, cover in enumerate(covers) if len(cover) == 1]
    whole = [[m for m in group if len(covers[m]) > 1] for group in some.groups]
    whole = [group for group in whole if group]
    groups += sorted(whole, key=lambda group: -worth[group[0]])
    order = [m for group in groups for m in group]
    place = {m: d for d, m in enumerate(order)}
    after = {
        place[then]: place[first]
        for group in groups
        for first, then in pairwise(group)
        if np.array_equal(some.first[first], some.first[then])
        and np.array_equal(some.end[first], some.end[then])
    }
    return order, after


def _most_taken(missing: FloatArray, weights: FloatArray, tables: list[FloatArray]) -> FloatArray:
    """The most of what is missing in each layer that machines can add, each by itself (N,).

    Args:
        weights: what a token/s is worth in each layer (L,).
        tables: rates of each machine by layers held, `Spans.best_rates` [D] of (3, L).
    """
    total = np.zeros(len(missing))
    known: dict[bytes, FloatArray] = {}
    for table in tables:
        key = table.tobytes()
        if key not in known:
            known[key] = _taken(missing, weights, table)
        total += known[key]
    return total


def _taken(missing: FloatArray, weights: FloatArray, table: FloatArray) -> FloatArray:
    """The most of it that one machine takes, by any layers that follow each other (N,)."""
    best = np.zeros(len(missing))
    for held in np.flatnonzero(table.max(axis=0) > 0).tolist():
        k = held + 1
        start, inside, end = table[:, held].tolist()
        for rate, there in ((start, np.s_[:k]), (end, np.s_[-k:])):
            if rate > 0:
                np.maximum(best, np.minimum(missing[:, there], rate) @ weights[there], out=best)
        if inside > 0:
            # of all windows of k layers that touch neither end, as differences of running sums
            upto = np.zeros((len(missing), missing.shape[1] - 1))
            np.cumsum(np.minimum(missing, inside)[:, 1:-1] * weights[1:-1], axis=1, out=upto[:, 1:])
            np.maximum(best, (upto[:, k:] - upto[:, :-k]).max(axis=1), out=best)
    return best


UNITS = 10**6
"""Whole numbers a token/s."""


def maximum_flow(some: Spans, chosen: IntArray) -> tuple[float, Cut]:
    """Tokens/s that one placement serves, rounded down to 1e-6; and a cut that no more passes.

    It is for searching: the rate of an answer is replayed, and the cut's rate counted anew.

    Args:
        chosen: span of each machine (M,).
    """
    pool, n = some.pool, len(chosen)
    first = np.array([some.first[m][i] for m, i in enumerate(chosen.tolist())])
    end = np.array([some.end[m][i] for m, i in enumerate(chosen.tolist())])
    rate = np.array([some.rate[m][i] for m, i in enumerate(chosen.tolist())])
    links = np.where(meet(pool, first[None], end[None])[0], some.links, 0.0)
    tail, head = np.nonzero(links)
    starts, ends = np.flatnonzero(first == 0), np.flatnonzero(end == pool.n_layers)
    source, sink = 2 * n, 2 * n + 1  # a machine's way in is its index, its way out n further
    enters, leaves = np.minimum(rate, pool.from_coordinator), np.minimum(rate, pool.to_coordinator)
    rooms = [rate, links[tail, head], enters[starts], leaves[ends]]
    flow = max_flow.SimpleMaxFlow()
    flow.add_arcs_with_capacity(
        np.concatenate([np.arange(n), n + tail, np.full(len(starts), source), n + ends]),
        np.concatenate([np.arange(n) + n, head, starts, np.full(len(ends), sink)]),
        np.floor(np.concatenate(rooms) * UNITS).astype(np.int64),
    )
    if flow.solve(source, sink) != flow.OPTIMAL:
        return 0.0, Cut(before=np.ones(n, dtype=np.bool_), behind=np.ones(n, dtype=np.bool_))
    near = np.zeros(2 * n + 2, dtype=np.bool_)
    near[flow.get_source_side_min_cut()] = True
    return flow.optimal_flow() / UNITS, Cut(before=near[:n], behind=near[n : 2 * n])
