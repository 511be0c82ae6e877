"""The placement of the most flow as one mixed program, links and all.

    spans       Σ_span n(g, span) ≤ machines of group g
    serve       tokens that come by boundary b and leave at e: no more than the spans that begin
                by b and end at e serve
    entry       tokens from the coordinator: no more than it sends to those that begin the layers
    layer       the spans that hold a layer serve the rate that is looked for
    pass        what comes to a boundary of a region leaves it; into, out: of a machine
    sent, taken   a link carries tokens only from a machine that ends there to one that goes on
    rate        what leaves the coordinator is above what is known, and within the bound

n(g, span) whole, of machines that may change places; all else are flows, in shares of the bound.
Machines of one region hand over through a node, one for each boundary, as no link between them
binds; between regions each link is a column at each boundary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.machines import Held, Placement, regions
from planner.programs.mixed import MixedBuilder, MixedProgram
from planner.programs.spans import Spans

Terms = dict[int, float]
_At = tuple[int, int]
"""A group, or a region, and a boundary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A column: machines of a group that hold layers first … end − 1; share of the bound that
    one of them serves."""

    column: int
    first: int
    end: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlowProgram:
    """The program, and which columns are spans.

    Args:
        bound: that flows are shares of [tokens/s].
        members: machines of each group [G].
        spans: of each group [G].
    """

    mixed: MixedProgram
    bound: float
    members: tuple[tuple[int, ...], ...]
    spans: tuple[tuple[_Span, ...], ...]

    def placement(self, values: FloatArray) -> Placement:
        """The placement that the columns say: machines of a group in their order."""
        placed = []
        for group, spans in zip(self.members, self.spans, strict=True):
            counted = [one for one in spans for _ in range(round(float(values[one.column])))]
            placed += [
                Held(machine=machine, first=one.first, n_layers=one.end - one.first)
                for machine, one in zip(group, counted, strict=False)
            ]
        return tuple(placed)


def groups_of(some: Spans, region: IntArray) -> tuple[tuple[int, ...], ...]:
    """Machines that may change places and hand over within their region only; others alone."""
    apart = region[:, None] != region[None, :]
    is_inner = ~((some.links + some.links.T > 0) & apart).any(axis=1)
    found: list[tuple[int, ...]] = []
    for group in some.groups:
        found += [group] if is_inner[list(group)].all() else [(m,) for m in group]
    return tuple(found)


def size(some: Spans, bound: float) -> int:
    """Columns of the program, about: spans, what they serve, and links by boundaries."""
    region = regions(some.pool, bound)
    n_spans = sum(len(some.first[group[0]]) for group in groups_of(some, region))
    apart = (some.links > 0) & (region[:, None] != region[None, :])
    return 2 * n_spans + int(apart.sum()) * (some.pool.n_layers - 1)


def flow_program(some: Spans, bound: float, above: float) -> FlowProgram:
    """All placements of at least `above` [tokens/s], if no placement has more than `bound`."""
    region = regions(some.pool, bound)
    posing = _Posing(some, bound, region, groups_of(some, region))
    for g in range(len(posing.members)):
        posing.add_spans(g)
    for g, h in product(range(len(posing.members)), repeat=2):
        posing.add_links(g, h)
    posing.add_passes()
    return posing.program(above / bound)


@dataclass(slots=True)
class _Posing:
    """The program as it is written down; flows into and out of each group by boundary."""

    some: Spans
    bound: float
    region: IntArray
    members: tuple[tuple[int, ...], ...]
    posed: MixedBuilder = field(default_factory=MixedBuilder)
    spans: list[tuple[_Span, ...]] = field(default_factory=list)
    into: dict[_At, Terms] = field(default_factory=lambda: defaultdict(dict))
    out: dict[_At, Terms] = field(default_factory=lambda: defaultdict(dict))
    linked_into: dict[_At, Terms] = field(default_factory=lambda: defaultdict(dict))
    linked_out: dict[_At, Terms] = field(default_factory=lambda: defaultdict(dict))

    def add_spans(self, g: int) -> None:
        """Spans of a group, and what they serve from boundary to boundary."""
        some, machine, most = self.some, self.members[g][0], float(len(self.members[g]))
        self.spans.append(
            tuple(
                _Span(
                    column=self.posed.column(f"n({g},{first},{end})", most, is_whole=True),
                    first=int(first),
                    end=int(end),
                    share=min(float(rate) / self.bound, 1.0),
                )
                for first, end, rate in zip(
                    some.first[machine][1:], some.end[machine][1:], some.rate[machine][1:],
                    strict=True,
                )
            )
        )  # fmt: skip
        mine = self.spans[g]
        self.posed.row(f"spans({g})", {one.column: 1.0 for one in mine}, 0.0, most)
        for end in sorted({one.end for one in mine}):
            self._serve(g, end, [one for one in mine if one.end == end])

    def _serve(self, g: int, end: int, ending: Sequence[_Span]) -> None:
        """What comes to those that end at a boundary, at each boundary before it."""
        pool, upto = self.some.pool, Terms()
        firsts = {one.first for one in ending}
        comes = float(pool.from_coordinator[self.members[g][0]]) / self.bound
        for b in range(min(firsts), end) if pool.enters_within else sorted(firsts):
            here = [one for one in ending if one.first == b]
            if pool.enters_within:  # those that begin before it can be entered there too
                here = [one for one in ending if one.first <= b]
            most = max(one.share for one in here) * len(self.members[g])
            flow = self.posed.column(f"f({g},{b},{end})", most)
            self.into[g, b][flow] = self.out[g, end][flow] = 1.0
            upto = {**upto, flow: 1.0} if pool.enters_within else {flow: 1.0}
            served = {one.column: -one.share for one in here}
            self.posed.row(f"serve({g},{b},{end})", {**upto, **served}, -np.inf, 0.0)
            if b == 0 and comes < most:
                entered = {one.column: -comes for one in here}
                self.posed.row(f"entry({g},{end})", {flow: 1.0, **entered}, -np.inf, 0.0)

    def add_links(self, g: int, h: int) -> None:
        """The link from one machine to another of another region, at each boundary."""
        one, other = self.members[g][0], self.members[h][0]
        link = min(float(self.some.links[one, other]) / self.bound, 1.0)
        if self.region[one] == self.region[other] or link <= 0:
            return
        for b in range(1, self.some.pool.n_layers):
            if (g, b) not in self.out or (h, b) not in self.into:
                continue
            flow = self.posed.column(f"x({g},{h},{b})", link)
            self.linked_out[g, b][flow] = self.linked_into[h, b][flow] = 1.0
            for name, held in (
                ("sent", [one for one in self.spans[g] if one.end == b]),
                ("taken", [one for one in self.spans[h] if self._takes(one, b)]),
            ):
                may = {one.column: -min(link, one.share) for one in held}
                self.posed.row(f"{name}({g},{h},{b})", {flow: 1.0, **may}, -np.inf, 0.0)

    def _takes(self, one: _Span, boundary: int) -> bool:
        if self.some.pool.enters_within:
            return one.first <= boundary < one.end
        return one.first == boundary

    def add_passes(self) -> None:
        """What comes to each boundary within the layers leaves it."""
        passes: dict[_At, Terms] = defaultdict(dict)
        self._hand(self.out, self.linked_out, 1.0, "out", passes)
        self._hand(self.into, self.linked_into, -1.0, "into", passes)
        for (r, b), terms in passes.items():
            self.posed.row(f"pass({r},{b})", terms, 0.0, 0.0)

    def _hand(
        self,
        side: dict[_At, Terms],
        linked: dict[_At, Terms],
        sign: float,
        name: str,
        passes: dict[_At, Terms],
    ) -> None:
        """Flows of groups on one side of each boundary: over links, or through their region."""
        alone = np.bincount(self.region) == 1
        for (g, b), flows in side.items():
            r, over = int(self.region[self.members[g][0]]), linked.get((g, b), {})
            if not 0 < b < self.some.pool.n_layers:
                continue
            if not over and not alone[r]:
                passes[r, b].update(dict.fromkeys(flows, sign))
                continue
            terms = {**flows, **dict.fromkeys(over, -1.0)}
            if not alone[r]:
                most = min(1.0, sum(self.posed.upper[flow] for flow in flows))
                within = self.posed.column(f"{name}({g},{b})", most)
                terms[within] = -1.0
                passes[r, b][within] = sign
            self.posed.row(f"{name}({g},{b})", terms, 0.0, 0.0)

    def program(self, least: float) -> FlowProgram:
        """With the rows that say which rates are looked for."""
        posed, every = self.posed, [one for spans in self.spans for one in spans]
        for layer in range(self.some.pool.n_layers):
            holds = {one.column: one.share for one in every if one.first <= layer < one.end}
            posed.row(f"layer({layer})", holds, least, np.inf)
        leaves = {flow: 1.0 for (_, b), flows in self.into.items() if b == 0 for flow in flows}
        posed.row("rate", leaves, least, 1.0)
        for flow in leaves:
            posed.cost[flow] = -1.0
        return FlowProgram(
            mixed=posed.program("flow"),
            bound=self.bound,
            members=self.members,
            spans=tuple(self.spans),
        )
