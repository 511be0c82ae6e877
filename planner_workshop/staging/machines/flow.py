"""The flow program, by two solvers: what they find is replayed, their bounds are weighed."""

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.mixed import MixedBuilder, MixedProgram
from planner.solvers.mixed import solve_mixed
from planner.solvers.solution import Effort
from planner.specs.records.certificates import Proof
from planner_workshop.staging.machines.incumbents import Incumbent
from planner_workshop.staging.machines.program import (
    RELATIVE_TOLERANCE,
    MachineSpan,
    Placement,
    regions,
)
from planner_workshop.staging.machines.spans import Spans

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


def groups_of(some: Spans, region: IntArray) -> tuple[tuple[int, ...], ...]:
    """Machines that may change places and hand over within their region only; others alone."""
    apart = region[:, None] != region[None, :]
    is_inner = ~((some.links + some.links.T > 0) & apart).any(axis=1)
    groups: list[tuple[int, ...]] = []
    for group in some.groups:
        groups += [group] if is_inner[list(group)].all() else [(m,) for m in group]
    return tuple(groups)


def size(some: Spans, bound: float) -> int:
    """Columns of the program, about: spans, what they serve, and links by boundaries."""
    region = regions(some.pool, bound)
    n_spans = sum(len(some.first[group[0]]) for group in groups_of(some, region))
    apart = (some.links > 0) & (region[:, None] != region[None, :])
    return 2 * n_spans + int(apart.sum()) * (some.pool.n_layers - 1)


@dataclass(slots=True, eq=False)
class FlowProgram:
    """The program; flows into and out of each group by boundary, as it is written down.

    Args:
        bound: that flows are shares of [tokens/s].
        members: machines of each group [G].
        spans: columns that are spans, of each group [G].
        mixed: all of it, when its rates are added.
    """

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
    mixed: MixedProgram = field(init=False)

    def placement(self, values: FloatArray) -> Placement:
        """The placement that the columns say: machines of a group in their order."""
        placed = []
        for group, spans in zip(self.members, self.spans, strict=True):
            counted = [one for one in spans for _ in range(round(float(values[one.column])))]
            placed += [
                MachineSpan(machine=machine, first=span.first, n_layers=span.end - span.first)
                for machine, span in zip(group, counted, strict=False)
            ]
        return tuple(placed)

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
        first, other = self.members[g][0], self.members[h][0]
        link = min(float(self.some.links[first, other]) / self.bound, 1.0)
        if self.region[first] == self.region[other] or link <= 0:
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

    def _takes(self, span: _Span, boundary: int) -> bool:
        if self.some.pool.enters_within:
            return span.first <= boundary < span.end
        return span.first == boundary

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

    def add_rates(self, least: float) -> None:
        """The rows that say which rates are looked for, with which the program is whole."""
        posed, every = self.posed, [one for spans in self.spans for one in spans]
        for layer in range(self.some.pool.n_layers):
            holds = {one.column: one.share for one in every if one.first <= layer < one.end}
            posed.row(f"layer({layer})", holds, least, np.inf)
        leaves = {flow: 1.0 for (_, b), flows in self.into.items() if b == 0 for flow in flows}
        posed.row("rate", leaves, least, 1.0)
        for flow in leaves:
            posed.cost[flow] = -1.0
        self.mixed = posed.program("flow")


def flow_program(some: Spans, bound: float, above: float) -> FlowProgram:
    """All placements of at least `above` [tokens/s], if no placement has more than `bound`."""
    region = regions(some.pool, bound)
    program = FlowProgram(some, bound, region, groups_of(some, region))
    for g in range(len(program.members)):
        program.add_spans(g)
    for g, h in product(range(len(program.members)), repeat=2):
        program.add_links(g, h)
    program.add_passes()
    program.add_rates(above / bound)
    return program


MOST_COLUMNS = 8_000
"""Of a program that is posed."""

USUAL_S = 10.0
"""For all solvers together, where no time limit is given."""


def prove_flow(known: Incumbent, some: Spans) -> None:
    """Ask solvers for a better placement, and note what they prove.

    Raises:
        SolverError: every solver failed.
    """
    if not known.bound > 0.0 or size(some, known.bound) > MOST_COLUMNS:
        return
    least = max(known.rate * (1.0 + known.tries.gap / 2), RELATIVE_TOLERANCE * known.bound)
    program = flow_program(some, known.bound, least)
    left_s = known.deadline_s - time.perf_counter()
    effort = Effort(
        time_limit_s=max(0.0, left_s if math.isfinite(left_s) else USUAL_S),
        gap=known.tries.gap / 2,
        seed=known.tries.seed,
    )
    solution = solve_mixed(program.mixed, effort, wanted=known.tries.proof)
    known.n_solves += len(solution.vouched.proofs)
    if solution.answer is not None:
        known.offer(program.placement(solution.answer))
    known.proofs += [_of_all(proof, program, known, least) for proof in solution.vouched.proofs]


def _of_all(proof: Proof, program: FlowProgram, known: Incumbent, least: float) -> Proof:
    """What a solver says of the program, said of all placements.

    The program has those of `least` and more: that it has none bounds all by `least`.
    """
    if not proof.is_accepted:
        return proof
    bound = min(-proof.bound * program.bound * (1.0 + RELATIVE_TOLERANCE), program.bound)
    is_none = proof.outcome == "infeasible"
    return replace(
        proof,
        outcome="optimal" if is_none else proof.outcome,
        value=known.value if is_none else proof.value * program.bound,
        bound=-max(bound, least),
    )
