"""What stands beside an answer: the best that was measured, and the best if predictions held.

Each is recounted at what it believes. No bound of the answer may be beaten by what was measured;
the answer may be either, and neither may be beaten by it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from planner.results.engines import EngineDeployment
from planner.results.plans import Alternative, AnyDeployment, AnyPlan
from planner.specs.ask.defaults import NEAR_SHARE
from planner.specs.ask.engine import EngineRequest
from planner.specs.records.runtimes import ENGINES
from planner.verifier.findings import Finding, Path, near
from planner.verifier.rivals import CLOSE, Scale
from planner.verifier.runtimes.counting import Countings
from planner.verifier.runtimes.engines import WITHOUT_ERROR

NAMES = INSIDE, ANYWHERE = "inside", "anywhere"

Replicas = Any
"""A placement, or a fleet."""

Judge = Callable[[Replicas], tuple[Replicas, list[Finding]]]


class Deployed(Protocol):
    @property
    def summary(self) -> str: ...


def judged_beliefs(
    plan: AnyPlan, leader: AnyDeployment, scale: Scale
) -> tuple[AnyPlan, list[Finding]]:
    """What stands beside a plan, true of its deployments."""
    requests = (plan.request, *plan.other_requests)
    median = [replace(one, confidence=0.0) for one in requests if isinstance(one, EngineRequest)]
    alternatives: dict[str, Alternative[AnyDeployment] | None] = {INSIDE: None, ANYWHERE: None}
    wrong: list[Finding] = []
    words = [getattr(one, "confidence", None) for one in requests]
    if len(median) < len(requests) or words != [None] * len(words):
        return replace(plan, inside=None, anywhere=None), wrong  # it is said what to believe
    among = Countings.of(median)
    as_predicted, _ = among.counted(leader, ("deployment",))
    lost = scale.lost(as_predicted)
    most = {INSIDE: 0.0 if _are_measured([leader]) else math.inf, ANYWHERE: lost}
    for name in NAMES:
        says = getattr(plan, name)
        if says is not None:
            best, more = among.counted(says.deployment, (name, "deployment"))
            own = scale.lost(best)
            objective = near(says.objective, scale.measure.of(best), rel_tol=CLOSE)
            alternatives[name] = Alternative(
                deployment=best, objective=objective, loss_fraction=own
            )
            wrong += [*more, *_disbelieved((name, "deployment"), own, most[name], [best])]
    return replace(plan, **alternatives), wrong  # type: ignore[arg-type] # no other fields


def judged_others(
    says: Replicas, truth: Replicas, judge: Judge, *, is_rate: bool
) -> tuple[Replicas, list[Finding]]:
    """What stands beside a placement or a fleet, true of its replicas.

    Args:
        truth: the answer, recounted.
        judge: recounts an answer beside which nothing stands.
    """
    request, wrong = says.request, list[Finding]()
    others = {name: it for name in NAMES if (it := getattr(says, name)) is not None}
    if request.confidence is not None or any(one not in ENGINES for one in request.engines):
        others = {}  # it is said what to believe
    for name, other in others.items():
        beside = _Beside(truth=truth, judge=judge, name=name, other=other, is_rate=is_rate)
        others[name], more = beside.judged()
        wrong += more
    return replace(truth, inside=others.get(INSIDE), anywhere=others.get(ANYWHERE)), wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """What stands beside an answer by one belief."""

    truth: Replicas
    judge: Judge
    name: str
    other: Any
    is_rate: bool

    def judged(self) -> tuple[Any, list[Finding]]:
        """What is true of its replicas, and what is wrong."""
        best, wrong = self._recounted(self.other)
        value, proof = best.certificate.objective, self.truth.certificate
        # none of any number of sorts is better
        bound = self._lost(proof.sorts[-1].bound if proof.sorts else proof.bound)
        used = [one.deployment for one in best.recipes]
        path: Path = (self.name, "recipes")
        wrong += _disbelieved(path, self._lost(value), self._most(), used, bound=bound)
        return replace(
            self.other,
            objective=near(self.other.objective, value, rel_tol=CLOSE),
            loss_fraction=self._lost(value),
            **{part: getattr(best, part) for part in self._parts},
        ), wrong

    @property
    def _parts(self) -> list[str]:
        of_its_own = ("objective", "loss_fraction")
        return [it.name for it in fields(self.other) if it.name not in of_its_own]

    def _recounted(self, whose: Any) -> tuple[Replicas, list[Finding]]:  # noqa: ANN401
        """Replicas at what is believed, and what is wrong with them."""
        request, mine = self.truth.request, {part: getattr(whose, part) for part in self._parts}
        believed = replace(request, confidence=0.0) if self.name == ANYWHERE else request
        whole = replace(self.truth, request=believed, inside=None, anywhere=None, **mine)
        recounted, more = self.judge(whole)
        return recounted, [one.below((self.name,)) for one in more if one.path[0] in self._parts]

    def _lost(self, value: float) -> float:
        """What an objective loses of the answer's."""
        least: float = self.truth.certificate.objective
        sign = -1.0 if self.is_rate else 1.0
        return float(sign) * (value - least) / abs(least) if least else 0.0

    def _most(self) -> float:
        """What it may lose at most: the answer is one too, if it was measured, or as predicted."""
        options, recipes = self.truth.request.options, self.truth.recipes
        spare = max(options.gap, NEAR_SHARE) + options.sort_price * len(recipes)
        if self.name == INSIDE:
            return spare if _are_measured(one.deployment for one in recipes) else math.inf
        name = self.truth.certificate.objective_name
        own = self.truth if name in WITHOUT_ERROR else self._recounted(self.truth)[0]
        return self._lost(own.certificate.objective) + float(spare)


def _are_measured(some: Iterable[object]) -> bool:
    return all(isinstance(one, EngineDeployment) and not one.outside for one in some)


def _disbelieved(
    path: Path, lost: float, most: float, some: Sequence[Deployed], *, bound: float = 0.0
) -> Iterator[Finding]:
    """What is not inside, or loses less or more than what is known to be there.

    Args:
        path: of deployments, under the name of the belief.
        lost: what it loses of the answer's objective.
        bound: the same of what nothing inside is better than.
    """
    name, is_inside = path[0], path[0] == INSIDE
    if is_inside and not _are_measured(some):
        summary = ", ".join(one.summary for one in some)
        yield Finding(path=path, says=summary, fact="is outside of what was measured")
    least = bound if is_inside else -math.inf
    if not least - CLOSE <= lost <= most + CLOSE:
        fact = f"is not between {least!r} and {most!r} of the answer"
        yield Finding(path=(name, "loss_fraction"), says=lost, fact=fact)
