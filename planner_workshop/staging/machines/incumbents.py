"""What a search knows: the best placement so far, and who has proven which bound on all others."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import floor

import networkx as nx

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.proofs import Vouched, refusal, vouched
from planner.solvers.proving import Proved
from planner.solvers.solution import Status
from planner.specs.ask.targets import Provers
from planner.specs.records.certificates import Proof
from planner_workshop.staging.machines.program import MachineSpan, Placement, Pool, violations

LEAST_RATE = 1e-6
"""Tokens/s: a replay counts no less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """How hard to try.

    Args:
        gap: relative distance of rate and bound at which to stop.
        time_limit_s: wall time; None for as long as it takes.
        n_visits: times that the way through the layers may come back to a region.
        proof: how many solvers have to vouch for what solvers prove.
    """

    gap: float = 1e-4
    time_limit_s: float | None = None
    n_visits: int = 2
    seed: int = 0
    proof: Provers = "two"


@dataclass(slots=True, kw_only=True)
class Incumbent:
    """The best placement, replayed, and the proofs of bounds.

    Args:
        prices: of the layers, where some are worth more than others (L,).
        proofs: their values and bounds are rates made negative: proofs are of a minimum.
        n_solves: programs solved.
        n_spans: that machines may hold.
    """

    pool: Pool
    tries: Tries
    placement: Placement | None = None
    rate: float = 0.0
    prices: FloatArray | None = None
    proofs: list[Proof] = field(default_factory=list)
    n_solves: int = 0
    n_spans: int = 0
    began_s: float = field(default_factory=time.perf_counter)

    @property
    def deadline_s(self) -> float:
        limit = self.tries.time_limit_s
        return math.inf if limit is None else self.began_s + limit

    @property
    def is_late(self) -> bool:
        return time.perf_counter() > self.deadline_s

    def offer(self, placement: Sequence[MachineSpan] | None) -> float:
        """Replay a placement, and keep it if it is the best; what it serves, 0 if it is none."""
        if placement is None or violations(self.pool, placement):
            return 0.0
        rate = replayed_rate(self.pool, placement)
        if rate > self.rate:
            self.placement, self.rate = tuple(placement), rate
        return rate

    def prove(self, prover: str, bound: float, began_s: float) -> None:
        """Note what the project's own arithmetic has proven; of each kind the best [tokens/s]."""
        before = next((one for one in self.proofs if one.prover == prover), None)
        spent_s = time.perf_counter() - began_s
        if before is not None:
            self.proofs.remove(before)
            bound, spent_s = min(bound, -before.bound), spent_s + before.wall_s
        is_best = bound <= self.rate * (1.0 + self.tries.gap)
        self.proofs.append(
            Proof(
                prover=prover,
                outcome="optimal" if is_best else "stopped",
                value=-self.rate if self.rate else math.inf,
                bound=-bound,
                wall_s=spent_s,
            )
        )

    def attempt(self, prover: str, step: Callable[[], object]) -> None:
        """Do what may fail by a solver's fault; then that is said, and the rest goes on."""
        began_s = time.perf_counter()
        try:
            step()
        except SolverError as error:
            self.proofs.append(refusal(prover, str(error), time.perf_counter() - began_s))

    @property
    def vouched(self) -> Vouched:
        """What the proofs come to; those that the placement refutes are refused."""
        return vouched(self.proofs, self.value)

    @property
    def value(self) -> float:
        """The rate made negative; inf without a placement."""
        return math.inf if self.placement is None else -self.rate

    @property
    def proved(self) -> Proved[Placement]:
        """All of it as one answer of a minimum."""
        weighed, value = self.vouched, self.value
        if self.placement is None:
            none = weighed.bound > -LEAST_RATE
            status = Status.INFEASIBLE if none else Status.UNKNOWN
        elif self.is_closed:
            status = Status.OPTIMAL
        elif -weighed.alone <= self.rate * (1.0 + self.tries.gap):
            status = Status.UNCONFIRMED
        else:
            status = Status.FEASIBLE
        return Proved(
            status=status,
            answer=self.placement,
            objective=value,
            vouched=weighed,
            n_nodes=0,
            stopped_by="time limit" if self.is_late else "",
        )

    @property
    def bound(self) -> float:
        """No placement has more, vouched for [tokens/s]."""
        return -self.vouched.bound

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to be found, within the gap that was asked for."""
        return self.bound <= max(self.rate * (1.0 + self.tries.gap), LEAST_RATE)


UNITS = 10**6
"""Whole numbers a token/s: a maximum flow of integers ends and is exact."""


def replayed_rate(pool: Pool, placement: Sequence[MachineSpan]) -> float:
    """Tokens/s that the placement serves: the maximum flow, rounded down to 1e-6.

    It shares nothing with what found the placement but the pool: no classes, no regions, no stages.

    A machine is an edge of its rate. Tokens go from one that holds up to layer e to one whose
    layers begin at e + 1, or are past it if machines may be entered within.
    """
    graph: nx.DiGraph[object] = nx.DiGraph()
    graph.add_nodes_from(("out of the coordinator", "into the coordinator"))
    for tail, head, rate in _edges(pool, placement):
        graph.add_edge(tail, head, capacity=floor(min(rate, 1e12) * UNITS))
    value = nx.maximum_flow_value(
        graph,
        "out of the coordinator",
        "into the coordinator",
        flow_func=nx.algorithms.flow.preflow_push,
    )
    return int(value) / UNITS


def _edges(pool: Pool, placement: Sequence[MachineSpan]) -> Iterator[tuple[object, object, float]]:
    holders: dict[int, list[int]] = {}
    for held in placement:
        span = held.n_layers if pool.enters_within else 1
        for layer in range(held.first, held.first + span):
            holders.setdefault(layer, []).append(held.machine)
    for held in placement:
        machine, end = held.machine, held.first + held.n_layers
        yield (machine, "in"), (machine, "out"), pool.rate(machine, held.n_layers)
        if held.first == 0:
            yield "out of the coordinator", (machine, "in"), float(pool.from_coordinator[machine])
        if end == pool.n_layers:
            yield (machine, "out"), "into the coordinator", float(pool.to_coordinator[machine])
        for other in holders.get(end, []):  # who can serve the layer that comes next
            rate = float(pool.links[machine, other])
            if other != machine and rate > 0:
                yield (machine, "out"), (other, "in"), rate
