"""Fleets tried by simulation, the cheapest first, until one is not refuted."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from planner.errors import OutOfTimeError
from planner.placing.configurations import AnyConfiguration
from planner.placing.fleets import solutions
from planner.placing.fleets.candidate_sets import CandidateSet
from planner.placing.fleets.choosing import simulating
from planner.placing.fleets.choosing.incumbents import MARGINS
from planner.placing.fleets.choosing.mixtures import in_mixtures
from planner.placing.fleets.choosing.rate_cache import RateCache
from planner.placing.fleets.choosing.searching import settled
from planner.placing.fleets.choosing.shortage import roomy
from planner.placing.fleets.offering import source_of
from planner.placing.program import Weighed, with_few_sorts, without_proof
from planner.programs.layout import exceeds
from planner.programs.placement import n_sorts
from planner.programs.proofs import is_closed
from planner.results.fleets import Refuted, Round
from planner.running.deadlines import check, is_set, left_s, out_of_time, share
from planner.solvers.solution import Status
from planner.specs.records.roles import APART
from planner.verifier.simulation.outcomes import FleetOutcome

MOST_ROUNDS = 40

MOST_WIDENED = 8
"""Fleets with room to spare that are tried: each has more where the one before had too little."""

_NEXT = dict(pairwise(MARGINS))

BOUND_SHARE = 0.4
"""Of the time that is left, what a bound of what is known may take."""

LESS = 0.95
"""Of what was served at most, or carried, what is tried next where too little is left for it."""

OnRound = Callable[[Round], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Confirmed:
    """A fleet that the simulation confirms.

    Args:
        fluid: the cheapest one if no percentile counted.
        served: share of each class, by name.
    """

    fluid: solutions.Solution
    fleet: solutions.PlannedFleet
    outcome: FleetOutcome
    rounds: tuple[Round, ...]
    served: Mapping[str, float]

    @property
    def is_whole(self) -> bool:
        """Whether all traffic is served."""
        return all(one == 1.0 for one in self.served.values())

    @property
    def is_best(self) -> bool:
        """Whether all traffic is served at the rent that none is below, percentiles aside."""
        return self.is_whole and self.fleet.chosen.solution.status is Status.OPTIMAL


def unproved(chosen: solutions.Solution, fluid: solutions.Solution) -> solutions.Solution:
    """A fleet held against the bound of others, at rates that are no lower than theirs."""
    bound, solution = fluid.solution.vouched, chosen.solution
    is_best = is_closed(solution.objective, bound.bound, chosen.market.request.options.gap)
    status = Status.OPTIMAL if is_best else Status.FEASIBLE
    return replace(chosen, solution=replace(solution, status=status, vouched=bound))


def weighed(market: CandidateSet) -> solutions.Solution:
    """The best fleet, each further sort of replica counted; its rates are known as in `settled`."""
    classes, options = market.request.classes, market.request.options
    n_least = 1
    if all(len(one.models) == 1 for one in classes):
        n_least = len({model.name for one in classes for model in one.models})
    n_least *= 2 if market.request.roles.name == APART else 1

    def has(solution: solutions.Solution) -> Weighed:
        counts = solution.solution.answer
        return solution.solution, n_sorts(solution.program, counts) if counts else 0

    chosen, steps, is_weighed = with_few_sorts(
        lambda most: settled(market, most_sorts=most), has, n_least, options
    )
    proved = chosen.solution if is_weighed else without_proof(chosen.solution)
    return replace(chosen, solution=proved, steps=steps)


def _as_sent(fleet: solutions.PlannedFleet, pool: solutions.PlannedPool) -> float:
    """What is refuted is no rate of the book."""
    del fleet
    return pool.replica_rate_per_s


def _streams_of(chosen: solutions.Solution, misses: Sequence[Refuted]) -> set[str]:
    """Those of the pools that were refuted."""
    of_pool = {it.name: it.stream.name for it in solutions.planned(chosen).pools}
    return {of_pool[one.pool] for one in misses}


def _sure(
    book: RateCache, slower: Mapping[str, float], config: AnyConfiguration
) -> AnyConfiguration | None:
    """What a configuration was seen to carry, or a part of it where that was too much together."""
    known = book.sure(config)
    part = slower.get(source_of(config).stream.name, 1.0)
    return known and replace(known, output_tokens_per_s=known.output_tokens_per_s * part)


@dataclass(slots=True, kw_only=True)
class Tries:
    """What was tried by simulation, one after the other.

    Args:
        first: what goes out if time ends before the cheapest fleet is known.
        last: what was tried last, and what came of it.
    """

    on_round: OnRound | None = None
    rounds: list[Round] = field(default_factory=list)
    first: Confirmed | None = None
    last: tuple[solutions.PlannedFleet, FleetOutcome] | None = None
    simulated_s: float = 0.0

    def find_first(
        self, market: CandidateSet, fluid: solutions.Solution, served: Mapping[str, float]
    ) -> Confirmed | None:
        """Where time may end, find a first fleet, with room to spare; of less traffic if need be.

        Returns:
            It, where it is known to be the best.
        """
        wider: dict[str, float] = {}
        for _ in range(MOST_WIDENED) if is_set() and self.first is None else ():
            chosen, fluid, served = roomy(market, wider, fluid, served)
            if not chosen.is_found:
                break
            misses = self.refuted(chosen, left=_as_sent)
            if not misses:
                self.first = self.answer(fluid, unproved(chosen, fluid), served)
                return self.first if self.first.is_best else None
            again = {name: wider.get(name, MARGINS[0]) for name in _streams_of(chosen, misses)}
            if MARGINS[-1] in again.values():
                break
            wider |= {name: _NEXT[margin] for name, margin in again.items()}
        return None

    def cheaper(
        self, market: CandidateSet, fluid: solutions.Solution, served: Mapping[str, float]
    ) -> Confirmed:
        """The cheapest of all that is known by now, where there is time to try it.

        It is held against what no fleet is cheaper than, as far as rates are known.

        Raises:
            OutOfTimeError: nothing that is known serves all.
        """
        bounding, first = fluid, self.first
        with suppress(OutOfTimeError), share(BOUND_SHARE):
            known = settled(market, now=market.book.now)
            if known.solution.vouched.bound > fluid.solution.vouched.bound:
                bounding = known
        rent = first.fleet.chosen.solution.objective if first else math.inf
        slower: dict[str, float] = {}
        with suppress(OutOfTimeError):
            while True:
                chosen = settled(market, now=partial(_sure, market.book, slower))
                is_better = chosen.is_found and exceeds(rent, chosen.solution.objective)
                if not is_better or left_s() <= self.simulated_s:
                    break
                misses = self.refuted(chosen, left=_as_sent)
                if not misses:
                    return self.answer(fluid, unproved(chosen, bounding), served)
                for name in _streams_of(chosen, misses):
                    slower[name] = slower.get(name, 1.0) * LESS
        if first is None:
            raise out_of_time()
        fleet = replace(first.fleet, chosen=unproved(first.fleet.chosen, bounding))
        return replace(first, fleet=fleet)

    def refuted(self, chosen: solutions.Solution, *, left: simulating.Left) -> tuple[Refuted, ...]:
        """What the simulation refutes of a fleet.

        Args:
            left: what is left of the rate of a pool that is.
        """
        check()
        began_s = time.perf_counter()
        fleet = solutions.planned(chosen)
        seed = chosen.market.request.options.seed
        outcome = simulating.tried(fleet, seed=seed)
        misses = simulating.refuted(fleet, outcome, left)
        if not misses:  # what one draw keeps by luck, another refutes
            misses = simulating.refuted(
                fleet, simulating.tried(fleet, seed=seed + 1), left, outcome
            )
        rent, n = solutions.usd_per_hour(fleet.pools), solutions.n_devices(fleet.pools)
        self.last, self.simulated_s = (fleet, outcome), time.perf_counter() - began_s
        self.rounds.append(Round(usd_per_hour=rent, n_devices=n, refuted=misses))
        if self.on_round is not None:
            self.on_round(self.rounds[-1])
        return misses

    def confirmed(self, chosen: solutions.Solution) -> solutions.Solution | None:
        """The cheapest fleet that is not refuted, of sets of classes and of what pools mix of them.

        None where what is left does not serve all.
        """
        solution = self._confirmed(chosen)
        return solution and self._in_mixtures(solution)

    def _in_mixtures(self, chosen: solutions.Solution) -> solutions.Solution:
        """A fleet, or a cheaper one whose pools have mixtures of their own."""
        last, bound = self.last, chosen.solution.vouched.bound
        with suppress(OutOfTimeError):  # the fleet stands, whatever else there is time for
            for market, allowed in in_mixtures(chosen):
                other = settled(market, allowed=allowed)
                rent = other.solution.objective
                is_less = other.is_found and exceeds(chosen.solution.objective, rent)
                if is_less and not self.refuted(other, left=simulating.in_such_pools):
                    # its own program has no other fleet, and proves nothing of mixtures
                    alone = replace(other, solution=without_proof(other.solution))
                    is_below = exceeds(bound, rent)
                    return self._in_mixtures(alone if is_below else unproved(other, chosen))
        self.last = last
        return chosen

    def _confirmed(self, chosen: solutions.Solution) -> solutions.Solution | None:
        """The cheapest fleet that is not refuted; None where what is left does not serve all.

        A fleet that is refuted parts all others in those whose pool of one configuration is no
        larger, at what such a pool carries by itself, and those in which it is: the cheapest of
        both is tried next. Where no pool carries less by itself, replicas are taken for less, and
        fleets that share in other ways are left open: the bound stays where it was.
        """
        parts: list[solutions.Solution] = [chosen] if chosen.is_found else []
        open_at: solutions.Solution | None = None
        while parts:
            best = min(parts, key=lambda solution: solution.solution.objective)
            parts.remove(best)
            misses = self.refuted(best, left=simulating.in_such_pools)
            if not misses:
                return best if open_at is None else unproved(best, open_at)
            if len(self.rounds) >= MOST_ROUNDS:
                raise out_of_time()  # what a simulation refutes is no answer
            markets = self.divided(misses)
            open_at = open_at or (None if len(markets) > 1 else best)
            parts += [part for part in map(weighed, markets) if part.is_found]
        return None

    def divided(self, misses: Sequence[Refuted]) -> list[CandidateSet]:
        """What there is to choose from beside the fleet that was refuted, in two parts or one."""
        assert self.last is not None
        fleet = self.last[0]
        markets = simulating.divided(fleet, misses)
        if markets:
            return markets
        for pool in fleet.pools:
            if pool.name in {one.pool for one in misses}:
                simulating.taken_down(fleet, pool)
        return [fleet.chosen.market]

    def answer(
        self, fluid: solutions.Solution, chosen: solutions.Solution, served: Mapping[str, float]
    ) -> Confirmed:
        """What was tried last, and its solution."""
        assert self.last is not None
        fleet, outcome = self.last
        market = replace(chosen.market, book=fluid.market.book)
        return Confirmed(
            fluid=fluid,
            fleet=replace(fleet, chosen=replace(chosen, market=market)),
            outcome=outcome,
            rounds=tuple(self.rounds),
            served=served,
        )
