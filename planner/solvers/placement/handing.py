"""Placements whose replicas of prefill hand over to those of decode: rows added until none lacks.

The placement program is solved with some rows of the hand-over (`programs.handover`); the best flow
of its copies is looked for; where it falls short, its multipliers prove rows that these copies
break, and it is solved again. Every program on the way allows more than the whole, so that what is
proved of it bounds the whole; and an answer counts by the flow that it has.

First the linear relaxation is taken through such rounds, which costs little and adds most rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs import handover
from planner.programs.placement import Counts, Cut, PlacementProgram, placement_objective
from planner.programs.proofs import Vouched, beyond, is_closed
from planner.programs.relaxation import relaxation
from planner.solvers.placement import PlacementSolution, solve_placement
from planner.solvers.placement.flows import ENOUGH, Flow, best_flow, fullest
from planner.solvers.placement.pricing import AT_ONCE, Vertices
from planner.solvers.placement.starting import few_sorts, restricted, spread
from planner.solvers.solution import Clock, Effort, Status
from planner.specs.ask.targets import Provers

MOST_RELAXED = 300
"""Rounds of the relaxation."""
RELAXED_SHARE = 0.4
"""Of the time, for them."""
FIRST_SHARE = 0.2
"""Of the time, for a first placement."""
LEAST_TIME_S = 0.01

_MOVED = 1e-6
"""Share by which a row of the relaxation has to be broken to be added."""
_NONE = 1e-9
"""Copies that count as none."""


def solve_handing(
    program: PlacementProgram,
    network: handover.Handover,
    *,
    solver: str = "highs",
    effort: Effort | None = None,
    proof: Provers = "two",
) -> tuple[PlacementSolution, FloatArray | None]:
    """Place copies so that what is handed over can be, with proof.

    Of a share or a throughput the objective is what the flow of the answer comes to, negative.

    Args:
        program: what to place, and on what, the hand-over left out.
        network: what hands over to what, and what is asked of it; its aim is the objective.
        solver, effort, proof: as of `solve_placement`, of all rounds together.

    Returns:
        the solution, and the rates of the network's pairs, (E,); None without an answer.

    Raises:
        ValueError: the network is not one of the program.
        SolverError: no such solver; no solver has an answer; or a bound is refuted.
    """
    handover.check(program, network)
    rounds = _Rounds(program, network, effort or Effort())
    if effort is not None and effort.seconds() is not None:
        rounds.begin(solver)
    rounds.relax()
    return rounds.run(solver, proof)


class _Rounds:
    """The program with more and more rows, and the best answer on the way."""

    def __init__(
        self, program: PlacementProgram, network: handover.Handover, effort: Effort
    ) -> None:
        self._given, self._network, self._effort = program, network, effort
        self._clock = Clock()
        self._limit_s = effort.seconds()
        self._cuts = handover.first_cuts(program, network)
        self._best: _Answer | None = None
        self._vouched: Vouched | None = None
        self._n_nodes = 0

    def begin(self, solver: str) -> None:
        """Have a placement in hand, if one of few sorts hands over enough in a part of the time."""
        program = self._program
        for columns in few_sorts(program, self._network) if program.sort is not None else ():
            left_s = FIRST_SHARE * self._limit_or_inf - self._clock.elapsed_s()
            if left_s <= 0 or self._best is not None:
                return
            effort = replace(self._effort, time_limit_s=left_s, on_progress=None)
            few = restricted(program, columns)
            some = solve_placement(few, solver=solver, effort=effort, proof="one")
            if some.answer is not None:
                self._take(program, spread(program, columns, some.answer), some.objective)

    def relax(self) -> None:
        """Take the relaxation through rounds; nothing but rows comes of it."""
        if self._program.n_columns > AT_ONCE:
            return
        for _ in range(MOST_RELAXED):
            left_s = RELAXED_SHARE * self._limit_or_inf - self._clock.elapsed_s()
            if left_s <= 0:
                return
            relaxed = relaxation(self._program)
            effort = replace(self._effort, time_limit_s=None)
            at = Vertices(relaxed, effort, Clock()).at(relaxed.upper, left_s)
            if at is None:
                return
            # fractions of copies hand over fractions: their flow's multipliers prove rows all the
            # same
            copies = np.where(at[1][:-1] > _NONE, at[1][:-1], 0.0)
            rows = self._rows(copies, best_flow(self._given, self._network, copies))
            if not self._add([row for row in rows if self._breaks(row, copies, at[1][-1])]):
                return

    def run(self, solver: str, proof: Provers) -> tuple[PlacementSolution, FloatArray | None]:
        """Solve and add rows in turns; who else has to vouch is asked of the last rows only."""
        is_last = proof == "one" or not np.isfinite(self._network.capacity).any()
        while True:
            program = self._program if is_last else replace(self._program, ties=())
            wanted: Provers = proof if is_last else "one"
            solution = solve_placement(program, solver=solver, effort=self._left(), proof=wanted)
            self._hear(solution)
            is_settled = solution.answer is None or self._take(
                program, solution.answer, solution.objective, solution.bound
            )
            if solution.stopped_by or self._left_s <= 0 or (is_settled and is_last):
                return self._ended(solution)
            # rows were added with one word for each program; the last one is asked for with two
            is_last = is_last or is_settled

    def _take(
        self, program: PlacementProgram, counts: Counts, objective: float, bound: float = -math.inf
    ) -> bool:
        """Keep an answer that hands over, or the rows that it breaks; whether nothing is left."""
        copies = np.array(counts.copies, dtype=float)
        flow = best_flow(self._given, self._network, copies)
        value = placement_objective(program, counts)
        if program.is_for_share:  # it is no better than what is handed over
            value = max(value, -flow.value)
        answer = _Answer(counts=counts, flow=flow, value=value)
        self._keep(answer, program.ties_within if program.ties else 0.0)
        is_reached = not flow.is_short and answer.value <= objective + abs(objective) * (
            1.0 - ENOUGH
        )
        best = self._best
        if best is not None and is_closed(best.value, bound, self._effort.gap):
            is_reached = True
        return is_reached or not self._add(self._rows(copies, flow))

    def _keep(self, answer: _Answer, within: float) -> None:
        """One that is as good within a share, and later, has its ties broken."""
        copies = np.array(answer.counts.copies, dtype=float)
        if answer.flow.is_short or handover.flow_violations(
            self._given, self._network, copies, answer.flow.rates
        ):
            return
        if self._best is None or is_closed(answer.value, self._best.value, within):
            self._best = answer

    def _rows(self, copies: FloatArray, flow: Flow) -> list[Cut]:
        """What the multipliers of a flow prove of all copies."""
        given, network = self._given, self._network
        if math.isinf(flow.value):  # nothing is asked
            return []
        present = given.rate * copies > 0
        proved = handover.lifted(given, network, flow.multipliers, present)
        return [
            handover.cut_of(given, network, multipliers, "handover")
            for multipliers in proved
            if handover.is_proof(given, network, multipliers)
        ]

    def _breaks(self, row: Cut, copies: FloatArray, share: float) -> bool:
        """Whether copies of the relaxation, with their share, break a row by enough."""
        needed = self._program.needed(row) or share
        return row.reached(copies) < needed * (1.0 - _MOVED)

    def _add(self, rows: list[Cut]) -> bool:
        """Whether there was one that is new."""
        known = {(cut.column.tobytes(), cut.added) for cut in self._cuts}
        before = len(self._cuts)
        for row in rows:
            key = row.column.tobytes(), row.added
            if key not in known:
                known.add(key)
                self._cuts.append(replace(row, name=f"handover{len(self._cuts)}"))
        return len(self._cuts) > before

    def _hear(self, solution: PlacementSolution) -> None:
        self._n_nodes += solution.n_nodes
        last, before = solution.vouched, self._vouched
        if before is None or (last.bound, last.alone) >= (before.bound, before.alone):
            self._vouched = last

    def _ended(self, solution: PlacementSolution) -> tuple[PlacementSolution, FloatArray | None]:
        """The best answer, with the best bound of all rounds."""
        assert self._vouched is not None
        best, gap = self._best, max(self._effort.gap, self._given.ties_within)
        solution = replace(solution, n_nodes=self._n_nodes)
        if best is None and solution.answer is None:
            return solution, None
        if best is None:  # no answer that hands over, and the bound that there is
            solution = replace(solution, status=Status.UNKNOWN, answer=None, objective=math.inf)
            why = solution.stopped_by or "time limit"
            return replace(solution, vouched=self._vouched, stopped_by=why), None
        vouched = self._vouched
        value = best.value
        if beyond(vouched.bound, value):
            raise SolverError(
                f"{' and '.join(vouched.by) or 'a prover'} bounds by {vouched.bound:.9g} what "
                f"copies reach that were verified, {value:.9g}"
            )
        status = Status.FEASIBLE
        if is_closed(value, vouched.bound, gap):
            status = Status.OPTIMAL
        elif is_closed(value, vouched.alone, gap):
            status = Status.UNCONFIRMED
        # a bound may lie beyond what it bounds by rounding
        bound, alone = min(vouched.bound, value), min(vouched.alone, value)
        copies = np.array(best.counts.copies, dtype=float)
        rates = fullest(self._given, self._network, copies, best.flow)
        if handover.flow_violations(self._given, self._network, copies, rates):
            rates = best.flow.rates
        ended = replace(
            solution,
            status=status,
            answer=best.counts,
            objective=value,
            vouched=replace(vouched, bound=bound, alone=alone),
            stopped_by="" if status is Status.OPTIMAL else solution.stopped_by,
        )
        return ended, rates

    @property
    def _program(self) -> PlacementProgram:
        return replace(
            self._given,
            cuts=(*self._given.cuts, *self._cuts),
            is_for_share=self._network.aim != handover.DEMAND,
        )

    @property
    def _limit_or_inf(self) -> float:
        return math.inf if self._limit_s is None else self._limit_s

    @property
    def _left_s(self) -> float:
        return self._limit_or_inf - self._clock.elapsed_s()

    def _left(self) -> Effort:
        if self._limit_s is None:
            return self._effort
        return replace(self._effort, time_limit_s=max(self._left_s, LEAST_TIME_S))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Answer:
    """Copies, what they hand over at best, and the objective that it comes to."""

    counts: Counts
    flow: Flow
    value: float
