"""Plans that lose less of the objective than its error: which is chosen, which stand beside it."""

import math
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from planner.equations.tails import undecided
from planner.programs.blocks import BlockProgram, Objective
from planner.programs.layout import Assignment, ceiling, keeping
from planner.programs.rows import least_by_group
from planner.programs.targets import SIMPLICITY
from planner.results.engines import EngineDeployment
from planner.results.plans import Alternative, AnyDeployment, Rival
from planner.running.deadlines import is_over
from planner.runtimes.candidates import CandidatePool, has_region
from planner.solvers.certify import in_si
from planner.solvers.recording import solving_for
from planner.solvers.search import N_ALTERNATIVES, SearchResult, search
from planner.specs.ask.engine import SIMPLEST
from planner.specs.records.model_errors import Quantity, common_error
from planner.specs.region import FACTOR, INSIDE, MEDIAN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ties:
    """What is chosen among plans as good as each other, and what loses.

    Args:
        posed, chosen: the plan.
        alternatives: the best of other ways to use the pool, the nearest first.
        n_ties: other ways to use the pool whose best is a tie.
        given_up_fraction: what the plan loses of the best objective for being simpler.
    """

    posed: BlockProgram
    chosen: Assignment
    alternatives: tuple[Alternative[AnyDeployment], ...]
    n_ties: int
    given_up_fraction: float


def ties_of(
    among: CandidatePool, result: SearchResult, aim: Objective, error: float, *, prefer: str
) -> Ties:
    """The best itself, or the simplest of what loses less than the error, which is preferred.

    Args:
        result: the best, in the order of its objective.
        error: relative standard deviation of the best objective; without one nothing ties.
    """
    assert result.assignment is not None
    posed, chosen = result.posed, result.assignment
    least, given_up = result.solution.objective, 0.0
    known = result.solution.status.is_final and bool(error) and not is_over()
    if known and prefer == SIMPLEST:
        simpler = _simplest(among, aim, ceiling(least * (1.0 + error)))
        if simpler.assignment is not None and not is_over():  # else of the simplest any
            posed, chosen = simpler.posed, simpler.assignment
            given_up = posed.amount(aim.objective, chosen) / least - 1.0
    ways = [(result.assignment, least), *result.alternatives]
    # a search that may stop early meets them in any order, and better ones than its own best
    others = sorted(
        (it for it in ways if it[1] >= least and not _is_same_way(result, it[0], posed, chosen)),
        key=itemgetter(1),
    )
    alternatives = tuple(
        Alternative(
            deployment=among.deployment(result.posed, assignment),
            objective=in_si(aim.objective, value),
            loss_fraction=(value - least) / abs(least) if least else 0.0,
            is_tie=bool(error) and value <= ceiling(least * (1.0 + error)),
        )
        for assignment, value in others[:N_ALTERNATIVES]
    )
    n_ties = sum(one.is_tie for one in alternatives)
    if known:  # of which time may have hidden some
        n_ties = max(n_ties, _n_ties(among, aim, ceiling(least * (1.0 + error)), n_ties))
    return Ties(
        posed=posed,
        chosen=chosen,
        alternatives=alternatives,
        n_ties=n_ties,
        given_up_fraction=given_up,
    )


def rivals_of(
    among: CandidatePool, aim: Objective, result: SearchResult, best: AnyDeployment
) -> tuple[Rival[AnyDeployment], ...]:
    """The best of each runtime, where there are several and time to see; see `Rival`."""
    names = among.runtimes()
    if len(names) == 1:
        return ()
    return tuple(_rival(among, aim, result, name, best) for name in names)


def _rival(
    among: CandidatePool, aim: Objective, result: SearchResult, runtime: str, leader: AnyDeployment
) -> Rival[AnyDeployment]:
    unknown: Rival[AnyDeployment] = Rival(
        runtime=runtime, deployment=None, objective=None, loss_fraction=None
    )
    if is_over():
        return unknown
    alone = among.under(runtime)
    with solving_for(f"{runtime} alone"):
        best = search(alone.source(aim), among.request.options, n_alternatives=0)
    if best.assignment is None or not best.solution.status.is_final:
        return unknown
    value, least = best.solution.objective, result.solution.objective
    deployment = alone.deployment(best.posed, best.assignment)
    return Rival(
        runtime=runtime,
        deployment=deployment,
        objective=in_si(aim.objective, value),
        loss_fraction=(value - least) / abs(least) if least else 0.0,
        error_fraction=_apart_error(among, aim.objective, leader, deployment),
    )


