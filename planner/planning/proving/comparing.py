"""What a new search says, held against an answer: bounds, provers, counts, and every other field
that only a search can say. Its candidates are made again of the records that the request holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from planner.planning.plans import decide
from planner.quantities.units import show
from planner.results.conflicts import Conflict
from planner.results.plans import AnyPlan, AnyRequest
from planner.results.surveys import Frontier
from planner.running.deadlines import is_set, left_s, within
from planner.runtimes import engines, roofline
from planner.runtimes.candidates import CandidatePool, Candidates
from planner.runtimes.erdil2025 import ErdilCandidates
from planner.runtimes.predicting import Machines
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.records.certificates import OPTIMAL, Certificate, Proof
from planner.specs.records.economics import EconomicsRequest
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import Finding, Path
from planner.verifier.placing.placements import RATES
from planner.verifier.rules import ASKED, PROVED, UNVERIFIED, rule_of

CLOSE = 1e-7
"""Relative, of objectives: solvers and ties have tolerances of their own."""

_JUDGED_APART = (Certificate, Proof)
"""Records of which a search may prove more or less today: see `certificate_findings`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What a new search says of an answer.

    Args:
        findings: what does not hold.
        proofs: what does, in words.
        taken: what no search judged.
    """

    findings: tuple[Finding, ...] = ()
    proofs: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()

    def below(self, *path: str) -> Again:
        """The same, of an answer that stands inside another."""
        return replace(self, findings=tuple(it.below(path) for it in self.findings))


def limit_of(asked_s: float | None) -> float | None:
    """Of a search, that of its request or of all searches; None without either."""
    return left_s() if asked_s is None and is_set() else asked_s


def unanswered(path: Path, says: object) -> Again:
    """An answer whose request has none."""
    fact = "is of a request that has no answer"
    return Again(findings=(Finding(path=path, says=says, fact=fact),))


def again(findings: Sequence[Finding], proof: Certificate, *more: str) -> Again:
    """What was found, and the new search's own certificate in words."""
    name, value = proof.objective_name, show(proof.objective, proof.dimension)
    bound = show(proof.bound, proof.dimension)
    by = ", ".join(proof.vouched_by) or f"{proof.solver} alone"
    told = f"searched again: {proof.status}, {name} {value}, bound {bound}, by {by}"
    return Again(findings=tuple(findings), proofs=(told, *more))


def same(says: object, recounted: object, path: Path) -> Iterator[Finding]:
    """Two values that have to be alike, numbers to the tolerance of solvers."""
    if isinstance(says, float) and isinstance(recounted, float):
        if not (math.isfinite(says) or math.isfinite(recounted)):
            return  # of what nobody says anything
        if math.isclose(says, recounted, rel_tol=CLOSE, abs_tol=1e-12):
            return
    if says != recounted:
        yield Finding(path=path, says=says, found=recounted)


def same_fields(says: object, again: object, *names: str, path: Path = ()) -> Iterator[Finding]:
    """The same of fields of two records; of those that are tuples, of how many entries."""
    for name in names:
        values = (getattr(record, name) for record in (says, again))
        mine, other = (len(value) if isinstance(value, tuple) else value for value in values)
        yield from same(mine, other, (*path, name))


def proved_fields(says: object, again: object, path: Path = ()) -> Iterator[Finding]:
    """Fields that only a search can say, wherever both answers have the same place for them.

    Certificates are left out: `certificate_findings` judges them.
    """
    if is_dataclass(says) and type(says) is type(again):
        if isinstance(says, _JUDGED_APART):
            return
        for field in fields(says):
            rule = rule_of(says.__class__, field.name)
            pair = getattr(says, field.name), getattr(again, field.name)
            if rule == PROVED:
                yield from _leaves(*pair, (*path, field.name))
            elif rule not in (ASKED, UNVERIFIED):
                yield from proved_fields(*pair, (*path, field.name))
    elif isinstance(says, tuple) and isinstance(again, tuple) and len(says) == len(again):
        for i, pair in enumerate(zip(says, again, strict=True)):
            yield from proved_fields(*pair, (*path, str(i)))


