"""What of a certificate can be counted without proving anything again.

The objective is that of the recounted answer, the gap follows from it and the bound, and no bound
is beyond the objective. That nothing is better than the bound is proved by a new search alone.
Sorts of replicas are counted too, and their price: the answer is the best of all that were weighed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from planner.results.phase_deployments import LayoutDeployment
from planner.results.placements import RunConfig
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.certificates import (
    CLOSER,
    FEASIBLE,
    NO_GAP,
    OPTIMAL,
    SIMPLER,
    UNCONFIRMED,
    Certificate,
    Proof,
)
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path
from planner.verifier.placing.parts import sizes_of
from planner.verifier.quantities import HBM, MEASURES
from planner.verifier.rules import TABLES

CLOSE = 1e-8
STATUSES = (OPTIMAL, UNCONFIRMED, FEASIBLE)

RECOUNTED = "seconds and bytes of every layout recounted by an independent scalar model"
"""The check of replicas whose times are the planner's own."""

REASONS: Mapping[str, str] = TABLES["reasons"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What the numbers of a certificate count, so that some of them add up.

    Args:
        reasons: of screens, by name.
        adds_up: a number, and the sum that it has to be.
    """

    reasons: Mapping[str, str]
    adds_up: Callable[[Certificate], tuple[int, int]]

    def of_a_repair(self) -> Counts:
        """A repair chooses among more than a placement, and counts what that had."""
        return replace(self, adds_up=lambda says: (0, 0))


def _rejected(says: Certificate, *names: str) -> int:
    return sum(one.n_candidates for one in says.screens if one.name in names or not names)


OF_A_PLAN = Counts(
    reasons={
        **REASONS,
        **{name: f"they break `{name}` by themselves" for name in MEASURES if name != HBM},
    },
    adds_up=lambda says: (says.n_candidates, _rejected(says) + says.n_solved),
)
"""All candidates are rejected or solved."""

ON_NODES = Counts(
    reasons={
        "layouts": "others are better on the same devices",
        "ways": "others fit wherever they do and serve more",
    },
    adds_up=lambda says: (says.n_candidates, _rejected(says, "layouts") + says.n_contexts),
)
"""Of the layouts the best of each way is kept."""

ON_A_TORUS = Counts(
    reasons={
        "layouts": "others are better on the same slice",
        "tiled": "slices that smaller ones fill, and serve as much from",
    },
    adds_up=lambda says: (says.n_contexts, _rejected(says, "tiled") + says.n_solved),
)
"""Of the places those are solved that no others fill."""


def certified(
    says: Certificate,
    *,
    objective_name: str,
    objective: float,
    dimension: str,
    is_rate: bool,
    gap: float,
    checks: tuple[str, ...],
    counts: Counts = OF_A_PLAN,
    statuses: Sequence[str] = STATUSES,
) -> tuple[Certificate, list[Finding]]:
    """The certificate that is true of a recounted objective, and what is wrong with its claims.

    Args:
        objective: of the answer, recounted, SI.
        is_rate: whether more is better.
        gap: that was asked for.
        checks: that every answer passes before it goes out.
        counts: what its numbers count.
        statuses: that such an answer may have.
    """
    agrees = math.isclose(says.objective, objective, rel_tol=CLOSE)
    value = says.objective if agrees else objective
    certificate = replace(
        says,
        objective_name=objective_name,
        objective=value,
        gap=abs(value - says.bound) / abs(value) if value else 0.0,
        dimension=dimension,
        screens=tuple(
            replace(one, reason=counts.reasons.get(one.name, one.reason)) for one in says.screens
        ),
        verified=checks,
        sorts=() if counts is OF_A_PLAN else says.sorts,
        sort_price=None,  # of replicas alone: `judged_sorts` says what it is of them
        given_up_for="",
    )
    wrong = []
    beyond = says.bound - value if not is_rate else value - says.bound
    if beyond > TOLERANCE * abs(value):
        fact = f"is beyond the objective {value!r}"
        wrong.append(Finding(path=("certificate", "bound"), says=says.bound, fact=fact))
    if says.status not in statuses:
        fact = f"is none of {', '.join(statuses)}"
        wrong.append(Finding(path=("certificate", "status"), says=says.status, fact=fact))
    elif says.status == OPTIMAL and certificate.gap > gap * (1 + TOLERANCE) + CLOSE:
        fact = f"is not what a gap of {certificate.gap!r} is called where {gap!r} was asked for"
        wrong.append(Finding(path=("certificate", "status"), says=says.status, fact=fact))
    return certificate, [*wrong, *_unvouched(says, is_rate=is_rate), *_miscounted(says, counts)]


def _unvouched(says: Certificate, *, is_rate: bool) -> Iterator[Finding]:
    """Provers that are said to vouch for a bound and did not say as much; or too few of them.

    Two of different families do, or the project's own arithmetic by itself.
    """
    path: Path = ("certificate", "vouched_by")
    words: list[Proof] = []
    for i, name in enumerate(says.vouched_by):
        mine = [one for one in says.proofs if one.prover == name and one.outcome != "refused"]
        if not any(_says_as_much(one.bound, says.bound, is_rate=is_rate) for one in mine):
            fact = "did not say as much as the bound"
            yield Finding(path=(*path, str(i)), says=name, fact=fact)
        words += mine
    if says.status == OPTIMAL and too_few(words):
        fact = "are too few to call an answer optimal"
        yield Finding(path=path, says=", ".join(says.vouched_by), fact=fact)
    yield from _wrongly_vouched(says, is_rate=is_rate)


def too_few(words: Sequence[Proof]) -> bool:
    """Whether provers do not vouch for a bound: neither two of different families nor our own."""
    return len({one.lineage for one in words}) < 2 and not any(one.is_own for one in words)


def _wrongly_vouched(says: Certificate, *, is_rate: bool) -> Iterator[Finding]:
    """A vouched bound that is beyond the bound, or not what is vouched for."""
    sure = says.vouched_bound
    path: Path = ("certificate", "vouched_bound")
    if sure is None:
        if says.vouched_by:
            yield Finding(path=path, says=None, fact="is missing where provers vouch")
    elif not _says_as_much(says.bound, sure, is_rate=is_rate):
        yield Finding(path=path, says=sure, fact=f"is beyond the bound {says.bound!r}")
    elif says.vouched_by and not _says_as_much(sure, says.bound, is_rate=is_rate):
        fact = f"is less than the bound {says.bound!r}, for which provers vouch"
        yield Finding(path=path, says=sure, fact=fact)


def _says_as_much(word: float, bound: float, *, is_rate: bool) -> bool:
    """Whether a prover's bound is no weaker than another."""
    slack = CLOSE * abs(bound)
    return word <= bound + slack if is_rate else word >= bound - slack


def _miscounted(says: Certificate, counts: Counts) -> list[Finding]:
    """Numbers that do not add up, and screens that nobody knows."""
    wrong = []
    for i, screen in enumerate(says.screens):
        path: Path = ("certificate", "screens", str(i))
        if screen.name not in counts.reasons:
            wrong.append(Finding(path=(*path, "name"), says=screen.name, fact="is no screen"))
        if screen.n_candidates < 1:
            count = screen.n_candidates
            fact = "are no candidates"
            wrong.append(Finding(path=(*path, "n_candidates"), says=count, fact=fact))
    stated, added = counts.adds_up(says)
    if stated != added:
        fact = f"do not add up: {stated} of them are {added} screened and left"
        of = ("certificate", "n_candidates")
        wrong.append(Finding(path=of, says=says.n_candidates, fact=fact))
    return wrong


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
