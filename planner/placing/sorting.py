"""How many sorts of replicas there are: each beyond the fewest that do has to pay for itself.

A sort is what an operator starts in the same way: model, engine, role, kind of devices, degrees.
With z_K the best objective of at most K sorts, and F the fewest that have an answer, the answer is
that of

    min over K of   z_K + price |z_F| (K - F)

Programs are solved for K = F, F + 1, … as long as more sorts could be better: none with more than K
is better than z + price |z_F| (K + 1 - F), where z is the best of any number.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from planner.errors import OutOfTimeError
from planner.running.deadlines import is_over
from planner.solvers.placement import PlacementSolution
from planner.solvers.solution import Status
from planner.specs.ask.targets import SolverOptions

AnySolution = TypeVar("AnySolution")
Step = tuple[int, float, float]
"""Most sorts, the best objective and its bound, in the unit of the program."""
Weighed = tuple[PlacementSolution, int]
"""What provers say of an answer, and how many sorts it has."""


def with_few_sorts(
    solve: Callable[[int | None], AnySolution],
    weighed: Callable[[AnySolution], Weighed],
    n_least: int,
    options: SolverOptions,
) -> tuple[AnySolution, tuple[Step, ...], bool]:
    """The best answer, each further sort counted; and that of each number that was looked at.

    Args:
        solve: the best of at most so many sorts, or of any number.
        n_least: sorts that every answer has.

    Returns:
        the answer; steps of rising numbers of sorts, the last of any number: none where there was
        nothing to weigh; and whether all were weighed before time ended.
    """
    free = solve(options.most_sorts)
    solution, n_used = weighed(free)
    if solution.answer is None or not options.sort_price or n_used <= n_least:
        return free, (), True
    last = (n_used, solution.objective, solution.bound)
    solutions, steps, is_weighed = [free], [last], True
    for most in range(n_least, n_used):
        if _is_enough(steps[:-1], last, options):
            break
        answer = _in_time(solve, most)
        mine = solution if answer is None else weighed(answer)[0]
        if answer is None or mine.status is Status.UNKNOWN:
            steps, is_weighed = list(map(_vouched, steps, map(weighed, solutions))), False
            break
        if mine.answer is not None:
            solutions.insert(-1, answer)
            steps.insert(-1, (most, mine.objective, mine.bound))
    costs = _priced(steps, options)
    best = solutions[costs.index(min(costs))]
    return best, _unless_single(steps), is_weighed


def without_proof(solution: PlacementSolution) -> PlacementSolution:
    """A solution that others of fewer sorts, which nobody looked at, may be better than."""
    is_final = solution.status in (Status.OPTIMAL, Status.UNCONFIRMED)
    return replace(solution, status=Status.FEASIBLE) if is_final else solution


def _vouched(step: Step, weighed: Weighed) -> Step:
    """A step with the bound that is vouched for: without a proof no other goes out."""
    return step[0], step[1], without_proof(weighed[0]).bound


def _unless_single(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps, unless there is nothing to weigh against each other."""
    return tuple(steps) if len(steps) > 1 else ()


def _in_time(solve: Callable[[int | None], AnySolution], most: int) -> AnySolution | None:
    """The best of so many sorts; None where time ended before."""
    if is_over():
        return None
    try:
        return solve(most)
    except OutOfTimeError:
        return None


def _priced(steps: Sequence[Step], options: SolverOptions) -> list[float]:
    """What the answer of each step comes to, its further sorts counted."""
    fewest, best, _ = steps[0]
    return [value + options.sort_price * abs(best) * (n - fewest) for n, value, _ in steps]


def _is_enough(steps: Sequence[Step], last: Step, options: SolverOptions) -> bool:
    """Whether no answer of more sorts than were looked at is better: the last bounds each."""
    if not steps:
        return False
    next_one = (steps[-1][0] + 1, last[2], last[2])
    *costs, least = _priced([*steps, next_one], options)
    return min(costs) <= least + 1e-9 * abs(least)
