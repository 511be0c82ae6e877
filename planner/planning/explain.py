"""Why no plan exists, whichever runtimes were asked.

It is answered by exact solves of the same program with rows left out. A conflict is
found by a deletion filter over the named limits, the level at which users think: leave one
out, and if there is still no plan, it was not needed.

Source: the deletion filter of [Chinneck2008] §6.1, over groups of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from planner.errors import OutOfTimeError
from planner.quantities import GIB, MEMORY, MS, QUANTITIES
from planner.results import AnyDeployment, Conflict, Deployment, Obstacle
from planner.results.plans import EXPLAINED, UNEXPLAINED
from planner.runtimes.candidates import Aim, Among, Candidates, limits_of, variants_of
from planner.solvers.search import Found, is_feasible, optimum, search
from planner.solvers.solution import Status
from planner.specs.commands import reached_options
from planner.units import show

DEMAND = QUANTITIES["demand"]
"""Of which the best is, without a demand, the time of a token when the whole pool works."""

LEAST_MEMORY = QUANTITIES[MEMORY].best
CLOSE = 1e-8
"""Share of what a plan needs of a device that counts as no less: more than rows let pass."""


def explain(among: Among) -> Conflict:
    """The limits that no plan satisfies together, and what each could be.

    One irreducible set after the other: the first limit of each that an option can loosen
    yields, until what is left has a plan. Its values make the command of the hint.

    An explanation is proved, so it has no gap; out of time, it is what is proved by then.
    """
    named = among.parts[0].named
    asked = _Asked(among=among.explained())
    obstacles: list[Obstacle] = []
    yielding: list[str] = []
    changed: list[str] = []  # those of them that an option can loosen until there is a plan
    verified: tuple[str, ...] = UNEXPLAINED
    closest, command = None, ""
    with suppress(OutOfTimeError):
        while not asked.holds(yielding):
            conflict = asked.irreducible(yielding)
            found = [asked.obstacle(name, conflict, yielding) for name in conflict]
            obstacles += found
            loosened = [one.name for one in found if one.name != MEMORY and one.reachable]
            if not loosened:  # memory by itself, whatever else yields
                yielding, changed = ["hbm", *yielding], []
                break
            yielding.append(loosened[0])
            changed = list(yielding)
        verified = EXPLAINED
        closest = asked.closest(yielding)
        command = asked.command(changed, closest)
    others = [one.name for one in variants_of(among.parts)]
    if others:
        verified = (*verified, f"no variant has a plan either: {', '.join(others)}")
    return Conflict(
        request=named,
        obstacles=tuple(obstacles),
        closest=closest,
        command=command,
        n_candidates=sum(
            part.n_candidates + sum(part.outside.values()) for part in asked.among.parts
        ),
        verified=verified,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is asked of a conflict: each answer is a solve of the program without some rows."""

    among: Among

    @property
    def names(self) -> list[str]:
        return list(limits_of(self.among))

    def holds(self, without: Iterable[str]) -> bool:
        source = self.among.source(Aim(objective="cost", without=tuple(without)))
        return is_feasible(source, self.among.request.options)

    def irreducible(self, without: list[str]) -> list[str]:
        """Deletion filter: memory is tried first, so that a target alone is blamed if it can be."""
        needed = [name for name in self.names if name not in without]
        for name in sorted(needed, key=lambda name: name != "hbm"):
            rest = [other for other in needed if other != name]
            if not self.holds([other for other in self.names if other not in rest]):
                needed = rest
        return needed

    def obstacle(self, name: str, conflict: list[str], without: list[str]) -> Obstacle:
        """The best value of one limited quantity when the other limits are kept.

        Where those conflict among themselves, only the others of this conflict are kept: it is
        irreducible, so they have a plan.
        """
        quantity = QUANTITIES[name]
        alone = [other for other in self.names if other not in conflict]
        in_memory = [other for other in alone if other != "hbm"]
        for left_out in ([name, *without], [name, *in_memory], [name, *alone]):
            found = self.best(name, left_out)
            if found is not None:
                break
        assert found is not None
        best, reachable = found
        within = self.within(left_out)
        reason = _reason(name, best, within)
        if name == "demand":
            asked = self.among.request.targets.demand_tokens_per_s
            reason = _demand_reason(asked or 0.0, best, reachable, within)
        return Obstacle(
            name=name,
            asked=best.capacity_bytes if name == MEMORY else limits_of(self.among)[name],
            reachable=reachable,
            dimension=quantity.dimension,
            reason=reason,
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
        aim = Aim(objective=QUANTITIES[name].best, without=tuple(without))
        found = _proved(self.among, aim)
        if found.assignment is None:
            return None
        best = self.among.deployment(found.posed, found.assignment)
        # of a demand what is minimised is the time of a token on the whole pool
        reached = QUANTITIES["throughput"] if name == DEMAND.name else QUANTITIES[name]
        return best, reached.in_si(found.solution.objective)

    def least_memory(self, without: Iterable[str]) -> AnyDeployment | None:
        """The plan whose fullest moment needs least of a device, with some limits left out.

        The program can minimise one of the moments, and no plan needs less than that. Where
        another moment of the plan needs more, a plan is asked for that needs less in each, until
        there is none or the moment that was minimised is the fullest.
        """
        others = tuple(name for name in without if name != MEMORY)
        best, scale = None, math.inf
        while True:
            aim = Aim(objective=LEAST_MEMORY, without=others, memory_scale=scale)
            found = _proved(self.among, aim)
            if found.assignment is None:
                return best
            best = self.among.deployment(found.posed, found.assignment)
            apart = best.used_bytes - found.solution.objective / GIB
            if apart <= _reserve_bytes(best) + CLOSE * best.used_bytes:
                return best
            scale = best.used_bytes * (1 - CLOSE) / best.capacity_bytes

    def within(self, left_out: list[str]) -> str:
        """Which limits a best value keeps, in words; the first left out is its own."""
        kept = [name for name in self.names if name not in left_out]
        others = {*self.names} - {left_out[0]}
        if others <= set(kept):
            return " within the other limits" if others else ""
        words = ", ".join(f"`{name}`" for name in kept)
        return f" with only {words} kept" if kept else " by itself"

    def closest(self, yielding: list[str]) -> AnyDeployment | None:
        """The plan that breaks the first yielding limit by the least, and keeps those that stay."""
        if yielding[0] == "demand":
            return self.most_served(yielding)
        found = self.best(yielding[0], yielding)
        return None if found is None else found[0]

    def most_served(self, yielding: list[str]) -> AnyDeployment | None:
        """The cheapest plan for the largest demand that can be met, to three digits."""
        whole = self.among.source(Aim(objective=DEMAND.best, without=tuple(yielding)))
        served = MS / optimum(whole, self.among.request.options).objective
        targets = self.among.request.targets
        less = replace(targets, demand_tokens_per_s=DEMAND.rounded(served))
        among = self.among.with_targets(less)
        found = _proved(among, Aim(objective="cost", without=tuple(yielding[1:])))
        if found.assignment is None:  # what is left over by rounding costs too much
            return None
        return among.deployment(found.posed, found.assignment)

    def command(self, yielding: list[str], closest: AnyDeployment | None) -> str:
        """A command that has a plan: limits at what is reachable, or another way to the memory."""
        first = self.among.parts[0]
        if yielding == ["demand"]:
            served = closest.served_tokens_per_s if closest else math.inf
            for option, value, other in first.larger(served):
                if _has_plan(other):
                    return first.command({option: value})
        if yielding and closest is not None:
            reached = {name: QUANTITIES[name].told(closest) for name in yielding}
            if DEMAND.name in reached:
                reached[DEMAND.name] = closest.served_tokens_per_s
            return first.command(reached_options(reached))
        for option, value, other in first.more_room():
            if _has_plan(other):
                return first.command({option: value})
        return ""


def _reserve_bytes(best: AnyDeployment) -> float:
    """What a device keeps back, which programs leave out of what is held."""
    return best.memory.reserve_bytes if isinstance(best, Deployment) else 0.0


def _proved(among: Among, aim: Aim) -> Found:
    found = search(among.source(aim), among.request.options, n_alternatives=0)
    if found.solution.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        raise found.solution.unsettled()
    return found


def _has_plan(one: Candidates) -> bool:
    return one.n_candidates > 0 and _Asked(among=Among(parts=(one,))).holds([])


def _demand_reason(demand: float, best: AnyDeployment, served: float, within: str) -> str:
    """How many replicas the demand takes, and how many there is room for."""
    n_replicas = getattr(best, "n_replicas", 1)
    each = best.output_tokens_per_s / n_replicas
    n_room, n_needed = round(served / each), math.ceil(demand / each)
    replicas = f"{n_room} replica{'s' * (n_room > 1)}"
    return (
        f"the most that the pool serves{within} is {show(served, 'token/s')}, by {replicas} of "
        f"{best.where}; {show(demand, 'token/s')} need {n_needed} of them, "
        f"{n_needed * best.n_devices // n_replicas} devices"
    )


def _reason(name: str, best: AnyDeployment, within: str) -> str:
    """The fact that stands in the way, in one sentence."""
    if name in ("tpot", "ttft"):
        return best.fastest(name, within)
    if name == "hbm":
        return (
            f"the plan that needs least memory{within} takes {show(best.used_bytes, 'B')} of "
            f"each device on {best.where}, {show(best.weights_bytes, 'B')} of it weights in "
            f"{best.weights_format}; a device has {show(best.capacity_bytes, 'B')}"
        )
    quantity = QUANTITIES[name]
    reached = quantity.shown(quantity.told(best))
    return quantity.reason.format(within=within, value=reached, where=best.where)
