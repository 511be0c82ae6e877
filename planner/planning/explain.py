"""Why no plan exists, whichever runtimes were asked.

It is answered by exact solves of the same program with rows left out. A conflict is
found by a deletion filter over the named limits, the level at which users think, and over policies
that leave candidates out: leave one out, and if there is still no plan, it was not needed. A policy
yields before any limit: nothing that was asked for is given up with it.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from planner.errors import OutOfTimeError
from planner.planning.obstacles import POLICY, as_predicted, doubt, policy_obstacle, reason_of
from planner.planning.relaxations import relaxations, settled_search
from planner.programs.blocks import Objective
from planner.quantities.table import GIB, MEMORY, QUANTITIES
from planner.results.conflicts import EXPLAINED, NO_CHOICE, UNEXPLAINED, Conflict, Relaxation
from planner.results.deployments import Deployment
from planner.results.obstacles import Obstacle
from planner.results.plans import AnyDeployment
from planner.runtimes.candidates import CandidatePool, Candidates, limits_of, variants_of
from planner.solvers.certify import irreducible
from planner.solvers.recording import solving_for
from planner.solvers.search import is_feasible

DEMAND = QUANTITIES["demand"]
"""Of which the best is, without a demand, the time of a token when the whole pool works."""

LEAST_MEMORY = QUANTITIES[MEMORY].best
CLOSE = 1e-8
"""Share of what a plan needs of a device that counts as no less: more than rows let pass."""


@solving_for("conflict")
def explain(among: CandidatePool) -> Conflict:
    """The limits that no plan satisfies together, and what each could be.

    One irreducible set after the other: the first limit of each that an option can loosen
    yields, until what is left has a plan. The cheapest change of limits is the command of the hint.

    An explanation is proved, so it has no gap; out of time, it is what is proved by then.
    """
    named = among.parts[0].named
    explained = among.explained()
    search = _ConflictQueries(among=explained, freed=explained.freed())
    obstacles: list[Obstacle] = []
    cores: list[tuple[str, ...]] = []
    verified: tuple[str, ...] = UNEXPLAINED
    closest, command = None, ""
    relaxed: tuple[Relaxation, ...] = ()
    with suppress(OutOfTimeError):
        yielding = search.yielding(obstacles, cores)
        verified = EXPLAINED if obstacles else NO_CHOICE
        if MEMORY in yielding:  # is no option's to loosen
            closest = search.least_memory(yielding) or search.least_memory(search.names)
        else:
            relaxed = relaxations(explained, search.freed if search.has_policy else None)
            closest = relaxed[0].deployment
        command = search.command(yielding, relaxed)
        verified = (*verified, *as_predicted(among))
    others = [one.name for one in variants_of(among.parts)]
    if others:
        verified = (*verified, f"no variant has a plan either: {', '.join(others)}")
    return Conflict(
        request=named,
        obstacles=tuple(obstacles),
        closest=closest,
        command=command,
        n_candidates=sum(
            part.n_candidates + sum(part.outside.values()) for part in search.among.parts
        ),
        verified=verified,
        cores=tuple(cores),
        relaxations=relaxed,
        other_requests=tuple(it for it in among.requests if it is not named),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConflictQueries:
    """What is asked of a conflict: each answer is a solve of the program without some rows.

    Args:
        freed: the candidates without policies.
    """

    among: CandidatePool
    freed: CandidatePool

    @property
    def names(self) -> list[str]:
        """Limits, and the policy, if there is one."""
        return [*limits_of(self.among), *[POLICY] * self.has_policy]

    @property
    def has_policy(self) -> bool:
        return any(it.freed() for it in self.among.parts)

    def yielding(self, obstacles: list[Obstacle], cores: list[tuple[str, ...]]) -> list[str]:
        """What yields until there is a plan; memory, before it, where nothing else would do.

        Args:
            obstacles, cores: all that stands in the way is added to them, as it is met.
        """
        yielding: list[str] = []
        while not self.holds(yielding):
            conflict = self.irreducible(yielding)
            if conflict == [MEMORY] and self.least_memory(self.names) is None:
                return conflict  # no layout is left to choose, however large devices are
            each = [self.obstacle(name, conflict, yielding) for name in conflict]
            obstacles += each
            cores.append(tuple(conflict))
            loosened = [one.name for one in each if one.name != MEMORY and one.reachable]
            if not loosened:
                return [MEMORY, *yielding]
            yielding.append(POLICY if POLICY in loosened else loosened[0])
        return yielding

    def among_without(self, without: Iterable[str]) -> CandidatePool:
        return self.freed if POLICY in without else self.among

    def holds(self, without: Iterable[str]) -> bool:
        without = tuple(without)
        source = self.among_without(without).source(Objective(objective="cost", without=without))
        return is_feasible(source, self.among.request.options)

    def irreducible(self, without: list[str]) -> list[str]:
        """Limits that conflict on devices as they are; memory, where nothing fits without limits.

        Policies are tried first: limits are blamed if they can.
        """
        names = [name for name in self.names if name not in (*without, MEMORY)]
        first = sorted(names, key=[POLICY, *limits_of(self.among)].index)
        kept = irreducible(
            first,
            lambda rest: not self.holds([it for it in self.names if it not in (*rest, MEMORY)]),
        )
        return [name for name in names if name in kept] or [MEMORY]

    def obstacle(self, name: str, conflict: list[str], without: list[str]) -> Obstacle:
        """The best value of one limited quantity when the other limits are kept.

        Where those conflict among themselves, only the others of this conflict are kept: it is
        irreducible, so they have a plan.
        """
        alone = [other for other in self.names if other not in conflict]
        in_memory = [other for other in alone if other != MEMORY]
        for left_out in ([name, *without], [name, *in_memory], [name, *alone]):
            best = self.best(name, left_out)
            if best is not None:
                break
        assert best is not None
        return self.told(name, best, left_out)

    def told(
        self, name: str, closest: tuple[AnyDeployment, float], left_out: list[str]
    ) -> Obstacle:
        """An obstacle, by the plan that is best without some limits, the first its own."""
        best, reachable = closest
        if name == POLICY:
            return policy_obstacle(best)
        limit = best.capacity_bytes if name == MEMORY else limits_of(self.among)[name]
        busy = self.among.request.targets.max_utilisation
        return Obstacle(
            name=name,
            asked=limit,
            reachable=reachable,
            dimension=QUANTITIES[name].dimension,
            reason=reason_of(name, best, self.within(left_out), (limit, reachable), busy)
            + doubt(self.among, name, best, (limit, reachable)),
        )

    def best(self, name: str, without: Iterable[str]) -> tuple[AnyDeployment, float] | None:
        """A plan with the best value of a limited quantity, and that value, SI.

        Raises:
            OutOfTimeError: time ended before either was known.
            UnsettledError: the provers do not agree on it.
        """
        if name == MEMORY:
            least = self.least_memory(without)
            return None if least is None else (least, least.used_bytes)
        without = tuple(without)
        among = self.among_without(without)
        quantity = QUANTITIES["cost" if name == POLICY else name]  # plans without it by their cost
        result = settled_search(among, Objective(objective=quantity.best, without=without))
        if result.assignment is None:
            return None
        best = among.deployment(result.posed, result.assignment)
        # of a demand what is minimised is the time of a token on the whole pool
        reached = QUANTITIES["throughput"] if name == DEMAND.name else quantity
        return best, reached.in_si(result.solution.objective)

    def least_memory(self, without: Iterable[str]) -> AnyDeployment | None:
        """The plan whose fullest moment needs least of a device, with some limits left out.

        The program can minimise one of the moments, and no plan needs less than that. Where
        another moment of the plan needs more, a plan is asked for that needs less in each, until
        there is none or the moment that was minimised is the fullest.
        """
        without = tuple(without)
        others = tuple(name for name in without if name != MEMORY)
        best, scale = None, math.inf
        among = self.among_without(without)
        while True:
            aim = Objective(objective=LEAST_MEMORY, without=others, memory_scale=scale)
            result = settled_search(among, aim)
            if result.assignment is None:
                return best
            best = among.deployment(result.posed, result.assignment)
            apart = best.used_bytes - result.solution.objective / GIB
            if apart <= _reserve_bytes(best) + CLOSE * best.used_bytes:
                return best
            scale = best.used_bytes * (1 - CLOSE) / best.capacity_bytes

    def within(self, left_out: list[str]) -> str:
        """Which limits a best value keeps, in words; the first left out is its own."""
        freed = " with `--prefill cost`" if POLICY in left_out else ""
        kept = [name for name in self.names if name not in (*left_out, POLICY)]
        others = {*self.names} - {left_out[0], POLICY}
        if others <= set(kept):
            return f" within the other limits{freed}" if others else freed
        words = ", ".join(f"`{name}`" for name in kept)
        return f" with only {words} kept{freed}" if kept else f" by itself{freed}"

    def command(self, yielding: list[str], relaxed: Sequence[Relaxation]) -> str:
        """A command that has a plan: limits at what is reachable, or another way to the memory."""
        first = self.among.parts[0]
        if yielding == [DEMAND.name]:
            served = next((one.deployment.served_tokens_per_s for one in relaxed), math.inf)
            for option, value, other in first.larger(served):
                if _has_plan(other):
                    return first.command({option: value})
        if relaxed:
            return relaxed[0].command
        for option, value, other in first.more_room():
            if _has_plan(other):
                return first.command({option: value})
        return ""


def _reserve_bytes(best: AnyDeployment) -> float:
    """What a device keeps back, which programs leave out of what is held."""
    return best.memory.reserve_bytes if isinstance(best, Deployment) else 0.0


def _has_plan(candidates: Candidates) -> bool:
    return candidates.n_candidates > 0 and _ConflictQueries(
        among=(whole := CandidatePool(parts=(candidates,))), freed=whole
    ).holds([])