def _leaves(says: object, again: object, path: Path) -> Iterator[Finding]:
    """All that differs below a proved field, but for what nobody can judge."""
    if is_dataclass(says) and type(says) is type(again):
        for field in fields(says):
            if rule_of(says.__class__, field.name) != UNVERIFIED:
                pair = getattr(says, field.name), getattr(again, field.name)
                yield from _leaves(*pair, (*path, field.name))
    elif isinstance(says, tuple) and isinstance(again, tuple):
        yield from same(len(says), len(again), path)
        for i, pair in enumerate(zip(says, again, strict=False)):
            yield from _leaves(*pair, (*path, str(i)))
    else:
        yield from same(says, again, path)


def known_best(
    says: Mapping[str, Any], again: Mapping[str, Any], limit_s: float | None, *path: str
) -> Iterator[Finding]:
    """What stands beside an answer: as good as a search finds, where both had the time to see.

    Args:
        says, again: records with objectives, by name; None of what is not known.
    """
    for name, value in says.items():
        pair = (value and value.objective, (other := again.get(name)) and other.objective)
        if limit_s is None or None not in pair:
            yield from same(*pair, (*path, name, "objective"))


def same_beliefs(says: Any, again: Any, limit_s: float | None) -> Iterator[Finding]:  # noqa: ANN401
    """`known_best` of what stands beside answers if something else is believed of times."""
    names = ("inside", "anywhere")
    mine, others = ({name: getattr(it, name) for name in names} for it in (says, again))
    return known_best(mine, others, limit_s)


def is_better(value: float, than: float, *, is_rate: bool) -> bool:
    """Whether a value is better than another by more than tolerances."""
    gained = value - than if is_rate else than - value
    return gained > CLOSE * abs(than)


def certificate_findings(
    says: Certificate, certificate: Certificate, limit_s: float | None
) -> Iterator[Finding]:
    """All of a certificate that a search judges.

    Args:
        limit_s: of both searches; with one, the same search may prove less today.
    """
    is_rate, path = certificate.objective_name in RATES, ("certificate",)
    yield from _refuted(says, certificate.objective, is_rate=is_rate)
    if limit_s is not None and certificate.status != OPTIMAL:
        return
    if says.status == OPTIMAL and certificate.status != OPTIMAL:
        fact = f"is not what the search proves: {certificate.status}"
        yield Finding(path=(*path, "status"), says=says.status, fact=fact)
    elif is_better(says.bound, certificate.bound, is_rate=not is_rate):
        fact = f"is not proved: the search proves {certificate.bound!r}"
        yield Finding(path=(*path, "bound"), says=says.bound, fact=fact)
    yield from counts(says, certificate)
    yield from provers_words(says.proofs, certificate.proofs, (*path, "proofs"))


def subset_findings(
    says: Certificate, best: float, own: float | None, name: str
) -> Iterator[Finding]:
    """What the best of some of all choices shows: none of it may be better than the bound.

    Args:
        best: objective of the best of them.
        own: that of the answer, where it is one of them: the best of them is no worse.
        name: of the subset, in words.
    """
    is_rate, path = says.objective_name in RATES, ("certificate", "bound")
    bound = says.sorts[-1].bound if says.sorts else says.bound  # of any number of sorts
    if is_better(best, bound, is_rate=is_rate):
        fact = f"is no bound: {name} reaches {best!r}"
        yield Finding(path=path, says=bound, fact=fact)
    if own is not None and is_better(own, best, is_rate=is_rate):
        fact = f"is of an answer that a search of {name} does not have: its best is {best!r}"
        yield Finding(path=("certificate", "objective"), says=own, fact=fact)


