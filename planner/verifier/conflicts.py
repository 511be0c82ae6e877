"""Conflicts counted anew: what each relaxation asks for, comes to and costs; that nothing less does
is proved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from planner.results.conflicts import Conflict, Relaxation, RelaxedLimit
from planner.results.obstacles import Obstacle
from planner.results.plans import AnyRequest
from planner.specs.ask.request import Request
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.records.economics import EconomicsRequest
from planner.verifier.findings import Finding, Path, with_differences
from planner.verifier.quantities import MEASURES, limits_of, measure_of
from planner.verifier.runtimes.counting import Countings, disagreements

CLOSE = 1e-8
"""Relative, of limits that a plan only just keeps."""

POLICY = "prefill_batch"
"""Of prompts that are read together, where a target on tokens has each read alone."""


def judge_conflict(says: Conflict) -> tuple[Conflict, list[Finding]]:
    """The conflict that is true of its relaxations, and everything in this one that is not so."""
    by_own = [it for it in says.other_requests if isinstance(it, EconomicsRequest)]
    requests = by_own or (says.request, *says.other_requests)  # its request says names for that
    limits = limits_of(requests[0].targets)
    wrong = list(disagreements(requests, ("other_requests",)))
    relaxations: list[Relaxation] = []
    for i, relaxation in enumerate(says.relaxations):
        true, more = _relaxation(relaxation, requests, limits)
        relaxations.append(true)
        wrong += [it.below(("relaxations", str(i))) for it in more]
    names = [obstacle.name for obstacle in says.obstacles]
    if [*chain(*says.cores)] != names:
        fact = f"are not of {', '.join(names)}, which stand in the way"
        wrong.append(Finding(path=("cores",), says=str(says.cores), fact=fact))
    obstacles = tuple(_obstacle(it, limits.get(it.name, it.asked)) for it in says.obstacles)
    closest = relaxations[0].deployment if relaxations else says.closest
    truth = replace(says, relaxations=tuple(relaxations), obstacles=obstacles, closest=closest)
    return truth, with_differences(wrong, says, truth)


def _obstacle(says: Obstacle, limit: float) -> Obstacle:
    dimension = "1" if says.name == POLICY else MEASURES[says.name].dimension
    return replace(says, asked=limit, dimension=dimension)


def _relaxation(
    says: Relaxation, requests: Sequence[AnyRequest], limits: Mapping[str, float]
) -> tuple[Relaxation, list[Finding]]:
    """One change of limits: its plan is counted under the request with these."""
    changed = {it.name: it.limit for it in says.changes if it.name in limits}
    is_freed = len(changed) < len(says.changes)
    among = Countings.of([_relaxed(it, changed, is_freed=is_freed) for it in requests])
    best, wrong = among.counted(says.deployment, ("deployment",))
    for i, change in enumerate(says.changes):
        wrong += _unlike(change, limits, ("changes", str(i)))
    changes = tuple(replace(it, requested=limits.get(it.name, 1.0)) for it in says.changes)
    truth = replace(
        says,
        changes=changes,
        price_fraction=sum(_share(it) for it in changes if it.name in limits),
        deployment=best,
        objective=measure_of(requests[0].objective).of(best),
    )
    return truth, wrong


def _relaxed(request: AnyRequest, limits: Mapping[str, float], *, is_freed: bool) -> AnyRequest:
    """A request with other limits, and with prompts read together where a policy yields."""
    changed = replace(request, targets=request.targets.with_limits(limits))
    if is_freed and isinstance(changed, Request):
        return replace(changed, prefill="cost", prefill_batches=DEFAULT_BATCHES)
    return changed


def _unlike(says: RelaxedLimit, limits: Mapping[str, float], path: Path) -> Iterator[Finding]:
    """A change of what nobody limits, of a limit that is kept, or to one that lets nothing in."""
    limit = limits.get(says.name)
    if limit is None:
        if says.name != POLICY:
            fact = f"is no limit of the request: {', '.join(limits)} are"
            yield Finding(path=(*path, "name"), says=says.name, fact=fact)
        return
    is_kept = MEASURES[says.name].is_kept
    if is_kept(says.needed, limit, CLOSE):
        fact = f"is within the limit, {limit!r}, which need not yield"
        yield Finding(path=(*path, "needed"), says=says.needed, fact=fact)
    if not is_kept(says.needed, says.limit, CLOSE):
        fact = f"does not let {says.needed!r} through"
        yield Finding(path=(*path, "limit"), says=says.limit, fact=fact)


def _share(says: RelaxedLimit) -> float:
    """By which share a limit is loosened: a most that doubles, and a least that is halved, by 1."""
    is_least = MEASURES[says.name].is_least
    return (says.requested / says.needed if is_least else says.needed / says.requested) - 1.0