def _apart_error(
    among: CandidatePool, objective: str, mine: AnyDeployment, other: AnyDeployment
) -> float:
    """What one loses of another under another engine, below which the two are a tie [1].

    Predictions of one engine err together, so that its own deployments are compared without. What
    two engines err alike by where they cut a model alike, and run about as much, is none of it.
    """
    if not isinstance(mine, EngineDeployment) or not isinstance(other, EngineDeployment):
        return 0.0
    is_rent = objective == "cost" and mine.demand_tokens_per_s is not None
    if mine.engine == other.engine or is_rent or objective in ("rent", "devices"):
        return 0.0
    name: Quantity = "TTFT" if objective == "ttft" else "TPOT"
    first, second = _off(mine, name), _off(other, name)
    common = _common(among, name, mine) if _is_alike(mine, other) else 0.0
    return undecided(math.sqrt(first**2 + second**2 - 2.0 * common * first * second))


def _off(deployment: EngineDeployment, name: Quantity) -> float:
    times = deployment.ttft_s if name == "TTFT" else deployment.tpot_s
    return times.high / times.value - 1.0


def _common(among: CandidatePool, name: Quantity, deployment: EngineDeployment) -> float:
    """The correlation of errors of two engines that run a deployment's model alike."""
    kinds = {it.name: it.kind for part in among.requests for it in getattr(part, "models", ())}
    return common_error(kinds[deployment.model], name)


def _is_alike(deployment: EngineDeployment, other: EngineDeployment) -> bool:
    """Whether two deployments are cut alike, of the same formats, and run about as much."""
    cuts = [
        (it.model, it.formats, it.n_tensor, it.n_data, it.n_stages, it.n_expert_parallel)
        for it in (deployment, other)
    ]
    loads = sorted((deployment.batch, other.batch))
    return cuts[0] == cuts[1] and loads[1] <= FACTOR * loads[0]


def beliefs_of(
    among: CandidatePool, aim: Objective, result: SearchResult, best: AnyDeployment
) -> tuple[Alternative[AnyDeployment] | None, ...]:
    """The best inside the measured region, and at what is predicted anywhere.

    None of either where a share of cases is asked for, or a runtime has no such region. Nothing
    is timed for them: the one leaves choices out, the other counts them otherwise.
    """
    if not has_region(among):
        return None, None
    return tuple(_believed(among, aim, result, best, belief) for belief in (INSIDE, MEDIAN))


@solving_for("of what was measured, or at the median")
def _believed(
    among: CandidatePool, aim: Objective, result: SearchResult, best: AnyDeployment, belief: str
) -> Alternative[AnyDeployment] | None:
    value, deployment = result.solution.objective, best
    if is_over() or not result.solution.status.is_final:
        return None
    is_inside = isinstance(best, EngineDeployment) and not best.outside
    if belief == MEDIAN or not is_inside:  # else nothing inside is better
        source = among.source(replace(aim, belief=belief))
        other = search(source, among.request.options, n_alternatives=0)
        if other.assignment is None or not other.solution.status.is_final:
            return None
        value = other.solution.objective
        deployment = among.deployment(other.posed, other.assignment)
    least = result.solution.objective
    return Alternative(
        deployment=deployment,
        objective=in_si(aim.objective, value),
        loss_fraction=(value - least) / abs(least) if least else 0.0,
    )


@solving_for("simplest of the ties")
def _simplest(among: CandidatePool, aim: Objective, at_most: float) -> SearchResult:
    """The simplest of the ties, and the best objective of these: a program of its own."""
    tie = (aim.objective, at_most)
    simple = Objective(objective=SIMPLICITY, at_most=(*aim.at_most, tie), tie_breaker=aim.objective)
    options = replace(among.request.options, gap=0.0)
    return search(among.source(simple), options, n_alternatives=0)


def _is_same_way(
    result: SearchResult, assignment: Assignment, posed: BlockProgram, chosen: Assignment
) -> bool:
    """Whether an assignment of a search and the choice are of one context of the whole program."""
    k, o, mine = assignment.context, chosen.context, result.posed
    return bool(mine.model[k] == posed.model[o] and mine.number[k] == posed.number[o])


def _n_ties(among: CandidatePool, aim: Objective, at_most: float, n_listed: int) -> int:
    """Ways to use the pool, but the plan's own, whose best is a tie.

    Where a column is a whole deployment they are counted; else as many as are listed.
    """
    total = 0
    within = replace(aim, at_most=(*aim.at_most, (aim.objective, at_most)))
    for posed in among.source(within).blocks():
        program = posed.program
        if len(program.slots) > 1:
            return n_listed
        context, column = posed.quantities[aim.objective]
        values = np.where(keeping(program), context[program.column_context] + column, np.inf)
        best = least_by_group(values, program.column_context, program.n_contexts)
        total += int((best <= at_most).sum())
    return total - 1
