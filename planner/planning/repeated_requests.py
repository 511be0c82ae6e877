"""The candidates of a request, made again of the records that it holds."""

from collections.abc import Mapping, Sequence

from planner.errors import NoPlanError, OutOfTimeError, Problem
from planner.planning.engine_audit import set_beside
from planner.planning.plans import decide
from planner.quantities.table import objective_of
from planner.results.engines import EngineAudit
from planner.results.plans import AnyPlan, AnyRequest, ResourceGain
from planner.results.surveys import Frontier
from planner.running import begin
from planner.running.deadlines import within
from planner.runtimes.candidates import CandidatePool, Candidates
from planner.runtimes.engines import EngineCandidates
from planner.runtimes.erdil2025 import ErdilCandidates
from planner.runtimes.predicting import Machines
from planner.runtimes.roofline import candidates_of_request
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.files.ledger import remark
from planner.specs.files.what_if import OPTION, has, multiplied, resources
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.kernels import inner_records
from planner.specs.records.runtimes import ERDIL2025


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


def traced_again(says: Frontier) -> CandidatePool:
    """Of a frontier; a request of layouts says names where `erdil2025`, which has none, counts."""
    first, others = says.request, says.other_requests
    by_own = [one for one in others if isinstance(one, EconomicsRequest)]
    if by_own and isinstance(first, Request) and says.cost_model.name == ERDIL2025.name:
        return CandidatePool(parts=(ErdilCandidates(request=by_own[0], asked=first),))
    return among_again((first, *others))


def candidates_again(request: AnyRequest) -> tuple[Candidates, ...]:
    """Of one runtime: of the model and of its variants."""
    if isinstance(request, Request):
        return candidates_of_request(request)
    if not isinstance(request, EngineRequest):
        return (ErdilCandidates(request=request),)
    machines, records = _machines(request), request.records
    return tuple(
        EngineCandidates(
            request=request,
            model=architecture,
            asked=records.models[0],
            machines=machines,
            cluster=records.cluster,
        )
        for architecture in records.models
    )


def _machines(request: EngineRequest) -> Machines:
    records = request.records
    return Machines(kernels=records.kernels, engine=records.engine, cluster=records.cluster)


def prefer_of(requests: Sequence[AnyRequest]) -> str:
    """What is preferred of plans as good as each other; the best, where nothing says otherwise."""
    said = (one.prefer for one in requests if isinstance(one, EngineRequest))
    return next(said, "objective")


def audited_again(audit: EngineAudit) -> dict[str, object]:
    """What an audit sets beside what runs, by its names."""
    (free,) = candidates_again(audit.request)
    observed = audit.observed_tpot_s, audit.observed_usd_per_token
    return set_beside(free, audit.predicted, *observed)


def resource_gains(plan: AnyPlan, factors: Mapping[str, float]) -> tuple[ResourceGain, ...]:
    """What the best would gain of so many times as much of each resource by itself, most first.

    What the machine does not have is left out; so is what time ended before, with a remark.
    """
    requests, proof = (plan.request, *plan.other_requests), plan.certificate
    is_rate, gains = objective_of(proof.objective_name).is_rate, []
    pools = [pool for _, pool in inner_records(requests, ClusterSpec)]
    for name in (name for name in factors if any(has(pool, name) for pool in pools)):
        begin(f"solving with other {resources()[name]['words']}")
        more = [multiplied(request, {name: factors[name]}) for request in requests]
        try:
            with within(plan.request.options.time_limit_s):
                among = among_again(more, [rival.runtime for rival in plan.rivals])
                best = decide(among, prefer=prefer_of(more)).certificate.objective
        except (NoPlanError, OutOfTimeError) as error:
            remark(Problem(where=OPTION, value=name, fact=f"is not known: {error}"))
            continue
        gain = best / proof.objective - 1.0 if is_rate else 1.0 - best / proof.objective
        gains.append(
            ResourceGain(name=name, factor=factors[name], objective=best, gain_fraction=gain)
        )
    return tuple(sorted(gains, key=lambda gain: -gain.gain_fraction))