def _refuted(says: Certificate, best: float, *, is_rate: bool) -> Iterator[Finding]:
    """Bounds that an answer beats, and an answer that is not as good as its status says."""
    path: Path = ("certificate",)
    if is_better(best, says.bound, is_rate=is_rate):
        fact = f"is no bound: {best!r} is reached"
        yield Finding(path=(*path, "bound"), says=says.bound, fact=fact)
    if says.status == OPTIMAL and abs(says.objective - best) > abs(best) * (says.gap + CLOSE):
        fact = f"is not what {says.objective!r} is called where {best!r} can be had"
        yield Finding(path=(*path, "status"), says=says.status, fact=fact)
    for i, proof in enumerate(says.proofs):
        is_of_all = proof.is_accepted and not proof.program
        if is_of_all and is_better(best, proof.bound, is_rate=is_rate):
            fact = f"is no bound: {best!r} is reached"
            yield Finding(path=(*path, "proofs", str(i), "bound"), says=proof.bound, fact=fact)


def counts(says: Certificate, certificate: Certificate) -> Iterator[Finding]:
    """Numbers of candidates and of what was screened, which the request decides."""
    path: Path = ("certificate",)
    yield from same_fields(says, certificate, "n_candidates", "n_contexts", path=path)
    if says.status != OPTIMAL or certificate.status != OPTIMAL:
        return  # what is screened depends on where the time ended
    yield from same_fields(says, certificate, "n_solved", "sorts", path=path)
    for i, pair in enumerate(zip(says.sorts, certificate.sorts, strict=False)):
        yield from same_fields(*pair, "n_sorts", "bound", path=(*path, "sorts", str(i)))
    mine, others = (
        {screen.name: screen.n_candidates for screen in one.screens} for one in (says, certificate)
    )
    if mine != others:
        fact = f"rejected {mine}, and there are {others}"
        yield Finding(path=(*path, "screens"), says=len(mine), fact=fact)


def provers_words(says: Sequence[Proof], proofs: Sequence[Proof], path: Path) -> Iterator[Finding]:
    """What provers said that ended in both searches."""
    ended: Mapping[tuple[str, str], Proof] = {
        (one.prover, one.program): one for one in proofs if one.outcome == "optimal"
    }
    for i, proof in enumerate(says):
        other = ended.get((proof.prover, proof.program))
        if other is not None and proof.outcome == "optimal":
            yield from same_fields(proof, other, "value", "bound", path=(*path, str(i)))


def among_again(requests: Sequence[AnyRequest], order: Sequence[str] = ()) -> CandidatePool:
    """Of all that was asked together; models that were asked for before their variants.

    Args:
        order: names of the runtimes as they were asked, where there were several.
    """
    parts = [one for request in requests for one in candidates_again(request)]
    ranks = {name: i for i, name in enumerate(order)}
    parts.sort(
        key=lambda candidates: (candidates.variant is not None, ranks.get(candidates.runtime, 0))
    )
    return CandidatePool(parts=tuple(parts))


def decided_again(requests: Sequence[AnyRequest], order: Sequence[str] = ()) -> AnyPlan:
    """What is planned for all that was asked together, in the time that the first has.

    Raises:
        NoPlanError, OutOfTimeError, SolverError: as `planning.plan`.
    """
    with within(requests[0].options.time_limit_s):
        return decide(among_again(requests, order), prefer=prefer_of(requests))


def named_again(says: Frontier | Conflict) -> CandidatePool:
    """Of an answer that says names: a request of layouts does where `erdil2025`, which has none,
    counts, which is compared with nothing else in one program."""
    first, others = says.request, says.other_requests
    by_own = [one for one in others if isinstance(one, EconomicsRequest)]
    if by_own and isinstance(first, Request):
        return CandidatePool(parts=(ErdilCandidates(request=by_own[0], asked=first),))
    return among_again((first, *others))


def candidates_again(request: AnyRequest) -> tuple[Candidates, ...]:
    """Of one runtime: of the model and of its variants."""
    if isinstance(request, Request):
        return roofline.candidates_of_request(request)
    if not isinstance(request, EngineRequest):
        return (ErdilCandidates(request=request),)
    return engines.candidates_of_request(request, from_fields(Machines, request.records))


def prefer_of(requests: Sequence[AnyRequest]) -> str:
    """What is preferred of plans as good as each other; the best, where nothing says otherwise."""
    said = (one.prefer for one in requests if isinstance(one, EngineRequest))
    return next(said, "objective")
