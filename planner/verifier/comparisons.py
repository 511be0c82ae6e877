"""A comparison counted anew: the plan of every row, which is the best, what the others lose."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from planner.results.placements import Placement
from planner.results.plans import AnyPlan, AnyRequest
from planner.results.surveys import Case, Comparison, Row
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.placement import PlacementRequest
from planner.specs.records.economics import EconomicsRequest
from planner.verifier.findings import Finding, Path, differences, with_differences
from planner.verifier.placing.placements import judge_placement
from planner.verifier.plans import OBJECTIVES, judge_plan
from planner.verifier.quantities import measure_of
from planner.verifier.runtimes.counting import counting_of

ALIKE = ("workload", "targets", "confidence")
"""What all rows are asked alike."""


def judge_comparison(says: Comparison) -> tuple[Comparison, list[Finding]]:
    """The comparison that is true of its plans, and everything in this one that is not so."""
    wrong: list[Finding] = []
    answers: list[AnyPlan | Placement | None] = []
    first = next((row.plan for row in says.rows if row.plan), None)
    for i, row in enumerate(says.rows):
        here: Path = ("rows", str(i))
        if row.placement is not None:
            placement, more = _placed(row, says, here)
            answers.append(placement)
            wrong += more
            continue
        if row.plan is None:  # that there is none is proved
            answers.append(None)
            wrong += _denied(row, first, here)
            continue
        plan, more = judge_plan(row.plan)
        answers.append(plan)
        wrong += [one.below((*here, "plan")) for one in more]
        runtime = counting_of(row.plan.request).runtime
        wrong += misnamed(row.case, row.plan.request, runtime, (*here, "case"))
        if first is not None:
            wrong += _unlike(row.plan.request, first.request, (*here, "plan", "request"))
    objective = first.request.objective if first else says.objective
    wrong += _of_two_kinds(answers)
    rows, best = _ranked(says, answers, objective)
    truth = replace(says, objective=objective, rows=rows, best=best)
    return truth, with_differences(wrong, says, truth)


def _denied(row: Row, first: AnyPlan | None, here: Path) -> Iterator[Finding]:
    """A row without an answer: of a request that is asked what the others are."""
    yield from denied(row.case, row.reason, row.requests, here)
    for one in row.requests:
        if first is not None and not isinstance(one, PlacementRequest):
            yield from _unlike(one, first.request, (*here, "requests", "0"))


def _ranked(
    says: Comparison, answers: list[AnyPlan | Placement | None], objective: str
) -> tuple[tuple[Row, ...], int | None]:
    """The rows, each with what it loses of the best one; and which that is, the first of equals."""
    values = [None if one is None else _compared_value(one, objective) for one in answers]
    known = [value for value in values if value is not None]
    best = (max if measure_of(objective).is_rate else min)(known, default=None)
    rows: list[Row] = []
    for row, answer, value in zip(says.rows, answers, values, strict=True):
        truth = replace(
            row,
            loss_fraction=_lost(value, best),
            reason=row.reason if answer is None else "",
            requests=row.requests if answer is None else (),
        )
        rows.append(
            replace(truth, placement=answer)
            if isinstance(answer, Placement)
            else replace(truth, plan=answer)
        )
    return tuple(rows), None if best is None else values.index(best)


def _of_two_kinds(answers: Sequence[AnyPlan | Placement | None]) -> Iterator[Finding]:
    """Plans beside placements, which are not compared with each other."""
    if len({type(one) for one in answers if one is not None}) > 1:
        fact = "are plans and placements, which are not compared with each other"
        yield Finding(path=("rows",), says=len(answers), fact=fact)


def _compared_value(answer: AnyPlan | Placement, objective: str) -> float:
    """What a row is compared by: of replicas that serve one demand, their rent or devices."""
    if isinstance(answer, Placement):
        return answer.certificate.objective
    return measure_of(objective).of(answer.deployment)


def _placed(row: Row, says: Comparison, here: Path) -> tuple[Placement, list[Finding]]:
    """The placement of a row, asked what the other rows are."""
    assert row.placement is not None
    truth, wrong = judge_placement(row.placement)
    findings = [one.below((*here, "placement")) for one in wrong]
    path, mine, case = (*here, "placement", "request"), row.placement.request, row.case
    if row.plan is not None:
        findings.append(Finding(path=(*here, "plan"), says="a plan", fact="is beside a placement"))
    if mine.objective != OBJECTIVES.get(says.objective):
        fact = f"is not what makes the least {says.objective}"
        findings.append(Finding(path=(*path, "objective"), says=mine.objective, fact=fact))
    findings += called_otherwise(case, mine, (*here, "case"))
    first = next(one.placement.request for one in says.rows if one.placement is not None)
    findings += _asked_otherwise(mine, first, (*ALIKE, "limits", "objective"), path)
    for one, other in zip(mine.models, first.models, strict=False):
        pair = one.demand_tokens_per_s, other.demand_tokens_per_s
        findings += differences(*pair, (*path, "models", "0", "demand_tokens_per_s"))
    return truth, findings


def _lost(value: float | None, best: float | None) -> float | None:
    if value is None or best is None:
        return None
    return abs(value - best) / abs(best) if best else 0.0


def _unlike(mine: AnyRequest, other: AnyRequest, path: Path) -> Iterator[Finding]:
    """What a row was asked that the first was not: only then can they be set side by side."""
    if mine.objective != other.objective:
        yield Finding(path=(*path, "objective"), says=mine.objective, found=other.objective)
    yield from _asked_otherwise(mine, other, ALIKE, path)


def _asked_otherwise(
    mine: AnyRequest | PlacementRequest,
    other: AnyRequest | PlacementRequest,
    names: Sequence[str],
    path: Path,
) -> Iterator[Finding]:
    """Fields that both requests have and that differ."""
    both = {field.name for field in fields(mine)} & {field.name for field in fields(other)}
    for name in names:
        if name in both:
            yield from differences(getattr(mine, name), getattr(other, name), (*path, name))


def misnamed(case: Case, request: AnyRequest, runtime: str, path: Path) -> Iterator[Finding]:
    """Names that are not those of what was asked.

    Args:
        runtime: that counted the answer.
    """
    yield from _other(case, request, path)
    offered, caches = _formats(request)
    if case.engine and case.engine != runtime:
        fact = f"is not {runtime}, whose answer this is"
        yield Finding(path=(*path, "engine"), says=case.engine, fact=fact)
    if case.weights and not set(offered) <= set(case.weights.split(",")):
        fact = f"is not {','.join(offered)}, which was offered"
        yield Finding(path=(*path, "weights"), says=case.weights, fact=fact)
    if case.kv and caches and (case.kv,) != caches:
        fact = f"is not {','.join(caches)}, which was offered"
        yield Finding(path=(*path, "kv"), says=case.kv, fact=fact)


def denied(
    case: Case, reason: str, requests: Sequence[AnyRequest | PlacementRequest], path: Path
) -> Iterator[Finding]:
    """What is wrong with a case that is said to have no answer; that it has none is proved.

    Args:
        requests: its requests; none of what could not be read, or of which time ended.
        path: of the case, with what is said of it.
    """
    if not requests and not reason.startswith(("no plan within ", "`")):
        fact = "is of no request, and neither of what could not be read nor of time that ended"
        yield Finding(path=(*path, "reason"), says=reason, fact=fact)
    for request in requests[:1]:
        if isinstance(request, PlacementRequest):
            yield from called_otherwise(case, request, (*path, "case"))
        else:
            yield from misnamed(case, request, counting_of(request).runtime, (*path, "case"))


def called_otherwise(case: Case, request: PlacementRequest, path: Path) -> Iterator[Finding]:
    """Names of a case that are not those of what replicas were asked."""
    names = {
        "model": (case.model, ", ".join(one.model.name for one in request.models)),
        "topology": (case.topology, request.site.name),
        "engine": (case.engine, case.engine and ", ".join(request.engines)),
        "roles": (case.roles, request.roles.name),
        "weights": (case.weights, ",".join(request.models[0].weights_formats or ())),
        "kv": (case.kv, case.kv and ",".join(request.models[0].kv_formats or ())),
    }
    for name, (said, true) in names.items():
        if said != true:
            yield Finding(path=(*path, name), says=said, found=true)


def _other(case: Case, request: AnyRequest, path: Path) -> Iterator[Finding]:
    """Another model or pool; `erdil2025` has models by the format of their weights, and no pool."""
    if isinstance(request, EconomicsRequest):
        names = {"model": request.served[0].target.model.name}
    else:
        names = {"model": request.model.name, "topology": request.cluster.name}
    for field, true in names.items():
        if getattr(case, field) != true:
            yield Finding(path=(*path, field), says=getattr(case, field), found=true)


def _formats(request: AnyRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Formats of weights and cache that were offered; of a cache without formats none."""
    if isinstance(request, EconomicsRequest):
        return tuple(one.weights_format for one in request.served), ()
    if isinstance(request, EngineRequest):
        pairs = request.formats
        weights = tuple(dict.fromkeys(one.weights for one in pairs))
        return weights, tuple(dict.fromkeys(one.cache for one in pairs))
    return request.weights_formats, request.kv_formats
