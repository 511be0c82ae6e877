"""Sorts of replicas counted anew, and their price: the best of all that were weighed."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from planner.results.phase_deployments import LayoutDeployment
from planner.results.placements import RunConfig
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.certificates import CLOSER, NO_GAP, OPTIMAL, SIMPLER, Certificate
from planner.verifier.certificates import CLOSE
from planner.verifier.findings import Finding, Invalid, Path
from planner.verifier.placing.parts import sizes_of

PATH: Path = ("certificate", "sorts")


def judged_sorts(
    says: Certificate,
    recipes: Sequence[RunConfig],
    options: SolverOptions,
    *,
    is_rate: bool,
    prefer: str = "objective",
) -> tuple[Certificate, list[Finding]]:
    """The certificate with the price that was asked for, and what is wrong with its sorts.

    That none of a number of sorts is better than is said follows from a new search alone.
    """
    is_near = says.status == OPTIMAL and says.gap > options.gap + NO_GAP
    truth = replace(
        says,
        sort_price=options.sort_price if says.sorts else None,
        given_up_for=(SIMPLER if prefer == "simplest" else CLOSER) if is_near else "",
    )
    n_used = len({(one.model, one.engine, one.role, one.kind, _cut(one)) for one in recipes})
    most, wrong = options.most_sorts, []
    if most is not None and n_used > most:
        fact = f"are more sorts of replicas than the {most} that were asked for"
        wrong.append(Finding(path=PATH, says=n_used, fact=fact))
    if says.sorts:
        wrong += _misweighed(truth, n_used, -1.0 if is_rate else 1.0)
    return truth, wrong


def _misweighed(says: Certificate, n_used: int, sign: float) -> Iterator[Finding]:
    """Steps of which another costs less than the answer, or that leave one out that could."""
    steps, (first, *_) = says.sorts, says.sorts
    each = (says.sort_price or 0.0) * abs(first.objective)

    def cost(value: float, n_sorts: int) -> float:
        return sign * value + each * (n_sorts - first.n_sorts)

    mine = min(steps, key=lambda step: cost(step.objective, step.n_sorts))
    least = cost(mine.objective, mine.n_sorts)
    pairs = ((mine.objective, says.objective), (mine.bound, says.bound))
    if not all(math.isclose(*it, rel_tol=CLOSE) for it in pairs) or n_used > mine.n_sorts:
        fact = f"cost least with {mine.n_sorts}: {mine.objective!r}, bound {mine.bound!r}"
        yield Finding(path=PATH, says=n_used, fact=fact)
    numbers = [one.n_sorts for one in steps]
    missing = {*range(numbers[0], numbers[-1])} - {*numbers}
    could = cost(steps[-1].bound, min(missing, default=numbers[-1]))
    if says.status != OPTIMAL:
        missing = set()
    if numbers != sorted({*numbers}) or (missing and could < least - CLOSE * abs(least)):
        fact = "are not all the numbers that could be better"
        yield Finding(path=PATH, says=str(numbers), fact=fact)


def _cut(recipe: RunConfig) -> object:
    layout = recipe.deployment
    is_torus = isinstance(layout, LayoutDeployment) and layout.mesh.is_torus
    with suppress(Invalid):
        return layout.label if is_torus else (*sizes_of(recipe), recipe.n_expert_devices)
    return layout.label
