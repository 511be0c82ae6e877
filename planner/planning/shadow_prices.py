"""What a little more of each limit would buy: exact solves of the same program, one row changed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from planner.errors import OutOfTimeError, UnsettledError
from planner.programs.blocks import InMemory, Objective, ProgramBlocks
from planner.programs.layout import Assignment
from planner.programs.reduction import reduced
from planner.quantities.table import DEMAND, MEMORY, QUANTITIES
from planner.results.engines import EngineDeployment
from planner.results.plans import AnyDeployment, LimitUse, Rival, RuleCost
from planner.running.deadlines import is_over
from planner.runtimes.candidates import CandidatePool, Candidates, limits_of
from planner.solvers.certify import in_si
from planner.solvers.search import SearchResult, optimum
from planner.solvers.solution import Status
from planner.specs.ask.defaults import RULE_SHARE
from planner.specs.ask.targets import SolverOptions
from planner.specs.validation.hints import from_fields


def reliefs_of(among: CandidatePool) -> dict[str, float]:
    """How much each limit is loosened to see what it costs, where that can be known.

    It cannot within a gap; nor of the demand, which is also what a plan is credited with: with
    less of it, tokens cost more.
    """
    if among.request.options.gap:
        return {}
    return {name: QUANTITIES[name].relief for name in limits_of(among) if name != DEMAND}


def shadow_prices(among: CandidatePool, aim: Objective, result: SearchResult) -> Iterator[LimitUse]:
    """The share of the objective gained for each limit, loosened one at a time.

    The share is `None` where it is not known: the plan, or the better one, is not proved
    optimal in the time that is left, or see `reliefs_of`.

    Args:
        result: the search, which was told of the reliefs.
    """
    objective, options = result.solution.objective, among.request.options
    for name in limits_of(among):
        quantity, gain = QUANTITIES[name], None
        proved = result.solution.status is Status.OPTIMAL
        if name in result.reduced.relieved and proved and objective and not is_over():
            parts = among.parts if name == MEMORY else ()
            heavier = chain.from_iterable(one.heavier(aim, quantity.relief) for one in parts)
            sources = chain([InMemory(result.reduced.relieved[name])], heavier)
            better = _least(sources, options, objective)
            if better is not None:
                gain = max((objective - better) / abs(objective), 0.0)
        yield from_fields(LimitUse, quantity, name=name, used=0.0, limit=0.0, gain_fraction=gain)


def _least(sources: Iterable[ProgramBlocks], options: SolverOptions, known: float) -> float | None:
    """The optimum of several programs, and of what is known; `None` if time ends before."""
    best = known
    for source in sources:
        if is_over():
            return None
        try:
            solution = optimum(source, options, known=best)
        except (OutOfTimeError, UnsettledError):
            return None
        if solution.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            return None
        best = min(best, solution.objective)
    return best


FARTHEST = 1.5
"""Of the best objective, beyond which batches some apart say that a rule costs nothing."""


def rule_costs(
    among: CandidatePool,
    aim: Objective,
    result: SearchResult,
    best: AnyDeployment,
    rivals: Sequence[Rival[AnyDeployment]],
) -> tuple[RuleCost, ...]:
    """Rules of engines without which the best would be better by `RULE_SHARE`, see `RuleCost`.

    Of what a rule forbids, all that is near the best at a few batches is looked at with all.
    """
    if not result.solution.status.is_final or not result.solution.objective:
        return ()
    near = {one.runtime: one.deployment or best for one in rivals}
    costs: dict[tuple[str, str], RuleCost] = {}
    for part in among.parts:
        for rule, forbidden in part.without_rules(near.get(part.runtime, best)):
            cost = None if is_over() else _rule_cost(rule, forbidden, aim, result)
            known = costs.get((part.runtime, rule))
            if cost and not (known and known.gain_fraction >= cost.gain_fraction):
                costs[part.runtime, rule] = cost
    return tuple(sorted(costs.values(), key=lambda cost: -cost.gain_fraction))


def _rule_cost(
    rule: str, forbidden: Candidates, aim: Objective, result: SearchResult
) -> RuleCost | None:
    """What a rule costs; None where that is little."""
    least = result.solution.objective
    for most in (least + (FARTHEST - 1.0) * abs(least), least - RULE_SHARE * abs(least)):
        left = reduced(forbidden.source(aim), known=most)
        if left.screening.incumbent is None:
            return None
        best: Assignment = left.screening.incumbent
        chosen, forbidden = forbidden, forbidden.around(left.posed)
    deployment, value = chosen.deployment(left.posed, best), left.posed.amount(aim.objective, best)
    assert isinstance(deployment, EngineDeployment)
    return RuleCost(
        rule=rule,
        deployment=replace(deployment, command="", launch=None),
        objective=in_si(aim.objective, value),
        gain_fraction=(least - value) / abs(least),
    )
